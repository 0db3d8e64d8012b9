/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acks.h - the receiver's word for what it has, in place of the provider's acknowledgement.
 *
 * On tcp that acknowledgement is a message of its own for each write, which the receiving end sends
 * before it reports the write: a sixth of the time of a stream of 64 KiB. The receiver's word rides
 * on the next GRANT, which the sender needs anyway (grants.c). Until then the request is not done,
 * and a write that has left this end is in doubt if the path is lost: docs/protocol/data.md.
 */
#ifndef MESH_TRANSPORT_ACKS_H
#define MESH_TRANSPORT_ACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "transport/comm.h"

/*
 * The largest message, in bytes, for which it is used. With larger ones the acknowledgement costs
 * nothing that can be measured, and shows what is still queued on the way.
 */
#define MESH_ACKS_BYTES_MAX ((size_t)256 << 10)

/**
 * True if the receiver's word may be enough for a message that arrives whole over @path: the only
 * one that the comm was made with.
 */
static inline bool mesh_acks_suit(const struct mesh_path *path, size_t size)
{
	return size <= MESH_ACKS_BYTES_MAX && path->comm->wanted_paths == 1 &&
	       path == &path->comm->paths[0] && path->immediate_bits == 64 &&
	       !path->is_acknowledged && !mesh_path_has_relay(path);
}

/** True if the write of @request over @path need not be acknowledged by the provider. */
MESH_HOLDS(comm)
bool mesh_acks_serve(const struct mesh_request *request, const struct mesh_path *path);

/** The request's only write is posted without that: the receiver's word is awaited. */
MESH_HOLDS(comm)
void mesh_acks_await(struct mesh_request *request);

/** Learns what GRANT or POSTED says: mesh_message_header.acked, which is not trusted. */
MESH_HOLDS(comm)
void mesh_acks_learn(struct mesh_comm *comm, uint8_t acked);

/** A path of a sending comm is lost: what it carried and was not acknowledged is in doubt. */
MESH_HOLDS(comm)
void mesh_acks_doubt(struct mesh_path *path);

/** True if message @seq has left this end, and the receiver has not said that it has it. */
MESH_HOLDS(comm)
bool mesh_ack_is_missing(struct mesh_comm *comm, uint32_t seq);

/**
 * Completes the requests in doubt of which the receiver has said, in its CLOSED, that it has them.
 * Those of which an operation is in flight complete with a later call.
 */
MESH_HOLDS(comm)
void mesh_doubts_end(struct mesh_comm *comm);

#endif
