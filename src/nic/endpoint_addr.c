/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint_addr.c - a NIC of a node and the fabric endpoint on it, as other nodes see them;
 * providers.
 */
#include <string.h>

#include "nic/endpoint_addr.h"

static const char *const provider_names[] = {
	[MESH_PROVIDER_NONE] = "none",
	[MESH_PROVIDER_VERBS_RXM] = "verbs;ofi_rxm",
	[MESH_PROVIDER_TCP] = "tcp",
	[MESH_PROVIDER_TCP_RXM] = "tcp;ofi_rxm",
};

const char *mesh_provider_id_text(enum mesh_provider_id id)
{
	return id <= MESH_PROVIDER_ID_MAX ? provider_names[id] : "unknown";
}

enum mesh_provider_id mesh_provider_id_parse(const char *text)
{
	int id;

	if (!strcmp(text, "net"))
		return MESH_PROVIDER_TCP;
	for (id = MESH_PROVIDER_VERBS_RXM; id <= MESH_PROVIDER_ID_MAX; id++) {
		if (!strcmp(text, provider_names[id]))
			return (enum mesh_provider_id)id;
	}
	return MESH_PROVIDER_NONE;
}

bool mesh_provider_list_falls_back(const char *text)
{
	return !strcmp(text, "verbs;ofi_rxm,tcp") || !strcmp(text, "verbs;ofi_rxm,net");
}
