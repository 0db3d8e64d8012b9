/* SPDX-License-Identifier: Apache-2.0 */
/* gid.h - which entry of an RDMA port's GID table belongs to an address. */
#ifndef MESH_NIC_GID_H
#define MESH_NIC_GID_H

#include "nic/nic.h"

/** True for the GID that RoCE derives from @addr: IPv4-mapped, or the IPv6 address itself. */
bool mesh_gid_is_addr(const uint8_t gid[16], const struct mesh_addr *addr);

/**
 * Finds the GID that the kernel's connection manager uses for @addr. On Ethernet it is the one
 * derived from the address, as RoCE v2 if the port has that (CMA_PREFERRED_ROCE_GID_TYPE of
 * drivers/infiniband/core/cma.c); on InfiniBand the port's own, index 0.
 *
 * Returns it, or NULL if there is none.
 */
const struct mesh_gid *mesh_gid_find(const struct mesh_rdma_port *rdma,
				     const struct mesh_addr *addr);

/** "RoCE v2", "RoCE v1", "IB"; "" for MESH_GID_UNKNOWN. */
const char *mesh_gid_type_text(enum mesh_gid_type type);

#endif
