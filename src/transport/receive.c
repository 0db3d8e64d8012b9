/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receive.c - the receiving half of the protocol: grants name the memory that large messages may be
 * written to; small ones arrive without a grant, sometimes before their receive is posted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cold.h"
#include "base/log.h"
#include "control/process.h"
#include "transport/counters.h"
#include "transport/message.h"
#include "transport/place.h"
#include "transport/receive.h"
#include "transport/request.h"
#include "wire/immediate.h"

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

/* ---- grants -------------------------------------------------------------------------------- */

/* True if this receive's grant is to be sent now. */
static bool grant_is_due(const struct mesh_comm *comm, const struct mesh_request *request)
{
	if (!mesh_request_is_open(request) || request->receive.grant_sent)
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

/* Writes the grant of one receive, mesh_grant_size() bytes. */
static void grant_write(const struct mesh_request *request, uint8_t *bytes)
{
	const struct mesh_comm *comm = request->comm;
	struct mesh_grant grant;
	int i;

	/* Without targets if the size is 0: a sender that has data finds that it does not fit. */
	memset(&grant, 0, sizeof(grant));
	grant.size = request->size;
	for (i = 0; i < comm->num_paths && request->size; i++)
		mesh_path_target(&comm->paths[i], request->registration->mrs[i], request->data,
				 &grant.targets[i]);
	memcpy(bytes, &grant, mesh_grant_size(comm->num_paths));
}

/* Sends the grants of the receives from @seq on, as many as are due in a row. */
MESH_HOLDS(comm)
static bool grants_send(struct mesh_comm *comm, uint32_t seq, uint32_t *count)
{
	uint8_t payload[MESH_GRANTS_PER_MESSAGE * sizeof(struct mesh_grant)];
	struct mesh_receive_side *receive = &comm->receive;
	size_t size = mesh_grant_size(comm->num_paths);
	struct mesh_outgoing message = {
		.header.type = MESH_MESSAGE_GRANT,
		.header.paths = (uint8_t)comm->num_paths,
		.header.seq = seq,
		.payload = payload,
	};
	uint32_t n = 0, i;

	while (seq + n != comm->next_seq && n < MESH_GRANTS_PER_MESSAGE &&
	       grant_is_due(comm, mesh_comm_request(comm, seq + n))) {
		grant_write(mesh_comm_request(comm, seq + n), payload + n * size);
		n++;
	}
	message.header.count = (uint8_t)n;
	message.header.length = (uint32_t)(n * size);
	if (!mesh_comm_message_send(comm, &message, NULL))
		return false;
	for (i = 0; i < n; i++) {
		struct mesh_request *request = mesh_comm_request(comm, seq + i);

		receive->granted += !request->receive.granted;
		request->receive.granted = true;
		request->receive.grant_sent = true;
	}
	if (mesh_seq_before(receive->reported, seq + n))
		receive->reported = seq + n;
	*count = n;
	return true;
}

MESH_HOLDS(comm)
__attribute__((noinline)) static bool posted_send(struct mesh_comm *comm)
{
	const struct mesh_outgoing message = {
		.header.type = MESH_MESSAGE_POSTED,
		.header.seq = comm->next_seq,
	};

	if (!mesh_comm_message_send(comm, &message, NULL))
		return false;
	comm->receive.reported = comm->next_seq;
	return true;
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
		} else if (request->state == MESH_REQUEST_WAITING && !request->receive.grant_sent) {
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

/*
 * Sends the grants that are due, and POSTED. What finds no free buffer is sent from a later poll.
 */
MESH_HOLDS(comm)
static void grants_update(struct mesh_comm *comm)
{
	struct mesh_receive_side *receive = &comm->receive;

	mesh_comm_assert_locked(comm);
	if (comm->error || (!grants_are_held_back(receive) && !grants_push(comm)))
		return;
	if (comm->next_seq - receive->reported >= POSTED_EVERY)
		posted_send(comm);
}

/*
 * A sender that holds grants does not wait for this one. The next poll sends it, after what NCCL
 * sends before that, which is usually the answer to the last message.
 */
MESH_HOLDS(comm)
static void grants_update_soon(struct mesh_comm *comm)
{
	if (grants_may_wait(comm, comm->receive.next_grant))
		return; /* receive_done() sends it with others */
	if (comm->receive.granted && comm->receive.eager_run < EAGER_RUN && comm->num_up)
		mesh_path_poll_await(comm->up[0]);
	else
		grants_update(comm);
}

void mesh_receive_resume(struct mesh_waiter *waiter)
{
	struct mesh_comm *comm = mesh_path_of_waiter(waiter)->comm;

	mesh_comm_lock(comm);
	grants_update(comm);
	mesh_comm_unlock(comm);
}

/* ---- small messages ---------------------------------------------------------------------- */

MESH_HOLDS(comm)
MESH_COLD static void overflow(struct mesh_comm *comm, const struct mesh_request *request,
			       uint64_t size)
{
	char why[160];

	snprintf(why, sizeof(why),
		 "message %u of %llu bytes is larger than the receive posted for "
		 "it, %zu bytes",
		 request->seq, (unsigned long long)size, request->size);
	mesh_comm_fail(comm, -EMSGSIZE, false, why);
}

MESH_HOLDS(comm)
static void receive_done(struct mesh_request *request)
{
	struct mesh_comm *comm = request->comm;

	mesh_request_state_set(request, MESH_REQUEST_DONE);
	if (!request->receive.granted)
		return;
	comm->receive.granted--;
	if (comm->receive.next_grant != comm->next_seq)
		grants_update(comm);
}

MESH_HOLDS(comm)
static void data_place(struct mesh_comm *comm, struct mesh_request *request, const void *data,
		       size_t size)
{
	if (size > request->size) {
		overflow(comm, request, size);
		return;
	}
	mesh_place(request->data, data, size);
	request->size = size;
	receive_done(request);
}

/* Keeps the bytes of a message whose receive is not posted yet. */
MESH_HOLDS(comm)
__attribute__((noinline)) static void early_keep(struct mesh_comm *comm, uint32_t seq,
						 const void *data, uint32_t size)
{
	struct mesh_receive_side *receive = &comm->receive;
	size_t room = comm->paths[0].payload_max;
	struct mesh_early *early = &receive->early[seq % MESH_EAGER_WINDOW];

	if (early->full || !mesh_seq_before(seq, comm->next_seq + MESH_EAGER_WINDOW)) {
		mesh_comm_fail(comm, -EPROTO, false, "the peer sent more than it was allowed to");
		return;
	}
	if (!receive->early_data)
		receive->early_data = malloc(room * MESH_EAGER_WINDOW);
	if (!receive->early_data) {
		mesh_comm_fail(comm, -ENOMEM, false, "no memory for early messages");
		return;
	}
	early->full = true;
	early->seq = seq;
	early->size = size;
	early->data = receive->early_data + room * (seq % MESH_EAGER_WINDOW);
	memcpy(early->data, data, size);
}

static bool early_is_here(const struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_early *early = &comm->receive.early[seq % MESH_EAGER_WINDOW];

	return early->full && early->seq == seq;
}

/* False for a small message that is here already: a sender in doubt sends it again. */
MESH_HOLDS(comm)
static bool data_is_new(struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_request *request = mesh_comm_request(comm, seq);

	if (!mesh_seq_before(seq, comm->next_seq))
		return !early_is_here(comm, seq);
	return request->seq == seq && request->state == MESH_REQUEST_WAITING;
}

MESH_HOLDS(comm)
static void data_arrived(struct mesh_path *path, const struct mesh_message_header *header,
			 const void *payload)
{
	struct mesh_comm *comm = path->comm;
	struct mesh_receive_side *receive = &comm->receive;

	mesh_count(&path->counters->messages, 1);
	mesh_count(&path->counters->small, 1);
	mesh_count(&path->counters->bytes, header->length);
	/* NCCL may use the memory of its receives for something else already. */
	if (comm->closing || !data_is_new(comm, header->seq))
		return;
	/* A message after one for which WANT came may overtake that one, and starts no new run. */
	if (!mesh_seq_before(header->seq, receive->wanted))
		receive->eager_run++;
	if (mesh_seq_before(header->seq, comm->next_seq))
		data_place(comm, mesh_comm_request(comm, header->seq), payload, header->length);
	else
		early_keep(comm, header->seq, payload, header->length);
}

/* ---- large messages ---------------------------------------------------------------------- */

/* The size of a segment is unknown here: each path counts its share of the whole message. */
static void request_count(const struct mesh_request *request)
{
	const struct mesh_request_receive *got = &request->receive;
	struct mesh_comm *comm = request->comm;
	int i;

	if (comm->num_paths == 1) {
		mesh_count(&comm->paths[0].counters->bytes, request->size);
		return;
	}
	for (i = 0; i < comm->num_paths; i++)
		mesh_count(&comm->paths[i].counters->bytes,
			   request->size * got->arrived_on[i] / got->num_arrived);
}

/* @path: of what has just arrived. */
MESH_HOLDS(comm)
static void request_check_complete(struct mesh_request *request, struct mesh_path *path)
{
	const struct mesh_request_receive *got = &request->receive;

	if (!got->num_segments || got->num_arrived != got->num_segments)
		return;
	mesh_count(&path->counters->messages, 1);
	request_count(request);
	request->comm->receive.last_size = request->size;
	receive_done(request);
}

/* A granted receive that is not complete, by the low bits of its sequence number; else NULL. */
static struct mesh_request *request_of_immediate(struct mesh_comm *comm, uint32_t seq_bits)
{
	const uint32_t mask = (1u << MESH_IMMEDIATE_SEQ_BITS) - 1;
	struct mesh_request *request = mesh_comm_request(comm, seq_bits);

	if (!request->receive.granted || (request->seq & mask) != seq_bits)
		return NULL;
	return mesh_request_is_open(request) ? request : NULL;
}

_Static_assert((1u << MESH_IMMEDIATE_SEQ_BITS) % MESH_COMM_REQUESTS == 0,
	       "the low bits of a sequence number find its slot");

/* One segment, as an immediate or a WRITTEN announces it. */
struct segment {
	uint32_t index;
	uint32_t num;  /* segments of the message; 0: not said here */
	uint64_t size; /* bytes of the message; 0: it fills its receive */
};

/* The first segment says how large the message is. False if that ends the comm. */
MESH_HOLDS(comm)
static bool request_begin(struct mesh_request *request, uint64_t size)
{
	struct mesh_request_receive *got = &request->receive;

	if (size > request->size) {
		overflow(request->comm, request, size);
		return false;
	}
	if (size)
		request->size = size;
	memset(got->arrived, 0, sizeof(got->arrived));
	memset(got->arrived_on, 0, sizeof(got->arrived_on));
	mesh_request_state_set(request, MESH_REQUEST_MOVING);
	return true;
}

MESH_HOLDS(comm)
static void segment_arrived(struct mesh_path *path, struct mesh_request *request,
			    const struct segment *segment)
{
	struct mesh_request_receive *got = &request->receive;
	uint64_t *word = &got->arrived[segment->index / 64];
	uint64_t bit = 1ull << segment->index % 64;
	struct mesh_comm *comm = path->comm;

	if (request->state == MESH_REQUEST_WAITING && !request_begin(request, segment->size))
		return;
	if (*word & bit)
		return; /* it came twice */
	*word |= bit;
	got->num_arrived++;
	got->arrived_on[path - comm->paths]++;
	mesh_count(&path->counters->segments, 1);
	if (segment->num)
		got->num_segments = segment->num;
	request_check_complete(request, path);
	if (comm->receive.eager_run) {
		comm->receive.eager_run = 0;
		grants_update(comm); /* grants that were held back */
	}
}

void mesh_receive_written(struct mesh_sink *sink, const struct mesh_immediate *immediate)
{
	const struct segment segment = {
		.index = immediate->segment,
		.num = immediate->last ? immediate->segment + 1 : 0,
		.size = immediate->size,
	};
	struct mesh_path *path = mesh_path_of_sink(sink);
	struct mesh_comm *comm = path->comm;
	struct mesh_request *request;

	mesh_comm_lock(comm);
	comm->receive.writes++;
	request = request_of_immediate(comm, immediate->seq);
	if (request)
		segment_arrived(path, request, &segment);
	mesh_comm_unlock(comm);
}

/* The same without an immediate. No segments: the message does not fit, and nothing is written. */
MESH_HOLDS(comm)
static void written_arrived(struct mesh_path *path, const struct mesh_message_header *header,
			    const void *payload)
{
	struct mesh_comm *comm = path->comm;
	struct mesh_request *request = mesh_comm_request(comm, header->seq);
	struct mesh_message_written written;

	memcpy(&written, payload, sizeof(written));
	if (written.num_segments)
		comm->receive.writes++;
	if (request->seq != header->seq || !request->receive.granted ||
	    !mesh_request_is_open(request))
		return; /* it came twice, or late */
	if (written.num_segments)
		segment_arrived(path, request,
				&(struct segment){
					.index = written.segment,
					.num = written.num_segments,
					.size = header->size,
				});
	else
		overflow(comm, request, header->size);
}

MESH_HOLDS(comm)
static void want_arrived(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_receive_side *receive = &comm->receive;

	if (mesh_seq_before(receive->wanted, seq + 1))
		receive->wanted = seq + 1;
	receive->eager_run = 0;
	grants_update(comm);
}

void mesh_receive_grants_resend(struct mesh_comm *comm, uint32_t seq)
{
	int i;

	mesh_comm_assert_locked(comm);
	for (i = 0; i < MESH_COMM_REQUESTS; i++)
		comm->requests[i].receive.grant_sent = false;
	comm->receive.next_grant = comm->next_seq - MESH_COMM_REQUESTS;
	want_arrived(comm, seq);
}

void mesh_receive_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			  const void *payload)
{
	struct mesh_path *path = mesh_path_of_sink(sink);
	struct mesh_comm *comm = path->comm;

	mesh_comm_lock(comm);
	switch ((enum mesh_message_type)header->type) {
	case MESH_MESSAGE_DATA:
		data_arrived(path, header, payload);
		break;
	case MESH_MESSAGE_WRITTEN:
		written_arrived(path, header, payload);
		break;
	case MESH_MESSAGE_WANT:
		want_arrived(comm, header->seq);
		break;
	default:
		mesh_comm_fail(comm, -EPROTO, false, "the peer sent a message of the wrong kind");
		break;
	}
	mesh_comm_unlock(comm);
}

/* ---- NCCL's call, and closing ------------------------------------------------------------ */

MESH_HOLDS(comm)
static void early_take(struct mesh_comm *comm, struct mesh_request *request)
{
	struct mesh_early *early = &comm->receive.early[request->seq % MESH_EAGER_WINDOW];

	if (!early_is_here(comm, request->seq))
		return;
	early->full = false;
	data_place(comm, request, early->data, early->size);
}

int mesh_comm_receive(struct mesh_comm *comm, void *data, size_t size,
		      struct mesh_registration *registration, struct mesh_request **request)
{
	struct mesh_request *taken = NULL;
	bool in_order;
	int ret;

	ret = mesh_request_check(comm, false, data, size, registration);
	if (ret)
		return ret;
	mesh_comm_lock(comm);
	/*
	 * Messages that arrived before the peer closed or was lost are delivered, up to the first
	 * one that did not arrive.
	 */
	in_order = !comm->error || mesh_receive_has_all(comm, comm->next_seq);
	if (!comm->closing)
		taken = mesh_request_take(comm, data, size, registration);
	*request = taken;
	if (!taken) {
		ret = comm->error;
		goto unlock;
	}
	if (in_order)
		early_take(comm, taken);
	grants_update_soon(comm);
unlock:
	mesh_comm_unlock(comm);
	return ret;
}

bool mesh_receive_has_all(struct mesh_comm *comm, uint32_t count)
{
	const struct mesh_request *request;
	uint32_t seq;

	mesh_comm_assert_locked(comm);
	for (seq = comm->next_seq - MESH_COMM_REQUESTS; mesh_seq_before(seq, count); seq++) {
		if (mesh_seq_before(seq, comm->next_seq)) {
			request = mesh_comm_request(comm, seq);
			if (request->seq == seq && mesh_request_is_open(request))
				return false;
			continue;
		}
		if (!early_is_here(comm, seq))
			return false;
	}
	return true;
}

bool mesh_receive_has_early(const struct mesh_comm *comm)
{
	/* Of a large message only the request for its grant has arrived. */
	return comm->receive.early_data || comm->receive.wanted;
}

bool mesh_receive_is_granted(const struct mesh_comm *comm)
{
	int i;

	for (i = 0; i < MESH_COMM_REQUESTS; i++) {
		const struct mesh_request *request = &comm->requests[i];

		if (request->receive.granted && mesh_request_is_open(request))
			return true;
	}
	return false;
}
