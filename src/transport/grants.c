/* SPDX-License-Identifier: Apache-2.0 */
/* grants.c - which grants a receiving comm sends, and when; what the sending comm learns of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fabric/mr.h"
#include "transport/data.h"
#include "transport/resend.h"

/* After this many small messages in a row, grants are sent only on request (WANT). */
#define EAGER_RUN 4
/* While no grants are sent, POSTED is sent once for this many posted receives. */
#define POSTED_EVERY (MESH_EAGER_WINDOW / 2)
/*
 * A sender that holds this many grants does not need the next ones yet, so those are sent together
 * when it holds one less: it can send three messages until they arrive. The limit is in messages,
 * because a sender that has one grant left waits for a round trip, however large that message is.
 * Small messages are sent quickly, so the grants must also cover this many bytes (5 us at
 * 200 Gbit/s).
 */
#define GRANTS_HELD 4
#define GRANTED_BYTES ((uint64_t)128 << 10)
/*
 * A complete message is reported after so long if no GRANT has reported it: a sender that has as
 * many messages in flight as there are receives needs that GRANT first.
 */
#define ACK_NS 20000ull

/* True if this receive's grant is to be sent now. */
static bool grant_is_due(const struct mesh_comm *comm, const struct mesh_request *request)
{
	if (!mesh_request_is_open(request) || request->receive.grant == MESH_GRANT_SENT)
		return false;
	/* One that is half written has had its grant, and the sender may need it once more. */
	return request->state == MESH_REQUEST_MOVING || comm->receive.eager_run < EAGER_RUN ||
	       mesh_seq_before(request->seq, comm->receive.wanted);
}

/*
 * True if the grants from @seq on may be sent later without delaying the sender. False if they fill
 * a message: then waiting saves nothing, and would keep most grants of a receiver that has posted
 * many receives.
 */
MESH_HOLDS(comm)
static bool grants_may_wait(const struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_receive_side *receive = &comm->receive;

	return receive->granted >= GRANTS_HELD &&
	       receive->granted * (uint64_t)receive->last_size >= GRANTED_BYTES &&
	       comm->next_seq - seq < MESH_GRANTS_PER_MESSAGE &&
	       !mesh_seq_before(seq, receive->wanted);
}

/* Writes the grant of one receive for so many paths, mesh_grant_size() bytes. */
static void grant_write(const struct mesh_request *request, int num_paths, struct mesh_grant *grant)
{
	const struct mesh_mr *mr;
	int i;

	grant->size = request->size;
	/* Without memory no target is valid; a sender that tries to write learns that. */
	if (!request->size)
		memset(grant->targets, 0, (size_t)num_paths * sizeof(grant->targets[0]));
	for (i = 0; i < num_paths && request->size; i++) {
		mr = request->registration->mrs[i];
		grant->targets[i].address = mesh_mr_remote_address(mr, request->data);
		grant->targets[i].key = mesh_mr_key(mr);
	}
}

/* How many messages are complete, from the first on: at least what was last said. */
MESH_HOLDS(comm)
static uint32_t complete_count(struct mesh_comm *comm)
{
	return mesh_requests_done_from(comm, comm->receive.acked);
}

/* What GRANT and POSTED say of complete messages: nothing if the sender knows it. */
MESH_HOLDS(comm)
static uint8_t acked_word(struct mesh_comm *comm)
{
	return mesh_ack_is_wanted(comm) ? MESH_ACKED(complete_count(comm)) : 0;
}

/* Notes that one of them has left. Where nothing is wanted the numbers go on: they go round. */
MESH_HOLDS(comm)
static void acked_said(struct mesh_comm *comm)
{
	struct mesh_receive_side *receive = &comm->receive;

	receive->ack_ns = 0;
	if (mesh_ack_is_wanted(comm)) {
		receive->acked = complete_count(comm);
		if (mesh_seq_before(receive->ack_wanted, receive->acked))
			receive->ack_wanted = receive->acked;
	} else if (comm->next_seq - receive->acked > MESH_COMM_REQUESTS) {
		receive->acked = receive->ack_wanted = comm->next_seq - MESH_COMM_REQUESTS;
	}
}

/* Sends the grants of the receives from @seq on, which is due, as many as are due in a row. */
MESH_HOLDS(comm)
static bool grants_send(struct mesh_comm *comm, uint32_t seq, uint32_t *count)
{
	struct mesh_grant payload[MESH_GRANTS_PER_MESSAGE]; /* room for the largest */
	struct mesh_receive_side *receive = &comm->receive;
	const int num_paths = comm->num_paths;
	size_t size = mesh_grant_size(num_paths);
	struct mesh_outgoing message = {
		.header.type = MESH_MESSAGE_GRANT,
		.header.paths = (uint8_t)num_paths,
		.header.acked = acked_word(comm),
		.header.seq = seq,
		.header.lives = receive->lives,
		.payload = payload,
	};
	uint32_t n = 0, i;

	do {
		grant_write(mesh_comm_request(comm, seq + n), num_paths,
			    (struct mesh_grant *)((char *)payload + n * size));
		n++;
	} while (seq + n != comm->next_seq && n < MESH_GRANTS_PER_MESSAGE &&
		 grant_is_due(comm, mesh_comm_request(comm, seq + n)));
	message.header.count = (uint8_t)n;
	message.header.length = (uint32_t)(n * size);
	if (!mesh_comm_message_send(comm, &message, NULL))
		return false;
	acked_said(comm);
	for (i = 0; i < n; i++) {
		struct mesh_request *request = mesh_comm_request(comm, seq + i);

		receive->granted += !request->receive.grant;
		request->receive.grant = MESH_GRANT_SENT;
	}
	if (mesh_seq_before(receive->reported, seq + n))
		receive->reported = seq + n;
	*count = n;
	return true;
}

MESH_HOLDS(comm)
__attribute__((noinline)) static void posted_send(struct mesh_comm *comm)
{
	const struct mesh_outgoing message = {
		.header.type = MESH_MESSAGE_POSTED,
		.header.acked = acked_word(comm),
		.header.seq = comm->next_seq,
	};

	if (!mesh_comm_message_send(comm, &message, NULL))
		return;
	acked_said(comm);
	comm->receive.reported = comm->next_seq;
}

/* Sends the grants that are due. False if some wait, for others or for a free buffer. */
MESH_HOLDS(comm)
__attribute__((noinline)) static bool grants_push(struct mesh_comm *comm)
{
	struct mesh_receive_side *receive = &comm->receive;
	uint32_t seq, count;

	/*
	 * Receives that completed without a grant may be so old that their slots have been reused.
	 */
	if (comm->next_seq - receive->next_grant > MESH_COMM_REQUESTS)
		receive->next_grant = comm->next_seq - MESH_COMM_REQUESTS;
	for (seq = receive->next_grant; seq != comm->next_seq; seq += count) {
		struct mesh_request *request = mesh_comm_request(comm, seq);

		count = 1;
		if (grant_is_due(comm, request)) {
			if (grants_may_wait(comm, seq) || !grants_send(comm, seq, &count))
				return false;
		} else if (request->state == MESH_REQUEST_WAITING &&
			   request->receive.grant != MESH_GRANT_SENT) {
			continue; /* held back: next_grant stays before it */
		}
		if (seq == receive->next_grant)
			receive->next_grant += count;
	}
	return true;
}

/* True if no grant can be due, because messages are small and WANT asks for none. */
static bool grants_are_held_back(const struct mesh_receive_side *receive)
{
	return receive->eager_run >= EAGER_RUN &&
	       !mesh_seq_before(receive->next_grant, receive->wanted);
}

void mesh_grants_update(struct mesh_comm *comm)
{
	struct mesh_receive_side *receive = &comm->receive;

	mesh_comm_assert_locked(comm);
	if (comm->error || (!grants_are_held_back(receive) && !grants_push(comm)))
		return;
	if (comm->next_seq - receive->reported >= POSTED_EVERY)
		posted_send(comm);
}

void mesh_grants_update_soon(struct mesh_comm *comm)
{
	if (grants_may_wait(comm, comm->receive.next_grant))
		return; /* they leave together when a receive completes */
	if (comm->receive.granted && comm->receive.eager_run < EAGER_RUN && comm->num_up)
		mesh_domain_wait(comm->up[0]->domain, &comm->up[0]->waiter);
	else
		mesh_grants_update(comm);
}

/* ---- what is complete ---------------------------------------------------------------------- */

void mesh_ack_want(const struct mesh_request *request, const struct mesh_path *path)
{
	struct mesh_receive_side *receive = &request->comm->receive;

	mesh_comm_assert_locked(request->comm);
	if (mesh_acks_suit(path, request->size) &&
	    mesh_seq_before(receive->ack_wanted, request->seq + 1))
		receive->ack_wanted = request->seq + 1;
}

void mesh_ack_resume(struct mesh_comm *comm)
{
	const struct mesh_receive_side *receive = &comm->receive;

	mesh_comm_assert_locked(comm);
	if (!receive->ack_ns || mesh_comm_peer_is_over(comm) || !comm->num_up)
		return; /* our CLOSED says it, or HAVE */
	/* NCCL may not poll again for a comm without a receive. */
	if (!receive->granted || mesh_clock_ns() - receive->ack_ns >= ACK_NS)
		posted_send(comm);
	if (receive->ack_ns)
		mesh_domain_wait(comm->up[0]->domain, &comm->up[0]->waiter);
}

void mesh_ack_update(struct mesh_comm *comm)
{
	struct mesh_receive_side *receive = &comm->receive;

	mesh_comm_assert_locked(comm);
	if (!receive->ack_ns && mesh_seq_before(receive->acked, complete_count(comm)))
		receive->ack_ns = mesh_clock_ns();
	mesh_ack_resume(comm);
}

void mesh_ack_send(struct mesh_comm *comm)
{
	struct mesh_receive_side *receive = &comm->receive;

	mesh_comm_assert_locked(comm);
	if (!comm->num_up || !mesh_acks_suit(&comm->paths[0], 0))
		return;
	if (!mesh_ack_is_wanted(comm)) /* it may have been lost */
		receive->ack_wanted = receive->acked + 1;
	posted_send(comm);
}

/* ---- the sending end ------------------------------------------------------------------------- */

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

	if (header->paths < comm->wanted_paths ||
	    (header->paths > comm->wanted_paths && header->paths > comm->num_paths)) {
		mesh_comm_fail(comm, -EPROTO, false,
			       "the peer sent a grant for another number of paths");
		return;
	}
	/* With room for paths that join late. */
	if (!comm->send.grants)
		comm->send.grants =
			calloc(MESH_COMM_REQUESTS, mesh_held_grant_bytes(comm->max_paths));
	if (!comm->send.grants) {
		mesh_comm_fail(comm, -ENOMEM, false, "no memory for grants");
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
