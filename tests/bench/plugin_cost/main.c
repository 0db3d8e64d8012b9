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
#include <time.h>
#include <unistd.h>

#include "common/options.h"

#include "clock.h"
#include "list.h"
#include "pattern.h"
#include "plugin.h"

#define WHO "plugin_cost"
#define WINDOW_MAX 32
#define SIZES_MAX 16
#define COMMS_MAX 64
#define STREAM 1
#define SIZE_LIMIT (64 << 20)
#define COUNT_LIMIT 1000000
#define SETUP_LIMIT_NS (60 * NS_PER_S)
/* The first messages of a size fill caches, free lists and socket buffers. */
#define WARM_UP 64

/* NCCL hands over a profiler's event with each message. */
static const char profiler_event;
#define PROFILER ((void *)(uintptr_t)&profiler_event)

struct side {
	struct plugin plugin;
	struct activity activity;
	char copy[64]; /* of the plugin's file; empty if it is not a copy */
};

struct end {
	const struct adapter *adapter;
	void *comm, *registration;
	uint8_t *memory;
	void *requests[WINDOW_MAX];
	unsigned int posted, done;
};

struct cost {
	const char *file;
	int abi;
	uint64_t sizes[SIZES_MAX];
	uint64_t counts[SIZES_MAX]; /* messages of each size */
	size_t num_sizes;
	unsigned int window, comms, idle_polls;
	struct side sides[2];
	struct end sends[COMMS_MAX], receives[COMMS_MAX];
	size_t slot; /* bytes of one slot of the staging buffers */
};

__attribute__((format(printf, 1, 2), noreturn)) static void fatal(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs(WHO ": ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void must(enum nccl_result result, const char *call)
{
	if (result)
		fatal("%s() returned %s", call, adapter_result_text(result));
}

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

static void end_register(const struct cost *cost, struct end *end)
{
	size_t bytes = cost->slot * cost->window;

	end->memory = aligned_alloc(4096, bytes);
	if (!end->memory)
		fatal("no memory for %zu bytes", bytes);
	memset(end->memory, 0, bytes);
	must(adapter_reg_mr(end->adapter, end->comm, end->memory, bytes, NCCL_POINTER_HOST,
			    &end->registration),
	     "regMr");
}

static void comm_connect(struct cost *cost, unsigned int i)
{
	char handle[NCCL_HANDLE_SIZE] __attribute__((aligned(16))) = {0};
	struct end *send = &cost->sends[i], *receive = &cost->receives[i];
	uint64_t limit = now_ns() + SETUP_LIMIT_NS;
	void *listener = NULL;

	send->adapter = &cost->sides[0].plugin.adapter;
	receive->adapter = &cost->sides[1].plugin.adapter;
	must(adapter_listen(receive->adapter, 0, handle, &listener), "listen");
	while (!send->comm || !receive->comm) {
		if (now_ns() > limit)
			fatal("no connection after 60 s");
		if (!send->comm)
			must(adapter_connect(send->adapter, 0, handle, &send->comm), "connect");
		if (!receive->comm)
			must(adapter_accept(receive->adapter, listener, &receive->comm), "accept");
	}
	must(adapter_close_listen(receive->adapter, listener), "closeListen");
	end_register(cost, send);
	end_register(cost, receive);
}

static void comm_close(struct cost *cost, unsigned int i)
{
	struct end *send = &cost->sends[i], *receive = &cost->receives[i];

	must(adapter_dereg_mr(send->adapter, send->comm, send->registration), "deregMr");
	must(adapter_dereg_mr(receive->adapter, receive->comm, receive->registration), "deregMr");
	must(adapter_close_send(send->adapter, send->comm), "closeSend");
	must(adapter_close_receive(receive->adapter, receive->comm), "closeRecv");
	free(send->memory);
	free(receive->memory);
}

/* --- messages --- */

static uint8_t *slot_of(const struct cost *cost, const struct end *end, unsigned int index)
{
	return end->memory + index % cost->window * cost->slot;
}

/* NCCL posts the whole slot, whatever the size of the message. */
static void post_receives(const struct cost *cost, struct end *end, unsigned int count)
{
	void *request = NULL;

	while (end->posted < count && end->posted < end->done + cost->window) {
		must(adapter_irecv(end->adapter, end->comm, slot_of(cost, end, end->posted),
				   cost->slot, 0, end->registration, PROFILER, &request),
		     "irecv");
		if (!request)
			return;
		end->requests[end->posted++ % cost->window] = request;
	}
}

static void post_sends(const struct cost *cost, struct end *end, unsigned int count, size_t size)
{
	void *request = NULL;
	uint8_t *slot;

	while (end->posted < count && end->posted < end->done + cost->window) {
		slot = slot_of(cost, end, end->posted);
		pattern_fill(slot, size, STREAM, end->posted, PATTERN_FULL);
		must(adapter_isend(end->adapter, end->comm, slot, size, 0, end->registration,
				   PROFILER, &request),
		     "isend");
		if (!request)
			return;
		end->requests[end->posted++ % cost->window] = request;
	}
}

/* Tests the oldest request, once. Returns true if it is done. */
static bool reap(const struct cost *cost, struct end *end, size_t size)
{
	int done = 0, sizes[8] = {0};

	if (end->done == end->posted)
		return false;
	must(adapter_test(end->adapter, end->requests[end->done % cost->window], &done, sizes),
	     "test");
	if (done && (size_t)sizes[0] != size)
		fatal("test() reported %d bytes instead of %zu", sizes[0], size);
	/* The plugin's own thread may hold a lock; callgrind runs one thread at a time. */
	if (!done)
		sched_yield();
	return done;
}

static void check_received(const struct cost *cost, struct end *end, size_t size)
{
	char words[400];
	size_t offset;
	uint8_t *slot = slot_of(cost, end, end->done);

	if (!pattern_check(slot, size, STREAM, end->done, PATTERN_FULL, &offset)) {
		pattern_explain(slot, size, STREAM, end->done, offset, words, sizeof(words));
		fatal("message %u: %s", end->done, words);
	}
}

static void move(const struct cost *cost, struct end *send, struct end *receive, unsigned int count,
		 size_t size)
{
	send->posted = send->done = receive->posted = receive->done = 0;
	while (receive->done < count || send->done < count) {
		post_receives(cost, receive, count);
		post_sends(cost, send, count, size);
		if (reap(cost, send, size))
			send->done++;
		if (reap(cost, receive, size)) {
			check_received(cost, receive, size);
			receive->done++;
		}
	}
}

/* A receive for which no message arrives. */
static void poll_idle(const struct cost *cost, struct end *receive)
{
	for (unsigned int i = 0; i < cost->idle_polls; i++)
		if (reap(cost, receive, 0))
			fatal("a message arrived that was not sent");
}

/*
 * What is counted: cost.py knows this name, so it must stay a function.
 *
 * @count: messages; 0 for idle polls
 */
__attribute__((noinline)) void cost_measure(const struct cost *cost, struct end *send,
					    struct end *receive, unsigned int count, size_t size);

void cost_measure(const struct cost *cost, struct end *send, struct end *receive,
		  unsigned int count, size_t size)
{
	if (count)
		move(cost, send, receive, count, size);
	else
		poll_idle(cost, receive);
}

static void measure_idle(struct cost *cost)
{
	struct end *send = &cost->sends[0], *receive = &cost->receives[0];

	send->posted = send->done = receive->posted = receive->done = 0;
	post_receives(cost, receive, 1);
	cost_measure(cost, send, receive, 0, 0);
	post_sends(cost, send, 1, 8);
	while (!reap(cost, receive, 8))
		continue;
	while (!reap(cost, send, 8))
		continue;
}

static void run(struct cost *cost)
{
	side_open(&cost->sides[0], cost->file, cost->abi, 0);
	side_open(&cost->sides[1], cost->sides[0].plugin.file, cost->abi, 1);
	for (unsigned int i = 0; i < cost->comms; i++)
		comm_connect(cost, i);
	for (size_t i = 0; i < cost->num_sizes; i++) {
		move(cost, &cost->sends[0], &cost->receives[0], WARM_UP, cost->sizes[i]);
		cost_measure(cost, &cost->sends[0], &cost->receives[0],
			     (unsigned int)cost->counts[i], cost->sizes[i]);
	}
	if (cost->idle_polls)
		measure_idle(cost);
	for (unsigned int i = 0; i < cost->comms; i++)
		comm_close(cost, i);
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
