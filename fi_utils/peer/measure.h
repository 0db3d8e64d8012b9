/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - latency and bandwidth of one link. */
#ifndef MESH_FI_UTILS_PEER_MEASURE_H
#define MESH_FI_UTILS_PEER_MEASURE_H

#include "common/finding.h"
#include "peer/checker.h"

/** Measures latency and bandwidth. The stream is open. */
void peer_measure(struct peer_link *link, struct check_result *result);

#endif
