/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.h - latency and bandwidth of one link through TCP. */
#ifndef MESH_FI_UTILS_PEER_TCP_H
#define MESH_FI_UTILS_PEER_TCP_H

#include "peer/checker.h"

/**
 * Measures through TCP, into link->numbers. The stream is open.
 *
 * Returns 0 or a negative errno.
 */
int peer_tcp_measure(struct peer_link *link);

#endif
