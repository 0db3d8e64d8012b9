/* SPDX-License-Identifier: Apache-2.0 */
/* cut.h - fences a peer, and ends all other comms on the connections that were cut. */
#ifndef MESH_TRANSPORT_CUT_H
#define MESH_TRANSPORT_CUT_H

#include "base/lock.h"
#include "transport/comm.h"

/* Frames pass on the control connection, data does not. */
#define MESH_CUT_STUCK_HINT                                                                        \
	"does a firewall drop the data's packets (RDMA: UDP port 4791), or is the RDMA device gone?"

/**
 * Fences the peer on all paths of the comm: afterwards nothing of it is written into this process's
 * memory, and the provider has reported what it dropped. All other comms with that process on these
 * links fail, at both ends. No lock held; on verbs it waits, for 2.5 s at most.
 */
void mesh_comm_cut_off(struct mesh_comm *comm, enum mesh_cut_reason reason);

/** The peer has cut its connections with us: the comms with it fail. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_cut_came(struct mesh_peer *peer, const struct mesh_frame_cut *cut);

#endif
