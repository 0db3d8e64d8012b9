/* SPDX-License-Identifier: Apache-2.0 */
/* path_direct.h - direct and routed paths: between one of our NICs and one of the peer's. */
#ifndef MESH_TRANSPORT_PATH_DIRECT_H
#define MESH_TRANSPORT_PATH_DIRECT_H

#include "transport/path.h"

/**
 * Opens a direct or routed path through @peer. The caller has set path->comm, the sink's functions
 * and token, and the waiter's function. process->lock held; takes domain->lock.
 *
 * Returns 0, or -ENOSPC if the domain has no id left.
 */
int mesh_path_direct_open(struct mesh_path *path, struct mesh_peer *peer);

/* The operations (path.h) that a relayed path has in common with a direct one to its relay. */
struct mesh_peer *mesh_direct_peer(const struct mesh_path *path);
int mesh_direct_inject(const struct mesh_path *path, const void *bytes, size_t size);
struct mesh_buffer *mesh_direct_buffer_get(const struct mesh_path *path);
void mesh_direct_poll_await(struct mesh_path *path);
bool mesh_direct_poll(const struct mesh_path *path);
int mesh_direct_mr_open(const struct mesh_path *path, const void *data, size_t size,
			struct mesh_mr **mr);
void mesh_direct_target(const struct mesh_path *path, const struct mesh_mr *mr, const void *data,
			struct mesh_target *target);
void mesh_direct_fence_prepare(const struct mesh_path *path, struct mesh_fence *fence);
int mesh_direct_move(struct mesh_path *path, struct mesh_peer *peer);

/* And those that it has in common with one to its peer, while it is straight. */
int mesh_direct_write(const struct mesh_path *path, const struct mesh_write *write,
		      struct mesh_op *op);
MESH_HOLDS(domain)
void mesh_direct_write_completed(const struct mesh_path *path, size_t size, uint64_t posted_ns,
				 bool arrived);
void mesh_direct_write_forget(const struct mesh_path *path, struct mesh_segment *segment);
bool mesh_direct_has_room(const struct mesh_path *path);
void mesh_direct_room_await(struct mesh_path *path);

/** Learns what the domain determines, which the path goes over from now on. */
void mesh_direct_domain_learn(struct mesh_path *path, struct mesh_domain *domain);
MESH_HOLDS(domain)
void mesh_direct_wait_cancel(struct mesh_path *path);
MESH_HOLDS(domain)
void mesh_direct_sink_remove(struct mesh_path *path);

#endif
