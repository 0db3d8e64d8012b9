/* SPDX-License-Identifier: Apache-2.0 */
/* resend.c - what a sender keeps so that it can send again what a lost path may have dropped. */
#include <stdlib.h>
#include <string.h>

#include "transport/data.h"
#include "transport/resend.h"

/* ---- copies -------------------------------------------------------------------------------- */

bool mesh_copies_make(struct mesh_comm *comm, bool far)
{
	struct mesh_send_side *send = &comm->send;

	mesh_comm_assert_locked(comm);
	if (!send->copies)
		send->copies = calloc(MESH_COPIES, sizeof(*send->copies));
	if (!send->copies)
		return false;
	/* Not cleared: a comm pays for the pages that its messages reach. */
	if (far && !send->far_copies)
		send->far_copies = malloc(MESH_COPIES * comm->eager_limit);
	return !far || send->far_copies;
}

void mesh_copies_rewind(struct mesh_comm *comm)
{
	mesh_comm_assert_locked(comm);
	comm->send.resending = true;
	comm->send.resend_next = comm->send.peer_posted - MESH_COMM_REQUESTS;
	comm->send.resend_segment = 0;
}

bool mesh_announcements_keep(struct mesh_request *request)
{
	struct mesh_comm *comm = request->comm;
	const struct mesh_message_written last = {
		.segment = request->send.num_segments - 1,
		.num_segments = request->send.num_segments,
		.flag = mesh_request_flag(request),
	};
	struct mesh_copy *copy;

	mesh_comm_assert_locked(comm);
	if (!comm->send.copies && !mesh_copies_make(comm, false))
		return false;
	copy = mesh_copy_of(comm, request->seq);
	copy->seq = request->seq;
	copy->size = (uint32_t)request->size;
	copy->kind = MESH_COPY_WRITTEN;
	memcpy(copy->near, &last, sizeof(last));
	request->send.kept = true;
	return true;
}

void mesh_announcements_repeat(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_send_side *send = &comm->send;

	mesh_comm_assert_locked(comm);
	if (comm->error || mesh_comm_peer_is_over(comm))
		return;
	if (!send->resending || mesh_seq_before(seq, send->resend_next)) {
		send->resending = true;
		send->resend_next = seq;
		send->resend_segment = 0;
	}
	mesh_copies_send(comm); /* what the provider does not accept now follows after a poll */
}

MESH_HOLDS(comm)
static bool data_send(struct mesh_comm *comm, struct mesh_copy *copy)
{
	const struct mesh_outgoing message = {
		.header.type = MESH_MESSAGE_DATA,
		.header.seq = copy->seq,
		.header.length = copy->size,
		.payload = mesh_copy_bytes(comm, copy),
	};

	mesh_comm_assert_locked(comm);
	if (!mesh_comm_message_send(comm, &message, NULL))
		return false;
	mesh_count(&comm->up[0]->counters->resent, copy->size);
	return true;
}

/*
 * The writes of a message that is complete have arrived, but not necessarily the messages that
 * announce them. One that is not complete may have writes in flight: its turn comes then.
 */
MESH_HOLDS(comm)
static bool announcements_send(struct mesh_comm *comm, const struct mesh_copy *copy)
{
	struct mesh_request *request = mesh_comm_request(comm, copy->seq);
	struct mesh_message_written written;
	const struct mesh_outgoing message = {
		.header.type = MESH_MESSAGE_WRITTEN,
		.header.seq = copy->seq,
		.header.size = copy->size,
		.header.length = sizeof(written),
		.payload = &written,
	};

	mesh_comm_assert_locked(comm);
	if (request->seq == copy->seq && mesh_request_is_open(request)) {
		request->send.announce_again = true;
		return true;
	}
	memcpy(&written, copy->near, sizeof(written));
	for (; comm->send.resend_segment < written.num_segments; comm->send.resend_segment++) {
		written.segment = comm->send.resend_segment;
		if (!mesh_comm_message_send(comm, &message, NULL))
			return false;
	}
	return true;
}

bool mesh_copies_send(struct mesh_comm *comm)
{
	struct mesh_send_side *send = &comm->send;
	struct mesh_copy *copy;
	bool sent;

	mesh_comm_assert_locked(comm);
	for (; send->copies && send->resend_next != comm->next_seq; send->resend_next++) {
		copy = mesh_copy_of(comm, send->resend_next);
		if (copy->kind == MESH_COPY_NONE || copy->seq != send->resend_next)
			continue;
		sent = copy->kind == MESH_COPY_DATA ? data_send(comm, copy)
						    : announcements_send(comm, copy);
		if (!sent)
			return false;
		send->resend_segment = 0;
	}
	send->resending = false;
	return true;
}

bool mesh_copies_may_be_lost(struct mesh_comm *comm)
{
	uint32_t seq = comm->send.peer_posted - MESH_COMM_REQUESTS;
	const struct mesh_copy *copy;

	mesh_comm_assert_locked(comm);
	for (; comm->send.copies && seq != comm->next_seq; seq++) {
		copy = mesh_copy_of(comm, seq);
		if (copy->kind != MESH_COPY_NONE && copy->seq == seq)
			return true;
	}
	return false;
}

/* ---- large messages ------------------------------------------------------------------------ */

/* The bits of a request; all are zero while num_lost is 0. */
static uint64_t *lost_bits(const struct mesh_request *request)
{
	return request->comm->send.lost[request->seq % MESH_COMM_REQUESTS].bits;
}

bool mesh_segments_lost_prepare(struct mesh_comm *comm)
{
	mesh_comm_assert_locked(comm);
	if (!comm->send.lost)
		comm->send.lost = calloc(MESH_COMM_REQUESTS, sizeof(*comm->send.lost));
	return comm->send.lost;
}

void mesh_segment_lose(struct mesh_request *request, uint32_t index)
{
	struct mesh_request_send *send = &request->send;
	uint64_t bit = 1ull << index % 64, *word = &lost_bits(request)[index / 64];

	mesh_comm_assert_locked(request->comm);
	send->num_lost += !(*word & bit);
	*word |= bit;
	send->settled = false;
	/* An answer that is under way says nothing of this one; the path's loss asks again. */
	request->comm->send.resumed = request->comm->send.round - 1;
}

bool mesh_send_is_in_doubt(struct mesh_comm *comm, bool unsettled)
{
	const struct mesh_request *request;

	mesh_comm_assert_locked(comm);
	for (request = comm->requests; request < comm->requests + MESH_COMM_REQUESTS; request++) {
		if (mesh_request_is_in_doubt(request) && !(unsettled && request->send.settled))
			return true;
	}
	return false;
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

bool mesh_segments_exceed(const struct mesh_request *request, const struct mesh_frame_have *have)
{
	size_t bytes = request->send.segment_bytes, i;

	for (i = (request->size + bytes - 1) / bytes; i < MESH_SEGMENTS_MAX; i++) {
		if (have->arrived[i / 64] >> i % 64 & 1)
			return true;
	}
	return false;
}

void mesh_segments_settle(struct mesh_request *request, const struct mesh_frame_have *have)
{
	struct mesh_request_send *send = &request->send;
	uint64_t *bits = lost_bits(request);
	uint32_t i;

	mesh_comm_assert_locked(request->comm);
	send->settled = true;
	send->num_lost = 0;
	for (i = 0; i < MESH_SEGMENTS_MAX / 64; i++) {
		bits[i] &= have->complete ? 0 : ~have->arrived[i];
		send->num_lost += (uint32_t)__builtin_popcountll(bits[i]);
	}
}

/* ---- the receiver's word --------------------------------------------------------------------- */

/*
 * A comm with one path, which it has had from the start: the receiver then counts the same writes,
 * and what is in doubt after a loss is what that path carried.
 */
bool mesh_acks_serve(const struct mesh_request *request, const struct mesh_path *path)
{
	const struct mesh_comm *comm = request->comm;

	return comm->num_paths == 1 && !comm->send.round && request->send.num_segments == 1 &&
	       !request->send.flagged && mesh_acks_suit(path, request->size);
}

void mesh_acks_await(struct mesh_request *request)
{
	struct mesh_comm *comm = request->comm;

	mesh_comm_assert_locked(comm);
	/* The first one, or one that had to wait for its grant. */
	if (!comm->send.num_unacked || mesh_seq_before(request->seq, comm->send.acked))
		comm->send.acked = request->seq;
	request->send.unacked = true;
	comm->send.num_unacked++;
}

MESH_HOLDS(comm)
static void ack_end(struct mesh_request *request)
{
	mesh_comm_assert_locked(request->comm);
	request->send.unacked = false;
	request->comm->send.num_unacked--;
}

/* The receiver has all messages before @seq, as it said. */
MESH_HOLDS(comm)
static void acks_complete(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_send_side *send = &comm->send;
	struct mesh_request *request;

	mesh_comm_assert_locked(comm);
	if (!mesh_seq_before(send->acked, seq) || mesh_seq_before(comm->next_seq, seq))
		return; /* it is late, or not true */
	if (seq - send->acked > MESH_COMM_REQUESTS)
		send->acked = seq - MESH_COMM_REQUESTS;
	for (; send->acked != seq; send->acked++) {
		request = mesh_comm_request(comm, send->acked);
		if (request->seq != send->acked || !request->send.unacked)
			continue;
		ack_end(request);
		mesh_request_send_check(request);
	}
}

void mesh_acks_learn(struct mesh_comm *comm, uint8_t acked)
{
	/* Only the last requests can be open: an older number looks as if it was not sent yet. */
	uint32_t oldest = comm->next_seq - MESH_COMM_REQUESTS;

	mesh_comm_assert_locked(comm);
	if (acked && comm->send.num_unacked)
		acks_complete(comm, oldest + ((acked - oldest) & MESH_ACKED_MASK));
}

void mesh_acks_doubt(struct mesh_path *path)
{
	struct mesh_comm *comm = path->comm;
	struct mesh_request *request;
	int i;

	mesh_comm_assert_locked(comm);
	if (path != &comm->paths[0] || !comm->send.num_unacked)
		return;
	for (i = 0; i < MESH_COMM_REQUESTS; i++) {
		request = &comm->requests[i];
		if (!request->send.unacked)
			continue;
		ack_end(request);
		mesh_segment_lose(request, 0);
	}
}

bool mesh_ack_is_missing(struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_request *request = mesh_comm_request(comm, seq);

	mesh_comm_assert_locked(comm);
	return request->seq == seq && mesh_request_is_open(request) && request->send.unacked &&
	       !request->send.unfinished;
}

/* A peer that claims too much harms its own messages: what was never posted stays open. */
MESH_HOLDS(comm)
static void doubt_end(struct mesh_request *request)
{
	const struct mesh_frame_have all = {.complete = 1};

	if (!mesh_request_is_in_doubt(request) || request->send.unfinished ||
	    !mesh_seq_before(request->seq, request->comm->peer_sent))
		return;
	mesh_segments_settle(request, &all);
	request->send.posted = request->send.next_segment == request->send.num_segments;
	mesh_request_send_check(request);
}

void mesh_doubts_end(struct mesh_comm *comm)
{
	struct mesh_send_side *send = &comm->send;
	int i;

	mesh_comm_assert_locked(comm);
	if (!comm->sending || comm->peer_said < MESH_SAID_CLOSED)
		return;
	acks_complete(comm, comm->peer_sent);
	for (i = 0; i < MESH_COMM_REQUESTS; i++)
		doubt_end(&comm->requests[i]);
	while (send->first_pending != comm->next_seq &&
	       mesh_comm_request(comm, send->first_pending)->send.posted)
		send->first_pending++;
}
