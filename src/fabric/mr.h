/* SPDX-License-Identifier: Apache-2.0 */
/* mr.h - memory registrations of one domain, cached and counted. */
#ifndef MESH_FABRIC_MR_H
#define MESH_FABRIC_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/domain.h"

/**
 * Registers host memory, or adds a user to a registration that covers it: NCCL registers the same
 * pool for every peer.
 *
 * @size: bytes, at least 1
 *
 * Takes mrs_lock, and waits for no other thread's registration. Returns 0, or a negative errno
 * after a WARN line.
 */
int mesh_mr_open(struct mesh_domain *domain, const void *data, size_t size, struct mesh_mr **mr);

/** Removes a user; the last one closes the registration. Takes mrs_lock. NULL is allowed. */
void mesh_mr_close(struct mesh_mr *mr);

/**
 * True if mesh_mr_open() and mesh_mr_close() may take seconds with this domain: they pin memory.
 * Then nobody calls them for NCCL's memory with a lock held.
 */
static inline bool mesh_domain_pins(const struct mesh_domain *domain)
{
	return domain->provider == MESH_PROVIDER_VERBS_RXM;
}

/** What it is a registration with; NULL if @mr is NULL. */
const struct mesh_domain *mesh_mr_domain(const struct mesh_mr *mr);

/** The target for a peer's write to @data: an address or an offset, as the provider requires. */
uint64_t mesh_mr_remote_address(const struct mesh_mr *mr, const void *data);

/** The key for a peer's write. */
uint64_t mesh_mr_key(const struct mesh_mr *mr);

/** The local descriptor for fi_send and fi_write; NULL if the provider needs none. */
void *mesh_mr_desc(const struct mesh_mr *mr);

#endif
