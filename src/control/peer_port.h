/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_port.h - reports to peers which TCP port our provider connected from.
 *
 * The list of the process's sockets, which shows it, takes milliseconds where the host has
 * thousands of descriptors. So the engine makes it without process->lock, once for all peers that
 * came up meanwhile.
 */
#ifndef MESH_CONTROL_PEER_PORT_H
#define MESH_CONTROL_PEER_PORT_H

#include "base/lock.h"
#include "control/peer.h"

/** Reports the port to @peer soon: its own end of the connection is found by it. */
MESH_HOLDS(process)
void mesh_peer_port_report(struct mesh_peer *peer);

#endif
