/* SPDX-License-Identifier: Apache-2.0 */
/* credit.c - what the receiver of a sending comm reports: the receives that it has posted. */
#include <errno.h>
#include <string.h>

#include "transport/acks.h"
#include "transport/credit.h"
#include "transport/send.h"

/* It posts a receive where an earlier one is complete. What is sent again is counted from there. */
MESH_HOLDS(comm)
static void posted_learn(struct mesh_comm *comm, uint32_t posted)
{
	if (mesh_seq_before(comm->next_seq + MESH_COMM_REQUESTS, posted))
		mesh_comm_fail(comm, -EPROTO, false,
			       "the peer reported more receives than it can have posted");
	else if (mesh_seq_before(comm->send.peer_posted, posted))
		comm->send.peer_posted = posted;
}

MESH_HOLDS(comm)
static void grants_learn(struct mesh_comm *comm, const struct mesh_message_header *header,
			 const void *payload)
{
	size_t size = mesh_grant_size(header->paths);
	struct mesh_held_grant *held;
	const char *grant;
	uint32_t i, seq, count;

	if (header->paths < comm->wanted_paths || header->paths > comm->send.grant_room) {
		mesh_comm_fail(comm, -EPROTO, false,
			       "the peer sent a grant for another number of paths");
		return;
	}
	/* It was on its way when a path got another life: its target may be another NIC's. */
	count = mesh_seq_before(header->lives, comm->send.lives) ? 0 : header->count;
	for (i = 0; i < count; i++) {
		seq = header->seq + i;
		grant = (const char *)payload + i * size;
		/* The grant is late: the message has been sent. What is in flight may go again. */
		if (mesh_seq_before(seq, comm->send.first_pending) &&
		    mesh_send_is_complete(comm, seq))
			continue;
		held = mesh_comm_held_grant(comm, seq);
		/* It was sent before the one that counts once the new life is up. */
		if (held->valid && held->seq == seq && mesh_seq_before(header->lives, held->lives))
			continue;
		held->valid = true;
		held->seq = seq;
		held->lives = header->lives;
		memcpy(&held->grant, grant, size);
	}
	posted_learn(comm, header->seq + header->count);
}

void mesh_credit_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			 const void *payload)
{
	struct mesh_comm *comm = mesh_path_of_sink(sink)->comm;

	mesh_comm_lock(comm);
	switch ((enum mesh_message_type)header->type) {
	case MESH_MESSAGE_GRANT:
		mesh_acks_learn(comm, header->acked);
		grants_learn(comm, header, payload);
		mesh_send_push(comm);
		break;
	case MESH_MESSAGE_POSTED:
		mesh_acks_learn(comm, header->acked);
		posted_learn(comm, header->seq);
		mesh_send_push(comm);
		break;
	default:
		mesh_comm_fail(comm, -EPROTO, false, "the peer sent a message of the wrong kind");
		break;
	}
	mesh_comm_unlock(comm);
}
