/* SPDX-License-Identifier: Apache-2.0 */
/* gid.c - which entry of an RDMA port's GID table belongs to an address. */
#include <string.h>

#include "nic/gid.h"

bool mesh_gid_is_addr(const uint8_t gid[16], const struct mesh_addr *addr)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (addr->family == MESH_FAMILY_IPV4)
		return !memcmp(gid, mapped, 12) && !memcmp(gid + 12, addr->bytes, 4);
	return addr->family == MESH_FAMILY_IPV6 && !memcmp(gid, addr->bytes, 16);
}

const struct mesh_gid *mesh_gid_find(const struct mesh_rdma_port *rdma,
				     const struct mesh_addr *addr)
{
	const struct mesh_gid *found = NULL, *gid;

	for (gid = rdma->gids; gid < rdma->gids + rdma->num_gids; gid++) {
		if (rdma->link_layer == MESH_LINK_LAYER_INFINIBAND) {
			if (!gid->index)
				return gid;
			continue;
		}
		if (!mesh_gid_is_addr(gid->bytes, addr))
			continue;
		if (!found || (gid->type == MESH_GID_ROCE_V2 && found->type != MESH_GID_ROCE_V2))
			found = gid;
	}
	return found;
}

const char *mesh_gid_type_text(enum mesh_gid_type type)
{
	static const char *const names[] = {
		[MESH_GID_UNKNOWN] = "",
		[MESH_GID_IB] = "IB",
		[MESH_GID_ROCE_V1] = "RoCE v1",
		[MESH_GID_ROCE_V2] = "RoCE v2",
	};

	return names[type];
}
