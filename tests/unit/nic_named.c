/* SPDX-License-Identifier: Apache-2.0 */
/* nic_named.c - makes and finds NICs by name, for tests of lists and tables of NICs. */
#include "nic_named.h"
#include "unit.h"

const struct mesh_nic *nic_named(const struct mesh_nic *nics, int num_nics, const char *netdev)
{
	for (int i = 0; i < num_nics; i++)
		if (!strcmp(nics[i].netdev, netdev))
			return &nics[i];
	fail_msg("%s is not among the NICs", netdev);
	return NULL;
}

struct mesh_nic *nic_add(struct mesh_nic_table *table, const char *netdev, const char *addrs)
{
	struct mesh_nic *nic = &table->nics[table->num_nics++];
	char list[256], *text, *rest = list;

	snprintf(nic->netdev, sizeof(nic->netdev), "%s", netdev);
	nic->ifindex = (unsigned int)table->num_nics;
	nic->state = MESH_NIC_RUNS;
	nic->mac[0] = 2;
	nic->mac[5] = (uint8_t)table->num_nics;
	snprintf(list, sizeof(list), "%s", addrs);
	while ((text = strtok_r(rest, " ", &rest)))
		assert_int_equal(mesh_addr_parse(text, &nic->addrs[nic->num_addrs++]), 0);
	return nic;
}
