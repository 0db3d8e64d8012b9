/* SPDX-License-Identifier: Apache-2.0 */
/* nic_select.h - decides which NICs carry the mesh, and says why. */
#ifndef MESH_NIC_NIC_SELECT_H
#define MESH_NIC_NIC_SELECT_H

#include "nic/nic.h"

/* "112.5 Gb/s", "speed unknown" */
#define MESH_NIC_SPEED_TEXT_MAX 24

/**
 * Decides for each NIC whether it is a mesh NIC: sets name, source, taken and reason, and brings
 * the table into its order with its guids and ports (nic_order.h). The kinds must be known
 * (mesh_nic_classify()).
 *
 * Rules, in this order:
 * 1. A list in @nics_setting (nic_filter.h) has the last word: what it excludes, or does not name,
 *    is left; what it names is taken if rule 2 allows, whatever it is.
 * 2. A NIC needs a link that is up, a carrier and an address, and the kernel must report it as
 *    running (IFF_RUNNING).
 * 3. Bridges, containers' host ends, tunnels, Wi-Fi and loopback are left, and ports of bridges and
 *    bonds: these take what arrives there.
 * 4. A NIC that has link-local addresses only is left where a VLAN or macvlan on it has another.
 * 5. Where a NIC has RDMA (a device whose port is ACTIVE), the ones without are left.
 * 6. A NIC slower than an eighth of the fastest is left: a management network. Where there is
 *    RDMA, only if it also carries the default route. Unknown speeds are not slow.
 * 7. Without RDMA, the NIC of the default route is left if another NIC without one can replace it:
 *    is not slower, as far as both speeds are known. A NIC that has link-local addresses only
 *    replaces it only if its speed is known: a BMC's USB network must not displace the real one.
 * 8. If nothing is taken by these rules, the first group that has a usable NIC is taken:
 *    management networks, then Wi-Fi, bridges, containers' and tunnels, loopback.
 *
 * The source address is the first that lies in a subnet of @addresses_setting (a comma list; the
 * first subnet that matches wins); else IPv4, IPv6, IPv4 link-local, IPv6 link-local, each in the
 * kernel's order. Loopback addresses are used on loopback only.
 *
 * Returns 0, also if no NIC is taken; -EINVAL (logged) if a setting cannot be understood, @table is
 * unchanged then; -ENOMEM.
 */
int mesh_nic_select(const char *nics_setting, const char *addresses_setting,
		    struct mesh_nic_table *table);

/** Writes "100 Gb/s" into @text (MESH_NIC_SPEED_TEXT_MAX bytes); returns @text. */
const char *mesh_nic_speed_text(int mbps, char *text);

#endif
