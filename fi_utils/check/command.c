/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - `fi_mesh check`: runs the table of checks and shows their findings. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "check/checks.h"
#include "check/context.h"
#include "commands.h"
#include "common/finding.h"
#include "common/json.h"
#include "common/options.h"
#include "common/output.h"
#include "common/progress.h"

static const char who[] = "fi_mesh check";

static const char usage_text[] =
	"usage: fi_mesh check [--quiet] [--json] [--only ID[,ID...]] [--nccl FILE]\n"
	"       fi_mesh check --peer ADDR... [--port PORT] [--quiet] [--json]\n"
	"       fi_mesh check --all HOST HOST...\n"
	"\n"
	"Checks everything on this node that a working mesh needs, and gives the command\n"
	"that fixes what is wrong. It changes nothing and needs no root; it names what it\n"
	"may not read. NCCL_* and NCCL_MESH_* variables have the same effect as in NCCL\n"
	"and the plugin.\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Exit status: 0 nothing is wrong, 1 something is (warn or fail), 2 usage error.\n";

struct options {
	bool json, quiet;
	uint32_t only; /* bit n for checks[n]; 0: all of them */
	const char *root, *nccl_file;
};

/* The place in the table of the check whose id is @len bytes at @id, or -1. */
static int check_find(const char *id, size_t len)
{
	int i;

	for (i = 0; checks[i].id; i++)
		if (strlen(checks[i].id) == len && !memcmp(checks[i].id, id, len))
			return i;
	return -1;
}

/* Chooses the checks of the comma list. False (reported) if one of them is unknown. */
static bool only_take(const char *only, uint32_t *chosen)
{
	const char *at, *end;
	int i;

	for (at = only; at; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, ',');
		i = check_find(at, (size_t)(end - at));
		if (i >= 0) {
			*chosen |= 1u << i;
			continue;
		}
		fprintf(stderr, "%s: unknown check \"%.*s\"; the checks are:", who, (int)(end - at),
			at);
		for (i = 0; checks[i].id; i++)
			fprintf(stderr, " %s", checks[i].id);
		fputc('\n', stderr);
		return false;
	}
	return true;
}

static int only_option(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	(void)row;
	return only_take(text, &options->only) ? -1 : COMMAND_MISUSE;
}

static const struct option_row option_rows[] = {
	{"quiet", 'q', NULL, "show only what is not right", OPTION_FLAG(struct options, quiet)},
	{"json", 0, NULL, "JSON instead of text", OPTION_FLAG(struct options, json)},
	{"only", 0, "IDS", "only these checks", OPTION_HANDLER(only_option)},
	{"nccl", 0, "FILE", "the libnccl.so.2 or librccl.so.1 that your program uses",
	 OPTION_TEXT(struct options, nccl_file)},
	{"root", 0, "DIR", NULL, /* a recorded tree, for tests and reports */
	 OPTION_TEXT(struct options, root)},
	{"peer", 0, "ADDR",
	 "check the links to the node with this address instead, which must\n"
	 "run `fi_mesh serve` (`fi_mesh check --peer x --help` has more)",
	 OPTION_HELP_ONLY}, /* check_peer_is_wanted() finds it */
	{"all", 0, NULL,
	 "check these hosts, over ssh, and all cables between them instead\n"
	 "(`fi_mesh check --all --help` has more)",
	 OPTION_HELP_ONLY}, /* check_all_is_wanted() finds it */
	{.name = NULL},
};

static const struct option_table option_table = {who, usage_text, notes_text, option_rows};

/* Returns an exit status, or -1 to go on. */
static int options_parse(int argc, char **argv, struct options *options)
{
	struct stat info;
	int status;

	*options = (struct options){.root = "/"};
	status = option_table_parse(&option_table, argc, argv, options, NULL);
	if (status >= 0)
		return status;
	if (options->nccl_file && (stat(options->nccl_file, &info) || !S_ISREG(info.st_mode)))
		return arguments_misuse(who, "%s is not a file", options->nccl_file);
	return argument_is_folder(who, options->root) ? -1 : COMMAND_MISUSE;
}

/* @list: with --json, what it found is appended. */
static void check_run(const struct check *check, const struct options *options,
		      const struct check_context *context, struct check_totals *totals,
		      json_t **list)
{
	struct progress *progress = progress_begin("checking: %s", check->title);
	struct check_result result = {0};

	check->run(context, &result);
	progress_end(progress);
	check_totals_add(totals, &result);
	if (options->json)
		*list = output_json_append(*list, check_json(check->id, check->title, &result));
	else
		check_print(stdout, check->id, &result, options->quiet);
	check_result_free(&result);
	fflush(stdout);
}

/* Returns an exit status. */
static int checks_run(const struct options *options, const struct check_context *context)
{
	json_t *list = options->json ? json_array() : NULL;
	struct check_totals totals = {0};
	char text[CHECK_TOTALS_TEXT_MAX];
	int i, status, num = 0;

	for (i = 0; checks[i].id; i++) {
		if (options->only && !(options->only & 1u << i))
			continue;
		check_run(&checks[i], options, context, &totals, &list);
		num++;
	}
	status = check_totals_status(&totals);
	if (!options->json) {
		if (!options->quiet || status != COMMAND_FINE || totals.counts[CHECK_UNKNOWN])
			printf("\n%d check%s; findings: %s\n", num, num == 1 ? "" : "s",
			       check_totals_text(&totals, text));
	} else if (output_json_print(who, stdout, check_totals_json(&totals, "checks", list))) {
		status = COMMAND_PROBLEM;
	}
	return status;
}

int command_check(int argc, char **argv)
{
	struct check_context context;
	struct options options;
	int status, ret;

	if (check_all_is_wanted(argc, argv))
		return command_check_all(argc, argv);
	if (check_peer_is_wanted(argc, argv))
		return command_check_peer(argc, argv);
	status = options_parse(argc, argv, &options);
	if (status >= 0)
		return status;
	ret = check_context_load(&context, options.root);
	context.nccl_file = options.nccl_file;
	status = ret ? output_failure(who, ret) : checks_run(&options, &context);
	check_context_free(&context);
	return output_finish(who, status);
}
