/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.c - what a circuit forwards. Everything here runs in the thread that polls a NIC, with
 * that NIC's domain->lock held: of the relay's thread, or of NCCL's if it polls at that time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "fabric/flow.h"
#include "fabric/remote.h"
#include "relay/circuit.h"
#include "wire/message.h"

/* Breaks the circuit, unless it is broken. @side: as circuit->failed. */
MESH_HOLDS(circuit)
static void circuit_fail(const struct mesh_circuit_side *side, int error)
{
	struct mesh_circuit *circuit = side->circuit;

	mesh_circuit_assert_locked(circuit);
	if (circuit->error)
		return;
	circuit->error = error;
	circuit->failed = side;
	mesh_relay_wake(circuit->relay);
}

/* ---- messages ------------------------------------------------------------------------------ */

MESH_HOLDS(domain)
static void message_sent(struct mesh_buffer *buffer, int error)
{
	struct mesh_circuit_side *to = buffer->owner;
	struct mesh_circuit *circuit = to->circuit;

	mesh_circuit_lock(circuit);
	to->unfinished--;
	if (error)
		circuit_fail(to, error);
	if (circuit->error && !mesh_circuit_unfinished(circuit))
		mesh_relay_wake(circuit->relay);
	mesh_circuit_unlock(circuit);
}

/* Each copy of what NCCL sends costs the CPU, and is counted. Segments are not copied. */
MESH_HOLDS(circuit)
static void payload_copy(struct mesh_circuit *circuit, const struct mesh_message_header *header,
			 const void *payload, uint8_t *target)
{
	mesh_circuit_assert_locked(circuit);
	if (!header->length)
		return;
	mesh_bytes_copy(target, payload, header->length);
	if (header->type == MESH_MESSAGE_DATA)
		mesh_count(&circuit->counters->copied, header->length);
}

/* A buffer with the message; NULL if none is free: the next poll calls the side's waiter. */
MESH_HOLDS(circuit)
static struct mesh_buffer *message_prepare(struct mesh_circuit_side *to,
					   const struct mesh_message_header *header,
					   const void *payload)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(to->domain, to->remote);

	if (!buffer) {
		mesh_domain_wait(to->domain, &to->waiter);
		return NULL;
	}
	memcpy(buffer->bytes, header, sizeof(*header));
	payload_copy(to->circuit, header, payload, buffer->bytes + sizeof(*header));
	buffer->size = sizeof(*header) + header->length;
	buffer->owner = to;
	buffer->about = NULL;
	buffer->sent = message_sent;
	return buffer;
}

/* Sends a message that has the ids of the side that it goes to. False: no buffer is free. */
MESH_HOLDS(circuit)
static bool message_send(struct mesh_circuit_side *to, const struct mesh_message_header *header,
			 const void *payload)
{
	struct mesh_buffer *buffer;

	mesh_circuit_assert_locked(to->circuit);
	buffer = message_prepare(to, header, payload);
	if (!buffer)
		return false;
	to->unfinished++;
	mesh_remote_send(buffer);
	return true;
}

MESH_HOLDS(circuit)
static void message_keep(struct mesh_circuit_side *to, const struct mesh_message_header *header,
			 const void *payload)
{
	struct mesh_passing *passing;

	mesh_circuit_assert_locked(to->circuit);
	if (to->num_passing >= MESH_PASSING_MAX) {
		circuit_fail(to->other, -EPROTO);
		return;
	}
	passing = malloc(sizeof(*passing) + header->length);
	if (!passing) {
		circuit_fail(to, -ENOMEM);
		return;
	}
	passing->header = *header;
	payload_copy(to->circuit, header, payload, passing->payload);
	TAILQ_INSERT_TAIL(&to->passing, passing, entry);
	to->num_passing++;
}

MESH_HOLDS(circuit)
static void message_pass(struct mesh_circuit_side *to, const struct mesh_message_header *header,
			 const void *payload)
{
	struct mesh_message_header passed = *header;

	passed.comm = to->remote_id;
	passed.token = to->remote_token;
	mesh_count(&to->circuit->counters->messages, 1);
	if (header->length > to->domain->payload_max)
		circuit_fail(to, -EMSGSIZE);
	else if (!to->known || to->num_passing || !message_send(to, &passed, payload))
		message_keep(to, &passed, payload);
}

/* Sends what was kept. False if some of it still waits. */
MESH_HOLDS(circuit)
static bool messages_push(struct mesh_circuit_side *to)
{
	struct mesh_passing *passing;

	mesh_circuit_assert_locked(to->circuit);
	while ((passing = TAILQ_FIRST(&to->passing))) {
		if (!message_send(to, &passing->header, passing->payload))
			return false;
		TAILQ_REMOVE(&to->passing, passing, entry);
		to->num_passing--;
		free(passing);
	}
	return true;
}

void mesh_circuit_up_begin(struct mesh_circuit *circuit)
{
	mesh_circuit_lock(circuit);
	circuit->up.known = true;
	if (!circuit->error)
		messages_push(&circuit->up);
	mesh_circuit_unlock(circuit);
}

/* ---- segments ------------------------------------------------------------------------------ */

/* Reports upward what has arrived: one message for all of it. */
MESH_HOLDS(circuit)
static void arrived_push(struct mesh_circuit *circuit)
{
	struct mesh_message_arrived payload = {.granules = circuit->arrived};
	const struct mesh_message_header header = {
		.type = MESH_MESSAGE_ARRIVED,
		.length = sizeof(payload),
		.comm = circuit->up.remote_id,
		.token = circuit->up.remote_token,
	};

	if (circuit->arrived && message_send(&circuit->up, &header, &payload))
		circuit->arrived = 0;
}

/* A held segment takes slots, or gives them back. */
MESH_HOLDS(circuit)
static void slots_count(struct mesh_circuit *circuit, const struct mesh_held *held, int sign)
{
	uint64_t slots = (held->what.length + circuit->granule - 1) / circuit->granule;

	mesh_count(&circuit->counters->used, sign > 0 ? slots : -slots);
}

/* The segment is where it goes; its memory is the sender's again. */
MESH_HOLDS(circuit)
static void held_end(struct mesh_held *held, int error)
{
	struct mesh_circuit *circuit = held->circuit;

	held->circuit = NULL;
	circuit->down.unfinished--;
	mesh_count(&circuit->counters->bytes, held->what.length);
	mesh_count(&circuit->counters->segments, 1);
	slots_count(circuit, held, -1);
	mesh_relay_moved(circuit->relay, false);
	if (error) {
		circuit_fail(&circuit->down, error);
		mesh_relay_wake(circuit->relay);
	} else {
		circuit->arrived |= (uint64_t)1 << held->what.granule;
		arrived_push(circuit);
	}
	if (circuit->error && (!mesh_circuit_unfinished(circuit) || !circuit->writing))
		mesh_relay_wake(circuit->relay);
}

void mesh_circuit_abandon(struct mesh_circuit *circuit)
{
	struct mesh_held *held;

	mesh_circuit_assert_locked(circuit);
	while ((held = mesh_hop_abandon(&circuit->hop, -ECONNRESET)))
		held_end(held, -ECONNRESET);
}

static uint64_t immediate_make(const struct mesh_held *held)
{
	const struct mesh_message_relayed *what = &held->what;
	const struct mesh_immediate immediate = {
		.comm = held->circuit->down.remote_id & (MESH_COMM_IDS - 1),
		.seq = held->seq,
		.segment = what->segment,
		.last = what->segment + 1 == what->num_segments,
		.size = held->circuit->down.domain->immediate_bits >= 64 ? held->size : 0,
	};

	return mesh_immediate_encode(&immediate);
}

/* WRITTEN for the receiver, or RELAYED for the next relay. */
MESH_HOLDS(circuit)
static struct mesh_buffer *behind_prepare(const struct mesh_held *held)
{
	struct mesh_circuit *circuit = held->circuit;
	const struct mesh_message_written written = {
		.segment = held->what.segment,
		.num_segments = held->what.num_segments,
		.flag = held->what.flag,
	};
	struct mesh_message_header header = {
		.type = circuit->down.is_relay ? MESH_MESSAGE_RELAYED : MESH_MESSAGE_WRITTEN,
		.length = circuit->down.is_relay ? sizeof(held->what) : sizeof(written),
		.comm = circuit->down.remote_id,
		.token = circuit->down.remote_token,
		.seq = held->seq,
		.size = held->size,
	};

	return message_prepare(&circuit->down, &header,
			       circuit->down.is_relay ? (const void *)&held->what : &written);
}

/* Posts the write of a held segment. Returns 0, -EAGAIN, or another negative errno. */
MESH_HOLDS(circuit)
static int held_post(struct mesh_held *held)
{
	struct mesh_circuit *circuit = held->circuit;
	struct mesh_circuit_side *down = &circuit->down;
	struct mesh_write write = {
		.data = circuit->memory + held->what.granule * circuit->granule,
		.size = held->what.length,
		.mr = circuit->mr_down,
		.address = held->what.address,
		.key = held->what.key,
		.now_ns = mesh_clock_ns(),
	};
	int ret;

	if (!circuit->down.is_relay && held->what.more) {
		write.silent = true;
	} else if (!circuit->down.is_relay && !held->what.flag &&
		   mesh_immediate_suffices(down->domain->immediate_bits, held->what.full)) {
		write.immediate = immediate_make(held);
	} else {
		write.behind = behind_prepare(held);
		if (!write.behind)
			return -EAGAIN;
	}
	ret = mesh_hop_write(&circuit->hop, &write, held);
	if (ret < 0) {
		if (write.behind)
			mesh_buffer_put(write.behind);
		return ret;
	}
	down->unfinished += write.behind ? 2 : 1;
	circuit->writing += !circuit->down.is_relay;
	return 0;
}

/* Posts the segments that wait, in order, as far as there is room. */
MESH_HOLDS(circuit)
static void segments_push(struct mesh_circuit *circuit)
{
	struct mesh_circuit_side *down = &circuit->down;
	struct mesh_held *held;
	int ret;

	mesh_circuit_assert_locked(circuit);
	while (circuit->num_waiting && !circuit->error) {
		held = &circuit->held[circuit->waiting[circuit->first_waiting]];
		if (!mesh_flow_has_room(down->domain, down->remote->flow)) {
			mesh_flow_wait(down->domain, down->remote->flow, &down->waiter);
			return;
		}
		/* Without room in the next relay's memory the end of a segment there resumes. */
		if (!mesh_hop_has_room(&circuit->hop, held->what.length))
			return;
		ret = held_post(held);
		if (ret == -EAGAIN) {
			mesh_domain_wait(down->domain, &down->waiter);
			return;
		}
		if (ret) {
			circuit_fail(down, ret);
			return;
		}
		circuit->first_waiting = (circuit->first_waiting + 1) % MESH_GRANULES;
		circuit->num_waiting--;
		mesh_relay_moved(circuit->relay, false);
	}
}

MESH_HOLDS(domain)
static void hop_written(struct mesh_hop_segment *segment, int error)
{
	struct mesh_held *held = segment->owner;
	struct mesh_circuit *circuit = held->circuit;
	struct mesh_buffer *unsent;

	mesh_circuit_lock(circuit);
	if (!circuit->down.is_relay) {
		circuit->writing--;
		circuit->unclean |= error;
	}
	held = mesh_hop_written(segment, &error, &unsent);
	if (held) {
		held_end(held, error);
		segments_push(circuit); /* ARRIVED came first, and has found no room */
	}
	mesh_circuit_unlock(circuit);
	if (unsent)
		unsent->op.complete(&unsent->op, error);
}

/* True if the segment lies in our memory, and beside those that we have. */
MESH_HOLDS(circuit)
static bool segment_is_valid(const struct mesh_circuit *circuit,
			     const struct mesh_message_relayed *what)
{
	return circuit->down.known && what->granule < MESH_GRANULES &&
	       what->length <= (MESH_GRANULES - what->granule) * circuit->granule &&
	       !circuit->held[what->granule].circuit &&
	       (!circuit->down.is_relay || what->length <= mesh_hop_bytes(&circuit->hop));
}

MESH_HOLDS(circuit)
static void segment_take(struct mesh_circuit *circuit, const struct mesh_message_header *header,
			 const struct mesh_message_relayed *what)
{
	struct mesh_held *held = &circuit->held[what->granule];
	unsigned int last;

	circuit->came++;
	if (circuit->error)
		return;
	if (!segment_is_valid(circuit, what)) {
		circuit_fail(&circuit->up, -EPROTO);
		return;
	}
	memset(held, 0, sizeof(*held));
	held->circuit = circuit;
	held->what = *what;
	held->seq = header->seq;
	held->size = header->size;
	slots_count(circuit, held, 1);
	last = (circuit->first_waiting + circuit->num_waiting++) % MESH_GRANULES;
	circuit->waiting[last] = what->granule;
	segments_push(circuit);
}

MESH_HOLDS(circuit)
static void segments_arrived(struct mesh_circuit *circuit,
			     const struct mesh_message_arrived *arrived)
{
	uint64_t granules = arrived->granules;
	struct mesh_held *held;

	while ((held = mesh_hop_arrived(&circuit->hop, &granules)))
		held_end(held, 0);
	segments_push(circuit);
}

/* ---- what comes ---------------------------------------------------------------------------- */

static struct mesh_circuit *circuit_of_sink(struct mesh_sink *sink)
{
	return mesh_container_of(sink, struct mesh_circuit_side, sink)->circuit;
}

/* The connecting end gets our id when the circuit is open: nothing comes from there before. */
MESH_HOLDS(domain)
static void from_up(struct mesh_sink *sink, const struct mesh_message_header *header,
		    const void *payload)
{
	struct mesh_circuit *circuit = circuit_of_sink(sink);

	mesh_circuit_lock(circuit);
	mesh_relay_moved(circuit->relay, header->type == MESH_MESSAGE_DATA);
	switch ((enum mesh_message_type)header->type) {
	case MESH_MESSAGE_RELAYED:
		segment_take(circuit, header, payload);
		break;
	case MESH_MESSAGE_DATA:
	case MESH_MESSAGE_WANT:
	case MESH_MESSAGE_WRITTEN:
		if (!circuit->error && circuit->down.known)
			message_pass(&circuit->down, header, payload);
		break;
	default:
		circuit_fail(&circuit->up, -EPROTO);
		break;
	}
	mesh_circuit_unlock(circuit);
}

/* The receiving end has our id from CONNECT: its first grant may overtake its ACCEPT. */
MESH_HOLDS(domain)
static void from_down(struct mesh_sink *sink, const struct mesh_message_header *header,
		      const void *payload)
{
	struct mesh_circuit *circuit = circuit_of_sink(sink);
	struct mesh_message_arrived arrived;

	mesh_circuit_lock(circuit);
	mesh_relay_moved(circuit->relay, false);
	switch ((enum mesh_message_type)header->type) {
	case MESH_MESSAGE_ARRIVED:
		memcpy(&arrived, payload, sizeof(arrived));
		segments_arrived(circuit, &arrived);
		break;
	case MESH_MESSAGE_GRANT:
	case MESH_MESSAGE_POSTED:
		if (!circuit->error)
			message_pass(&circuit->up, header, payload);
		break;
	default:
		circuit_fail(&circuit->down, -EPROTO);
		break;
	}
	mesh_circuit_unlock(circuit);
}

/* There are buffers again, or room. */
MESH_HOLDS(domain)
static void circuit_resume(struct mesh_waiter *waiter)
{
	struct mesh_circuit_side *side =
		mesh_container_of(waiter, struct mesh_circuit_side, waiter);
	struct mesh_circuit *circuit = side->circuit;

	mesh_circuit_lock(circuit);
	if (!circuit->error && messages_push(side)) {
		if (side == &circuit->up)
			arrived_push(circuit);
		else
			segments_push(circuit);
	}
	mesh_circuit_unlock(circuit);
}

void mesh_circuit_forward_init(struct mesh_circuit *circuit)
{
	circuit->up.sink.message = from_up;
	circuit->down.sink.message = from_down;
	circuit->up.waiter.resume = circuit->down.waiter.resume = circuit_resume;
	circuit->hop.written = hop_written;
}

struct mesh_circuit_side *mesh_circuit_side_find(struct mesh_peer *peer, uint32_t id)
{
	struct mesh_circuit_side *side;
	struct mesh_sink *sink;

	mesh_process_assert_locked(peer->process);
	mesh_domain_lock(peer->domain);
	sink = mesh_sink_find(peer->domain, id);
	mesh_domain_unlock(peer->domain);
	if (!sink || (sink->message != from_up && sink->message != from_down))
		return NULL;
	side = mesh_container_of(sink, struct mesh_circuit_side, sink);
	return side->peer == peer ? side : NULL;
}
