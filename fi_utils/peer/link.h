/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - one link from end to end. */
#ifndef MESH_FI_UTILS_PEER_LINK_H
#define MESH_FI_UTILS_PEER_LINK_H

#include "common/finding.h"
#include "peer/checker.h"

/** Checks one link: both ends, frames of full size, latency, bandwidth. */
void peer_link_check(struct peer_link *link, struct check_result *result);

#endif
