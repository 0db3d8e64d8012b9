/* SPDX-License-Identifier: Apache-2.0 */
/* mtu.h - whether a frame of full size passes. */
#ifndef MESH_FI_UTILS_PEER_MTU_H
#define MESH_FI_UTILS_PEER_MTU_H

#include "common/finding.h"
#include "peer/checker.h"

/** Checks whether a frame of full size passes in both directions. The stream is open. */
void peer_mtu_check(struct peer_link *link, struct check_result *result);

#endif
