/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neighbours.h - `fi_mesh serve` answers the questions of neighbours, also where no job runs. A
 * thread does it, because the server's own loop may measure meanwhile.
 */
#ifndef MESH_FI_UTILS_SERVE_NEIGHBOURS_H
#define MESH_FI_UTILS_SERVE_NEIGHBOURS_H

#include "peer/self.h"

struct serve_neighbours;

/** Begins to answer. Returns NULL if it cannot (reported) or NCCL_MESH_NEIGHBOURS=off. */
struct serve_neighbours *serve_neighbours_open(const struct peer_self *self);

/**
 * A descriptor that is readable when links or addresses have changed, -1 if there is none. Then
 * serve_neighbours_changed() is to be called, and after reading the NICs, _refresh().
 */
int serve_neighbours_fd(const struct serve_neighbours *neighbours);

/** Takes what the descriptor has; returns true if something has changed. NULL is allowed. */
bool serve_neighbours_changed(struct serve_neighbours *neighbours);

/** Answers for the NICs of @self from now on. NULL is allowed. */
void serve_neighbours_refresh(struct serve_neighbours *neighbours, const struct peer_self *self);

/** Ends it. NULL is allowed. */
void serve_neighbours_close(struct serve_neighbours *neighbours);

#endif
