/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - ranks with streams between them, over a cabling; and whether they go on. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "play.h"
#include "said.h"

#define STREAMS_MAX (PLAY_PAIRS_MAX * PLAY_STREAMS_MAX)
/* Between two looks of NCCL's threads, while there is something to do and while there is not. */
#define BUSY_NS (20 * WORLD_US)
#define IDLE_NS (1 * WORLD_MS)
/* NCCL_MESH_RECOVERY_TIMEOUT, and some seconds. */
#define RECOVERY_NS (35 * WORLD_S)
/* And comms are on a cable again that is back for so long. */
#define RETURN_NS (2 * WORLD_S)
/* An end that has not come after so long will not come. */
#define END_NS (60 * WORLD_S)
/* How long the plugin is used once more: until neighbours have found each other. */
#define AGAIN_NS (2 * WORLD_S)
/* Without a fault: until relays know that the comms of others are closed. */
#define SETTLE_NS (1 * WORLD_S)
/* Without a fault, a process says an INFO at most so often: for each end of a stream, and so on. */
#define QUIET_LINES 32

struct play play = {.gap_ns = 8 * WORLD_S, .pair_streams = PLAY_STREAMS_MAX};
static struct stream streams[STREAMS_MAX];
static int num_streams;

/* ---- what should work ---------------------------------------------------------------------- */

static bool node_is_well(const struct world_node *node)
{
	return node->limit_files == WORLD_FILES_MAX && !node->frozen;
}

static bool cable_is_well(int cable)
{
	return world.cables[cable].state == WORLD_CABLE_UP &&
	       node_is_well(world.cables[cable].nodes[0]) &&
	       node_is_well(world.cables[cable].nodes[1]);
}

/* Bit masks of nodes. */
static unsigned int cable_ends(int cable)
{
	return 1u << world.cables[cable].nodes[0]->number |
	       1u << world.cables[cable].nodes[1]->number;
}

static unsigned int pair_ends(const struct pair *pair)
{
	return 1u << pair->a | 1u << pair->b;
}

/* Those that run. */
static unsigned int processes(void)
{
	unsigned int mask = 0;

	for (int i = 0; i < play.num_ranks; i++)
		mask |= play.ranks[i].net ? 1u << i : 0;
	return mask;
}

/* Those of @from, and what good cables lead to from those of them that forward. */
static unsigned int nodes_next(unsigned int from, unsigned int forward)
{
	for (int i = 0; i < world.num_cables; i++) {
		if (cable_is_well(i) && from & forward & cable_ends(i))
			from |= cable_ends(i);
	}
	return from;
}

/* True if one joins the two that is well. */
static bool pair_has_cable(const struct pair *pair)
{
	for (int i = 0; i < world.num_cables; i++) {
		if (cable_ends(i) == pair_ends(pair) && cable_is_well(i))
			return true;
	}
	return false;
}

/* True if a way leads from one to the other, over relays that run. */
static bool pair_is_well(const struct pair *pair)
{
	unsigned int reached = 1u << pair->a, before = 0;

	while (reached != before) {
		before = reached;
		reached = nodes_next(reached, processes() | pair_ends(pair));
	}
	return reached >> pair->b & 1;
}

void play_look(void)
{
	struct pair *pair;

	for (pair = play.pairs; pair < play.pairs + play.num_pairs; pair++) {
		if (!pair_has_cable(pair))
			pair->cable_since_ns = 0;
		else if (!pair->cable_since_ns)
			pair->cable_since_ns = world.now_ns;
		if (!pair_is_well(pair)) {
			pair->well_since_ns = 0;
			if (!pair->ill_since_ns)
				pair->ill_since_ns = world.now_ns;
		} else if (!pair->well_since_ns) {
			pair->well_since_ns = world.now_ns;
			pair->ill_since_ns = 0;
		}
	}
}

bool play_is_well(void)
{
	for (int i = 0; i < play.num_pairs; i++) {
		if (!play.pairs[i].well_since_ns)
			return false;
	}
	return true;
}

/* True if relays carry the stream, or have when it was doomed. */
static bool is_relayed(const struct stream *stream, const struct pair *pair)
{
	return !pair->cable_since_ns ||
	       (stream->doomed_ns && stream->doomed_ns < pair->cable_since_ns + RETURN_NS);
}

static bool ends_have_failed(const struct stream *stream)
{
	return stream->send.failed_ns && stream->receive.failed_ns;
}

/* It fails when the case says so. */
static void end_judge(const struct stream *stream, const struct stream_end *end)
{
	uint64_t ns = end->failed_ns ? end->failed_ns : world.now_ns;

	if (ns > play.fails_until_ns || (end->failed_ns && ns < play.fails_from_ns))
		world_die("stream %d %s at %s", stream->number,
			  end->failed_ns ? "has failed" : "goes on", end->rank->node->name);
}

/* The stream of this place of the list: nothing fails by itself, and nothing stands. */
static void stream_judge(const struct stream *stream, const struct pair *pair)
{
	uint64_t since_ns = stream->doomed_ns ? stream->doomed_ns : stream->progressed_ns;
	/* The next look for another route may be long in coming: docs/protocol/relaying.md. */
	uint64_t limit_ns = is_relayed(stream, pair) ? 3 * play.gap_ns : play.gap_ns;

	if (rank_fails) {
		end_judge(stream, &stream->send);
		end_judge(stream, &stream->receive);
	} else if (stream->state == STREAM_FAILED && !stream->doomed_ns) {
		world_die("stream %d from %s to %s has failed", stream->number,
			  stream->send.rank->node->name, stream->receive.rank->node->name);
	}
	if (stream->state >= STREAM_STOPPED || !pair->well_since_ns ||
	    (stream->send.gone && stream->receive.gone))
		return;
	if (since_ns < pair->well_since_ns)
		since_ns = pair->well_since_ns;
	if (!stream->doomed_ns && world.now_ns - since_ns > play.longest_ns)
		play.longest_ns = world.now_ns - since_ns;
	/* A relay tells of an end once: who had no way to it just then waits for recovery's end. */
	if (stream->doomed_ns && !pair->cable_since_ns)
		limit_ns = RECOVERY_NS;
	if (world.now_ns - since_ns > limit_ns)
		world_die("stream %d from %s to %s %s, though all is well between them",
			  stream->number, stream->send.rank->node->name,
			  stream->receive.rank->node->name,
			  stream->doomed_ns ? "does not learn of its end" : "stands");
}

/* What has come to its end makes place for the next one. */
static void stream_renew(struct stream *stream, int place)
{
	const struct pair *pair = &play.pairs[place / play.pair_streams];
	struct rank *a = &play.ranks[pair->a], *b = &play.ranks[pair->b];
	/* Without a comm, or with messages that end somewhere, nobody has to learn of anything. */
	bool is_over =
		stream->state == STREAM_STOPPED ||
		(stream->state == STREAM_FAILED && (!rank_fails || ends_have_failed(stream))) ||
		(stream->doomed_ns && stream->state != STREAM_RUNS) ||
		(stream->send.gone && stream->receive.gone);

	/* A connect that has no way at first may fail before its time: not promised yet. */
	if (!node_is_well(a->node) || !node_is_well(b->node) || !pair->well_since_ns)
		return;
	if (stream->state != STREAM_CLOSED && is_over) {
		play.messages += stream->receive.done;
		play.bytes += stream->bytes;
		stream_close(stream);
	}
	if (stream->state == STREAM_CLOSED && !play.ends && a->net && b->net)
		stream_open(stream, play.num_streams++, place % 2 ? b : a, place % 2 ? a : b,
			    place / 2);
}

bool play_turn(void)
{
	bool busy = false, runs = false;

	for (int i = 0; i < num_streams; i++) {
		busy |= stream_turn(&streams[i]);
		stream_judge(&streams[i], &play.pairs[i / play.pair_streams]);
		stream_renew(&streams[i], i);
		runs |= streams[i].state != STREAM_CLOSED;
	}
	world_pause(busy ? BUSY_NS : IDLE_NS);
	return runs;
}

bool play_is_connected(void)
{
	for (int i = 0; i < num_streams; i++) {
		if (streams[i].state == STREAM_CONNECTS)
			return false;
	}
	return true;
}

struct stream *play_stream_draw(void)
{
	return &streams[world_draw((uint64_t)num_streams)];
}

void play_kill(int rank)
{
	world_kill(play.ranks[rank].node);
	play.ranks[rank].net = NULL;
	streams_lose(streams, num_streams, &play.ranks[rank]);
}

/* A setting that begins with "x:" is one of the node x alone. */
static void settings_set(const char *settings, char node, bool set)
{
	char words[512], *word, *rest, *value;

	snprintf(words, sizeof(words), "%s", settings);
	for (word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (word[1] == ':' && word[0] != node)
			continue;
		word += word[1] == ':' ? 2 : 0;
		value = strchr(word, '=');
		if (!value)
			world_die("no setting: %s", word);
		*value = '\0';
		if (set)
			setenv(word, value + 1, 1);
		else
			unsetenv(word);
	}
}

void play_restart(int rank)
{
	char node = (char)('a' + rank);

	settings_set("FI_PROVIDER=net,tcp,ofi_rxm NCCL_MESH_RELAY=any", node, true);
	statistics_folder_make(&play.ranks[rank].statistics, play.folder, node);
	settings_set(play.settings ? play.settings : "", node, true);
	rank_start(&play.ranks[rank], &world.nodes[rank], play.plugin);
	settings_set(play.settings ? play.settings : "", node, false);
}

void play_drain(int rank, int cable, bool drained)
{
	char mark[PATH_MAX];
	int fd;

	mkdir(play.ranks[rank].statistics.folder, 0700); /* if nothing has made it yet */
	snprintf(mark, sizeof(mark), "%s/drain-x%d", play.ranks[rank].statistics.folder, cable);
	world_say("%s is%s drained", mark, drained ? "" : " no longer");
	fd = drained ? open(mark, O_WRONLY | O_CREAT, 0600) : -1;
	if (drained ? fd < 0 : unlink(mark))
		world_die("%s: %s", mark, strerror(errno));
	if (fd >= 0)
		close(fd);
	world_folder_changed(play.ranks[rank].node);
}

/* ---- cablings ------------------------------------------------------------------------------ */

/* Node by node, and each cable's two: "ab ab" are two cables between a and b. */
static const struct cabling {
	const char *name;
	int num_ranks;
	const char *cables[PLAY_CABLES_MAX];
	const char *pairs[PLAY_PAIRS_MAX];
} cablings[] = {
	{"pair", 2, {"ab", "ab"}, {"ab"}},
	{"triangle", 3, {"ab", "bc", "ca"}, {"ab", "bc", "ca"}},
	{"line", 3, {"ab", "bc"}, {"ac", "ab"}},
	{"ring", 4, {"ab", "bc", "cd", "da"}, {"ac", "bd"}},
	{"diamond", 4, {"ab", "bc", "ad", "dc"}, {"ac"}},
	{"square", 4, {"ab", "bc", "cd", "da"}, {"ab", "cd", "ac", "bd"}},
	{"pentagon", 5, {"ab", "bc", "cd", "de", "ea"}, {"ab", "cd", "ac", "be"}},
	{"full", 4, {"ab", "ac", "ad", "bc", "bd", "cd"}, {"ab", "cd", "ac", "bd"}},
	{"chain", 4, {"ab", "bc", "cd"}, {"ad", "ac"}},
	{"detour", 5, {"ab", "bc", "ad", "de", "ec"}, {"ac"}},
	{"one", 2, {"ab"}, {"ab"}},
	{"apart", 4, {"ab", "cd"}, {"ab", "cd"}},
};

static void cabling_make(const struct cabling *cabling)
{
	char name[2] = "a";

	for (int i = 0; i < cabling->num_ranks; i++, name[0]++)
		world_node_add(name);
	for (int i = 0; i < PLAY_CABLES_MAX && cabling->cables[i]; i++)
		world_cable_add(&world.nodes[cabling->cables[i][0] - 'a'],
				&world.nodes[cabling->cables[i][1] - 'a'], 100, 20);
	play.num_ranks = cabling->num_ranks;
	for (int i = 0; i < world.num_cables; i++) {
		if (play.absent >> i & 1)
			world_cable_set(i, WORLD_CABLE_DOWN);
	}
	for (int i = 0; i < play.num_ranks; i++)
		play_restart(i);
	for (; play.num_pairs < PLAY_PAIRS_MAX && cabling->pairs[play.num_pairs];
	     play.num_pairs++) {
		play.pairs[play.num_pairs].a = cabling->pairs[play.num_pairs][0] - 'a';
		play.pairs[play.num_pairs].b = cabling->pairs[play.num_pairs][1] - 'a';
	}
	play_look();
	num_streams = play.num_pairs * play.pair_streams;
	for (int i = 0; i < num_streams; i++)
		streams[i].state = STREAM_CLOSED;
}

static const struct cabling *cabling_find(const char *name)
{
	for (size_t i = 0; i < sizeof(cablings) / sizeof(cablings[0]); i++) {
		if (!strcmp(cablings[i].name, name))
			return &cablings[i];
	}
	world_die("there is no cabling %s", name);
}

void play_begin(uint64_t seed, const char *cabling)
{
	const char *build = getenv("MESH_BUILD");

	world_start(seed);
	snprintf(play.plugin, sizeof(play.plugin), "%s/world/plugin.so", build ? build : "build");
	cabling_make(cabling_find(cabling));
}

static void ranks_end(void)
{
	for (int i = 0; i < play.num_ranks; i++) {
		if (play.ranks[i].net)
			rank_end(&play.ranks[i], play.quiet);
	}
}

/* A pair without a cable goes over one relay. */
static void quiet_check(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i < num_streams; i++) {
		if (!pair_has_cable(&play.pairs[i / play.pair_streams]))
			bytes += streams[i].bytes;
	}
	if (statistics_relayed_bytes != bytes)
		world_die("relays count %lu bytes, not %lu", statistics_relayed_bytes, bytes);
	said_check_quiet(QUIET_LINES);
}

void play_rest(bool rest)
{
	for (int i = 0; i < num_streams; i++)
		stream_rest(&streams[i], rest);
}

void play_abort(int rank, int stream)
{
	bool sends = streams[stream].send.rank == &play.ranks[rank];

	stream_abort(&streams[stream], sends ? &streams[stream].send : &streams[stream].receive);
}

static void lines_check(const struct world_node *node, const char *says, int lines)
{
	int times = said_times(node, says);

	if (!times || (lines && times != lines))
		world_die("%s has said %d times: %s", node->name, times, says);
}

void play_check_failed(const char *says, int lines)
{
	for (int i = 0; i < num_streams; i++) {
		if (!ends_have_failed(&streams[i]))
			world_die("stream %d has not failed at both ends", i);
		lines_check(streams[i].send.rank->node, says, lines);
		lines_check(streams[i].receive.rank->node, says, lines);
	}
}

void play_end(uint64_t seed)
{
	uint64_t limit_ns = world.now_ns + END_NS;

	play.ends = true;
	do {
		for (int i = 0; i < num_streams; i++)
			stream_stop(&streams[i]);
		if (world.now_ns > limit_ns)
			world_die("the streams do not end");
	} while (play_turn());
	if (play.quiet)
		world_pause(SETTLE_NS);
	ranks_end();
	if (play.quiet)
		quiet_check();
	for (int i = 0; i < play.num_ranks; i++) {
		if (play.ranks[i].net)
			rank_begin(&play.ranks[i]);
	}
	world_pause(AGAIN_NS);
	ranks_end();
	printf("seed %lu: %.1f s, %d streams, %lu messages, %lu MB, longest gap %.3f s\n", seed,
	       (double)world.now_ns / WORLD_S - 1000, play.num_streams, play.messages,
	       play.bytes >> 20, (double)play.longest_ns / WORLD_S);
	fflush(stdout);
}
