/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - plugin_cost: moves messages so that an instruction counter sees the plugin's work only.
 *
 * Both ends run on one thread and take turns, over the loopback interface, so that the number of
 * calls does not depend on the scheduler. Each end is a copy of the plugin of its own, as it is in
 * two processes: two endpoints, two completion queues. The counter (callgrind, see ../cost.py)
 * switches on inside cost_measure() alone.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"

#include "../plugin_bench/lane.h"
#include "../plugin_bench/stamp.h"
#include "list.h"

#define WHO "plugin_cost"
#define WINDOW_MAX 32
#define SIZES_MAX 16
#define COMMS_MAX 64
#define SIZE_LIMIT (64 << 20)
#define COUNT_LIMIT 1000000
/* The first messages of a size fill caches, free lists and socket buffers. */
#define WARM_UP 64

struct side {
	struct plugin plugin;
	struct activity activity;
	char copy[64]; /* of the plugin's file; empty if it is not a copy */
};

struct cost {
	const char *file;
	int abi;
	uint64_t sizes[SIZES_MAX];
	uint64_t counts[SIZES_MAX]; /* messages of each size */
	size_t num_sizes;
	unsigned int window, comms, idle_polls;
	struct side sides[2];
	struct lane sends[COMMS_MAX], receives[COMMS_MAX];
	size_t slot; /* bytes of one slot of the staging buffers */
};

/* --- set-up --- */

/* The loader knows a file by its inode: a second instance of the plugin needs a second file. */
static void copy_plugin(const char *from, char *to)
{
	char block[65536];
	FILE *in = fopen(from, "rb"), *out;
	size_t n;
	int fd;

	strcpy(to, "/tmp/plugin_cost-XXXXXX");
	fd = mkstemp(to);
	out = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!in || !out)
		fatal("cannot copy %s: %s", from, strerror(errno));
	while ((n = fread(block, 1, sizeof(block), in)) > 0)
		if (fwrite(block, 1, n, out) != n)
			fatal("cannot write %s: %s", to, strerror(errno));
	fclose(in);
	if (fclose(out))
		fatal("cannot write %s: %s", to, strerror(errno));
}

static void side_open(struct side *side, const char *file, int abi, int rank)
{
	char error[PLUGIN_ERROR_MAX];

	activity_init(&side->activity);
	if (rank)
		copy_plugin(file, side->copy);
	if (plugin_load(&side->plugin, rank ? side->copy : file, abi, &side->activity, error) ||
	    plugin_start(&side->plugin, rank, 0, error))
		fatal("%s", error);
}

static void side_close(struct side *side)
{
	char error[PLUGIN_ERROR_MAX];

	if (plugin_stop(&side->plugin, error))
		fatal("%s", error);
	if (side->copy[0])
		unlink(side->copy);
	activity_destroy(&side->activity);
}

/* --- messages --- */

static bool has_room(const struct cost *cost, const struct lane *lane, uint64_t end)
{
	return lane->posted < end && lane->posted < lane->done + cost->window;
}

static void post_receives(const struct cost *cost, struct lane *lane, uint64_t end)
{
	while (has_room(cost, lane, end) && lane_receive(lane, cost->slot))
		continue;
}

static void post_sends(const struct cost *cost, struct lane *lane, uint64_t end, size_t size)
{
	while (has_room(cost, lane, end)) {
		stamp_put(lane_slot(lane, lane->posted), size, lane->posted, STAMP_ALL);
		if (!lane_send(lane, size))
			return;
	}
}

/* Tests the oldest request, once. Returns true if it is done. */
static bool reap(struct lane *lane, size_t size)
{
	if (lane->done == lane->posted)
		return false;
	if (lane_test(lane, size))
		return true;
	/* The plugin's own thread may hold a lock; callgrind runs one thread at a time. */
	sched_yield();
	return false;
}

static void move(const struct cost *cost, struct lane *send, struct lane *receive,
		 unsigned int count, size_t size)
{
	const struct lane_stream stream = {.size = size, .step = STAMP_ALL};
	uint64_t end = receive->done + count;

	while (receive->done < end || send->done < end) {
		post_receives(cost, receive, end);
		post_sends(cost, send, end, size);
		reap(send, size);
		if (reap(receive, size))
			lane_check(&stream, receive, receive->done - 1);
	}
}

/* A receive for which no message arrives. */
static void poll_idle(const struct cost *cost, struct lane *receive)
{
	for (unsigned int i = 0; i < cost->idle_polls; i++)
		if (reap(receive, 0))
			fatal("a message arrived that was not sent");
}

/*
 * What is counted: cost.py knows this name, so it must stay a function.
 *
 * @count: messages; 0 for idle polls
 */
__attribute__((noinline)) void cost_measure(const struct cost *cost, struct lane *send,
					    struct lane *receive, unsigned int count, size_t size);

void cost_measure(const struct cost *cost, struct lane *send, struct lane *receive,
		  unsigned int count, size_t size)
{
	if (count)
		move(cost, send, receive, count, size);
	else
		poll_idle(cost, receive);
}

static void measure_idle(struct cost *cost)
{
	struct lane *send = &cost->sends[0], *receive = &cost->receives[0];
	uint64_t end = receive->posted + 1;

	post_receives(cost, receive, end);
	cost_measure(cost, send, receive, 0, 0);
	post_sends(cost, send, end, 8);
	while (!reap(receive, 8))
		continue;
	while (!reap(send, 8))
		continue;
}

static void run(struct cost *cost)
{
	side_open(&cost->sides[0], cost->file, cost->abi, 0);
	side_open(&cost->sides[1], cost->sides[0].plugin.file, cost->abi, 1);
	for (unsigned int i = 0; i < cost->comms; i++)
		lane_pair_open(&cost->sends[i], &cost->sides[0].plugin.adapter, &cost->receives[i],
			       &cost->sides[1].plugin.adapter, cost->window, cost->slot);
	for (size_t i = 0; i < cost->num_sizes; i++) {
		move(cost, &cost->sends[0], &cost->receives[0], WARM_UP, cost->sizes[i]);
		cost_measure(cost, &cost->sends[0], &cost->receives[0],
			     (unsigned int)cost->counts[i], cost->sizes[i]);
	}
	if (cost->idle_polls)
		measure_idle(cost);
	for (unsigned int i = 0; i < cost->comms; i++) {
		lane_close(&cost->sends[i]);
		lane_close(&cost->receives[i]);
	}
	side_close(&cost->sides[1]);
	side_close(&cost->sides[0]);
}

/* --- command line --- */

static int take_sizes(const struct option_row *row, const char *text, void *arg)
{
	struct cost *cost = arg;

	cost->num_sizes = list_read(text, 0, SIZE_LIMIT, cost->sizes, SIZES_MAX);
	return cost->num_sizes || !*text ? -1 : arguments_misuse(WHO, "--%s '%s'", row->name, text);
}

static int take_counts(const struct option_row *row, const char *text, void *arg)
{
	struct cost *cost = arg;

	return !*text || list_read(text, 0, COUNT_LIMIT, cost->counts, SIZES_MAX)
		       ? -1
		       : arguments_misuse(WHO, "--%s '%s'", row->name, text);
}

static const struct option_row rows[] = {
	{"plugin", 0, "FILE", "the plugin [libnccl-net-mesh.so, by the loader]",
	 OPTION_TEXT(struct cost, file)},
	{"abi", 0, "N", "6 to 12 [the newest]",
	 OPTION_NUMBER(struct cost, abi, ADAPTER_ABI_OLDEST, ADAPTER_ABI_NEWEST)},
	{"sizes", 0, "N,N", "bytes of a message; '' is none [8,524288]",
	 OPTION_HANDLER(take_sizes)},
	{"messages", 0, "N,N", "of each size [200,200]", OPTION_HANDLER(take_counts)},
	{"inflight", 0, "N", "messages in flight, to 32 [1]",
	 OPTION_NUMBER(struct cost, window, 1, WINDOW_MAX)},
	{"comms", 0, "N", "open comms, to 64; messages use the first [1]",
	 OPTION_NUMBER(struct cost, comms, 1, COMMS_MAX)},
	{"idle", 0, "N", "calls of test with nothing to do [0]",
	 OPTION_NUMBER(struct cost, idle_polls, 0, 10000000)},
	{.name = NULL},
};

static const struct option_table table = {
	.who = WHO,
	.usage = "usage: plugin_cost [options], in a network namespace whose loopback interface is "
		 "up\n",
	.notes = "",
	.rows = rows,
};

int main(int argc, char **argv)
{
	static struct cost cost = {.sizes = {8, 512 << 10},
				   .counts = {200, 200},
				   .num_sizes = 2,
				   .window = 1,
				   .comms = 1};

	int status = option_table_parse(&table, argc, argv, &cost, NULL);

	if (status >= 0)
		return status;
	cost.slot = 4096;
	for (size_t i = 0; i < cost.num_sizes; i++)
		if (cost.sizes[i] > cost.slot)
			cost.slot = (cost.sizes[i] + 4095) / 4096 * 4096;
	run(&cost);
	return 0;
}
