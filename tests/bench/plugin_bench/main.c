/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - plugin_bench: one rank that measures a net plugin, or TCP, under one workload. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/options.h"
#include "common/output.h"

#include "bench.h"
#include "clock.h"
#include "list.h"

#define WHO "plugin_bench"

/* As workload_names[]. */
static void (*const workloads[])(struct bench *bench) = {
	bench_stream, bench_pingpong, bench_ring, bench_setup, bench_share,
};
static const char *const workload_names[] = {"stream", "pingpong", "ring", "setup", "share", NULL};

static int take_sizes(const struct option_row *row, const char *text, void *arg)
{
	struct bench *bench = arg;

	bench->num_sizes = list_read(text, 0, (uint64_t)1 << 32, bench->sizes, BENCH_LIST_MAX);
	return bench->num_sizes ? -1 : arguments_misuse(WHO, "--%s '%s'", row->name, text);
}

/* --inflight and --comms. */
static int take_counts(const struct option_row *row, const char *text, void *arg)
{
	const bool is_comms = !strcmp(row->name, "comms");
	struct bench *bench = arg;
	uint64_t numbers[BENCH_LIST_MAX];
	size_t num = list_read(text, 1, is_comms ? 65536 : LANE_SLOTS_MAX, numbers, BENCH_LIST_MAX);

	*(is_comms ? &bench->num_comms : &bench->num_inflight) = (unsigned int)num;
	for (size_t i = 0; i < num; i++)
		(is_comms ? bench->comms : bench->inflight)[i] = (unsigned int)numbers[i];
	return num ? -1 : arguments_misuse(WHO, "--%s '%s'", row->name, text);
}

static int take_seconds(const struct option_row *row, const char *text, void *arg)
{
	struct bench *bench = arg;

	bench->seconds = strtod(text, NULL);
	return bench->seconds > 0 ? -1 : arguments_misuse(WHO, "--%s '%s'", row->name, text);
}

static const struct option_row rows[] = {
	{"rank", 0, "R", "of --ranks", OPTION_NUMBER(struct bench, rank, 0, MEET_RANKS_MAX - 1)},
	{"ranks", 0, "N", "how many", OPTION_NUMBER(struct bench, ranks, 1, MEET_RANKS_MAX)},
	{"workload", 0, "NAME", "stream, pingpong, ring, setup, share",
	 OPTION_CHOICE(struct bench, workload, workload_names)},
	{"plugin", 0, "FILE", "the net plugin [libnccl-net-mesh.so beside this program]",
	 OPTION_TEXT(struct bench, file)},
	{"abi", 0, "N", "6 to 12 [the newest]",
	 OPTION_NUMBER(struct bench, abi, ADAPTER_ABI_OLDEST, ADAPTER_ABI_NEWEST)},
	{"tcp", 0, "ADDRESS", "plain TCP from this address, without a plugin",
	 OPTION_TEXT(struct bench, maker.address)},
	{"meet", 0, "FILE", "a Unix socket that rank 0 makes",
	 OPTION_TEXT(struct bench, meet_path)},
	{"sizes", 0, "N,N", "bytes, with K or M: of a message, or of the ring's vector",
	 OPTION_HANDLER(take_sizes)},
	{"inflight", 0, "N,N", "messages in flight, of a stream, up to 8",
	 OPTION_HANDLER(take_counts)},
	{"comms", 0, "N,N", "comms in each direction, of stream (up to 32), ring and setup",
	 OPTION_HANDLER(take_counts)},
	{"seconds", 0, "S", "for each figure [0.3]", OPTION_HANDLER(take_seconds)},
	{"pause", 0, "US", "sleep after a pass that moved nothing, up to 100 [0: poll]",
	 OPTION_NUMBER(struct bench, pause_us, 0, 100)},
	{.name = NULL},
};

static const struct option_table table = {
	.who = WHO,
	.usage = "usage: plugin_bench --rank R --ranks N --meet FILE --workload NAME [options]\n"
		 "One process for each rank; bench/run starts them. Rank 0 prints JSON lines.\n",
	.notes = "",
	.rows = rows,
};

static void parse(struct bench *bench, int argc, char **argv)
{
	int status = option_table_parse(&table, argc, argv, bench, NULL);

	if (status >= 0)
		exit(status);
	if (!bench->meet_path || !bench->workload || bench->rank >= bench->ranks) {
		option_table_help(stderr, &table);
		exit(COMMAND_MISUSE);
	}
	bench_pause_set(bench->pause_us);
}

/* A plugin may need some descriptors for each comm; the soft limit is often 1024. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void load(struct bench *bench)
{
	struct lane_maker *maker = &bench->maker;
	char error[PLUGIN_ERROR_MAX];
	uint64_t start = now_ns();

	if (maker->address)
		return;
	activity_init(&maker->activity);
	if (plugin_load(&maker->plugin, bench->file, bench->abi, &maker->activity, error) ||
	    plugin_start(&maker->plugin, bench->rank, 0, error))
		fatal("%s", error);
	bench->load_seconds = (double)(now_ns() - start) / (double)NS_PER_S;
}

static void unload(struct bench *bench)
{
	char error[PLUGIN_ERROR_MAX];

	if (!bench->maker.address && plugin_stop(&bench->maker.plugin, error))
		fatal("%s", error);
}

int main(int argc, char **argv)
{
	static struct bench bench = {.ranks = 2,
				     .seconds = 0.3,
				     .sizes = {1 << 20},
				     .num_sizes = 1,
				     .inflight = {8},
				     .num_inflight = 1,
				     .comms = {1},
				     .num_comms = 1};
	size_t i;

	parse(&bench, argc, argv);
	raise_descriptor_limit();
	for (i = 0; strcmp(bench.workload, workload_names[i]); i++)
		continue;
	meet_open(&bench.meet, bench.meet_path, bench.rank, bench.ranks);
	load(&bench);
	workloads[i](&bench);
	unload(&bench);
	fflush(stdout);
	meet_barrier(&bench.meet);
	meet_close(&bench.meet);
	return 0;
}
