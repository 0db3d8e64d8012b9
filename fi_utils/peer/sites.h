/* SPDX-License-Identifier: Apache-2.0 */
/* sites.h - reports the sites (NCCL_MESH_SITE) of this node and of a peer. */
#ifndef MESH_FI_UTILS_PEER_SITES_H
#define MESH_FI_UTILS_PEER_SITES_H

#include "common/finding.h"
#include "peer/checker.h"

/** Reports both sites and what follows from them; nothing if neither node has one. */
void peer_sites_check(const struct peer_checker *checker, const struct peer *peer,
		      struct check_result *result);

#endif
