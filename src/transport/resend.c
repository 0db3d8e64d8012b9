/* SPDX-License-Identifier: Apache-2.0 */
/* resend.c - what a sender keeps so that it can send again what a lost path may have dropped. */
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
	if (!send->copied && comm->eager_limit)
		send->copied = malloc(MESH_COPIES * comm->eager_limit);
	if (!send->copied && comm->eager_limit)
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
	for (; send->resend_next != comm->next_seq; send->resend_next++) {
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

void mesh_segment_lose(struct mesh_request *request, uint32_t index)
{
	struct mesh_request_send *send = &request->send;
	uint64_t bit = 1ull << index % 64;

	mesh_comm_assert_locked(request->comm);
	send->num_lost += !(request->lost[index / 64] & bit);
	request->lost[index / 64] |= bit;
	/* An answer that is under way says nothing of this one. */
	send->asked = false;
	send->settled = false;
}

uint32_t mesh_segment_lost_next(const struct mesh_request *request)
{
	uint32_t i;

	for (i = 0; !request->lost[i]; i++)
		continue;
	return i * 64 + (uint32_t)__builtin_ctzll(request->lost[i]);
}

void mesh_segment_lost_posted(struct mesh_request *request, uint32_t index)
{
	request->lost[index / 64] &= ~(1ull << index % 64);
	request->send.num_lost--;
}

void mesh_segments_settle(struct mesh_request *request, const struct mesh_frame_have *have)
{
	struct mesh_request_send *send = &request->send;
	uint32_t i;

	mesh_comm_assert_locked(request->comm);
	send->asked = false;
	send->settled = true;
	send->num_lost = 0;
	for (i = 0; i < MESH_SEGMENTS_MAX / 64; i++) {
		request->lost[i] &= have->complete ? 0 : ~have->arrived[i];
		send->num_lost += (uint32_t)__builtin_popcountll(request->lost[i]);
	}
}
