/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_system.c - what the plugin asks the kernel by netlink, and who a node is. The plugin of this
 * folder's tests has it in place of src/system's node.c and route.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <net/if_arp.h>

#include "system/node.h"

#include "kernel.h"

static struct in_addr in_addr_of(const struct mesh_addr *addr)
{
	struct in_addr in;

	memcpy(&in, addr->bytes, sizeof(in));
	return in;
}

static void nic_fill(struct mesh_nic *nic, const struct world_nic *from)
{
	char text[INET_ADDRSTRLEN + 4];

	memset(nic, 0, sizeof(*nic));
	strcpy(nic->netdev, from->name);
	nic->ifindex = from->ifindex;
	nic->link_type = ARPHRD_ETHER;
	nic->mac[5] = (uint8_t)from->ifindex;
	nic->mac[4] = (uint8_t)from->cable;
	nic->state = world_nic_runs(from) ? MESH_NIC_RUNS : MESH_NIC_NO_CARRIER;
	nic->mtu = 1500;
	nic->numa_node = -1;
	inet_ntop(AF_INET, &from->addr, text, INET_ADDRSTRLEN);
	strcat(text, "/24");
	nic->num_addrs = !from->bare && !mesh_addr_parse(text, &nic->addrs[0]);
}

int mesh_netlink_load(struct mesh_nic **nics, int *num_nics)
{
	struct world_node *node = world_acting();

	*nics = calloc((size_t)node->num_nics + 1, sizeof(**nics));
	if (!*nics)
		return -ENOMEM;
	for (int i = 0; i < node->num_nics; i++)
		nic_fill(&(*nics)[i], &node->nics[i]);
	*num_nics = node->num_nics;
	return 0;
}

void mesh_routes_close(struct mesh_routes *routes)
{
	(void)routes;
}

int mesh_route_find(struct mesh_routes *routes, const struct mesh_addr *source,
		    const struct mesh_addr *destination, unsigned int *ifindex)
{
	struct world_nic *nic;

	(void)routes;
	if (source->family != MESH_FAMILY_IPV4 || destination->family != MESH_FAMILY_IPV4)
		return -EINVAL;
	nic = world_route(world_acting(), in_addr_of(source), in_addr_of(destination));
	if (!nic)
		return -ENETUNREACH;
	*ifindex = nic->ifindex;
	return 0;
}

bool mesh_route_leads(struct mesh_routes *routes, const struct mesh_addr *source,
		      unsigned int ifindex, const struct mesh_addr *destination)
{
	unsigned int leaves_by;

	return !mesh_route_find(routes, source, destination, &leaves_by) && leaves_by == ifindex;
}

uint64_t mesh_node_id(void)
{
	return world_acting()->id;
}

const char *mesh_node_name(const char *setting, char *name, size_t size)
{
	snprintf(name, size, "%s", world_acting()->name);
	return name;
}
