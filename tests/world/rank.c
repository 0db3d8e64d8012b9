/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - NCCL's part: processes that load the plugin, and streams of messages between them. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leftovers.h"
#include "rank.h"
#include "said.h"

/* A longer gap between messages is said. */
#define GAP_SAID_NS (1 * WORLD_S)
/* The plugin says a kind of WARN once in so long: MESH_LOG_LIMIT_PERIOD_MS. */
#define WARN_NS (10 * WORLD_S)

size_t rank_message_bytes = MESSAGE_BYTES;
const char *rank_expects, *rank_excludes;
bool rank_fails;

static void __attribute__((format(printf, 5, 6)))
log_line(enum nccl_level level, unsigned long flags, const char *file, int line, const char *format,
	 ...)
{
	char text[2048];
	int head = snprintf(text, sizeof(text), "%s: ", world_acting()->name);
	va_list args;

	va_start(args, format);
	vsnprintf(text + head, sizeof(text) - (size_t)head, format, args);
	va_end(args);
	if (rank_expects && said_matches(text, rank_expects))
		rank_expects = NULL;
	said(level, file, line, text + head);
	if (rank_excludes && said_matches(text, rank_excludes))
		world_die("it says %s", text);
}

/* ---- a process ----------------------------------------------------------------------------- */

/* The loader knows a file by its inode: each process has a copy, and so its own static data. */
static void *plugin_load(const char *plugin)
{
	char copy[] = "/dev/shm/world-XXXXXX";
	int from = open(plugin, O_RDONLY), to = mkstemp(copy);
	struct stat stat;
	void *library;

	if (from < 0 || to < 0 || fstat(from, &stat) ||
	    sendfile(to, from, NULL, (size_t)stat.st_size) != stat.st_size)
		world_die("cannot copy %s", plugin);
	library = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		world_die("%s", dlerror());
	unlink(copy);
	close(from);
	close(to);
	return library;
}

void rank_begin(struct rank *rank)
{
	world_act_for(rank->node);
	if (rank->net->init(&rank->context, 0, NULL, log_line, NULL) ||
	    rank->net->devices(&rank->num_nics))
		world_die("%s: init fails", rank->node->name);
	world_act_for(NULL);
	statistics_begin(&rank->statistics);
}

void rank_start(struct rank *rank, struct world_node *node, const char *plugin)
{
	rank->node = node;
	rank->library = plugin_load(plugin);
	rank->net = dlsym(rank->library, NCCL_NET_SYMBOL_NEWEST);
	if (!rank->net)
		world_die("%s is no plugin", plugin);
	rank_begin(rank);
	leftovers_keep(node); /* its NICs and settings stay for as long as the process lives */
}

void rank_end(struct rank *rank, bool quiet)
{
	statistics_open(&rank->statistics);
	world_act_for(rank->node);
	if (rank->net->finalize(rank->context))
		world_die("%s: finalize fails", rank->node->name);
	world_act_for(NULL);
	/* The provider may still write to the memory of what was in flight. */
	if (!said_times(rank->node, "operations that never ended"))
		leftovers_check(rank->node, rank->net);
	statistics_check(&rank->statistics, rank->node->name, quiet);
}

/* ---- messages ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull; /* MurmurHash3's finalizer */
	x ^= x >> 33;
	return x;
}

/* Both ends know it: mostly small, some of the largest. */
static size_t message_size(const struct stream *stream, uint64_t number)
{
	const size_t limits[] = {1, 65, 4096, 20000, 100000, stream->message_bytes + 1};
	uint64_t drawn = mix(stream->sizes_seed + number);
	size_t limit = limits[drawn % (sizeof(limits) / sizeof(limits[0]))];

	return (size_t)mix(drawn) % (limit > stream->message_bytes ? limits[5] : limit);
}

static uint64_t word(const struct stream *stream, uint64_t number, size_t i)
{
	return mix((uint64_t)stream->number << 48 ^ number << 16) + i * 0x9e3779b97f4a7c15ull;
}

/* What the process of this end has counted of its direction. */
static struct statistics_messages *end_messages(struct stream *stream, struct stream_end *end)
{
	struct statistics *statistics = &end->rank->statistics;

	return end == &stream->send ? &statistics->sent : &statistics->received;
}

static void message_fill(const struct stream *stream, struct slot *slot)
{
	size_t size = message_size(stream, slot->number), i;
	uint64_t value;

	for (i = 0; i < size; i += sizeof(value)) {
		value = word(stream, slot->number, i);
		memcpy(slot->bytes + i, &value, sizeof(value));
	}
}

static void message_check(const struct stream *stream, const struct slot *slot, int size)
{
	size_t expected = message_size(stream, slot->number), i, part;
	uint64_t value;

	if ((size_t)size != expected)
		world_die("stream %d, message %lu: %d bytes, not %zu", stream->number, slot->number,
			  size, expected);
	for (i = 0; i < expected; i += sizeof(value)) {
		value = word(stream, slot->number, i);
		part = expected - i < sizeof(value) ? expected - i : sizeof(value);
		if (memcmp(slot->bytes + i, &value, part) != 0)
			world_die("stream %d, message %lu of %zu bytes: wrong from byte %zu on",
				  stream->number, slot->number, expected, i);
	}
}

/* ---- a stream ------------------------------------------------------------------------------ */

static void stream_fails(struct stream *stream, struct stream_end *end, enum nccl_result error,
			 const char *what)
{
	world_say("stream %d: %s fails at %s: %d", stream->number, what, end->rank->node->name,
		  error);
	stream->state = STREAM_FAILED;
	end->failed_ns = world.now_ns;
	if (!end->comm)
		return;
	end->rank->statistics.failed++;
	if (stream->doomed_ns && !said_warn_since(end->rank->node, stream->doomed_ns - WARN_NS))
		world_die("%s says nothing of the end of stream %d", end->rank->node->name,
			  stream->number);
}

static void end_open(struct stream_end *end, struct rank *rank, size_t message_bytes)
{
	end->rank = rank;
	if (posix_memalign((void **)&end->memory, 4096, SLOTS * message_bytes))
		world_die("no memory");
	for (int i = 0; i < SLOTS; i++)
		end->slots[i].bytes = end->memory + (size_t)i * message_bytes;
}

void stream_open(struct stream *stream, int number, struct rank *from, struct rank *to, int dev)
{
	memset(stream, 0, sizeof(*stream));
	stream->number = number;
	stream->sizes_seed = world_draw(UINT32_MAX);
	stream->stops_at = UINT64_MAX;
	stream->progressed_ns = world.now_ns;
	stream->message_bytes = rank_message_bytes;
	end_open(&stream->send, from, rank_message_bytes);
	end_open(&stream->receive, to, rank_message_bytes);
	world_act_for(to->node);
	if (to->net->listen(to->context, dev % to->num_nics, stream->handle, &stream->listener))
		stream_fails(stream, &stream->receive, NCCL_RESULT_SYSTEM_ERROR, "listen");
	world_act_for(NULL);
}

static bool end_register(struct stream *stream, struct stream_end *end)
{
	enum nccl_result error;

	if (!end->comm || end->registration)
		return end->registration;
	end->rank->statistics.comms++;
	error = end->rank->net->reg_mr(end->comm, end->memory, SLOTS * stream->message_bytes,
				       NCCL_POINTER_HOST, &end->registration);
	if (error)
		stream_fails(stream, end, error, "regMr");
	return !error;
}

/* False while its process cannot do anything, or is not there any more. */
static bool end_acts(const struct stream_end *end)
{
	return !end->gone && !end->silent && !end->rank->node->frozen;
}

static void stream_connect(struct stream *stream)
{
	struct stream_end *send = &stream->send, *receive = &stream->receive;
	enum nccl_result error = NCCL_RESULT_SUCCESS;

	world_act_for(send->rank->node);
	if (!send->comm && end_acts(send))
		error = send->rank->net->connect(send->rank->context, 0, stream->handle,
						 &send->comm, NULL);
	if (error)
		stream_fails(stream, send, error, "connect");
	else if (end_acts(send))
		end_register(stream, send);
	world_act_for(receive->rank->node);
	error = NCCL_RESULT_SUCCESS;
	if (!receive->comm && end_acts(receive))
		error = receive->rank->net->accept(stream->listener, &receive->comm, NULL);
	if (error)
		stream_fails(stream, receive, error, "accept");
	else if (end_acts(receive))
		end_register(stream, receive);
	if (stream->state != STREAM_CONNECTS || !send->registration || !receive->registration ||
	    !end_acts(receive))
		return;
	receive->rank->net->close_listen(stream->listener);
	stream->listener = NULL;
	stream->state = STREAM_RUNS;
	stream->progressed_ns = world.now_ns;
	world_say("stream %d runs", stream->number);
}

static bool end_is_over(const struct stream *stream, const struct stream_end *end)
{
	return rank_fails ? end->failed_ns : stream->state == STREAM_FAILED;
}

/* Posts the next message, if there is a place for it. */
static bool end_post(struct stream *stream, struct stream_end *end)
{
	struct slot *slot = &end->slots[end->posted % SLOTS];
	void *data = slot->bytes;
	size_t size = stream->message_bytes;
	int tag = 0;
	enum nccl_result error;

	if (slot->request || end->posted >= stream->stops_at)
		return false;
	slot->number = end->posted;
	if (end == &stream->send) {
		message_fill(stream, slot);
		error = end->rank->net->isend(end->comm, data, message_size(stream, slot->number),
					      0, end->registration, NULL, &slot->request);
	} else {
		error = end->rank->net->irecv(end->comm, 1, &data, &size, &tag, &end->registration,
					      NULL, &slot->request);
	}
	if (error)
		stream_fails(stream, end, error, end == &stream->send ? "isend" : "irecv");
	if (!slot->request)
		return false;
	statistics_post(end_messages(stream, end), message_size(stream, end->posted++));
	return true;
}

static bool end_test(struct stream *stream, struct stream_end *end, struct slot *slot)
{
	enum nccl_result error;
	int done = 0, size = 0;

	if (!slot->request || end_is_over(stream, end))
		return false;
	error = end->rank->net->test(slot->request, &done, &size);
	if (error)
		stream_fails(stream, end, error, end == &stream->send ? "a send" : "a receive");
	if (!done)
		return false;
	slot->request = NULL;
	end->done++;
	statistics_done(end_messages(stream, end), message_size(stream, slot->number));
	if (end == &stream->receive) {
		message_check(stream, slot, size);
		stream->bytes += (uint64_t)size;
	}
	return true;
}

static bool end_turn(struct stream *stream, struct stream_end *end)
{
	bool done = false;

	if (!end_acts(end))
		return false;
	world_act_for(end->rank->node);
	while (!end_is_over(stream, end) && end_post(stream, end))
		done = true;
	for (int i = 0; i < SLOTS; i++)
		done |= end_test(stream, end, &end->slots[i]);
	return done;
}

bool stream_turn(struct stream *stream)
{
	bool done = false, is_idle;

	if (stream->state == STREAM_CONNECTS)
		stream_connect(stream);
	if (stream->state == STREAM_RUNS || stream->state == STREAM_STOPS ||
	    (stream->state == STREAM_FAILED && rank_fails)) {
		done = end_turn(stream, &stream->send);
		done |= end_turn(stream, &stream->receive);
	}
	is_idle = stream->receive.done == stream->stops_at && stream->send.done == stream->stops_at;
	if (stream->state == STREAM_STOPS && is_idle)
		stream->state = STREAM_STOPPED;
	world_act_for(NULL);
	if (done && world.now_ns - stream->progressed_ns > GAP_SAID_NS)
		world_say("stream %d goes on after %.3f s", stream->number,
			  (double)(world.now_ns - stream->progressed_ns) / WORLD_S);
	if (done || is_idle)
		stream->progressed_ns = world.now_ns;
	return done;
}

void stream_rest(struct stream *stream, bool rest)
{
	uint64_t posted = stream->send.posted;

	/* A receive that was posted wants its message. */
	posted = posted > stream->receive.posted ? posted : stream->receive.posted;
	stream->stops_at = rest ? posted : UINT64_MAX;
}

void stream_stop(struct stream *stream)
{
	if (stream->state != STREAM_RUNS)
		return;
	stream_rest(stream, true);
	stream->state = STREAM_STOPS;
}

static void end_close(struct stream *stream, struct stream_end *end)
{
	const struct nccl_net_newest *net = end->rank->net;

	world_act_for(end->rank->node);
	if (!end->gone && end->registration)
		net->dereg_mr(end->comm, end->registration);
	if (!end->gone && end->comm)
		(end == &stream->send ? net->close_send : net->close_receive)(end->comm);
	if (!end->gone && end == &stream->receive && stream->listener)
		net->close_listen(stream->listener);
	world_act_for(NULL);
	end->gone = true;
	free(end->memory);
	end->memory = NULL;
}

/* The other end is to learn that this one is gone. */
static void stream_doom(struct stream *stream, struct stream_end *end)
{
	struct stream_end *other = end == &stream->send ? &stream->receive : &stream->send;

	stream->doomed_ns = world.now_ns;
	other->rank->statistics.doomed++;
}

void stream_abort(struct stream *stream, struct stream_end *end)
{
	world_say("stream %d is aborted at %s", stream->number, end->rank->node->name);
	stream_doom(stream, end);
	end_close(stream, end);
}

static void end_lose(struct stream *stream, struct stream_end *end)
{
	end->gone = true;
	if (stream->state != STREAM_CLOSED)
		stream_doom(stream, end);
}

void streams_lose(struct stream *streams, int num, const struct rank *rank)
{
	struct stream *stream;

	for (stream = streams; stream < streams + num; stream++) {
		if (stream->send.rank == rank)
			end_lose(stream, &stream->send);
		if (stream->receive.rank == rank)
			end_lose(stream, &stream->receive);
	}
}

void stream_listener_close(struct stream *stream)
{
	if (!stream->listener)
		return;
	world_act_for(stream->receive.rank->node);
	stream->receive.rank->net->close_listen(stream->listener);
	world_act_for(NULL);
	stream->listener = NULL;
	stream->receive.gone = true;
}

void stream_close(struct stream *stream)
{
	end_close(stream, &stream->send);
	end_close(stream, &stream->receive);
	stream->state = STREAM_CLOSED;
}
