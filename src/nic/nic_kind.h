/* SPDX-License-Identifier: Apache-2.0 */
/* nic_kind.h - distinguishes cables from bridges, tunnels and containers' interfaces. */
#ifndef MESH_NIC_NIC_KIND_H
#define MESH_NIC_NIC_KIND_H

#include "nic/nic.h"

/**
 * Sets kind of each NIC from link_type, link_kind, wireless, name, addresses and master.
 *
 * A veth looks the same from both ends. It is a container's host end (MESH_NIC_CONTAINER) if a
 * bridge is its master or if its name is one that container software chooses: veth and six or more
 * hexadecimal digits, cali..., lxc..., ve-..., and the like. Any other veth is the NIC of the
 * container that the process runs in (MESH_NIC_VIRTUAL).
 *
 * @nics: all interfaces of the namespace, so that masters are found
 */
void mesh_nic_classify(struct mesh_nic *nics, int num_nics);

/** The NIC with this ifindex, or NULL. */
const struct mesh_nic *mesh_nic_find(const struct mesh_nic *nics, int num_nics,
				     unsigned int ifindex);

/** What the interface is, in words: "bridge", "tunnel (vxlan)". @text: @size bytes; returned. */
const char *mesh_nic_kind_text(const struct mesh_nic *nic, char *text, size_t size);

#endif
