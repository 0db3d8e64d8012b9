/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - what `fi_mesh enable` writes: how NCCL finds the plugin, and where the ranks meet. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "common/child.h"
#include "common/own_plugin.h"
#include "enable/enable.h"
#include "system/nic_table.h"

#define LDCONFIG_TIMEOUT_MS 10000

/* ---- NCCL_NET_PLUGIN --------------------------------------------------------------------- */

bool enable_cache_has(const char *cache, const char *path)
{
	/* "\tlibnccl-net-mesh.so (libc6,x86-64) => /usr/local/lib/libnccl-net-mesh.so" */
	const char *name = strrchr(path, '/') + 1, *line, *arrow;
	const size_t name_len = strlen(name);
	char found[PATH_MAX], real[PATH_MAX], want[PATH_MAX];
	size_t len;

	if (!realpath(path, want))
		return false;
	for (line = cache; *line; line += len + (line[len] == '\n')) {
		len = strcspn(line, "\n");
		if (*line != '\t' || strncmp(line + 1, name, name_len) || line[1 + name_len] != ' ')
			continue;
		arrow = memmem(line, len, " => ", 4);
		if (!arrow)
			continue;
		snprintf(found, sizeof(found), "%.*s", (int)(line + len - (arrow + 4)), arrow + 4);
		if (realpath(found, real) && !strcmp(real, want))
			return true;
	}
	return false;
}

/* True if NCCL finds the file by NCCL_NET_PLUGIN=mesh, in a program with an empty environment. */
static bool found_by_name(const char *path)
{
	char *argv[] = {(char[]){"ldconfig"}, (char[]){"-p"}, NULL};
	char complaint[RUN_PROGRAM_COMPLAINT_MAX], *cache;
	bool found;

	if (run_program(argv, LDCONFIG_TIMEOUT_MS, &cache, complaint))
		return false;
	found = enable_cache_has(cache, path);
	free(cache);
	return found;
}

static int plugin_value_make(const char *who, bool is_rccl, struct conf_value *value)
{
	char folder[PATH_MAX], path[PATH_MAX + sizeof(OWN_PLUGIN_FILE) + 1];

	*value = (struct conf_value){.kind = CONF_NEEDED, .name = "NCCL_NET_PLUGIN"};
	if (!own_plugin_folder(false, folder)) {
		fprintf(stderr,
			"%s: there is no " OWN_PLUGIN_FILE " in this program's folder, nor in the "
			"lib folder beside it; install the plugin first: `scons install`, or the "
			"package\n",
			who);
		return -ENOENT;
	}
	snprintf(path, sizeof(path), "%s/%s", folder,
		 is_rccl ? OWN_PLUGIN_FILE_RCCL : OWN_PLUGIN_FILE);
	if (is_rccl && access(path, R_OK))
		snprintf(path, sizeof(path), "%s/%s", folder, OWN_PLUGIN_FILE);
	if (strlen(path) > NCCL_CONF_VALUE_MAX) {
		fprintf(stderr, "%s: NCCL reads at most %d characters of the path %s\n", who,
			NCCL_CONF_VALUE_MAX, path);
		return -ENAMETOOLONG;
	}
	if (found_by_name(path))
		strcpy(value->value, OWN_PLUGIN_NAME);
	else
		memcpy(value->value, path, strlen(path) + 1);
	return 0;
}

/* ---- NCCL_SOCKET_IFNAME ------------------------------------------------------------------ */

const char *enable_ifname_find(const struct mesh_nic_table *table)
{
	const char *found = NULL;
	int i;

	for (i = 0; i < table->num_nics; i++) {
		const struct mesh_nic *nic = &table->nics[i];

		if (nic->management != MESH_NIC_DEFAULT_ROUTE || mesh_nic_is_taken(nic))
			continue;
		if (found)
			return NULL;
		found = nic->netdev;
	}
	return found;
}

/* Returns false if nothing is known. */
static bool ifname_value_make(const char *ifname, struct conf_value *value)
{
	struct mesh_nic_table table = {.nics = NULL};
	struct mesh_config config;

	*value = (struct conf_value){.kind = CONF_OPTIONAL, .name = "NCCL_SOCKET_IFNAME"};
	if (ifname && !strcmp(ifname, "none"))
		return false;
	if (!ifname && !mesh_config_load(NULL, NULL, &config) &&
	    !mesh_nic_table_load("/sys", &config, &table))
		ifname = enable_ifname_find(&table);
	/* "=": this name, not all that begin with it. */
	if (ifname)
		snprintf(value->value, sizeof(value->value), "=%s", ifname);
	mesh_nic_table_free(&table);
	return *value->value;
}

/* ---- all of them ------------------------------------------------------------------------- */

int enable_values_make(const char *who, bool is_rccl, const struct enable_choice *choice,
		       struct conf_value *values)
{
	int num = 0, ret = plugin_value_make(who, is_rccl, &values[num++]);

	if (ret)
		return ret;
	/*
	 * NCCL 2.28.3 to 2.29.7 unload the plugin with the last communicator and forget its name;
	 * with a reference of their own they keep it.
	 */
	values[num++] = (struct conf_value){
		.kind = CONF_OPTIONAL, .name = "NCCL_NET_PLUGIN_REF_COUNT", .value = "1"};
	values[num++] = (struct conf_value){.kind = choice->strict ? CONF_NEEDED : CONF_WATCHED,
					    .name = "NCCL_NET",
					    .value = "Mesh",
					    .any_case = true};
	if (ifname_value_make(choice->ifname, &values[num]))
		num++;
	return num;
}
