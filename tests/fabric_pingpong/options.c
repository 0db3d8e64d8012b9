/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - a table of options, and where rank and size come from. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/output.h"

#include "list.h"
#include "options.h"
#include "rendezvous.h"

#define WHO "fabric_pingpong"
/* More than the matrix has sizes. */
#define CHECK_EVERY_MAX 64
#define BYTES_MAX (1ull << 30)
#define ARGUMENTS_MAX 64

static int take_verbose(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	options->verbose++;
	return -1;
}

static int take_pairs(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;
	const char *at = text;
	unsigned int from, to;
	int used;

	for (options->num_pairs = 0;; at += used + 1) {
		used = 0;
		if (sscanf(at, "%4u-%4u%n", &from, &to, &used) != 2 || !used || from == to ||
		    (at[used] && at[used] != ',') || options->num_pairs == OPTIONS_PAIRS_MAX)
			return arguments_misuse(
				WHO, "--%s '%s': expected FROM-TO,FROM-TO, for example 0-1,1-0",
				row->name, text);
		options->pairs[options->num_pairs].from = (uint16_t)from;
		options->pairs[options->num_pairs++].to = (uint16_t)to;
		if (!at[used])
			return -1;
	}
}

static int take_sizes(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	options->num_sizes = list_read(text, 0, BYTES_MAX, options->sizes, OPTIONS_SIZES_MAX);
	if (options->num_sizes)
		return -1;
	return arguments_misuse(WHO,
				"--%s '%s': expected up to %d sizes up to 1G, for example 8,64K,4M",
				row->name, text, OPTIONS_SIZES_MAX);
}

static int take_check_max(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	if (list_read(text, 0, BYTES_MAX, &options->check_max, 1))
		return -1;
	return arguments_misuse(WHO, "--%s '%s': expected bytes up to 1G, for example 64K",
				row->name, text);
}

static int take_dev(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;
	unsigned long dev;

	if (!strcmp(text, "rank")) {
		options->dev = OPTIONS_DEV_RANK;
		return -1;
	}
	if (!argument_number(text, 0, 1023, &dev))
		return arguments_misuse(WHO, "--%s '%s': expected a number from 0 to 1023, or rank",
					row->name, text);
	options->dev = (int)dev;
	return -1;
}

static int take_seconds(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;
	char *end;

	options->seconds = strtod(text, &end);
	if (end != text && !*end && options->seconds >= 0.001 && options->seconds <= 86400)
		return -1;
	return arguments_misuse(WHO, "--%s '%s': expected a time from 0.001 to 86400", row->name,
				text);
}

static const struct option_row rows[] = {
	{"plugin", 'p', "PATH",
	 "the plugin; a name without '/' is looked up by the\n"
	 "loader. Default: libnccl-net-mesh.so next to this\n"
	 "program, in ../lib or ../lib64, then by the loader",
	 OPTION_TEXT(struct options, plugin)},
	{"abi", 0, "N",
	 "net ABI version 6 to 12; default: the newest it\n"
	 "exports",
	 OPTION_NUMBER(struct options, abi, 6, 12)},
	{"json", 'j', NULL, "print one JSON document instead of text (rank 0)",
	 OPTION_FLAG(struct options, json)},
	{"verbose", 'v', NULL, "show the plugin's INFO lines; twice: TRACE lines, too",
	 OPTION_HANDLER(take_verbose)},
	{"pairs", 0, "LIST", "only these pairs, for example 0-1,1-0 (rank 0)",
	 OPTION_HANDLER(take_pairs)},
	{"rendezvous-timeout", 0, "S",
	 "how long ranks wait for each other at the start\n"
	 "(default 60)\n",
	 OPTION_NUMBER(struct options, rendezvous_s, 1, 86400)},
	/* From here on rank 0's count. */
	{"sizes", 's', "LIST", "bytes with K, M or G (default 8,4K,64K,512K,1M,4M)",
	 OPTION_HANDLER(take_sizes)},
	{"channels", 'c', "N",
	 "comms in each direction of a pair, all driven by one\n"
	 "thread, as NCCL's channels are (default 2, at most\n"
	 "127)",
	 OPTION_NUMBER(struct options, channels, 1, OPTIONS_CHANNELS_MAX)},
	{"comms", 0, "N", "the same",
	 OPTION_NUMBER(struct options, channels, 1, OPTIONS_CHANNELS_MAX)},
	{"dev", 'd', "N",
	 "NIC index given to listen and connect, modulo the\n"
	 "number of NICs; 'rank': the rank's number, as where\n"
	 "each GPU has a NIC nearby; default: the channel's\n"
	 "number, which is what NCCL does where all are near",
	 OPTION_HANDLER(take_dev)},
	{"inflight", 0, "N",
	 "messages outstanding on a comm, 1 to 32 (default 8, as\n"
	 "in NCCL)",
	 OPTION_NUMBER(struct options, inflight, 1, OPTIONS_INFLIGHT_MAX)},
	{"seconds", 0, "S",
	 "time for the latency and again for the bandwidth of\n"
	 "each size (default 0.25)",
	 OPTION_HANDLER(take_seconds)},
	{"iters", 'n', "N",
	 "so many messages instead: round trips, and messages of\n"
	 "a stream on each comm",
	 OPTION_NUMBER(struct options, iters, 1, 10000000)},
	{"repeat", 0, "N",
	 "streams for each size, of which the median counts\n"
	 "(default 5)",
	 OPTION_NUMBER(struct options, repeat, 1, 1000)},
	{"check", 0, NULL, "run the correctness matrix only, measure nothing",
	 OPTION_FLAG(struct options, check_only)},
	{"no-check", 0, NULL,
	 "measure without the correctness matrix; the column\n"
	 "check then says samples instead of ok",
	 OPTION_FLAG(struct options, no_check)},
	{"check-every", 0, "N",
	 "each pair checks one in N of the matrix's sizes\n"
	 "(default 1), and the next pair the next ones, so that\n"
	 "N pairs check all of them",
	 OPTION_NUMBER(struct options, check_every, 1, CHECK_EVERY_MAX)},
	{"check-max", 0, "N",
	 "largest message of the correctness matrix (default 1\n"
	 "MiB and one byte)",
	 OPTION_HANDLER(take_check_max)},
	{"all-at-once", 0, NULL, "all pairs together instead of one after another",
	 OPTION_FLAG(struct options, all_at_once)},
	{"timeout", 't', "S",
	 "give up after S seconds without any progress (default\n"
	 "120)\n",
	 OPTION_NUMBER(struct options, timeout_s, 1, 86400)},
	{"version", 0, NULL, "the version of this program", OPTION_HELP_ONLY},
	{.name = NULL},
};

static const char usage[] =
	"Usage: RANK=r WORLD_SIZE=n MASTER_ADDR=address MASTER_PORT=port \\\n"
	"           fabric_pingpong [options]\n"
	"Start one process for each rank, in any order. What the second group says counts\n"
	"on rank 0, which sends it to the others.\n\n";

static const struct option_table table = {
	.who = WHO,
	.usage = usage,
	.notes = "\nThe manual page, fabric_pingpong(1), has what is checked, what the figures\n"
		 "are, and what is read from the environment. Exit status: 0 if all was right, 1,\n"
		 "or 2 for a usage error.\n",
	.rows = rows,
};

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
	va_list args;

	fputs(WHO ": ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/*
 * The first of the names that is set decides, and *name is that one. Returns 1 if there is one,
 * 0 if not, and a negative errno if it is not a number.
 */
static int number_from_environment(const char *const *names, unsigned long max, int *value,
				   const char **name)
{
	const char *text;
	unsigned long n;

	for (; *names; names++) {
		text = getenv(*names);
		if (!text || !*text)
			continue;
		if (!argument_number(text, 0, max, &n)) {
			complain("%s='%s' is not a number from 0 to %d", *names, text, (int)max);
			return -EINVAL;
		}
		*value = (int)n;
		*name = *names;
		return 1;
	}
	return 0;
}

/* The order is that of torchrun, Open MPI, Slurm, and PMI (MPICH, Intel MPI). */
static int read_environment(struct options *options)
{
	static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID",
					    "PMI_RANK", NULL};
	static const char *const worlds[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS",
					     "PMI_SIZE", NULL};
	const char *rank_name = ranks[0], *world_name = worlds[0];
	int rank =
		number_from_environment(ranks, OPTIONS_RANKS_MAX - 1, &options->rank, &rank_name);
	int world =
		number_from_environment(worlds, OPTIONS_RANKS_MAX, &options->world, &world_name);

	if (rank < 0 || world < 0)
		return -EINVAL;
	if (!rank || !world) {
		complain("%s is not set", rank ? "WORLD_SIZE" : "RANK");
		fputs(usage, stderr);
		return -EINVAL;
	}
	if (options->world < 2) {
		complain("%s=%d: at least two ranks are needed", world_name, options->world);
		return -EINVAL;
	}
	if (options->rank >= options->world) {
		complain("%s=%d with %s=%d: ranks are numbered from 0 to %d", rank_name,
			 options->rank, world_name, options->world, options->world - 1);
		return -EINVAL;
	}
	return rendezvous_address(options);
}

static int check_together(const struct options *options)
{
	for (size_t i = 0; i < options->num_pairs; i++) {
		if (options->pairs[i].from >= options->world ||
		    options->pairs[i].to >= options->world) {
			complain("--pairs: there is no pair %u-%u among %d ranks",
				 options->pairs[i].from, options->pairs[i].to, options->world);
			return -EINVAL;
		}
	}
	if (!options->check && !options->measure) {
		complain("--check and --no-check together leave nothing to do");
		return -EINVAL;
	}
	return 0;
}

static void set_defaults(struct options *options)
{
	static const uint64_t sizes[] = {8, 4 << 10, 64 << 10, 512 << 10, 1 << 20, 4 << 20};

	memset(options, 0, sizeof(*options));
	options->rendezvous_s = 60;
	memcpy(options->sizes, sizes, sizeof(sizes));
	options->num_sizes = sizeof(sizes) / sizeof(sizes[0]);
	options->inflight = 8;
	options->channels = 2;
	options->dev = OPTIONS_DEV_CHANNEL;
	options->seconds = 0.25;
	options->repeat = 5;
	options->check_max = (1 << 20) + 1;
	options->check_every = 1;
	options->timeout_s = 120;
}

/* The command line as text, which rank 0 sends to the others. */
static int remember(struct options *options, int argc, char **argv)
{
	size_t used = 0;
	int n;

	for (int i = 1; i < argc; i++) {
		n = snprintf(options->shared + used, sizeof(options->shared) - used, "%s\n",
			     argv[i]);
		used += (size_t)n;
		if (used >= sizeof(options->shared) || i > ARGUMENTS_MAX || strchr(argv[i], '\n')) {
			complain("the command line is too long, or has a newline");
			return -EINVAL;
		}
	}
	return 0;
}

/* Returns an exit status, or -1 to go on. */
static int parse(int argc, char **argv, struct options *options)
{
	int status;

	set_defaults(options);
	status = option_table_parse(&table, argc, argv, options, NULL);
	options->check = !options->no_check;
	options->measure = !options->check_only;
	return status;
}

enum options_result options_parse(int argc, char **argv, struct options *options)
{
	int status;

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("fabric_pingpong of nccl-net-mesh " MESH_VERSION);
		return OPTIONS_DONE;
	}
	status = parse(argc, argv, options);
	if (status == COMMAND_FINE)
		return OPTIONS_DONE;
	if (status > 0 || remember(options, argc, argv) || read_environment(options) ||
	    check_together(options))
		return OPTIONS_WRONG;
	return OPTIONS_RUN;
}

int options_apply_shared(struct options *options, char *text)
{
	const size_t first = offsetof(struct options, sizes),
		     end = offsetof(struct options, shared);
	struct options *given = calloc(1, sizeof(*given));
	char *argv[ARGUMENTS_MAX + 2] = {(char *)WHO}, *newline;
	int argc = 1, status = 0;

	for (; (newline = strchr(text, '\n')) && argc <= ARGUMENTS_MAX; text = newline + 1) {
		*newline = '\0';
		argv[argc++] = text;
	}
	if (given && !*text)
		status = parse(argc, argv, given);
	if (status < 0)
		memcpy((char *)options + first, (char *)given + first, end - first);
	free(given);
	return status < 0 ? 0 : -EINVAL;
}

uint64_t options_max_size(const struct options *options)
{
	uint64_t max = 0;

	for (size_t i = 0; i < options->num_sizes; i++)
		if (options->sizes[i] > max)
			max = options->sizes[i];
	return max;
}
