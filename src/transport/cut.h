/* SPDX-License-Identifier: Apache-2.0 */
/* cut.h - fences the peer of one comm. */
#ifndef MESH_TRANSPORT_CUT_H
#define MESH_TRANSPORT_CUT_H

#include "base/lock.h"
#include "transport/comm.h"

/* Frames pass on the control connection, data does not. */
#define MESH_CUT_STUCK_HINT                                                                        \
	"does a firewall drop the data's packets (RDMA: UDP port 4791), or is the RDMA device gone?"

enum mesh_cut_reason {
	MESH_CUT_SILENT, /* the peer did not answer in time */
	MESH_CUT_BROKEN, /* the comm has failed, or its peer's end has */
	MESH_CUT_STUCK,	 /* the peer answers, but nothing moved on the link for too long */
};

/**
 * Fences the peer on those paths of the comm that are not at rest: afterwards nothing of it is
 * written into this process's memory, and the provider has reported what it dropped. Other comms
 * with that process lose these links, and go on as after any loss. No lock held; on verbs it waits,
 * for 2.5 s at most.
 */
void mesh_comm_cut_off(struct mesh_comm *comm, enum mesh_cut_reason reason);

/**
 * True if the path needs no fence: a sender has nothing in flight there; at a receiver it was
 * fenced, or the last relay has reported that it writes nothing more.
 */
MESH_HOLDS(process)
MESH_HOLDS(comm)
bool mesh_path_is_at_rest(const struct mesh_path *path);

/**
 * The comm ends, and its paths through relays with it, without a fence, which would cut the link to
 * the relay: what a sender has in flight ends in the relay's memory, and a receiver asks the last
 * relay to write nothing more. When that is done, mesh_path_is_at_rest() holds for these paths.
 * process->lock held; takes domain->lock.
 *
 * Returns false if the comm has no such path whose relay may answer.
 */
MESH_HOLDS(process)
bool mesh_comm_circuits_leave(struct mesh_comm *comm);

#endif
