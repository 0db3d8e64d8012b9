/* SPDX-License-Identifier: Apache-2.0 */
/* firewall_iptables.h - reads what iptables-save prints for one packet. */
#ifndef MESH_FI_UTILS_CHECK_FIREWALL_IPTABLES_H
#define MESH_FI_UTILS_CHECK_FIREWALL_IPTABLES_H

#include "check/firewall_rules.h"

/** The same for iptables-save or ip6tables-save. */
int firewall_iptables_read(const char *text, const struct firewall_packet *packet,
			   struct firewall_rules *rules);

#endif
