/* SPDX-License-Identifier: Apache-2.0 */
/* doubts.c - ends a sender's doubts about messages when the receiver closes. */
#include "transport/acks.h"
#include "transport/doubts.h"
#include "transport/request.h"
#include "transport/resend.h"

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
	mesh_acks_complete(comm, comm->peer_sent);
	for (i = 0; i < MESH_COMM_REQUESTS; i++)
		doubt_end(&comm->requests[i]);
	while (send->first_pending != comm->next_seq &&
	       mesh_comm_request(comm, send->first_pending)->send.posted)
		send->first_pending++;
}
