/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_world_connects.c - connects that are slow or fail, and what docs/protocol/connecting.md says
 * about each: a stream within its time, or an error in words.
 *
 * Usage: test_world_connects [NAME...]     (default: all of them)
 */
#include <stdio.h>
#include <string.h>

#include "cases.h"

#define STREAMS_MAX 300
/* Between two looks of NCCL's threads. */
#define LOOK_NS (1 * WORLD_MS)
/* What a stream that runs has to receive, and the time for that. */
#define MESSAGES 8
#define MESSAGES_NS (20 * WORLD_S)

/* Times are in milliseconds from the moment at which the listeners have written their handles. */
static const struct connect_case {
	const char *name;
	const char *cabling;
	const char *ends; /* "ab": a connects to b */
	int streams;
	enum {
		RUNS,
		FAILS, /* connect, or accept */
		SOME_FAIL
	} result;
	uint64_t from_ms, until_ms; /* when */
	const char *says;	    /* matches a line of a log; NULL: any */
	const char *settings;
	const char *says_not; /* matches none; NULL: none */
	size_t socket_bytes;  /* that a socket holds; 0: 1 MiB */
	uint64_t accept_from_ms,
		connect_until_ms; /* NCCL does not call before, or after; 0: does */
	uint64_t listen_until_ms; /* the listeners are closed then; 0: not */
	int listeners_kept;	  /* but so many of them, the first ones */
	int handle_byte;	  /* that is changed on the way; 0: none */
	unsigned int absent;	  /* a bit mask of cables that have no carrier at first */
	struct event events[EVENTS_MAX];
} cases[] = {
	/* What works. */
	{"at-once", "pair", "ab", 1, RUNS, 0, 1000, .events = {ENDS(0)}},
	{"hundred", "pair", "ab", 100, RUNS, 0, 3000, .events = {ENDS(0)}},
	{"hundred-over-a-relay", "line", "ac", 100, RUNS, 0, 10000, .events = {ENDS(0)}},
	/* The frames of all wait for the relay. Nobody takes its process for one that has ended. */
	{"crowd-at-a-stopped-relay", "line", "ac", 300, RUNS, 5000, 30000,
	 .settings = "NCCL_MESH_RELAY_MEMORY=8G", .says_not = "lost node", .socket_bytes = 8192,
	 .events = {STOPS(10, 1), GOES_ON(5000, 1), ENDS(5000)}},
	{"accepted-late", "pair", "ab", 4, RUNS, 9000, 11000, .accept_from_ms = 9000,
	 .events = {ENDS(0)}},
	{"stopped-listener", "pair", "ab", 4, RUNS, 20000, 24000, "still connecting",
	 .events = {STOPS(0, 1), GOES_ON(20000, 1), ENDS(20000)}},
	{"one-black-hole", "pair", "ab", 4, RUNS, 0, 1500, .events = {HOLE(0, 0), ENDS(0)}},
	{"only-cable-is-a-hole", "triangle", "ab", 4, RUNS, 500, 2500,
	 "have let nothing through for", .events = {HOLE(0, 0), ENDS(0)}},
	{"one-without-carrier", "pair", "ab", 4, RUNS, 0, 1000, .events = {DOWN(0, 0), ENDS(0)}},
	{"carrier-comes", "pair", "ab", 4, RUNS, 20000, 22000, "has no carrier",
	 .events = {DOWN(0, 0), DOWN(0, 1), UP(20000, 0), ENDS(20000)}},
	{"relay-comes", "line", "ac", 4, RUNS, 3000, 12000,
	 .events = {IS_KILLED(0, 1), STARTS(3000, 1), ENDS(3000)}},
	{"cable-lost-meanwhile", "pair", "ab", 4, RUNS, 0, 4000,
	 .events = {DOWN(2, 0), UP(1000, 0), RESETS(1001, 1), ENDS(2000)}},
	{"descriptors-come", "one", "ab", 4, RUNS, 3000, 8000,
	 .events = {TAKES_MS(0, 0, 5), NO_FILES(1, 1), HAS_FILES(3000, 1), ENDS(3000)}},

	/* What cannot work. */
	{"no-common-subnet", "line", "ac", 1, FAILS, 0, 1000,
	 "no common subnet, and no route between their mesh NICs", "NCCL_MESH_RELAY=off",
	 .events = {ENDS(0)}},
	{"no-common-subnet-here-and-there", "line", "ac", 1, FAILS, 0, 1000,
	 "Here: 10.0.0.1/24 (x0); there: 10.1.0.2/24. Is there a cable", "NCCL_MESH_RELAY=off",
	 .events = {ENDS(0)}},
	{"cable-without-carrier", "triangle", "ac", 1, FAILS, 0, 8000,
	 "Skipped here: x2 (10.2.0.2/24): no carrier", "NCCL_MESH_RELAY=off", .absent = 4,
	 .events = {ENDS(0)}},
	{"no-relay", "apart", "ac", 1, FAILS, 59000, 62000, "no neighbour relays",
	 .events = {ENDS(0)}},
	{"relay-is-off", "line", "ac", 1, FAILS, 4000, 6000, "no common subnet",
	 "b:NCCL_MESH_RELAY=off", .events = {ENDS(0)}},
	{"relay-of-another-job", "line", "ac", 1, FAILS, 4000, 6000, "no common subnet",
	 "NCCL_MESH_RELAY=job MASTER_PORT=1 a:MASTER_ADDR=x b:MASTER_ADDR=y c:MASTER_ADDR=x",
	 .events = {ENDS(0)}},
	{"relay-is-full", "line", "ac", 100, SOME_FAIL, 0, 12000, "no neighbour relays",
	 "b:NCCL_MESH_RELAY_MEMORY=1M NCCL_MESH_CONNECT_TIMEOUT=10", .events = {ENDS(0)}},
	{"other-provider", "pair", "ab", 1, FAILS, 0, 1000,
	 "Set NCCL_MESH_PROVIDER to the same on all nodes", "b:NCCL_MESH_PROVIDER=tcp;ofi_rxm",
	 .events = {ENDS(0)}},
	{"other-tuner", "pair", "ab", 1, FAILS, 0, 1000, "NCCL_MESH_TUNER",
	 "b:NCCL_MESH_TUNER=ring", .events = {ENDS(0)}},
	{"no-handle", "pair", "ab", 1, FAILS, 0, 1000, "got a handle that is not this plugin's",
	 .handle_byte = 1, .events = {ENDS(0)}},
	{"other-version", "pair", "ab", 1, FAILS, 0, 1000, "Install the same version on all nodes",
	 .handle_byte = 4, .events = {ENDS(0)}},
	{"black-holes", "pair", "ab", 2, FAILS, 59000, 62000, "gave up connecting",
	 .events = {HOLE(0, 0), HOLE(0, 1), ENDS(0)}},
	{"no-carrier", "pair", "ab", 2, FAILS, 59000, 62000, "has no carrier",
	 .events = {DOWN(0, 0), DOWN(0, 1), ENDS(0)}},
	{"killed-listener", "pair", "ab", 2, FAILS, 2000, 5000, "gave up connecting",
	 .events = {IS_KILLED(0, 1), ENDS(0)}},
	{"killed-listener-over-a-relay", "line", "ac", 2, FAILS, 9000, 12000, "no neighbour relays",
	 "NCCL_MESH_CONNECT_TIMEOUT=10", .events = {IS_KILLED(0, 2), ENDS(0)}},
	{"closed-listener", "pair", "ab", 2, FAILS, 0, 2000,
	 "it has no such listener: it was closed", .listen_until_ms = 1, .events = {ENDS(0)}},
	/* One connect goes on over the connection that the other one began. */
	{"closed-listener-of-two", "one", "ab", 2, SOME_FAIL, 1000, 10000,
	 "it has no such listener: it was closed", .listen_until_ms = 500, .listeners_kept = 1,
	 .events = {HOLE(0, 0), UP(1000, 0), ENDS(1000)}},
	{"closed-port", "pair", "ab", 1, FAILS, 9000, 12000, "gave up connecting",
	 "NCCL_MESH_PORTS=40000-40009 NCCL_MESH_CONNECT_TIMEOUT=10",
	 .events = {CLOSES_PORT(0, 1, 40000), ENDS(0)}},
	{"closed-data-port", "pair", "ab", 1, FAILS, 9000, 12000, "greeting",
	 "NCCL_MESH_PORTS=40000-40009 NCCL_MESH_CONNECT_TIMEOUT=10",
	 .events = {CLOSES_PORT(0, 1, 40001), ENDS(0)}},
	{"no-descriptors", "pair", "ab", 2, FAILS, 0, 12000, "Too many open files",
	 "NCCL_MESH_CONNECT_TIMEOUT=10", .events = {NO_FILES(0, 0), ENDS(0)}},

	/* What accept says. */
	{"nobody-connects", "pair", "ab", 1, FAILS, 19000, 21000, "no rank connected within 20 s",
	 "NCCL_MESH_ACCEPT_TIMEOUT=20", .connect_until_ms = 1,
	 .events = {IS_KILLED(0, 0), ENDS(0)}},
	{"nobody-connects-yet", "pair", "ab", 1, FAILS, 11000, 13000,
	 "for another rank to connect to the listener on 10.0.0.2/24 (x0), 10.1.0.2/24 (x1)",
	 "NCCL_MESH_ACCEPT_TIMEOUT=12", .connect_until_ms = 1,
	 .events = {IS_KILLED(0, 0), ENDS(0)}},
	{"killed-connector", "pair", "ab", 1, FAILS, 5000, 8000, "and is gone",
	 .accept_from_ms = 1500, .connect_until_ms = 1,
	 .events = {TAKES_MS(0, 0, 5), TAKES_MS(0, 1, 5), HOLE(50, 0), IS_KILLED(300, 0),
		    ENDS(300)}},
	{"connector-that-stops-asking", "pair", "ab", 1, FAILS, 70000, 80000,
	 "reports that it has given up", .connect_until_ms = 1, .accept_from_ms = 68000,
	 .events = {ENDS(0)}},
};

static struct stream streams[STREAMS_MAX];

static void die_unless(bool is, const struct stream *stream, uint64_t ms)
{
	if (!is)
		world_die("stream %d %s after %lu ms", stream->number,
			  stream->state == STREAM_CONNECTS ? "has no result"
			  : stream->state == STREAM_FAILED ? "has failed"
							   : "runs",
			  ms);
}

/* Returns whether the connect is over. */
static bool result_look(const struct connect_case *test, struct stream *stream, uint64_t ms)
{
	enum stream_state before = stream->state;

	stream->send.silent = test->connect_until_ms && ms >= test->connect_until_ms;
	stream->receive.silent = ms < test->accept_from_ms;
	if (before == STREAM_CONNECTS)
		stream_turn(stream);
	if (before == STREAM_CONNECTS && stream->state != before) {
		die_unless(test->result == SOME_FAIL ||
				   (test->result == FAILS) == (stream->state == STREAM_FAILED),
			   stream, ms);
		die_unless(ms >= test->from_ms && ms <= test->until_ms, stream, ms);
	}
	die_unless(stream->state != STREAM_CONNECTS || ms <= test->until_ms, stream, ms);
	return stream->state != STREAM_CONNECTS;
}

static void connects_await(const struct connect_case *test)
{
	const struct event *event = test->events;
	uint64_t begin_ns = world.now_ns, ms;
	int i, over;

	do {
		ms = (world.now_ns - begin_ns) / WORLD_MS;
		for (; event->what != END && event->ms <= ms; event++) {
			event_happen(event);
			if (event->what == KILL)
				streams_lose(streams, STREAMS_MAX, &play.ranks[event->which]);
		}
		for (i = test->listeners_kept; test->listen_until_ms && i < test->streams; i++) {
			if (ms >= test->listen_until_ms)
				stream_listener_close(&streams[i]);
		}
		for (i = 0, over = 0; i < test->streams; i++)
			over += result_look(test, &streams[i], ms);
		world_pause(LOOK_NS);
	} while (over < test->streams || event->what != END);
}

/* Those that run bring their messages. Returns how many they are. */
static int streams_await(const struct connect_case *test)
{
	uint64_t until_ns = world.now_ns + MESSAGES_NS;
	int i, ran = 0, over = 0;

	for (i = 0; i < test->streams; i++)
		ran += streams[i].state == STREAM_RUNS;
	while (over < ran) {
		for (i = 0, over = 0; i < test->streams; i++) {
			if (streams[i].state != STREAM_FAILED)
				stream_turn(&streams[i]);
			if (streams[i].receive.done >= MESSAGES)
				stream_stop(&streams[i]);
			over += streams[i].state == STREAM_STOPPED;
		}
		if (world.now_ns > until_ns)
			world_die("%d of %d streams have not come to their end", ran - over, ran);
		world_pause(LOOK_NS);
	}
	for (i = 0; i < test->streams; i++)
		stream_close(&streams[i]);
	return ran;
}

static void connects_run(int number)
{
	const struct connect_case *test = &cases[number];
	int i, ran;

	play.settings = test->settings;
	play.absent = test->absent;
	rank_expects = test->says;
	rank_excludes = test->says_not;
	if (test->socket_bytes)
		world.socket_bytes = test->socket_bytes;
	if (test->streams > 10)
		rank_message_bytes = 20000;
	play_begin(1, test->cabling);
	for (i = 0; i < test->streams; i++) {
		stream_open(&streams[i], i, &play.ranks[test->ends[0] - 'a'],
			    &play.ranks[test->ends[1] - 'a'], i);
		if (test->handle_byte)
			streams[i].handle[test->handle_byte] ^= 1;
	}
	connects_await(test);
	ran = streams_await(test);
	printf("%d of %d run, %.1f s\n", ran, test->streams, (double)world.now_ns / WORLD_S - 1000);
	fflush(stdout);
	if (test->result == SOME_FAIL && (!ran || ran == test->streams))
		world_die("some are to fail");
	case_end();
}

static const char *name_of(int i)
{
	return i < (int)(sizeof(cases) / sizeof(cases[0])) ? cases[i].name : NULL;
}

int main(int argc, char **argv)
{
	return cases_main(argc, argv, name_of, connects_run);
}
