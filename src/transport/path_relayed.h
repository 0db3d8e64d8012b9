/* SPDX-License-Identifier: Apache-2.0 */
/* path_relayed.h - the sending end of a path that leads through relays. */
#ifndef MESH_TRANSPORT_PATH_RELAYED_H
#define MESH_TRANSPORT_PATH_RELAYED_H

#include <stdint.h>

#include "base/retry.h"
#include "nic/graph_routes.h"
#include "transport/path.h"
#include "wire/frame.h"

/** Makes what a path that leads through relays has beside others. Returns 0 or -ENOMEM. */
int mesh_path_relayed_make(struct mesh_path *path);

/**
 * The path leads to its peer as to the first relay from now on: it carries nothing until
 * mesh_path_relayed_opened(). comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_path_relayed_begin(struct mesh_path *path);

/** It has no circuit any more, if it had one. process->lock and comm->lock held. */
MESH_HOLDS(comm)
void mesh_path_relayed_rest(struct mesh_path *path);

/** The part of mesh_path_wait_cancel() that is about pieces. domain->lock held. */
MESH_HOLDS(domain)
void mesh_path_relayed_wait_cancel(struct mesh_path *path);

/** Frees that, if the path has it, unless operations are in flight. process->lock held. */
MESH_HOLDS(process)
void mesh_path_relayed_free(struct mesh_path *path);

/**
 * The circuit is open: OPENED has come. process->lock held.
 *
 * Returns 0 or -ENOMEM.
 */
MESH_HOLDS(process)
int mesh_path_relayed_opened(struct mesh_path *path, const struct mesh_frame_opened *opened);

/**
 * Reports to the first relay, if it knows the path, that nothing more is written: it frees the
 * circuit when all has come, and knows it no longer. process->lock held.
 */
MESH_HOLDS(process)
void mesh_path_relayed_shut(struct mesh_path *path);

/** When it may look for another circuit: for who looks. process->lock held. */
MESH_HOLDS(process)
struct mesh_retry *mesh_path_retry_of(const struct mesh_path *path);

/** The route that its circuit was asked for. No relays: none was yet. process->lock held. */
MESH_HOLDS(process)
const struct mesh_route *mesh_path_relayed_route(const struct mesh_path *path);
/** How many relays a path of a sending comm leads over now; 0: none, or it is not up. */
MESH_HOLDS(process)
int mesh_path_num_relays(const struct mesh_path *path);
MESH_HOLDS(process)
void mesh_path_relayed_route_set(struct mesh_path *path, const struct mesh_route *route, bool rdma);

/** The function of the path's sink. */
MESH_HOLDS(domain)
void mesh_path_relayed_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			       const void *payload);

/**
 * Ends the circuit at the relay that is the peer: nothing more is posted for it. The receiving end
 * gets a report when the writes of the last relay are complete (path->drained). process->lock held.
 */
MESH_HOLDS(process)
void mesh_path_drain_ask(struct mesh_path *path);

#endif
