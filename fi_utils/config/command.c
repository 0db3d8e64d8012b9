/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - `fi_mesh config`: the settings, their current values, and docs/settings.md. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/config.h"
#include "commands.h"
#include "common/options.h"
#include "common/output.h"
#include "config/print.h"
#include "fabric/provider.h"
#include "nic/user_lists.h"
#include "nic/nic_select.h"

static const char who[] = "fi_mesh config";

static const char usage_text[] =
	"usage: fi_mesh config [--json | --markdown]\n"
	"\n"
	"Lists the plugin's settings, NCCL_MESH_*, with the values that the environment\n"
	"and NCCL's files (/etc/nccl.conf, ~/.nccl.conf) give them here and now. None\n"
	"needs to be set.\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Exit status: 0 fine, 1 a value cannot be used, or a NCCL_MESH_* variable is\n"
	"unknown, 2 usage error.\n";

enum format {
	FORMAT_TEXT,
	FORMAT_JSON,
	FORMAT_MARKDOWN,
};

struct options {
	int format;
};

static const struct option_row option_rows[] = {
	{"json", 0, NULL, "JSON instead of text",
	 OPTION_CONSTANT(struct options, format, FORMAT_JSON)},
	{"markdown", 0, NULL, "the settings reference: docs/settings.md",
	 OPTION_CONSTANT(struct options, format, FORMAT_MARKDOWN)},
	{.name = NULL},
};

static const struct option_table option_table = {who, usage_text, notes_text, option_rows};

/*
 * Counts the text settings that the plugin refuses, so that it would not start; their parsers log
 * the reason.
 */
static int texts_check(const struct mesh_config *config)
{
	struct mesh_nic_table none = {0};
	struct mesh_nic_filter filter;
	int count = 0;

	count += mesh_nic_filter_parse(config->nics, &filter) != 0;
	count += mesh_nic_select("", config->addresses, &none) != 0;
	if (*config->provider && !mesh_provider_list_falls_back(config->provider) &&
	    mesh_provider_id_parse(config->provider) == MESH_PROVIDER_NONE)
		count += mesh_providers_assign(config->provider, &none, NULL) != 0;
	return count;
}

static int config_show(int format)
{
	struct mesh_config config;
	int status = COMMAND_FINE, ret;

	if (format == FORMAT_MARKDOWN) {
		config_print_markdown(stdout);
		return status;
	}
	ret = config_files_take();
	if (ret)
		return output_failure(who, ret);
	/* Reports a bad value with the range and the default, and an unknown name. */
	if (mesh_config_load(NULL, NULL, &config))
		status = COMMAND_PROBLEM;
	if (texts_check(&config))
		status = COMMAND_PROBLEM;
	if (format == FORMAT_TEXT)
		config_print(stdout, &config);
	else if (config_print_json(who, stdout, &config))
		status = COMMAND_PROBLEM;
	return status;
}

int command_config(int argc, char **argv)
{
	struct options options = {.format = FORMAT_TEXT};
	int status = option_table_parse(&option_table, argc, argv, &options, NULL);

	return status >= 0 ? status : output_finish(who, config_show(options.format));
}
