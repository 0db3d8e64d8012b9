/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of fabric_raw. */
#ifndef MESH_BENCH_RAW_OPTIONS_H
#define MESH_BENCH_RAW_OPTIONS_H

#include <getopt.h>

#include "raw_flow.h"

#define RAW_MAX_ITERS 4000000u

static const char *const raw_mode_names[] = {"stream", "pingpong", "idle"};
static const uint64_t raw_default_sizes[] = {8,		1 << 10,  4 << 10,  8 << 10,
					     16 << 10,	32 << 10, 64 << 10, 128 << 10,
					     512 << 10, 1 << 20,  4 << 20};

struct raw_options {
	const char *provider;
	const char *source;
	const char *peer; /* NULL: this end is the server */
	const char *port;
	double seconds;
	uint32_t iters; /* 0: as many as fit in `seconds` */
	bool json;
	struct raw_params params;
};

static void usage(FILE *to)
{
	fputs("usage: fabric_raw --source ADDRESS [--provider NAME] [--port N]         (server)\n"
	      "       fabric_raw --source ADDRESS --peer ADDRESS [options]            (client)\n"
	      "  --provider NAME       net or tcp (native), tcp;ofi_rxm, verbs;ofi_rxm  [tcp]\n"
	      "  --mapping NAME        tagged, msg, eager (msg with copies), write, grant [grant]\n"
	      "  --mode NAME           stream, pingpong, idle (cost of fi_cq_read)      [stream]\n"
	      "  --sizes N[,N...]      bytes, with K or M                         [8 to 4M]\n"
	      "  --inflight N          messages in flight, 1 to 128                     [8]\n"
	      "  --late                post or grant only after the last was consumed\n"
	      "  --delivery-complete   a send completes when the peer has the bytes\n"
	      "  --no-inject           no inject calls for small data\n"
	      "  --yield N             gives the CPU away after N idle polls            [256]\n"
	      "  --seconds S           measured time for each size                      [0.5]\n"
	      "  --iters N             messages for each size, instead of --seconds\n"
	      "  --port N              TCP port of the side channel                     [18515]\n"
	      "  --json                one JSON object a line\n"
	      "The client's options hold for both ends; provider and source are given to each.\n",
	      to);
}

static int parse_number(const char *text, uint64_t most, uint64_t *number)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (end == text || *text == '-' || errno)
		return -EINVAL;
	if (*end == 'K' || *end == 'M') {
		const unsigned int shift = *end++ == 'K' ? 10 : 20;

		if (value > UINT64_MAX >> shift)
			return -EINVAL;
		value <<= shift;
	}
	if (*end || !value || value > most)
		return -EINVAL;
	*number = value;
	return 0;
}

static int parse_u32(const char *text, uint64_t most, uint32_t *number)
{
	uint64_t value;
	int ret = parse_number(text, most, &value);

	if (!ret)
		*number = (uint32_t)value;
	return ret;
}

static int parse_sizes(char *text, struct raw_params *params)
{
	char *save, *item;

	params->size_count = 0;
	for (item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		if (params->size_count == RAW_MAX_SIZES ||
		    parse_number(item, 1u << 30, &params->sizes[params->size_count]))
			return -EINVAL;
		params->size_count++;
	}
	return params->size_count ? 0 : -EINVAL;
}

static int parse_name(const char *text, const char *const names[], uint32_t count, uint32_t *number)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(text, names[i])) {
			*number = i;
			return 0;
		}
	return -EINVAL;
}

static int parse_mapping(const char *text, uint32_t *number)
{
	const char *names[RAW_MAPPING_COUNT];
	uint32_t i;

	for (i = 0; i < RAW_MAPPING_COUNT; i++)
		names[i] = raw_mappings[i].name;
	return parse_name(text, names, RAW_MAPPING_COUNT, number);
}

static int parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return end == text || *end || !(*seconds > 0 && *seconds <= 3600) ? -EINVAL : 0;
}

static int parse_option(struct raw_options *options, int option)
{
	struct raw_params *params = &options->params;

	switch (option) {
	case 'p':
		options->provider = optarg;
		return 0;
	case 's':
		options->source = optarg;
		return 0;
	case 'c':
		options->peer = optarg;
		return 0;
	case 'P':
		options->port = optarg;
		return 0;
	case 'm':
		return parse_mapping(optarg, &params->mapping);
	case 'o':
		return parse_name(optarg, raw_mode_names, 3, &params->mode);
	case 'z':
		return parse_sizes(optarg, params);
	case 'w':
		return parse_u32(optarg, RAW_MAX_WINDOW, &params->window);
	case 'y':
		return parse_u32(optarg, UINT32_MAX, &params->yield_polls);
	case 't':
		return parse_seconds(optarg, &options->seconds);
	case 'i':
		return parse_u32(optarg, RAW_MAX_ITERS, &options->iters);
	default:
		return -EINVAL;
	}
}

static const struct option raw_long_options[] = {
	{"provider", required_argument, NULL, 'p'},
	{"source", required_argument, NULL, 's'},
	{"peer", required_argument, NULL, 'c'},
	{"port", required_argument, NULL, 'P'},
	{"mapping", required_argument, NULL, 'm'},
	{"mode", required_argument, NULL, 'o'},
	{"sizes", required_argument, NULL, 'z'},
	{"inflight", required_argument, NULL, 'w'},
	{"seconds", required_argument, NULL, 't'},
	{"iters", required_argument, NULL, 'i'},
	{"yield", required_argument, NULL, 'y'},
	{"late", no_argument, NULL, 'l'},
	{"delivery-complete", no_argument, NULL, 'd'},
	{"no-inject", no_argument, NULL, 'n'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int parse_arguments(struct raw_options *options, int argc, char **argv)
{
	struct raw_params *params = &options->params;
	int option;

	while ((option = getopt_long(argc, argv, "h", raw_long_options, NULL)) != -1) {
		if (option == 'l')
			params->late = 1;
		else if (option == 'd')
			params->delivery_complete = 1;
		else if (option == 'n')
			params->inject = 0;
		else if (option == 'j')
			options->json = true;
		else if (option == 'h')
			return 1;
		else if (option == '?' || parse_option(options, option))
			return -EINVAL;
	}
	if (optind < argc || !options->source)
		return -EINVAL;
	if (params->late && raw_mappings[params->mapping].expect == raw_write_expect) {
		fputs("fabric_raw: mapping write posts nothing that could be late\n", stderr);
		return -EINVAL;
	}
	/* A pingpong needs its next receive posted while the last one is read. */
	if (params->mode == RAW_PINGPONG && params->window < 2)
		params->window = 2;
	return 0;
}

#endif
