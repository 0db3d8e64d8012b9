/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - plugin_bench: one rank that measures a net plugin, or TCP, under one workload. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench.h"
#include "clock.h"

static const char help[] =
	"usage: plugin_bench --rank R --ranks N --meet FILE --workload NAME [options]\n"
	"One such process for each rank; bench/run starts them. Rank 0 prints JSON lines.\n"
	"  --workload NAME   stream, pingpong, ring, setup, share, delay\n"
	"  --plugin FILE     the net plugin          [libnccl-net-mesh.so beside this program]\n"
	"  --abi N           6 to 12                 [the newest]\n"
	"  --tcp ADDRESS     plain TCP from this address, without a plugin\n"
	"  --meet FILE       a Unix socket that rank 0 makes\n"
	"  --sizes N,N       bytes, with K or M: of a message, or of the ring's vector\n"
	"  --inflight N,N    messages in flight, of a stream, up to 8\n"
	"  --comms N,N       comms in each direction, of stream (up to 32), ring and setup\n"
	"  --seconds S       for each figure         [0.3]\n"
	"  --pause US        sleep after a pass that moved nothing, up to 100 [0: poll]\n";

static const struct {
	const char *name;
	void (*run)(struct bench *bench);
} workloads[] = {
	{"stream", bench_stream}, {"pingpong", bench_pingpong}, {"ring", bench_ring},
	{"setup", bench_setup},	  {"share", bench_share},	{"delay", bench_delay},
};

static size_t number(const char *text, size_t most)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*end == 'K' || *end == 'M')
		value <<= *end++ == 'K' ? 10 : 20;
	if (end == text || *end || value > most)
		fatal("'%s' is no number up to %zu", text, most);
	return value;
}

static unsigned int parse_sizes(char *text, size_t most, size_t *sizes)
{
	char *save, *item;
	unsigned int n = 0;

	for (item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		if (n == BENCH_LIST_MAX)
			fatal("more than %d numbers", BENCH_LIST_MAX);
		sizes[n++] = number(item, most);
	}
	return n;
}

static unsigned int parse_counts(char *text, size_t most, unsigned int *counts)
{
	size_t sizes[BENCH_LIST_MAX];
	unsigned int n = parse_sizes(text, most, sizes);

	for (unsigned int i = 0; i < n; i++)
		counts[i] = (unsigned int)(sizes[i] ? sizes[i] : 1);
	return n;
}

enum option_name {
	RANK = 1,
	RANKS,
	MEET,
	WORKLOAD,
	PLUGIN,
	ABI,
	TCP,
	SIZES,
	INFLIGHT,
	COMMS,
	SECONDS,
	PAUSE,
	HELP
};

static void take_option(struct bench *bench, int option)
{
	switch ((enum option_name)option) {
	case RANK:
		bench->rank = (int)number(optarg, MEET_RANKS_MAX - 1);
		break;
	case RANKS:
		bench->ranks = (int)number(optarg, MEET_RANKS_MAX);
		break;
	case MEET:
		bench->meet_path = optarg;
		break;
	case WORKLOAD:
		bench->workload = optarg;
		break;
	case PLUGIN:
		bench->file = optarg;
		break;
	case ABI:
		bench->abi = (int)number(optarg, ADAPTER_ABI_NEWEST);
		break;
	case TCP:
		bench->maker.address = optarg;
		break;
	case SIZES:
		bench->num_sizes = parse_sizes(optarg, (size_t)1 << 32, bench->sizes);
		break;
	case INFLIGHT:
		bench->num_inflight = parse_counts(optarg, LANE_SLOTS_MAX, bench->inflight);
		break;
	case COMMS:
		bench->num_comms = parse_counts(optarg, 65536, bench->comms);
		break;
	case SECONDS:
		bench->seconds = strtod(optarg, NULL);
		break;
	case PAUSE:
		bench_pause_set((unsigned int)number(optarg, 100));
		break;
	case HELP:
		fputs(help, stdout);
		exit(0);
	default:
		fputs(help, stderr);
		exit(2);
	}
}

static void parse(struct bench *bench, int argc, char **argv)
{
	static const struct option options[] = {{"rank", required_argument, NULL, RANK},
						{"ranks", required_argument, NULL, RANKS},
						{"meet", required_argument, NULL, MEET},
						{"workload", required_argument, NULL, WORKLOAD},
						{"plugin", required_argument, NULL, PLUGIN},
						{"abi", required_argument, NULL, ABI},
						{"tcp", required_argument, NULL, TCP},
						{"sizes", required_argument, NULL, SIZES},
						{"inflight", required_argument, NULL, INFLIGHT},
						{"comms", required_argument, NULL, COMMS},
						{"seconds", required_argument, NULL, SECONDS},
						{"pause", required_argument, NULL, PAUSE},
						{"help", no_argument, NULL, HELP},
						{0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_option(bench, option);
	if (!bench->meet_path || !bench->workload || bench->ranks < 1 ||
	    bench->rank >= bench->ranks || !(bench->seconds > 0)) {
		fputs(help, stderr);
		exit(2);
	}
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
	const size_t num_workloads = sizeof(workloads) / sizeof(workloads[0]);
	size_t i;

	parse(&bench, argc, argv);
	raise_descriptor_limit();
	for (i = 0; i < num_workloads && strcmp(bench.workload, workloads[i].name); i++)
		continue;
	if (i == num_workloads)
		fatal("there is no workload '%s'", bench.workload);
	meet_open(&bench.meet, bench.meet_path, bench.rank, bench.ranks);
	load(&bench);
	workloads[i].run(&bench);
	unload(&bench);
	fflush(stdout);
	meet_barrier(&bench.meet);
	meet_close(&bench.meet);
	return 0;
}
