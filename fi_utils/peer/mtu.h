/* SPDX-License-Identifier: Apache-2.0 */
/* mtu.h - whether a frame of full size passes. */
#ifndef MESH_FI_UTILS_PEER_MTU_H
#define MESH_FI_UTILS_PEER_MTU_H

#include "common/finding.h"
#include "peer/checker.h"

/** Does a frame of full size pass in both directions (peer_mtu.c)? The stream is open. */
void peer_mtu_check(struct peer_link *link, struct check_result *result);

#endif
