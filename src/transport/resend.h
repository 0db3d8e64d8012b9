/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resend.h - what a sender keeps so that it can send again what a lost path may have dropped:
 * copies of small messages, and which segments of large ones are in doubt.
 */
#ifndef MESH_TRANSPORT_RESEND_H
#define MESH_TRANSPORT_RESEND_H

#include <stdbool.h>

#include "base/lock.h"
#include "transport/comm.h"

/** Keeps a copy of a small message that is about to be sent. False without memory for it. */
MESH_HOLDS(comm)
bool mesh_copy_keep(struct mesh_comm *comm, const struct mesh_request *request);

/** From now on mesh_copies_send() sends all copies again that the receiver may lack. */
MESH_HOLDS(comm)
void mesh_copies_rewind(struct mesh_comm *comm);

/** Sends what is left to be sent again. False if the provider is busy: again after a poll. */
MESH_HOLDS(comm)
bool mesh_copies_send(struct mesh_comm *comm);

/** Notes that a posted segment may not have arrived. */
MESH_HOLDS(comm)
void mesh_segment_lose(struct mesh_request *request, uint32_t index);

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

/**
 * Learns which of the lost segments have arrived.
 *
 * @have: the receiver's answer; it is not trusted, and counts for lost segments only
 */
MESH_HOLDS(comm)
void mesh_segments_settle(struct mesh_request *request, const struct mesh_frame_have *have);

#endif
