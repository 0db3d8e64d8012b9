/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resend.h - what a sender keeps so that it can send again what a lost path may have dropped:
 * copies of small messages, and which segments of large ones are in doubt.
 */
#ifndef MESH_TRANSPORT_RESEND_H
#define MESH_TRANSPORT_RESEND_H

#include <stdbool.h>
#include <string.h>

#include "base/lock.h"
#include "base/memory.h"
#include "transport/comm.h"

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
 * Keeps what announces the writes of a large message that is cut, and of which nothing is posted.
 * False without memory for it.
 */
MESH_HOLDS(comm)
MESH_COLD
bool mesh_announcements_keep(struct mesh_comm *comm, const struct mesh_request *request);

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

/** True if this holds for a request of the comm. */
MESH_HOLDS(comm)
bool mesh_send_is_in_doubt(struct mesh_comm *comm);

/** True if the receiver has not answered yet for one of them. */
MESH_HOLDS(comm)
bool mesh_send_awaits_have(struct mesh_comm *comm);

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

#endif
