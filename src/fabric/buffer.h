/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.h - the message buffers of a domain, and the sinks, found by id and token. */
#ifndef MESH_FABRIC_BUFFER_H
#define MESH_FABRIC_BUFFER_H

#include "base/compiler.h"
#include "base/lock.h"
#include "fabric/domain.h"
#include "fabric/flow.h"
#include "wire/message.h"

/* A message that is being sent, or a posted receive. Room for the largest message. */
struct mesh_buffer {
	struct mesh_op op;
	struct mesh_domain *domain;
	TAILQ_ENTRY(mesh_buffer) entry; /* domain->free_buffers or remote->backlog */
	struct mesh_remote *remote;
	struct mesh_flow *flow; /* the remote's; the remote may close before the buffer is put */
	size_t size;		/* bytes to send */
	uint8_t *bytes;
	/*
	 * Called once after mesh_remote_send(), domain->lock held, before the buffer is reused.
	 * After an error it must not send to the same remote again.
	 */
	void (*sent)(struct mesh_buffer *buffer, int error);
	void *owner, *about; /* for the caller */
};

/** The buffer that an operation belongs to. */
static inline struct mesh_buffer *mesh_buffer_of_op(struct mesh_op *op)
{
	return mesh_container_of(op, struct mesh_buffer, op);
}

/** Frees a buffer that was not sent. */
void mesh_buffer_put(struct mesh_buffer *buffer);

/** Allocates the buffers, registers them and posts the receives. */
int mesh_buffers_open(struct mesh_domain *domain);
void mesh_buffers_close(struct mesh_domain *domain);

/** Retries the receives that the provider did not accept. domain->lock held. */
MESH_HOLDS(domain)
void mesh_receives_resume(struct mesh_domain *domain);

/**
 * On tcp: posts more receives if there are more peers than before, because each may keep one while
 * the rest of a message is on its way. They are not taken back. Takes domain->lock.
 */
void mesh_receives_grow(struct mesh_domain *domain);

/** All receives that were posted ended with their endpoint. domain->lock held. */
MESH_HOLDS(domain)
void mesh_receives_take_back(struct mesh_domain *domain);

/* ---- sinks ----------------------------------------------------------------------------------- */

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
