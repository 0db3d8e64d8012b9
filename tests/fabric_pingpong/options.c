/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - a table of options, and where rank and size come from. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "options.h"
#include "rendezvous.h"

/* More than the matrix has sizes. */
#define CHECK_EVERY_MAX 64

struct option_entry {
	const char *name;
	char letter;
	bool has_value;
	bool shared; /* rank 0 sends it to the others */
	int (*set)(struct options *options, const char *value);
};

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
	va_list args;

	fputs("fabric_pingpong: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static bool parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;
	unsigned long long n;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || n < min || n > max)
		return false;
	*value = n;
	return true;
}

static int set_u32(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	uint64_t n;

	if (!parse_u64(text, min, max, &n)) {
		complain("'%s' is not a number from %u to %u", text, min, max);
		return -EINVAL;
	}
	*value = (uint32_t)n;
	return 0;
}

/* Bytes with an optional K, M or G (powers of 1024); *rest is what follows. */
static bool parse_bytes(const char *text, uint64_t *bytes, const char **rest)
{
	char *end;
	unsigned long long n;
	int shift = 0;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	if (errno || n > 1ull << 30 || n << shift > 1ull << 30)
		return false;
	*bytes = n << shift;
	*rest = end + (shift ? 1 : 0);
	return true;
}

static int set_plugin(struct options *options, const char *value)
{
	options->plugin = value;
	return 0;
}

static int set_abi(struct options *options, const char *value)
{
	uint32_t abi;

	if (set_u32(value, 6, 12, &abi))
		return -EINVAL;
	options->abi = (int)abi;
	return 0;
}

static int set_json(struct options *options, const char *value)
{
	(void)value;
	options->json = true;
	return 0;
}

static int set_verbose(struct options *options, const char *value)
{
	(void)value;
	options->verbose++;
	return 0;
}

static int set_rendezvous(struct options *options, const char *value)
{
	return set_u32(value, 1, 86400, &options->rendezvous_s);
}

static int set_pairs(struct options *options, const char *value)
{
	const char *at = value;
	unsigned int from, to;
	int used;

	options->num_pairs = 0;
	for (;;) {
		used = 0;
		if (sscanf(at, "%4u-%4u%n", &from, &to, &used) != 2 || !used || from == to ||
		    (at[used] && at[used] != ',') || options->num_pairs == OPTIONS_PAIRS_MAX) {
			complain("--pairs '%s': expected FROM-TO,FROM-TO, for example 0-1,1-0",
				 value);
			return -EINVAL;
		}
		options->pairs[options->num_pairs].from = (uint16_t)from;
		options->pairs[options->num_pairs++].to = (uint16_t)to;
		if (!at[used])
			return 0;
		at += used + 1;
	}
}

static int set_sizes(struct options *options, const char *value)
{
	const char *at = value;

	options->num_sizes = 0;
	for (;;) {
		if (options->num_sizes == OPTIONS_SIZES_MAX ||
		    !parse_bytes(at, &options->sizes[options->num_sizes], &at) ||
		    (*at && *at != ',')) {
			complain("--sizes '%s': expected up to %d sizes up to 1G, for example "
				 "8,64K,4M",
				 value, OPTIONS_SIZES_MAX);
			return -EINVAL;
		}
		options->num_sizes++;
		if (!*at++)
			return 0;
	}
}

static int set_check_max(struct options *options, const char *value)
{
	const char *rest;

	if (!parse_bytes(value, &options->check_max, &rest) || *rest) {
		complain("--check-max '%s': expected bytes up to 1G, for example 64K", value);
		return -EINVAL;
	}
	return 0;
}

static int set_check_every(struct options *options, const char *value)
{
	return set_u32(value, 1, CHECK_EVERY_MAX, &options->check_every);
}

static int set_inflight(struct options *options, const char *value)
{
	return set_u32(value, 1, OPTIONS_INFLIGHT_MAX, &options->inflight);
}

static int set_channels(struct options *options, const char *value)
{
	return set_u32(value, 1, OPTIONS_CHANNELS_MAX, &options->channels);
}

static int set_dev(struct options *options, const char *value)
{
	uint32_t dev;

	if (!strcmp(value, "rank")) {
		options->dev = OPTIONS_DEV_RANK;
		return 0;
	}
	if (set_u32(value, 0, 1023, &dev))
		return -EINVAL;
	options->dev = (int)dev;
	return 0;
}

static int set_seconds(struct options *options, const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	if (end == value || *end || !(seconds >= 0.001 && seconds <= 86400)) {
		complain("--seconds '%s': expected a time from 0.001 to 86400", value);
		return -EINVAL;
	}
	options->seconds = seconds;
	return 0;
}

static int set_iters(struct options *options, const char *value)
{
	return set_u32(value, 1, 10000000, &options->iters);
}

static int set_repeat(struct options *options, const char *value)
{
	return set_u32(value, 1, 1000, &options->repeat);
}

static int set_no_check(struct options *options, const char *value)
{
	(void)value;
	options->check = false;
	return 0;
}

static int set_check_only(struct options *options, const char *value)
{
	(void)value;
	options->measure = false;
	return 0;
}

static int set_all_at_once(struct options *options, const char *value)
{
	(void)value;
	options->all_at_once = true;
	return 0;
}

static int set_timeout(struct options *options, const char *value)
{
	return set_u32(value, 1, 86400, &options->timeout_s);
}

static const struct option_entry entries[] = {
	{"plugin", 'p', true, false, set_plugin},
	{"abi", 0, true, false, set_abi},
	{"json", 'j', false, false, set_json},
	{"verbose", 'v', false, false, set_verbose},
	{"rendezvous-timeout", 0, true, false, set_rendezvous},
	{"pairs", 0, true, false, set_pairs},
	{"sizes", 's', true, true, set_sizes},
	{"check-max", 0, true, true, set_check_max},
	{"check-every", 0, true, true, set_check_every},
	{"inflight", 0, true, true, set_inflight},
	{"channels", 'c', true, true, set_channels},
	{"comms", 0, true, true, set_channels},
	{"dev", 'd', true, true, set_dev},
	{"seconds", 0, true, true, set_seconds},
	{"iters", 'n', true, true, set_iters},
	{"repeat", 0, true, true, set_repeat},
	{"no-check", 0, false, true, set_no_check},
	{"check", 0, false, true, set_check_only},
	{"all-at-once", 0, false, true, set_all_at_once},
	{"timeout", 't', true, true, set_timeout},
	{NULL, 0, false, false, NULL},
};

static const struct option_entry *find_long(const char *name, size_t length)
{
	const struct option_entry *entry;

	for (entry = entries; entry->name; entry++)
		if (strlen(entry->name) == length && !memcmp(entry->name, name, length))
			return entry;
	return NULL;
}

static const struct option_entry *find_short(char letter)
{
	const struct option_entry *entry;

	for (entry = entries; entry->name; entry++)
		if (letter && entry->letter == letter)
			return entry;
	return NULL;
}

static int remember_shared(struct options *options, const struct option_entry *entry,
			   const char *value)
{
	size_t used = strlen(options->shared);
	int n = snprintf(options->shared + used, sizeof(options->shared) - used, "%s=%s\n",
			 entry->name, value ? value : "");

	if (n < 0 || (size_t)n >= sizeof(options->shared) - used) {
		complain("the command line is too long");
		return -EINVAL;
	}
	return 0;
}

static int apply(struct options *options, const struct option_entry *entry, const char *value)
{
	if (entry->set(options, value))
		return -EINVAL;
	return entry->shared ? remember_shared(options, entry, value) : 0;
}

/* One argument, with the one behind it where it is the value; *next moves past both. */
static int parse_one(struct options *options, int argc, char **argv, int *next)
{
	const char *arg = argv[(*next)++], *value = NULL;
	const struct option_entry *entry = NULL;

	if (arg[0] == '-' && arg[1] == '-') {
		value = strchr(arg, '=');
		entry = find_long(arg + 2, value ? (size_t)(value - arg - 2) : strlen(arg + 2));
		value = value ? value + 1 : NULL;
	} else if (arg[0] == '-' && arg[1] && !arg[2]) {
		entry = find_short(arg[1]);
	}
	if (!entry) {
		complain("there is no option '%s'; --help lists them", arg);
		return -EINVAL;
	}
	if (entry->has_value && !value && *next < argc)
		value = argv[(*next)++];
	if (entry->has_value != (value != NULL)) {
		complain("%s %s a value", arg, entry->has_value ? "needs" : "does not take");
		return -EINVAL;
	}
	return apply(options, entry, value);
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

/*
 * The first of the names that is set decides, and *name is that one. Returns 1 if there is one,
 * 0 if not, and a negative errno if it is not a number.
 */
static int number_from_environment(const char *const *names, uint64_t max, int *value,
				   const char **name)
{
	const char *text;
	uint64_t n;

	for (; *names; names++) {
		text = getenv(*names);
		if (!text || !*text)
			continue;
		if (!parse_u64(text, 0, max, &n)) {
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
		help_print_usage(stderr);
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

static void set_shared_defaults(struct options *options)
{
	static const uint64_t sizes[] = {8, 4 << 10, 64 << 10, 512 << 10, 1 << 20, 4 << 20};

	memcpy(options->sizes, sizes, sizeof(sizes));
	options->num_sizes = sizeof(sizes) / sizeof(sizes[0]);
	options->inflight = 8;
	options->channels = 2;
	options->dev = OPTIONS_DEV_CHANNEL;
	options->seconds = 0.25;
	options->iters = 0;
	options->repeat = 5;
	options->check = true;
	options->measure = true;
	options->check_max = (1 << 20) + 1;
	options->check_every = 1;
	options->all_at_once = false;
	options->timeout_s = 120;
	options->shared[0] = '\0';
}

enum options_result options_parse(int argc, char **argv, struct options *options)
{
	int next = 1;

	memset(options, 0, sizeof(*options));
	options->rendezvous_s = 60;
	set_shared_defaults(options);
	if (wants_help(argc, argv)) {
		help_print(stdout);
		return OPTIONS_DONE;
	}
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("fabric_pingpong of nccl-net-mesh " MESH_VERSION);
		return OPTIONS_DONE;
	}
	while (next < argc)
		if (parse_one(options, argc, argv, &next))
			return OPTIONS_WRONG;
	if (read_environment(options) || check_together(options))
		return OPTIONS_WRONG;
	return OPTIONS_RUN;
}

int options_apply_shared(struct options *options, const char *text)
{
	char line[OPTIONS_SHARED_MAX];
	const struct option_entry *entry;
	const char *end;
	char *equals;

	set_shared_defaults(options);
	for (; *text; text = end + 1) {
		end = strchr(text, '\n');
		if (!end || (size_t)(end - text) >= sizeof(line))
			return -EINVAL;
		memcpy(line, text, (size_t)(end - text));
		line[end - text] = '\0';
		equals = strchr(line, '=');
		if (!equals)
			return -EINVAL;
		*equals = '\0';
		entry = find_long(line, strlen(line));
		if (!entry || !entry->shared || entry->set(options, equals + 1))
			return -EINVAL;
	}
	return 0;
}

uint64_t options_max_size(const struct options *options)
{
	uint64_t max = 0;

	for (size_t i = 0; i < options->num_sizes; i++)
		if (options->sizes[i] > max)
			max = options->sizes[i];
	return max;
}
