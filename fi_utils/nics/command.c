/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - `fi_mesh nics`: shows the NIC table as the plugin would make it now. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/provider.h"
#include "nic/nic.h"
#include "system/nic_table.h"
#include "wire/handle.h"

#include "commands.h"
#include "common/options.h"
#include "common/output.h"
#include "common/pci_link.h"
#include "nics/print.h"

static const char who[] = "fi_mesh nics";

static const char usage_text[] =
	"usage: fi_mesh nics [--json] [--sysfs DIR]\n"
	"\n"
	"Lists the network interfaces of this node: which of them the plugin uses, and\n"
	"why the others are skipped. NCCL_MESH_* variables have the same effect as in the\n"
	"plugin.\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Exit status: 0 at least one NIC is used, 1 none is or they cannot be read,\n"
	"2 usage error.\n";

struct options {
	bool json;
	const char *sysfs;
};

static const struct option_row option_rows[] = {
	{"json", 0, NULL, "JSON instead of a table", OPTION_FLAG(struct options, json)},
	{"sysfs", 0, "DIR", "read DIR instead of /sys", OPTION_FOLDER(struct options, sysfs)},
	{.name = NULL},
};

static const struct option_table option_table = {who, usage_text, notes_text, option_rows};

/* Asks libfabric as the plugin does, and skips the NICs without a provider. */
static int providers_find(const struct mesh_config *config, struct mesh_nic_table *table,
			  struct nics_provider *providers)
{
	struct mesh_provider_verdict *verdicts;
	int dev, ret;

	verdicts = calloc((size_t)table->num_taken + 1, sizeof(*verdicts));
	if (!verdicts)
		return -ENOMEM;
	ret = mesh_providers_assign(config->provider, table, verdicts);
	for (dev = 0; dev < table->num_taken && !ret; dev++) {
		providers[dev].name = mesh_provider_id_text(verdicts[dev].id);
		providers[dev].note = *verdicts[dev].note ? strdup(verdicts[dev].note) : NULL;
	}
	free(verdicts);
	return ret;
}

/* The plugin takes only as many as fit into its messages; skips the last ones. */
static void excess_leave(struct mesh_nic_table *table)
{
	while (table->num_taken > MESH_NICS_MAX) {
		mesh_nic_leave(&table->nics[table->num_taken - 1], MESH_NIC_SKIPPED,
			       "the plugin uses %d NICs at most; NCCL_MESH_NICS chooses",
			       MESH_NICS_MAX);
		mesh_nic_table_sort(table);
	}
}

/* Returns an exit status. */
static int nics_show(const struct options *options, const struct mesh_config *config,
		     struct mesh_nic_table *table)
{
	int i, ret, status, num = table->num_taken;
	struct nics_provider *providers;

	providers = calloc((size_t)num + 1, sizeof(*providers));
	if (!providers)
		return output_failure(who, -ENOMEM);
	ret = providers_find(config, table, providers);
	if (ret) {
		status = output_failure(who, ret);
	} else {
		excess_leave(table);
		status = table->num_taken ? COMMAND_FINE : COMMAND_PROBLEM;
		if (!options->json)
			nics_print(stdout, table, providers, config->site);
		else if (nics_print_json(stdout, table, providers, config->site))
			status = COMMAND_PROBLEM;
	}
	for (i = 0; i < num; i++)
		free(providers[i].note);
	free(providers);
	return status;
}

int command_nics(int argc, char **argv)
{
	struct mesh_nic_table table = {0};
	struct mesh_config config;
	struct options options = {.sysfs = "/sys"};
	int status, ret;

	status = option_table_parse(&option_table, argc, argv, &options, NULL);
	if (status >= 0)
		return status;
	/* A bad value was reported, and its default is used, as in the plugin. */
	ret = mesh_config_load(NULL, NULL, &config);
	if (ret == -E2BIG)
		return output_failure(who, ret);
	ret = mesh_nic_table_load(options.sysfs, &config, &table);
	if (ret)
		return output_failure(who, ret);
	mesh_pci_links_load(&table);
	status = nics_show(&options, &config, &table);
	mesh_nic_table_free(&table);
	return output_finish(who, status);
}
