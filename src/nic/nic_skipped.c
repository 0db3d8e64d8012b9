/* SPDX-License-Identifier: Apache-2.0 */
/* nic_skipped.c - the NICs that were skipped and might have been a path to a peer, in words. */
#include <stdio.h>

#include "nic/nic_order.h"
#include "nic/nic_skipped.h"

/* The address of @nic that lies in a subnet of the peer's; NULL if there is none. */
static const struct mesh_addr *
shared_address(const struct mesh_nic *nic, const struct mesh_endpoint_addr *remote, int num_remote)
{
	int i, k;

	for (i = 0; i < nic->num_addrs; i++)
		for (k = 0; k < num_remote; k++)
			if (mesh_addr_same_subnet(&nic->addrs[i], &remote[k].addr) &&
			    !mesh_addr_is_link_local(&nic->addrs[i]) &&
			    !mesh_addr_is_loopback(&nic->addrs[i]))
				return &nic->addrs[i];
	return NULL;
}

/* The address to name; NULL if the NIC does not explain a missing path. */
static const struct mesh_addr *address_of(const struct mesh_nic *nic,
					  const struct mesh_endpoint_addr *remote, int num_remote)
{
	const struct mesh_addr *shared = shared_address(nic, remote, num_remote);

	if (nic->taken || shared || !nic->num_addrs || mesh_addr_is_loopback(&nic->addrs[0]))
		return nic->taken ? NULL : shared;
	if (nic->admin_up && nic->carrier && !nic->starting && !nic->no_provider)
		return NULL;
	return &nic->addrs[0];
}

const char *mesh_nics_skipped_text(const struct mesh_nic_table *table,
				   const struct mesh_endpoint_addr *remote, int num_remote,
				   char *text, size_t size)
{
	const struct mesh_addr *address;
	char words[MESH_ADDR_TEXT_MAX];
	const struct mesh_nic *nic;
	size_t used = 0;
	int n;

	*text = '\0';
	for (nic = table->nics; nic < table->nics + table->num_nics && used < size; nic++) {
		address = address_of(nic, remote, num_remote);
		if (!address)
			continue;
		n = snprintf(text + used, size - used, "%s%s (%s): %s", used ? "; " : "",
			     nic->netdev, mesh_addr_text_prefix(address, words),
			     mesh_nic_bare_reason(nic));
		if (n < 0)
			break;
		used += (size_t)n;
	}
	return text;
}
