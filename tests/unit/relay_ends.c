/* SPDX-License-Identifier: Apache-2.0 */
/* relay_ends.c - the two ends of circuits through a chain of relays, as a model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "wire/immediate.h"

#include "relay_ends.h"
#include "unit.h"

#define IN_FLIGHT 32
#define EAGER_CREDIT 48
#define COMM_KEY(i) (50 + (uint64_t)(i))
/* What the ends call a circuit. */
#define CONNECTOR_ID(i) (0x1000u + (uint32_t)(i))
#define LISTENER_ID(i) (0x2000u + (uint32_t)(i))
#define CONNECTOR_TOKEN 0xc0ffee
#define LISTENER_TOKEN 0xdecade

struct ends ends;
static struct mesh_mr *memory_mrs[2]; /* of each end */
static uint8_t *source;		      /* what segments are written from: each its own bytes */

struct chain_end *connector_end(const struct circuit *circuit)
{
	return chain_end_of(circuit->from, circuit->to);
}

struct chain_end *listener_end(const struct circuit *circuit)
{
	return chain_end_of(circuit->to, circuit->from);
}

static size_t segment_size(const struct circuit *circuit, int segment)
{
	static const size_t sizes[] = {1, 100, 16 << 10, (16 << 10) + 1, SEGMENT_MAX};

	return sizes[(circuit->number * 7 + segment) % 5];
}

static uint8_t *segment_source(const struct circuit *circuit, int segment)
{
	return source + (size_t)(circuit->number * SEGMENTS + segment) * SEGMENT_MAX;
}

/* True if the message fills its grant. */
static bool is_full(const struct circuit *circuit, int segment)
{
	return (circuit->number + segment) % 3 != 0;
}

/* Bytes of the first piece of a segment that is cut in two; 0: it is not. */
static size_t half_size(const struct circuit *circuit, int segment)
{
	size_t size = ends.cuts ? segment_size(circuit, segment) : 0;

	return (circuit->number + segment) % 4 ? 0 : size / 2;
}

/* ---- the connecting end -------------------------------------------------------------------- */

static void segment_finish(struct circuit *circuit, struct mesh_hop_segment *done)
{
	struct segment *segment = done->owner;
	int error = mesh_hop_finish(done);

	bool half = segment->cut && !segment->half_arrived;

	circuit->in_flight--;
	segment->half_arrived |= half;
	assert_true(half || (segment->started && !segment->finished));
	segment->finished = !half;
	assert_true(error ? circuit->lost : circuit->liar || segment->placed || half);
	ends.finished += !error && !half;
}

static struct circuit *circuit_of_hop(struct mesh_hop *hop)
{
	return mesh_container_of(hop, struct circuit, hop);
}

static void hop_written(struct mesh_hop_segment *segment, int error)
{
	struct circuit *circuit = circuit_of_hop(segment->hop);
	struct mesh_buffer *unsent;

	circuit->lost |= error; /* as a path that is suspected */
	if (mesh_hop_written(segment, error, &unsent))
		segment_finish(circuit, segment);
	if (unsent)
		unsent->op.complete(&unsent->op, error);
}

void circuit_abandon(struct circuit *circuit)
{
	struct mesh_hop_segment *segment;

	circuit->lost = true;
	while (circuit->has_hop && (segment = mesh_hop_abandon(&circuit->hop, -ECONNRESET)))
		segment_finish(circuit, segment);
}

void open_send(struct circuit *circuit)
{
	int i, step = circuit->to > circuit->from ? 1 : -1;
	struct mesh_handle handle = {
		.node_id = CHAIN_NODE_ID(circuit->to),
		.cookie = 7 + (uint64_t)circuit->number,
		.listen_id = 1,
		.control_port = 1,
		.num_endpoints = 1,
		.total_nics = 1,
	};
	struct mesh_frame frame;

	mesh_addr_parse("10.7.0.2/24", &handle.endpoints[0].addr);
	handle.endpoints[0].provider = MESH_PROVIDER_TCP;
	strcpy(handle.node, "target");
	memset(&frame, 0, sizeof(frame));
	mesh_handle_encode(&handle, frame.open.handle);
	frame.open.comm_key = COMM_KEY(circuit->number);
	frame.open.comm = CONNECTOR_ID(circuit->number);
	frame.open.token = CONNECTOR_TOKEN;
	frame.open.num_paths = 1;
	frame.open.num_relays = (uint8_t)(chain.num_nodes - 2);
	for (i = 0; i < frame.open.num_relays; i++)
		frame.open.route[i] = CHAIN_NODE_ID(circuit->from + step * (i + 1));
	strcpy(frame.open.origin, "origin");
	chain_frame_send(connector_end(circuit), true, &frame, MESH_FRAME_OPEN);
	circuit->phase = ASKED;
}

static void circuit_send(const struct circuit *circuit, enum mesh_circuit_event event,
			 uint32_t writes)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.circuit.to_comm = circuit->relay_id;
	frame.circuit.event = event;
	frame.circuit.writes = writes;
	chain_frame_send(connector_end(circuit), true, &frame, MESH_FRAME_CIRCUIT);
}

void circuit_end(struct circuit *circuit, enum mesh_circuit_event event)
{
	if (circuit->phase == OPEN && !circuit->shut)
		circuit_send(circuit, event, circuit->hop.writes);
	circuit->shut = true;
	circuit->phase = ENDED;
	/* A comm that is freed has nothing in flight, unless the path is lost. */
	circuit_abandon(circuit);
}

static void opened_came(struct circuit *circuit, struct chain_end *end,
			const struct mesh_frame_opened *opened)
{
	struct mesh_frame frame;

	if (circuit->phase != ASKED || circuit->has_hop) { /* mesh_circuit_opened_in_vain() */
		memset(&frame, 0, sizeof(frame));
		frame.circuit.to_comm = opened->comm;
		frame.circuit.event = MESH_CIRCUIT_WITHDRAWN;
		chain_frame_send(end, true, &frame, MESH_FRAME_CIRCUIT);
		return;
	}
	circuit->phase = OPEN;
	circuit->relay_id = opened->comm;
	circuit->relay_token = opened->token;
	circuit->hop.domain = end->domain;
	circuit->hop.remote = end->remote;
	circuit->hop.written = hop_written;
	circuit->has_hop = true;
	assert_int_equal(mesh_hop_open(&circuit->hop, opened), 0);
}

static struct mesh_message_header header_to_relay(const struct circuit *circuit,
						  enum mesh_message_type type, uint32_t length)
{
	return (struct mesh_message_header){
		.type = (uint8_t)type,
		.length = length,
		.comm = circuit->relay_id,
		.token = circuit->relay_token,
	};
}

void data_send(struct circuit *circuit)
{
	uint32_t payload[] = {(uint32_t)circuit->number, circuit->data_sent};
	struct mesh_message_header header =
		header_to_relay(circuit, MESH_MESSAGE_DATA, sizeof(payload));

	if (circuit->data_sent == DATA || circuit->data_sent - circuit->data_seen >= EAGER_CREDIT)
		return;
	header.seq = circuit->data_sent++;
	chain_message_send(connector_end(circuit), &header, payload);
}

/* RELAYED as path_relayed.c has it prepared. */
static struct mesh_buffer *relayed_prepare(const struct circuit *circuit, int segment, bool more)
{
	struct chain_end *end = connector_end(circuit);
	struct mesh_buffer *buffer = mesh_remote_buffer_get(end->domain, end->remote);
	const struct mesh_message_relayed relayed = {
		.num_segments = 1,
		.full = is_full(circuit, segment),
		.more = more,
	};
	struct mesh_message_header header =
		header_to_relay(circuit, MESH_MESSAGE_RELAYED, sizeof(relayed));

	if (!buffer)
		return NULL;
	header.seq = (uint32_t)segment;
	header.size = (uint32_t)segment_size(circuit, segment);
	memcpy(buffer->bytes, &header, sizeof(header));
	memcpy(buffer->bytes + sizeof(header), &relayed, sizeof(relayed));
	buffer->size = sizeof(header) + sizeof(relayed);
	return buffer;
}

/* What of the segment is to be written now: all of it, or a piece. */
static struct mesh_write write_make(const struct circuit *circuit, int segment)
{
	size_t half = half_size(circuit, segment);
	size_t from = circuit->segments[segment].cut ? half : 0;

	return (struct mesh_write){
		.data = segment_source(circuit, segment) + from,
		.size = half && !from ? half : segment_size(circuit, segment) - from,
		.mr = memory_mrs[circuit->from > 0],
		.address = (uintptr_t)ends.target[circuit->number][segment] + from,
		.key = MEMORY_KEY(circuit->number),
	};
}

void segment_write(struct circuit *circuit)
{
	struct chain_end *end = connector_end(circuit);
	int number = circuit->started;
	struct segment *segment = &circuit->segments[number];
	struct mesh_write write;
	bool more;

	/* The last piece follows when the first one has arrived. */
	if (number == SEGMENTS || circuit->in_flight == IN_FLIGHT ||
	    (uint32_t)number >= circuit->grants_seen || (segment->cut && !segment->half_arrived))
		return;
	more = half_size(circuit, number) && !segment->cut;
	write = write_make(circuit, number);
	if (mesh_hop_has_room(&circuit->hop, write.size))
		write.behind = relayed_prepare(circuit, number, more);
	if (!write.behind)
		return;
	mesh_domain_lock(end->domain);
	if (mesh_hop_write(&circuit->hop, &write, segment)) {
		write.behind->op.complete(&write.behind->op, -ECONNRESET);
	} else {
		segment->cut |= more;
		segment->started = !more;
		circuit->started += !more;
		circuit->in_flight++;
	}
	mesh_domain_unlock(end->domain);
}

static void arrived_came(struct circuit *circuit, const void *payload)
{
	struct mesh_message_arrived arrived;
	struct mesh_hop_segment *segment;
	unsigned int i;

	memcpy(&arrived, payload, sizeof(arrived));
	ends.grown += circuit->hop.limit < arrived.limit;
	mesh_hop_limit_raise(&circuit->hop, &arrived);
	for (i = 0; i < MESH_GRANULES; i++) {
		segment = arrived.granules >> i & 1 ? mesh_hop_arrived(&circuit->hop, i) : NULL;
		if (segment)
			segment_finish(circuit, segment);
	}
}

static void connector_message(struct circuit *circuit, const struct mesh_message_header *header,
			      const void *payload)
{
	struct mesh_grant grant;

	if (circuit->phase == ENDED)
		return; /* as a message to a comm that is closed; a grant may overtake OPENED */
	assert_int_equal(header->token, CONNECTOR_TOKEN);
	switch ((enum mesh_message_type)header->type) {
	case MESH_MESSAGE_ARRIVED:
		arrived_came(circuit, payload);
		break;
	case MESH_MESSAGE_GRANT:
		memcpy(&grant, payload, mesh_grant_size(1));
		if (circuit->liar)
			break;
		assert_int_equal(grant.targets[0].key, MEMORY_KEY(circuit->number));
		assert_int_equal(header->seq, circuit->grants_seen);
		circuit->grants_seen++;
		break;
	default:
		assert_true(circuit->liar);
		break;
	}
}

/* ---- the listening end --------------------------------------------------------------------- */

static void connect_came(struct circuit *circuit, const struct mesh_frame_connect *connect)
{
	/* OPEN that came twice has a second circuit, which the relays give up by themselves. */
	if (circuit->asked)
		return;
	circuit->asked = true;
	circuit->last_id = connect->comm;
	circuit->last_token = connect->token;
}

void connect_answer(struct circuit *circuit)
{
	struct mesh_frame frame;

	if (!circuit->asked || circuit->accepted || circuit->ended)
		return;
	memset(&frame, 0, sizeof(frame));
	if (chain_roll(12)) {
		frame.accept.to_comm = circuit->last_id;
		frame.accept.comm = LISTENER_ID(circuit->number);
		frame.accept.token = LISTENER_TOKEN;
		circuit->accepted = true;
		chain_frame_send(listener_end(circuit), false, &frame, MESH_FRAME_ACCEPT);
	} else {
		frame.refuse.refusal = MESH_REFUSAL_RESOURCES;
		frame.refuse.comm = circuit->last_id;
		circuit->ended = true;
		chain_frame_send(listener_end(circuit), false, &frame, MESH_FRAME_REFUSE);
	}
}

void grant_send(struct circuit *circuit)
{
	struct mesh_grant grant = {.size = SEGMENT_MAX};
	struct mesh_message_header header = {
		.type = MESH_MESSAGE_GRANT,
		.count = 1,
		.paths = 1,
		.length = (uint32_t)mesh_grant_size(1),
		.comm = circuit->last_id,
		.token = circuit->last_token,
		.seq = circuit->granted,
	};

	if (circuit->granted == SEGMENTS)
		return;
	grant.targets[0].address = (uintptr_t)ends.target[circuit->number][circuit->granted];
	grant.targets[0].key = MEMORY_KEY(circuit->number);
	circuit->granted++;
	chain_message_send(listener_end(circuit), &header, &grant);
}

void lost_send(struct circuit *circuit)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.circuit.to_comm = circuit->last_id;
	frame.circuit.event = MESH_CIRCUIT_LOST;
	circuit->told = true;
	chain_frame_send(listener_end(circuit), false, &frame, MESH_FRAME_CIRCUIT);
}

static void segment_arrived(struct circuit *circuit, uint32_t seq)
{
	struct segment *segment = &circuit->segments[seq % SEGMENTS];

	if (circuit->liar)
		return;
	assert_true(seq < SEGMENTS && segment->placed && !segment->arrived);
	segment->arrived = true;
}

/* Places what came; false if more of the segment follows, and nothing announces this piece. */
static bool piece_came(struct circuit *circuit, int seq, size_t offset,
		       const struct chain_post *write, const uint8_t *bytes)
{
	struct segment *segment = &circuit->segments[seq];
	size_t half = half_size(circuit, seq);
	bool more = half && !offset;

	assert_int_equal(offset, segment->half_placed ? half : 0);
	assert_int_equal(write->size, more ? half : segment_size(circuit, seq) - offset);
	assert_memory_equal(bytes, segment_source(circuit, seq) + offset, write->size);
	assert_false(segment->placed || (more && write->flags & FI_REMOTE_CQ_DATA));
	segment->half_placed = more;
	segment->placed = !more;
	return !more;
}

/* A write names memory of one circuit, and its immediate names the same one. */
static void write_came(struct chain_end *end, const struct chain_post *write, const uint8_t *bytes)
{
	struct circuit *circuit;
	size_t place;
	int seq;

	if (write->key < MEMORY_KEY(0) || write->key >= MEMORY_KEY(CIRCUITS)) {
		assert_true(ends.lies);
		return;
	}
	circuit = &ends.circuits[write->key - MEMORY_KEY(0)];
	assert_int_equal(circuit->to, end->node);
	assert_false(circuit->drained);
	place = write->address - (uintptr_t)ends.target[circuit->number];
	seq = (int)(place / SEGMENT_MAX);
	if (seq >= SEGMENTS || circuit->liar) {
		assert_true(circuit->liar);
		return;
	}
	if (!piece_came(circuit, seq, place % SEGMENT_MAX, write, bytes))
		return;
	if (write->flags & FI_REMOTE_CQ_DATA) {
		struct mesh_immediate immediate = mesh_immediate_decode(write->data);

		assert_int_equal(immediate.comm,
				 LISTENER_ID(circuit->number) & (MESH_COMM_IDS - 1));
		assert_int_equal(immediate.seq, seq);
		segment_arrived(circuit, (uint32_t)seq);
	}
}

static void listener_message(struct circuit *circuit, const struct mesh_message_header *header,
			     const void *payload)
{
	uint32_t data[2];

	if (circuit->liar)
		return;
	assert_int_equal(header->token, LISTENER_TOKEN);
	if (header->type == MESH_MESSAGE_WRITTEN) {
		segment_arrived(circuit, header->seq);
		return;
	}
	assert_int_equal(header->type, MESH_MESSAGE_DATA);
	memcpy(data, payload, sizeof(data));
	assert_int_equal(data[0], circuit->number);
	assert_int_equal(data[1], circuit->data_seen);
	circuit->data_seen++;
}

/* ---- what comes to the ends ---------------------------------------------------------------- */

static void message_came(struct chain_end *end, const struct mesh_message_header *header,
			 const void *payload)
{
	bool connects = header->comm < LISTENER_ID(0);
	uint32_t number = header->comm - (connects ? CONNECTOR_ID(0) : LISTENER_ID(0));
	struct circuit *circuit = &ends.circuits[number];

	assert_true(number < CIRCUITS);
	assert_int_equal(end->node, connects ? circuit->from : circuit->to);
	if (connects)
		connector_message(circuit, header, payload);
	else
		listener_message(circuit, header, payload);
}

/* The relay that reports a loss names both nodes of the hop, also by their ids. */
static void loss_check(const struct mesh_frame_circuit *event)
{
	if (!event->by[0] || event->lost[0] == '?' || ends.lies)
		return;
	assert_int_equal(event->by_node, CHAIN_NODE_ID(event->by[0] - 'a'));
	assert_int_equal(event->lost_node, CHAIN_NODE_ID(event->lost[0] - 'a'));
}

static void circuit_came(struct circuit *circuit, bool out, const struct mesh_frame_circuit *event)
{
	if (event->event == MESH_CIRCUIT_LOST)
		loss_check(event);
	if (event->event == MESH_CIRCUIT_LEFT || event->event == MESH_CIRCUIT_ANSWER) {
		assert_true(circuit->liar); /* who has sent LEFT, or ASK */
		return;
	}
	if (out) {
		assert_true(event->event == MESH_CIRCUIT_LOST || circuit->liar);
		ends.broken++;
		circuit_abandon(circuit);
	} else if (event->event == MESH_CIRCUIT_DRAINED) {
		circuit->drained = !event->unclean;
		ends.drained++;
	} else {
		assert_int_equal(event->event, MESH_CIRCUIT_LOST);
		circuit->ended = circuit->told = true;
	}
}

/* @out: the answer of a relay to what a connecting end has asked. */
static void frame_came(struct chain_end *end, bool out, const struct mesh_frame *frame)
{
	uint32_t id = frame->to_comm, number;

	if (frame->header.type == MESH_FRAME_CONNECT) {
		connect_came(&ends.circuits[frame->connect.comm_key - COMM_KEY(0)],
			     &frame->connect);
		return;
	}
	if (frame->header.type == MESH_FRAME_WITHDRAW) {
		ends.circuits[frame->withdraw.comm_key - COMM_KEY(0)].ended = true;
		return;
	}
	if (frame->header.type == MESH_FRAME_REFUSE)
		id = frame->refuse.comm;
	number = id - (out ? CONNECTOR_ID(0) : LISTENER_ID(0));
	assert_true(number < CIRCUITS);
	if (frame->header.type == MESH_FRAME_OPENED) {
		opened_came(&ends.circuits[number], end, &frame->opened);
	} else if (frame->header.type == MESH_FRAME_CIRCUIT) {
		circuit_came(&ends.circuits[number], out, &frame->circuit);
	} else {
		assert_int_equal(frame->header.type, MESH_FRAME_REFUSE);
		ends.refused++;
		if (ends.circuits[number].phase == ASKED)
			ends.circuits[number].phase = ENDED;
	}
}

/* ---- a run --------------------------------------------------------------------------------- */

void ends_open(void)
{
	int i, last = chain.num_nodes - 1;

	memset(ends.circuits, 0, sizeof(ends.circuits));
	ends.grown = ends.finished = ends.drained = ends.refused = ends.broken = 0;
	ends.losses = chain_roll(2);
	ends.lies = !chain_roll(3);
	chain.hostile = ends.lies;
	chain.frame_came = frame_came;
	chain.message_came = message_came;
	chain.write_came = write_came;
	for (i = 0; i < CIRCUITS; i++) {
		ends.circuits[i].number = i;
		ends.circuits[i].idle = !chain_roll(4);
		ends.circuits[i].from = chain_roll(2) ? last : 0;
		ends.circuits[i].to = last - ends.circuits[i].from;
		ends.circuits[i].liar = ends.lies && !i;
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(mesh_mr_open(i ? chain.nodes[last].left->domain
						: chain.nodes[0].right->domain,
					      source, CIRCUITS * SEGMENTS * SEGMENT_MAX,
					      &memory_mrs[i]),
				 0);
}

void ends_close(void)
{
	int i;

	for (i = 0; i < CIRCUITS; i++) {
		struct circuit *circuit = &ends.circuits[i];

		assert_int_equal(circuit->in_flight, 0);
		assert_true(!circuit->has_hop || !circuit->hop.area.used);
		/* A listener whose circuit never came about learns it: it looks like one in use. */
		if (circuit->accepted && !circuit->relay_id && !circuit->liar &&
		    !listener_end(circuit)->broken)
			assert_true(circuit->told && circuit->drained);
		mesh_hop_close(&circuit->hop);
	}
	for (i = 0; i < 2; i++)
		mesh_mr_close(memory_mrs[i]);
}

void ends_source_open(void)
{
	size_t i, size = CIRCUITS * SEGMENTS * SEGMENT_MAX;

	source = malloc(size);
	assert_non_null(source);
	for (i = 0; i < size; i++)
		source[i] = (uint8_t)(i / SEGMENT_MAX * 31 + i * 7 + (i >> 8));
}

void ends_source_close(void)
{
	free(source);
}
