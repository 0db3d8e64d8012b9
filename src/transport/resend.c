/* SPDX-License-Identifier: Apache-2.0 */
/* resend.c - what a sender keeps so that it can send again what a lost path may have dropped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/message.h"
#include "transport/resend.h"

/* ---- small messages ------------------------------------------------------------------------ */

static uint8_t *copy_bytes(const struct mesh_comm *comm, uint32_t seq)
{
	return comm->send.copied + seq % MESH_COPIES * comm->eager_limit;
}

bool mesh_copy_keep(struct mesh_comm *comm, const struct mesh_request *request)
{
	struct mesh_send_side *send = &comm->send;

	mesh_comm_assert_locked(comm);
	if (!send->copies)
		send->copies = calloc(MESH_COPIES, sizeof(*send->copies));
	if (!send->copied && comm->eager_limit)
		send->copied = malloc(MESH_COPIES * comm->eager_limit);
	if (!send->copies || (!send->copied && comm->eager_limit))
		return false;
	send->copies[request->seq % MESH_COPIES] = (struct mesh_copy){
		.kept = true,
		.seq = request->seq,
		.size = (uint32_t)request->size,
	};
	if (request->size)
		memcpy(copy_bytes(comm, request->seq), request->data, request->size);
	return true;
}

void mesh_copies_rewind(struct mesh_comm *comm)
{
	mesh_comm_assert_locked(comm);
	comm->send.resending = true;
	comm->send.resend_next = comm->send.peer_posted - MESH_COMM_REQUESTS;
}

bool mesh_copies_send(struct mesh_comm *comm)
{
	struct mesh_send_side *send = &comm->send;
	struct mesh_outgoing message = {.header.type = MESH_MESSAGE_DATA};
	const struct mesh_copy *copy;

	mesh_comm_assert_locked(comm);
	for (; send->copies && send->resend_next != comm->next_seq; send->resend_next++) {
		copy = &send->copies[send->resend_next % MESH_COPIES];
		if (!copy->kept || copy->seq != send->resend_next)
			continue;
		message.header.seq = copy->seq;
		message.payload = copy_bytes(comm, copy->seq);
		message.header.length = copy->size;
		if (!mesh_comm_message_send(comm, &message, NULL))
			return false;
	}
	send->resending = false;
	return true;
}

/* ---- large messages ------------------------------------------------------------------------ */

/* The bits of a request; all are zero while num_lost is 0. */
static uint64_t *lost_bits(const struct mesh_request *request)
{
	return request->comm->send.lost[request->seq % MESH_COMM_REQUESTS].bits;
}

void mesh_segment_lose(struct mesh_request *request, uint32_t index)
{
	struct mesh_request_send *send = &request->send;
	struct mesh_comm *comm = request->comm;
	uint64_t bit = 1ull << index % 64, *word;

	mesh_comm_assert_locked(comm);
	if (!comm->send.lost)
		comm->send.lost = calloc(MESH_COMM_REQUESTS, sizeof(*comm->send.lost));
	if (!comm->send.lost) {
		mesh_comm_fail(comm, -ENOMEM, false, "no memory for lost segments");
		return;
	}
	word = &lost_bits(request)[index / 64];
	send->num_lost += !(*word & bit);
	*word |= bit;
	/* An answer that is under way says nothing of this one. */
	send->asked = false;
	send->settled = false;
}

uint32_t mesh_segment_lost_next(const struct mesh_request *request)
{
	const uint64_t *bits = lost_bits(request);
	uint32_t i;

	for (i = 0; !bits[i]; i++)
		continue;
	return i * 64 + (uint32_t)__builtin_ctzll(bits[i]);
}

void mesh_segment_lost_posted(struct mesh_request *request, uint32_t index)
{
	lost_bits(request)[index / 64] &= ~(1ull << index % 64);
	request->send.num_lost--;
}

void mesh_segments_settle(struct mesh_request *request, const struct mesh_frame_have *have)
{
	struct mesh_request_send *send = &request->send;
	uint64_t *bits = lost_bits(request);
	uint32_t i;

	mesh_comm_assert_locked(request->comm);
	send->asked = false;
	send->settled = true;
	send->num_lost = 0;
	for (i = 0; i < MESH_SEGMENTS_MAX / 64; i++) {
		bits[i] &= have->complete ? 0 : ~have->arrived[i];
		send->num_lost += (uint32_t)__builtin_popcountll(bits[i]);
	}
}
