/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - the settings and their values: as text, as JSON, and as docs/settings.md. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "system/sysfs.h"
#include "common/json.h"
#include "common/nccl_setting.h"
#include "config/print.h"

#define PREFIX "NCCL_MESH_"
/* There are fewer settings; lines beyond that many are left out. */
#define TAKEN_MAX 64
#define NAME_MAX_BYTES 64

/* What came from a file; the process is the command. */
static struct {
	char name[NAME_MAX_BYTES];
	char origin[PATH_MAX + 32];
} taken[TAKEN_MAX];
static int num_taken;

/* Takes one line, as NCCL does: behind the environment, and behind earlier lines. */
static int line_take(const char *path, const struct nccl_conf_line *line)
{
	char value[NCCL_CONF_VALUE_MAX + 1];
	size_t len = line->value_len;

	if (line->name_len >= NAME_MAX_BYTES || line->name_len <= strlen(PREFIX) ||
	    memcmp(line->name, PREFIX, strlen(PREFIX)) || num_taken == TAKEN_MAX)
		return 0;
	if (len > NCCL_CONF_VALUE_MAX)
		len = NCCL_CONF_VALUE_MAX;
	memcpy(value, line->value, len);
	value[len] = '\0';
	snprintf(taken[num_taken].name, NAME_MAX_BYTES, "%.*s", (int)line->name_len, line->name);
	if (getenv(taken[num_taken].name))
		return 0;
	if (setenv(taken[num_taken].name, value, 0))
		return -errno;
	snprintf(taken[num_taken].origin, sizeof(taken[num_taken].origin), "%s, line %d", path,
		 line->number);
	num_taken++;
	return 0;
}

int config_files_take(void)
{
	struct nccl_conf_files list;
	struct mesh_sysfs root;
	int i, number, ret;

	num_taken = 0;
	ret = mesh_sysfs_open("/", &root);
	if (ret)
		return ret;
	nccl_conf_files_list(false, &list);
	for (i = 0; i < list.num && !ret; i++) {
		char *text = nccl_conf_read(&root, list.paths[i]);
		const char *at = text;
		struct nccl_conf_line line;

		number = 0;
		while (text && !ret && nccl_conf_next(&at, &number, &line))
			ret = line_take(list.paths[i], &line);
		free(text);
	}
	mesh_sysfs_close(&root);
	return ret;
}

/* "the environment", or "FILE, line N" where config_files_take() found it; NULL: not set. */
static const char *config_origin(const char *name)
{
	const char *text = getenv(name);
	int i;

	for (i = 0; i < num_taken; i++)
		if (!strcmp(taken[i].name, name))
			return text && *text ? taken[i].origin : NULL;
	return text && *text ? "the environment" : NULL;
}

/* Columns of the text that people read in a terminal or in docs/. */
#define COLUMNS 100

static const char markdown_intro[] =
	"# Settings\n"
	"\n"
	"None is needed. A setting is an environment variable of the process that runs NCCL, or\n"
	"a line `NAME=VALUE` in `/etc/nccl.conf` or `~/.nccl.conf`, which NCCL puts into the\n"
	"environment. `fi_mesh config` shows the values in effect and where they come from, and\n"
	"with `NCCL_DEBUG=INFO` the plugin logs each that is not the default. A number that\n"
	"cannot be used is reported, and the default is used; with a list or a provider that\n"
	"cannot be used the plugin does not start, and says so. An empty value counts as not set;\n"
	"a text may have 511 bytes.\n"
	"\n"
	"<!-- Written by `fi_mesh config --markdown` from the table in src/base/config.c. -->\n";

/* ---- text ---------------------------------------------------------------------------------- */

void config_print_wrapped(FILE *file, const char *text, const char *indent)
{
	size_t column = 0, word;

	while (*text) {
		word = strcspn(text, " ");
		if (column && column + 1 + word > COLUMNS) {
			fputc('\n', file);
			column = 0;
		}
		column += (size_t)fprintf(file, "%s%.*s", column ? " " : indent, (int)word, text);
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', file);
}

static const char *unit_name(enum mesh_setting_type type)
{
	if (type == MESH_SETTING_BYTES)
		return "bytes";
	if (type == MESH_SETTING_SWITCH)
		return "switch";
	return type == MESH_SETTING_SECONDS ? "seconds" : "number";
}

/* "seconds from 1 to 86400"; "" for text. Writes at most @size bytes. */
static void range_describe(const struct mesh_setting *setting, char *text, size_t size)
{
	*text = 0;
	if (setting->type == MESH_SETTING_SWITCH)
		snprintf(text, size, "on or off");
	else if (!mesh_setting_is_text(setting))
		snprintf(text, size, "%s from %" PRIu64 " to %" PRIu64 "%s",
			 unit_name(setting->type), setting->min, setting->max,
			 setting->type == MESH_SETTING_BYTES ? "; K, M, G are powers of 1024" : "");
}

/* The value in @config, as the user would write it; printable, whatever the user wrote. */
static void value_text(const struct mesh_setting *setting, const struct mesh_config *config,
		       char *text, size_t size)
{
	const char *member = (const char *)config + setting->offset;
	uint64_t value;

	if (mesh_setting_is_text(setting)) {
		snprintf(text, size, "%s", member);
		mesh_text_clean(text);
		return;
	}
	memcpy(&value, member, sizeof(value));
	snprintf(text, size, "%" PRIu64, value);
}

static bool is_set(const struct mesh_setting *setting)
{
	return config_origin(setting->name) != NULL;
}

/* Those for tests, which stand behind the others. */
static void debug_print(FILE *file)
{
	const struct mesh_setting *setting = mesh_settings;
	char text[512];
	size_t used;

	while (!mesh_setting_is_debug(setting))
		setting++;
	used = (size_t)snprintf(text, sizeof(text), "For tests and measurements:");
	for (; setting->name && used < sizeof(text); setting++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %s (%s): %s",
					 setting->name, setting->default_text, setting->help);
	config_print_wrapped(file, text, "");
}

void config_print(FILE *file, const struct mesh_config *config)
{
	char value[MESH_CONFIG_TEXT_MOST], range[128];
	const struct mesh_setting *setting;

	for (setting = mesh_settings; setting->name && !mesh_setting_is_debug(setting); setting++) {
		value_text(setting, config, value, sizeof(value));
		range_describe(setting, range, sizeof(range));
		if (is_set(setting))
			fprintf(file, "%s=%s (from %s)\n", setting->name, value,
				config_origin(setting->name));
		else
			fprintf(file, "%s (not set; default: %s)\n", setting->name,
				*setting->default_text ? setting->default_text : "see below");
		if (*range)
			fprintf(file, "    %s\n", range);
		config_print_wrapped(file, setting->help, "    ");
		fputc('\n', file);
	}
	debug_print(file);
}

void config_print_markdown(FILE *file)
{
	const struct mesh_setting *setting;
	char range[128];

	fputs(markdown_intro, file);
	for (setting = mesh_settings; setting->name && !mesh_setting_is_debug(setting); setting++) {
		range_describe(setting, range, sizeof(range));
		fprintf(file, "\n## %s\n\n", setting->name);
		if (*range)
			fprintf(file, "Default `%s`; %s.\n\n", setting->default_text, range);
		config_print_wrapped(file, setting->help, "");
	}
	fputs("\n## For tests\n\n", file);
	debug_print(file);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *setting_json(const struct mesh_setting *setting, const struct mesh_config *config)
{
	const char *member = (const char *)config + setting->offset;
	char text[MESH_CONFIG_TEXT_MOST];
	uint64_t value;

	value_text(setting, config, text, sizeof(text));
	if (mesh_setting_is_text(setting))
		return json_pack("{s:s, s:b, s:s?, s:s, s:s, s:s}", "name", setting->name, "set",
				 is_set(setting), "origin", config_origin(setting->name), "value",
				 text, "default", "", "help", setting->help);
	memcpy(&value, member, sizeof(value));
	return json_pack("{s:s, s:b, s:s?, s:I, s:s, s:I, s:I, s:s, s:s}", "name", setting->name,
			 "set", is_set(setting), "origin", config_origin(setting->name), "value",
			 (json_int_t)value, "default", setting->default_text, "min",
			 (json_int_t)setting->min, "max", (json_int_t)setting->max, "unit",
			 unit_name(setting->type), "help", setting->help);
}

int config_print_json(const char *who, FILE *file, const struct mesh_config *config)
{
	const struct mesh_setting *setting;
	json_t *list = json_array();

	for (setting = mesh_settings; list && !mesh_setting_is_debug(setting); setting++)
		list = output_json_append(list, setting_json(setting, config));
	return output_json_print(who, file, json_pack("{s:o}", "settings", list));
}
