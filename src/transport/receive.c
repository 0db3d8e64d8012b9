/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receive.c - the receiving half of the protocol: large messages are written to memory that a grant
 * names (grants.c); small ones arrive without a grant, sometimes before their receive is posted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/memory.h"
#include "control/process.h"
#include "transport/data.h"
#include "wire/message.h"

void mesh_receive_resume(struct mesh_waiter *waiter)
{
	struct mesh_comm *comm = mesh_path_of_waiter(waiter)->comm;

	mesh_comm_lock(comm);
	mesh_grants_update(comm);
	mesh_ack_resume(comm);
	mesh_comm_unlock(comm);
}

/* ---- small messages ---------------------------------------------------------------------- */

MESH_HOLDS(comm)
static void receive_done(struct mesh_request *request)
{
	struct mesh_comm *comm = request->comm;

	mesh_request_state_set(request, MESH_REQUEST_DONE);
	if (request->receive.grant) {
		comm->receive.granted--;
		if (comm->receive.next_grant != comm->next_seq)
			mesh_grants_update(comm);
	}
	if (mesh_ack_is_wanted(comm))
		mesh_ack_update(comm);
}

MESH_HOLDS(comm)
static void data_place(struct mesh_request *request, const void *data, size_t size)
{
	if (size > request->size) {
		mesh_request_overflow(request, size);
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
	/* What we have told any peer; the comm's own limit may be smaller at one end. */
	size_t room = comm->process->config.eager_limit_bytes;
	struct mesh_early *early = &receive->early[seq % MESH_EAGER_WINDOW];

	if (size > room || early->data ||
	    !mesh_seq_before(seq, comm->next_seq + MESH_EAGER_WINDOW)) {
		mesh_comm_fail(comm, -EPROTO, false, "the peer sent more than it was allowed to");
		return;
	}
	if (!receive->early_data)
		receive->early_data = malloc(room * MESH_EAGER_WINDOW + 1); /* room may be 0 */
	if (!receive->early_data) {
		mesh_comm_fail(comm, -ENOMEM, false, "no memory for early messages");
		return;
	}
	early->seq = seq;
	early->size = size;
	early->data = receive->early_data + room * (seq % MESH_EAGER_WINDOW);
	mesh_bytes_copy(early->data, data, size);
}

static bool early_is_here(const struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_early *early = &comm->receive.early[seq % MESH_EAGER_WINDOW];

	return early->data && early->seq == seq;
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
		data_place(mesh_comm_request(comm, header->seq), payload, header->length);
	else
		early_keep(comm, header->seq, payload, header->length);
}

/* ---- large messages ---------------------------------------------------------------------- */

/*
 * All of a message is here. @path: of what arrived last; @flag: what its writes have left out, or 0
 */
MESH_HOLDS(comm)
static void message_done(struct mesh_request *request, struct mesh_path *path, uint64_t flag)
{
	/* NCCL may use the memory of a comm that it closes for something else already. */
	if (flag && !request->comm->closing)
		mesh_flag_store(request->data, request->size, flag);
	mesh_count(&path->counters->messages, 1);
	request->comm->receive.last_size = request->size;
	receive_done(request);
}

/* The size of a segment is unknown here: each path counts its share of the whole message. */
MESH_HOLDS(comm)
static void shares_count(const struct mesh_request *request)
{
	const struct mesh_request_receive *got = &request->receive;
	struct mesh_comm *comm = request->comm;
	int i;

	for (i = 0; i < comm->num_paths; i++)
		mesh_count(&comm->paths[i].counters->bytes,
			   request->size * got->marks->arrived_on[i] / got->num_arrived);
}

/* A granted receive that is not complete, by the low bits of its sequence number; else NULL. */
static struct mesh_request *request_of_immediate(struct mesh_comm *comm, uint32_t seq_bits)
{
	const uint32_t mask = (1u << MESH_IMMEDIATE_SEQ_BITS) - 1;
	struct mesh_request *request = mesh_comm_request(comm, seq_bits);

	if (!request->receive.grant || (request->seq & mask) != seq_bits)
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
	uint64_t flag; /* of its lines, which the write has left out; 0: it has not */
};

/* The first segment says how large the message is. False if that ends the comm. */
MESH_HOLDS(comm)
static bool size_learn(struct mesh_request *request, uint64_t size)
{
	if (size > request->size) {
		mesh_request_overflow(request, size);
		return false;
	}
	if (size)
		request->size = size;
	return true;
}

/* Gives a message that comes in several segments its marks. False if that ends the comm. */
MESH_HOLDS(comm)
static bool marks_begin(struct mesh_request *request)
{
	struct mesh_comm *comm = request->comm;
	struct mesh_receive_side *receive = &comm->receive;

	if (!receive->marks)
		receive->marks = malloc(MESH_COMM_REQUESTS * sizeof(*receive->marks));
	if (!receive->marks) {
		mesh_comm_fail(comm, -ENOMEM, false, "no memory for segments");
		return false;
	}
	request->receive.marks = &receive->marks[request->seq % MESH_COMM_REQUESTS];
	memset(request->receive.marks, 0, sizeof(*receive->marks));
	mesh_request_state_set(request, MESH_REQUEST_MOVING);
	return true;
}

/* One of several. */
MESH_HOLDS(comm)
static void segment_mark(struct mesh_path *path, struct mesh_request *request,
			 const struct segment *segment)
{
	struct mesh_request_receive *got = &request->receive;
	uint64_t *word = &got->marks->arrived[segment->index / 64];
	uint64_t bit = 1ull << segment->index % 64;

	if (*word & bit)
		return; /* it came twice */
	*word |= bit;
	got->num_arrived++;
	got->marks->arrived_on[path - path->comm->paths]++;
	mesh_count(&path->counters->segments, 1);
	if (segment->num)
		got->num_segments = segment->num;
	if (segment->flag)
		got->marks->flag = segment->flag;
	if (got->num_arrived != got->num_segments)
		return;
	shares_count(request);
	message_done(request, path, got->marks->flag);
}

MESH_HOLDS(comm)
static void segment_arrived(struct mesh_path *path, struct mesh_request *request,
			    const struct segment *segment)
{
	bool waiting = request->state == MESH_REQUEST_WAITING;
	struct mesh_comm *comm = path->comm;

	if (waiting && !size_learn(request, segment->size))
		return;
	if (waiting && segment->num == 1) {
		mesh_count(&path->counters->segments, 1);
		mesh_count(&path->counters->bytes, request->size);
		mesh_ack_want(request, path);
		message_done(request, path, segment->flag);
	} else {
		if (waiting && !marks_begin(request))
			return;
		segment_mark(path, request, segment);
	}
	if (comm->receive.eager_run) {
		comm->receive.eager_run = 0;
		mesh_grants_update(comm); /* grants that were held back */
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
	if (request->seq != header->seq || !request->receive.grant ||
	    !mesh_request_is_open(request))
		return; /* it came twice, or late */
	if (written.num_segments)
		segment_arrived(path, request,
				&(struct segment){
					.index = written.segment,
					.num = written.num_segments,
					.size = header->size,
					.flag = written.flag,
				});
	else
		mesh_request_overflow(request, header->size);
}

MESH_HOLDS(comm)
static void want_arrived(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_receive_side *receive = &comm->receive;

	if (mesh_seq_before(receive->wanted, seq + 1))
		receive->wanted = seq + 1;
	receive->eager_run = 0;
	mesh_grants_update(comm);
}

void mesh_receive_grants_resend(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_request *request;

	mesh_comm_assert_locked(comm);
	for (request = comm->requests; request < comm->requests + MESH_COMM_REQUESTS; request++) {
		if (request->receive.grant)
			request->receive.grant = MESH_GRANT_AGAIN;
	}
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
	data_place(request, early->data, early->size);
	early->data = NULL;
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
		taken = mesh_request_take(comm, false, data, size, registration);
	*request = taken;
	if (!taken) {
		ret = comm->error;
		goto unlock;
	}
	if (in_order)
		early_take(comm, taken);
	mesh_grants_update_soon(comm);
unlock:
	mesh_comm_unlock(comm);
	return ret;
}

bool mesh_receive_has_all(struct mesh_comm *comm, uint32_t count)
{
	uint32_t seq;

	for (seq = mesh_requests_done(comm); mesh_seq_before(seq, count); seq++) {
		if (mesh_seq_before(seq, comm->next_seq) || !early_is_here(comm, seq))
			return false;
	}
	return true;
}

bool mesh_receive_has_early(const struct mesh_comm *comm)
{
	/* Of a large message only the request for its grant has arrived. */
	return comm->receive.early_data || comm->receive.wanted;
}
