/* SPDX-License-Identifier: Apache-2.0 */
/* self.c - what this process says of itself and its NICs. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/version.h"
#include "neighbours/self.h"

/* IPv6 first: its link-local address needs no subnet. */
static const struct mesh_addr *asking_address(const struct mesh_nic *nic)
{
	int i;

	for (i = 0; i < nic->num_addrs; i++) {
		if (nic->addrs[i].family == MESH_FAMILY_IPV6 &&
		    mesh_addr_is_link_local(&nic->addrs[i]))
			return &nic->addrs[i];
	}
	for (i = 0; i < nic->num_addrs; i++) {
		if (nic->addrs[i].family == MESH_FAMILY_IPV4)
			return &nic->addrs[i];
	}
	return NULL;
}

void mesh_neighbour_site_set(struct mesh_neighbour_self *self, const char *setting)
{
	snprintf(self->site, sizeof(self->site), "%.*s", (int)sizeof(self->site) - 1, setting);
}

uint32_t mesh_neighbour_site_number(const char *site)
{
	return *site ? mesh_checksum(site, strlen(site)) : 0;
}

void mesh_neighbour_link_describe(const struct mesh_neighbour_self *self,
				  const struct mesh_nic *nic, int index, uint8_t providers,
				  struct mesh_neighbour_link *link)
{
	const struct mesh_addr *from = asking_address(nic);
	struct mesh_neighbour *about = &link->about;
	int i;

	memset(link, 0, sizeof(*link));
	link->ifindex = nic->ifindex;
	if (from)
		link->ask_from = *from;
	snprintf(about->product, sizeof(about->product), "%s", mesh_version());
	memcpy(about->node, self->node, sizeof(about->node));
	memcpy(about->site, self->site, sizeof(about->site));
	about->protocol = MESH_PROTOCOL_VERSION;
	about->nic = (uint8_t)index;
	about->providers = providers;
	about->node_id = self->node_id;
	about->mtu = (uint32_t)nic->mtu;
	about->speed_mbps = (uint32_t)nic->speed_mbps;
	memcpy(about->netdev, nic->netdev, sizeof(about->netdev));
	if (nic->source.family != MESH_FAMILY_NONE)
		mesh_neighbour_addr_add(about, &nic->source);
	for (i = 0; i < nic->num_addrs; i++) {
		if (!mesh_addr_equal(&nic->addrs[i], &nic->source))
			mesh_neighbour_addr_add(about, &nic->addrs[i]);
	}
}
