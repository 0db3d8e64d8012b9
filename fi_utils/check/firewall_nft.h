/* SPDX-License-Identifier: Apache-2.0 */
/* firewall_nft.h - reads `nft -j list ruleset` for one packet. */
#ifndef MESH_FI_UTILS_CHECK_FIREWALL_NFT_H
#define MESH_FI_UTILS_CHECK_FIREWALL_NFT_H

#include <stdbool.h>

#include "check/firewall_rules.h"

/**
 * Reads what `nft -j list ruleset` printed, for @packet.
 *
 * @skip_iptables: skip the tables of iptables-nft: iptables-save shows them in more detail
 *
 * Returns 0, -EINVAL if this is not such a text, or -ENOMEM; @rules must be freed in each case.
 */
int firewall_nft_read(const char *text, const struct firewall_packet *packet, bool skip_iptables,
		      struct firewall_rules *rules);

#endif
