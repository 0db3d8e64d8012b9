/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of fabric_raw. */
#ifndef MESH_BENCH_RAW_OPTIONS_H
#define MESH_BENCH_RAW_OPTIONS_H

#include "common/options.h"

#include "raw_flow.h"
#include "tests/driver/list.h"

#define RAW_MAX_ITERS 4000000u

static const char *const raw_mode_names[] = {"stream", "pingpong", NULL};
static const uint64_t raw_default_sizes[] = {8,		1 << 10,  4 << 10,  8 << 10,
					     16 << 10,	32 << 10, 64 << 10, 128 << 10,
					     512 << 10, 1 << 20,  4 << 20};

struct raw_options {
	const char *provider;
	const char *source;
	const char *peer; /* NULL: this end is the server */
	const char *port;
	const char *mode;
	double seconds;
	uint32_t iters; /* 0: as many as fit in `seconds` */
	bool json;
	struct raw_params params;
};

static int take_sizes(const struct option_row *row, const char *text, void *arg)
{
	struct raw_params *params = &((struct raw_options *)arg)->params;

	params->size_count = (uint32_t)list_read(text, 1, 1u << 30, params->sizes, RAW_MAX_SIZES);
	return params->size_count ? -1
				  : arguments_misuse("fabric_raw", "--%s '%s'", row->name, text);
}

static int take_seconds(const struct option_row *row, const char *text, void *arg)
{
	double *seconds = &((struct raw_options *)arg)->seconds;
	char *end;

	*seconds = strtod(text, &end);
	return end != text && !*end && *seconds > 0 && *seconds <= 3600
		       ? -1
		       : arguments_misuse("fabric_raw", "--%s '%s'", row->name, text);
}

static const struct option_row raw_rows[] = {
	{"source", 0, "ADDRESS", "of this end", OPTION_TEXT(struct raw_options, source)},
	{"peer", 0, "ADDRESS", "of the server, at the client",
	 OPTION_TEXT(struct raw_options, peer)},
	{"provider", 0, "NAME", "net or tcp (native), tcp;ofi_rxm, verbs;ofi_rxm [tcp]",
	 OPTION_TEXT(struct raw_options, provider)},
	{"mode", 0, "NAME", "stream, pingpong [stream]",
	 OPTION_CHOICE(struct raw_options, mode, raw_mode_names)},
	{"sizes", 0, "N[,N...]", "bytes, with K or M [8 to 4M]", OPTION_HANDLER(take_sizes)},
	{"inflight", 0, "N", "messages in flight, 1 to 128 [8]",
	 OPTION_NUMBER(struct raw_options, params.window, 1, RAW_MAX_WINDOW)},
	{"yield", 0, "N", "gives the CPU away after N idle polls [256]",
	 OPTION_NUMBER(struct raw_options, params.yield_polls, 1, UINT32_MAX)},
	{"seconds", 0, "S", "measured time for each size [0.5]", OPTION_HANDLER(take_seconds)},
	{"iters", 0, "N", "messages for each size, instead of --seconds",
	 OPTION_NUMBER(struct raw_options, iters, 1, RAW_MAX_ITERS)},
	{"port", 0, "N", "TCP port of the side channel [18515]",
	 OPTION_TEXT(struct raw_options, port)},
	{"json", 0, NULL, "one JSON object a line", OPTION_FLAG(struct raw_options, json)},
	{.name = NULL},
};

static const struct option_table raw_table = {
	.who = "fabric_raw",
	.usage = "usage: fabric_raw --source ADDRESS [--provider NAME] [--port N]  (server)\n"
		 "       fabric_raw --source ADDRESS --peer ADDRESS [options]     (client)\n",
	.notes =
		"The client's options hold for both ends; provider and source are given to each.\n",
	.rows = raw_rows,
};

/* Returns an exit status, or -1 to go on. */
static int parse_arguments(struct raw_options *options, int argc, char **argv)
{
	struct raw_params *params = &options->params;
	int status = option_table_parse(&raw_table, argc, argv, options, NULL);

	if (status >= 0)
		return status;
	if (!options->source)
		return arguments_misuse("fabric_raw", "--source is missing");
	params->mode = strcmp(options->mode, raw_mode_names[RAW_STREAM]) ? RAW_PINGPONG
									 : RAW_STREAM;
	/* A pingpong needs its next receive posted while the last one is read. */
	if (params->mode == RAW_PINGPONG && params->window < 2)
		params->window = 2;
	return -1;
}

#endif
