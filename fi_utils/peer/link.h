/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - one link from end to end. */
#ifndef MESH_FI_UTILS_PEER_LINK_H
#define MESH_FI_UTILS_PEER_LINK_H

#include "common/finding.h"
#include "peer/checker.h"

/** One link: who is at both ends, frames of full size, latency, bandwidth (peer_link.c). */
void peer_link_check(struct peer_link *link, struct check_result *result);

#endif
