/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - the sinks of messages and writes, found by id and token. */
#ifndef MESH_FABRIC_SINK_H
#define MESH_FABRIC_SINK_H

#include "base/lock.h"
#include "fabric/domain.h"
#include "wire/message.h"

/*
 * The destination of messages and writes: a comm's path, or a peer while it greets. The domain
 * keeps a table of sinks; a message names its sink by id and token.
 */
struct mesh_sink {
	uint32_t id;	/* its place in the lowest MESH_IMMEDIATE_COMM_BITS, a generation above */
	uint32_t token; /* random */
	/* Both with domain->lock held; the payload is valid during the call. */
	void (*message)(struct mesh_sink *sink, const struct mesh_message_header *header,
			const void *payload);
	/* A peer's RMA write has been placed; NULL if none is expected. */
	void (*written)(struct mesh_sink *sink, const struct mesh_immediate *immediate);
};

/**
 * Adds @sink to the table and sets its id; the caller has set the rest. Takes domain->lock.
 *
 * Returns 0, or -ENOSPC if all MESH_COMM_IDS are taken.
 */
int mesh_sink_add(struct mesh_domain *domain, struct mesh_sink *sink);

/** Removes it; none of its functions runs afterwards. domain->lock held. */
MESH_HOLDS(domain)
void mesh_sink_remove(struct mesh_domain *domain, struct mesh_sink *sink);

/** The sink with this id; NULL: there is none. domain->lock held. */
MESH_HOLDS(domain)
struct mesh_sink *mesh_sink_find(struct mesh_domain *domain, uint32_t id);

/** Passes a message, or the immediate of a write, to its sink. domain->lock held. */
MESH_HOLDS(domain)
void mesh_sink_message(struct mesh_domain *domain, const struct mesh_message_header *header,
		       const void *payload);
MESH_HOLDS(domain)
void mesh_sink_written(struct mesh_domain *domain, uint64_t immediate);

#endif
