/* SPDX-License-Identifier: Apache-2.0 */
/* mr.h - memory registrations of one domain, cached and counted. */
#ifndef MESH_FABRIC_MR_H
#define MESH_FABRIC_MR_H

#include <stddef.h>
#include <stdint.h>

#include "fabric/domain.h"

/**
 * Registers host memory, or counts one more user of a registration that covers it: NCCL
 * registers one pool again for every peer.
 *
 * @size: bytes, at least 1
 *
 * Takes domain->lock. Returns 0, or a negative errno after a WARN line.
 */
int mesh_mr_open(struct mesh_domain *domain, const void *data, size_t size, struct mesh_mr **mr);

/** Ends one use; the last one closes the registration. Takes domain->lock. NULL is allowed. */
void mesh_mr_close(struct mesh_mr *mr);

/** What a peer must write to, to reach @data: an address or an offset, as the provider wants it. */
uint64_t mesh_mr_remote_address(const struct mesh_mr *mr, const void *data);

/** The key that goes with it. */
uint64_t mesh_mr_key(const struct mesh_mr *mr);

/** The local descriptor for fi_send and fi_write; NULL where the provider wants none. */
void *mesh_mr_desc(const struct mesh_mr *mr);

/**
 * Sees to it that a registration ends when it is closed, and says so if it cannot. Before the
 * first mesh_mr_open(). Returns 0, or a negative errno if nothing can be registered at all.
 */
int mesh_mrs_prepare(struct mesh_domain *domain);

#endif
