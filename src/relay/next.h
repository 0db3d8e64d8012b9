/* SPDX-License-Identifier: Apache-2.0 */
/* next.h - where a circuit may go on: processes of neighbours, and the listener itself. */
#ifndef MESH_RELAY_NEXT_H
#define MESH_RELAY_NEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer_life.h"
#include "wire/handle.h"

struct mesh_neighbours;

#define MESH_NEXTS_MAX 16

/* A process behind one of our links. */
struct mesh_next {
	struct mesh_way way;
	uint64_t node_id;
	char node[MESH_NODE_NAME_MAX];
	bool drained; /* a user drains a NIC at either end: others come first */
	int turn;     /* among those that are drained alike */
};

/**
 * Lists the processes on neighbouring nodes that may relay, as the neighbours have answered: first
 * the most suitable one of each node, over each of our links to it, those with RDMA at both ends
 * first; then the second one of each, and so on. Those over a drained NIC follow all others.
 *
 * @neighbours: NULL: there are none
 * @node_id: of the node; 0: all but our own
 * @job: of this job, or services that relay for it; with NCCL_MESH_RELAY=any all, these first
 *
 * Returns how many, at most @max.
 */
MESH_HOLDS(process)
int mesh_nexts_of_node(const struct mesh_process *process, const struct mesh_neighbours *neighbours,
		       uint64_t node_id, uint64_t job, struct mesh_next *nexts, int max);

/**
 * The same for the listener of @handle: first the NICs of its node that have answered as
 * neighbours, then those of the handle that share a subnet with one of ours; of each kind, those
 * with RDMA at both ends first.
 */
MESH_HOLDS(process)
int mesh_nexts_of_handle(const struct mesh_process *process,
			 const struct mesh_neighbours *neighbours, const struct mesh_handle *handle,
			 struct mesh_next *nexts, int max);

#endif
