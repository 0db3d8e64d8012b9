/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_files.c - what NCCL's configuration files set, and which value wins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "check/nccl_files.h"
#include "common/nccl_setting.h"
#include "common/own_plugin.h"

/* A line of a file, as texts that are safe to print. */
struct shown_line {
	const char *path;
	int number;
	char name[NCCL_CONF_VALUE_MAX + 1], value[NCCL_CONF_VALUE_MAX + 1];
};

static void line_show(const char *path, const struct nccl_conf_line *line, struct shown_line *shown)
{
	shown->path = path;
	shown->number = line->number;
	snprintf(shown->name, sizeof(shown->name), "%.*s", (int)line->name_len, line->name);
	snprintf(shown->value, sizeof(shown->value), "%.*s", (int)line->value_len, line->value);
	mesh_text_clean(shown->name);
	mesh_text_clean(shown->value);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* NCCL trims nothing. True (said) if the line does not do what it looks like. */
static bool blanks_judge(const struct nccl_conf_line *line, const struct shown_line *shown,
			 struct check_result *result)
{
	const size_t before = strspn(line->name, " \t");

	if (before >= line->name_len || strncmp(line->name + before, "NCCL_", 5))
		return false;
	if (before || is_blank(line->name[line->name_len - 1])) {
		check_say(result, CHECK_WARN,
			  "line %d of %s sets a variable \"%s\": NCCL does not drop the blanks, so "
			  "the line has no effect",
			  shown->number, shown->path, shown->name);
		check_fix(result, "sed -i '%ds/^[ \\t]*//; %ds/[ \\t]*=/=/' %s", shown->number,
			  shown->number, shown->path);
		return true;
	}
	if (line->value_len && strchr(" \t\r", line->value[line->value_len - 1])) {
		check_say(result, CHECK_WARN,
			  "line %d of %s ends with a blank or a carriage return, which NCCL takes "
			  "as a part of the value of %s",
			  shown->number, shown->path, shown->name);
		check_fix(result, "sed -i '%ds/[ \\t\\r]*$//' %s", shown->number, shown->path);
		return true;
	}
	return false;
}

/* True if @name and @value name this plugin. */
static bool is_ours(const char *name, const char *value)
{
	return !strcmp(name, "NCCL_NET_PLUGIN") && own_plugin_is_named(value);
}

static void order_judge(const struct shown_line *shown, const struct nccl_setting *winner,
			struct check_result *result)
{
	char origin[PATH_MAX + 32], value[301];

	if (winner->line)
		snprintf(origin, sizeof(origin), "line %d of %s", winner->line, winner->origin);
	else
		snprintf(origin, sizeof(origin), "%s", winner->origin);
	snprintf(value, sizeof(value), "%.300s", winner->value);
	mesh_text_clean(value);
	if (winner->line == shown->number && !strcmp(winner->origin, shown->path)) {
		check_say(result, CHECK_PASS, "%s=%.300s is set by line %d of %s", shown->name,
			  shown->value, shown->number, shown->path);
		return;
	}
	if (!strcmp(winner->value, shown->value))
		return;
	check_say(result,
		  is_ours(shown->name, shown->value) && !is_ours(shown->name, value) ? CHECK_WARN
										     : CHECK_PASS,
		  "%s=%.300s of line %d of %s is not used: %s takes precedence", shown->name,
		  shown->value, shown->number, shown->path, origin);
	check_seen(result, "%s: %s=%s", origin, shown->name, value);
	if (is_ours(shown->name, shown->value) && !is_ours(shown->name, value)) {
		if (winner->line)
			check_fix(result, "remove line %d from %s", winner->line, winner->origin);
		else
			check_fix(result, "unset %s", shown->name);
	}
}

static void file_judge(const struct check_context *context, bool is_rccl, const char *path,
		       struct check_result *result)
{
	char *text = nccl_conf_read(&context->files, path);
	const char *at = text;
	struct nccl_conf_line line;
	struct nccl_setting winner;
	struct shown_line shown;
	int number = 0;

	while (text && nccl_conf_next(&at, &number, &line)) {
		line_show(path, &line, &shown);
		if (!blanks_judge(&line, &shown, result) && !strncmp(shown.name, "NCCL_", 5) &&
		    nccl_setting_find(&context->files, is_rccl, shown.name, &winner))
			order_judge(&shown, &winner, result);
	}
	free(text);
}

void nccl_files_judge(const struct check_context *context, bool is_rccl,
		      struct check_result *result)
{
	struct nccl_conf_files list;
	int i;

	nccl_conf_files_list(is_rccl, &list);
	for (i = 0; i < list.num; i++)
		file_judge(context, is_rccl, list.paths[i], result);
}
