/* SPDX-License-Identifier: Apache-2.0 */
/* nic_select.h - decides which NICs carry the mesh, and gives the reasons. */
#ifndef MESH_NIC_NIC_SELECT_H
#define MESH_NIC_NIC_SELECT_H

#include "nic/nic.h"

/* "112.5 Gb/s", "speed unknown" */
#define MESH_NIC_SPEED_TEXT_MAX 24

/**
 * Decides for each NIC whether it is a mesh NIC: sets name, source, verdict and reason, sorts the
 * table and sets its guids and ports (nic.h). The kinds must be set (mesh_nic_classify()).
 *
 * Rules, in this order:
 * 1. A list in @nics_setting (user_lists.h) overrides the other rules: a NIC that it excludes or
 *    does not name is skipped; a NIC that it names is taken if rule 2 allows, whatever its kind.
 * 2. A NIC needs a link that is up, a carrier and an address, and the kernel must report it as
 *    running (IFF_RUNNING).
 * 3. Bridges, containers' host ends, tunnels, Wi-Fi and loopback are skipped, and so are the ports
 *    of bridges and bonds: the bridge or bond receives their packets.
 * 4. A NIC that has link-local addresses only is skipped if a VLAN or macvlan on it has another.
 * 5. If a NIC has RDMA (a device whose port is ACTIVE), the NICs without RDMA are skipped: as
 *    MESH_NIC_SPARE_NO_RDMA if rules 6 and 7 would not skip them.
 *    A NIC leads to the management network if the default route leaves over it or over a VLAN or
 *    macvlan on it. What NCCL_SOCKET_IFNAME names says nothing: guides set it to the LAN, to the
 *    cables and to both.
 * 6. A NIC slower than an eighth of the fastest is skipped as a management network; if there is
 *    RDMA, only if it also leads there. Unknown speeds do not count as slow.
 * 7. Without RDMA, a NIC that leads to the management network is skipped if there is one that does
 *    not. One with link-local addresses only, or on USB, counts if it is known to be as fast, or
 *    is Thunderbolt: a BMC's USB network must not displace the real one.
 * 8. If these rules take no NIC, the first group that has a usable NIC is taken: management
 *    networks, then Wi-Fi, bridges, containers' and tunnels, loopback.
 *
 * The source address is the first that lies in a subnet of @addresses_setting (a comma list; the
 * first subnet that matches wins); else IPv4, IPv6, IPv6 link-local, IPv4 link-local, each in the
 * kernel's order: 169.254.0.0/16 is one subnet, which several NICs of a node cannot share, and
 * fe80::/64 is one for each NIC. Loopback addresses are used on loopback only.
 *
 * NICs that rules 4 to 7 skip are spares (MESH_NIC_SPARE), unless their address is link-local.
 *
 * MESH_NIC_LINK_DOWN is the verdict on NICs that rule 2 skips because their link is down, if they
 * would be taken otherwise: they have an address, or @nics_setting names them.
 *
 * Returns 0, also if no NIC is taken; -EINVAL (logged) if a setting is not valid, with @table
 * unchanged; -ENOMEM.
 */
int mesh_nic_select(const char *nics_setting, const char *addresses_setting,
		    struct mesh_nic_table *table);

/** Writes "100 Gb/s" into @text (MESH_NIC_SPEED_TEXT_MAX bytes); returns @text. */
const char *mesh_nic_speed_text(int mbps, char *text);

#endif
