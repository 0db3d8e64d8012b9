/* SPDX-License-Identifier: Apache-2.0 */
/* acks.c - the receiver's word for what it has: the sending end. grants.c has the other one. */
#include "transport/acks.h"
#include "transport/request.h"
#include "transport/resend.h"

/*
 * A comm with one path, which it has had from the start: the receiver then counts the same writes,
 * and what is in doubt after a loss is what that path carried.
 */
bool mesh_acks_serve(const struct mesh_request *request, const struct mesh_path *path)
{
	const struct mesh_comm *comm = request->comm;

	return comm->resumes && comm->num_paths == 1 && !comm->send.lost_path &&
	       request->send.num_segments == 1 && !request->send.flagged &&
	       mesh_acks_suit(path, request->size);
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
	comm->send.lost_path = true;
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
	if (!comm->sending || !comm->peer_counted)
		return;
	acks_complete(comm, comm->peer_sent);
	for (i = 0; i < MESH_COMM_REQUESTS; i++)
		doubt_end(&comm->requests[i]);
	while (send->first_pending != comm->next_seq &&
	       mesh_comm_request(comm, send->first_pending)->send.posted)
		send->first_pending++;
}
