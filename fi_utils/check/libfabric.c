/* SPDX-License-Identifier: Apache-2.0 */
/* libfabric.c - asks libfabric for each NIC as the plugin does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

#include "fabric/provider.h"

#include "check/checks.h"
#include "check/context.h"
#include "common/finding.h"

#define LIST_MAX 400

/* Adds "tcp" to the list, once. */
static void list_add(char *list, const char *name)
{
	size_t len = strlen(list), name_len = strlen(name);
	const char *at = list;

	while ((at = strstr(at, name))) {
		if ((at == list || at[-1] == ' ') && (!at[name_len] || at[name_len] == ','))
			return;
		at += name_len;
	}
	if (len + name_len + 3 < LIST_MAX)
		sprintf(list + len, "%s%s", len ? ", " : "", name);
}

/* What `fi_info -s ADDRESS` lists: every provider that has RDM endpoints at this address. */
static void providers_list(const struct mesh_nic *nic, char *list)
{
	struct fi_info *hints = fi_allocinfo(), *found = NULL, *info;

	*list = '\0';
	if (!hints)
		return;
	hints->ep_attr->type = FI_EP_RDM;
	if (!mesh_info_list(nic, hints, 0, &found))
		for (info = found; info; info = info->next)
			list_add(list, info->fabric_attr->prov_name);
	fi_freeinfo(found);
	fi_freeinfo(hints);
	if (!*list)
		strcpy(list, "none");
}

static void nic_ask(const struct check_context *context, const struct mesh_nic *nic,
		    struct check_result *result)
{
	enum mesh_provider_id id, wanted = mesh_provider_id_parse(context->config.provider);
	char reason[MESH_PROVIDER_REASON_MAX], list[LIST_MAX], addr[MESH_ADDR_TEXT_MAX];
	struct fi_info *info;

	providers_list(nic, list);
	mesh_addr_text(&nic->source, addr);
	if (mesh_provider_find(nic, wanted, &info, &id, reason)) {
		check_say(result, CHECK_FAIL, "libfabric has no provider for %s: %s", nic->netdev,
			  reason);
		check_seen(result, "for the source address %s it offers: %s", addr, list);
		check_fix(result,
			  "fi_info -s %s lists the providers; FI_LOG_LEVEL=info logs the reasons",
			  addr);
		return;
	}
	fi_freeinfo(info);
	if (*reason) {
		check_say(result, CHECK_FAIL, "%s uses %s instead of RDMA: %s", nic->netdev,
			  mesh_provider_id_text(id), reason);
		check_seen(result, "for the source address %s libfabric offers: %s", addr, list);
	} else {
		check_say(result, CHECK_PASS, "%s (%s) uses %s", nic->netdev, addr,
			  mesh_provider_id_text(id));
		check_seen(result, "for the source address %s libfabric offers: %s", addr, list);
	}
}

void check_libfabric(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	char version[MESH_LIBFABRIC_VERSION_MAX];
	int i;

	if (*context->config.provider && !mesh_provider_list_falls_back(context->config.provider) &&
	    mesh_provider_id_parse(context->config.provider) == MESH_PROVIDER_NONE) {
		check_say(result, CHECK_FAIL, "NCCL_MESH_PROVIDER=%s is not a provider",
			  context->config.provider);
		check_fix(result, "unset NCCL_MESH_PROVIDER");
		return;
	}
	check_say(result, CHECK_PASS, "libfabric %s", mesh_libfabric_version(version));
	for (i = 0; i < table->num_taken; i++)
		nic_ask(context, &table->nics[i], result);
	if (!table->num_taken) {
		check_say(result, CHECK_FAIL, "no NIC of this node can carry the mesh");
		check_seen(result, "fi_mesh nics (it has the reason for each)");
		check_fix(result, "`fi_mesh up`, or set the mesh NICs up and give them addresses; "
				  "if they have these, name them in NCCL_MESH_NICS");
	}
}
