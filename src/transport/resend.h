/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resend.h - what a sender keeps so that it can send again what a lost path may have dropped:
 * copies of small messages, and which segments of large ones are in doubt, until the receiver has
 * said that it has them.
 *
 * That word replaces the provider's acknowledgement, too. On tcp that is a message of its own for
 * each write, which the receiving end sends before it reports the write: a sixth of the time of a
 * stream of 64 KiB. The receiver's word rides on the next GRANT, which the sender needs anyway
 * (grants.c). Until then the request is not done, and a write that has left this end is in doubt if
 * the path is lost: docs/protocol/data.md.
 */
#ifndef MESH_TRANSPORT_RESEND_H
#define MESH_TRANSPORT_RESEND_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/lock.h"
#include "base/memory.h"
#include "transport/comm.h"
#include "transport/data.h"

/** The place for the copy of message @seq. comm->lock held; there are copies. */
static inline struct mesh_copy *mesh_copy_of(const struct mesh_comm *comm, uint32_t seq)
{
	return &comm->send.copies[seq % MESH_COPIES];
}

/** True if a copy of so many bytes does not fit beside its header. */
static inline bool mesh_copy_is_far(size_t size)
{
	return size > MESH_COPY_NEAR;
}

/** Where the bytes of @copy are, whose size is set. comm->lock held; there is memory for it. */
static inline uint8_t *mesh_copy_bytes(const struct mesh_comm *comm, struct mesh_copy *copy)
{
	if (!mesh_copy_is_far(copy->size))
		return copy->near;
	return comm->send.far_copies + (size_t)(copy - comm->send.copies) * comm->eager_limit;
}

/**
 * Allocates what is missing.
 *
 * @far: for a message that is far
 *
 * Returns false without memory for it.
 */
MESH_HOLDS(comm)
MESH_COLD
bool mesh_copies_make(struct mesh_comm *comm, bool far);

/** Finds room for the copy of a small message that is about to be sent. False without memory. */
MESH_HOLDS(comm)
static inline bool mesh_copy_prepare(struct mesh_comm *comm, const struct mesh_request *request)
{
	const bool far = mesh_copy_is_far(request->size);

	return (far ? comm->send.far_copies != NULL : comm->send.copies != NULL) ||
	       mesh_copies_make(comm, far);
}

/**
 * Keeps a copy of a small message that has just been sent, for which mesh_copy_prepare() found
 * room. comm->lock has been held since: whoever sends copies again finds this one.
 */
MESH_HOLDS(comm)
static inline void mesh_copy_keep(struct mesh_comm *comm, const struct mesh_request *request)
{
	struct mesh_copy *copy = mesh_copy_of(comm, request->seq);

	copy->seq = request->seq;
	copy->size = (uint32_t)request->size;
	copy->kind = MESH_COPY_DATA;
	if (request->size) /* an empty message may have no address */
		mesh_bytes_copy(mesh_copy_bytes(comm, copy), request->data, request->size);
}

/**
 * Keeps what announces the writes of a large message, before the first that may be announced in
 * vain is posted. False without memory for it.
 */
MESH_HOLDS(comm)
MESH_COLD
bool mesh_announcements_keep(struct mesh_request *request);

/** From now on mesh_copies_send() sends all copies again that the receiver may lack. */
MESH_HOLDS(comm)
void mesh_copies_rewind(struct mesh_comm *comm);

/** Sends what is left to be sent again. False if the provider is busy: again after a poll. */
MESH_HOLDS(comm)
bool mesh_copies_send(struct mesh_comm *comm);

/** Announces the writes of a message again that has become complete after a path was lost. */
MESH_HOLDS(comm)
MESH_COLD
void mesh_announcements_repeat(struct mesh_comm *comm, uint32_t seq);

/** A send is done when all is posted, and nothing of it is in flight, in doubt or unacked. */
MESH_HOLDS(comm)
static inline void mesh_request_send_check(struct mesh_request *request)
{
	if (!request->send.unfinished && request->send.posted && !request->send.num_lost &&
	    !request->send.unacked && request->state == MESH_REQUEST_MOVING) {
		mesh_request_state_set(request, MESH_REQUEST_DONE);
		if (request->send.announce_again)
			mesh_announcements_repeat(request->comm, request->seq);
	}
}

/** True if the receiver may lack a message that counts as sent: only its CLOSED says otherwise. */
MESH_HOLDS(comm)
MESH_COLD
bool mesh_copies_may_be_lost(struct mesh_comm *comm);

/**
 * Finds room for what mesh_segment_lose() notes, before the first write of a large message leaves.
 * False without memory.
 */
MESH_HOLDS(comm)
bool mesh_segments_lost_prepare(struct mesh_comm *comm);

/** Notes that a posted segment may not have arrived; mesh_segments_lost_prepare() found room. */
MESH_HOLDS(comm)
void mesh_segment_lose(struct mesh_request *request, uint32_t index);

/** True if a segment may be lost, or may still arrive, and the receiver has not answered. */
MESH_HOLDS(comm)
static inline bool mesh_request_is_in_doubt(const struct mesh_request *request)
{
	return mesh_request_is_open(request) && request->send.num_lost;
}

/** True if this holds for a request of the comm; @unsettled: one for which HAVE is due. */
MESH_HOLDS(comm)
bool mesh_send_is_in_doubt(struct mesh_comm *comm, bool unsettled);

/** The two functions below for a message with segments in doubt. */
MESH_COLD
uint32_t mesh_segment_lost_next(const struct mesh_request *request);
MESH_COLD
void mesh_segment_lost_posted(struct mesh_request *request, uint32_t index);

/** The segment to be posted next: a lost one, or the next new one. */
static inline uint32_t mesh_segment_next(const struct mesh_request *request)
{
	return request->send.num_lost ? mesh_segment_lost_next(request)
				      : request->send.next_segment;
}

/** Notes that segment @index, which mesh_segment_next() has named, is posted. */
static inline void mesh_segment_posted(struct mesh_request *request, uint32_t index)
{
	if (request->send.num_lost)
		mesh_segment_lost_posted(request, index);
	else
		request->send.next_segment++;
}

/** True if the receiver claims segments that the message does not have; some of it is posted. */
MESH_COLD
bool mesh_segments_exceed(const struct mesh_request *request, const struct mesh_frame_have *have);

/**
 * Learns which of the lost segments have arrived.
 *
 * @have: the receiver's answer; it is not trusted, and counts for lost segments only
 */
MESH_HOLDS(comm)
void mesh_segments_settle(struct mesh_request *request, const struct mesh_frame_have *have);

/* ---- the receiver's word --------------------------------------------------------------------- */

/*
 * The largest message, in bytes, for which it replaces an acknowledgement. With larger ones that
 * costs nothing that can be measured, and shows what is still queued on the way.
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
