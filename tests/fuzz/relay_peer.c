/* SPDX-License-Identifier: Apache-2.0 */
/* relay_peer.c - what the peers of fuzz_relay.c send. */
#include <stdlib.h>
#include <string.h>

#include "control/peer_life.h"
#include "fabric/buffer.h"
#include "wire/frame.h"
#include "wire/message.h"

#include "relay_run.h"

/* Messages of a flood: more than a circuit keeps. */
#define FLOOD (MESH_PASSING_MAX + 40)

/* ---- frames --------------------------------------------------------------------------------- */

/* Over a peer's control connection. Bytes that are no frame only end it: few get through. */
static void frame_come(struct mesh_peer *peer, struct mesh_frame *frame, enum mesh_frame_type type)
{
	size_t size = mesh_frame_finish(frame, type);
	struct mesh_frame decoded;

	if (peer->watch.fd < 0 || size > sizeof(*frame)) /* a HELLO that has too many NICs */
		return;
	if (mesh_frame_decode(frame, size, &decoded) <= 0 && take(1) != 255)
		return;
	mesh_lock_take(&relay_run.process->lock);
	memcpy(peer->in, frame, size);
	peer->in_size = size;
	mesh_peer_frames_handle(peer);
	peer->in_size = 0;
	mesh_lock_release(&relay_run.process->lock);
}

/* Some of the frame is the input's. */
static void frame_damage(struct mesh_frame *frame, size_t size)
{
	uint32_t count = take(1);
	uint8_t *bytes = (uint8_t *)&frame->refuse;

	for (count = count > 200 ? count - 200 : 0; count; count--)
		bytes[take(2) % size] = (uint8_t)take(1);
}

static struct mesh_peer *peer_take(void)
{
	return &relay_run.peers[take(1) % RELAY_PEERS];
}

static uint64_t node_take(void)
{
	uint32_t byte = take(1);

	return byte < 240   ? RELAY_NODE(byte % (RELAY_NICS + 1))
	       : byte < 248 ? RELAY_OWN_NODE
			    : byte;
}

/* A listener on one of the nodes, or on none. */
static void handle_fill(uint8_t *bytes)
{
	struct mesh_handle handle = {
		.node_id = node_take(),
		.cookie = 7,
		.listen_id = 1,
		.control_port = 1,
		.num_endpoints = 1,
		.total_nics = 1,
	};

	mesh_addr_parse("10.7.0.2/24", &handle.endpoints[0].addr);
	handle.endpoints[0].addr.bytes[2] = (uint8_t)(take(1) % (RELAY_NICS + 1));
	handle.endpoints[0].provider = relay_run.process->providers[0];
	strcpy(handle.node, "target");
	mesh_handle_encode(&handle, bytes);
}

/* An OPEN for the first relay of a route, for its last one, or for one in the middle. */
void relay_step_open(void)
{
	struct mesh_frame_open *open;
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	open = &frame.open;
	handle_fill(open->handle);
	open->comm_key = take(1);
	open->comm = take(1);
	open->token = take(1);
	open->num_paths = (uint8_t)(1 + take(1) % 2);
	open->num_relays = (uint8_t)(1 + take(1) % 4);
	open->at = (uint8_t)(take(1) % open->num_relays);
	for (int i = 0; i < open->num_relays; i++)
		open->route[i] = i == open->at ? RELAY_OWN_NODE : RELAY_NODE(i + 10);
	if (open->at + 1 < open->num_relays)
		open->route[open->at + 1] = node_take();
	open->job = RELAY_JOB;
	strcpy(open->origin, "origin");
	frame_damage(&frame, sizeof(*open));
	frame_come(peer_take(), &frame, MESH_FRAME_OPEN);
}

/* The circuit that a frame is about, and the peer that it comes from: most often the right one. */
static struct mesh_peer *side_take(struct mesh_circuit **circuit, bool down, uint32_t *id)
{
	uint32_t kind = take(1);
	struct mesh_circuit_side *side;

	*circuit = relay_circuit_take();
	*id = 0;
	if (!*circuit)
		return NULL;
	side = (kind % 16 == 15) != down ? &(*circuit)->down : &(*circuit)->up;
	*id = kind % 16 == 14 ? take(4) : side->sink.id;
	return kind % 16 == 13 || !side->peer ? peer_take() : side->peer;
}

/* What a circuit has asked for is answered. */
void relay_step_answer(void)
{
	static const uint32_t granules[] = {16 << 10, 32 << 10, 64 << 10, 1};
	struct mesh_circuit *circuit;
	struct mesh_frame frame;
	struct mesh_peer *peer;
	uint32_t id, way;

	peer = side_take(&circuit, true, &id);
	if (!peer)
		return;
	way = take(1);
	memset(&frame, 0, sizeof(frame));
	if (way % 8 == 7) {
		frame.refuse.comm = id;
		frame.refuse.refusal = take(1) % 20;
		frame_come(peer, &frame, MESH_FRAME_REFUSE);
	} else if ((circuit->opening && !circuit->down.is_relay) != (way % 8 == 6)) {
		frame.accept = (struct mesh_frame_accept){
			.to_comm = id, .comm = take(1), .token = take(1)};
		frame_come(peer, &frame, MESH_FRAME_ACCEPT);
	} else {
		frame.opened = (struct mesh_frame_opened){
			.to_comm = id,
			.comm = take(1),
			.token = take(1),
			.eager_limit = way & 32 ? take(4) : RELAY_EAGER_LIMIT,
			.address = 0x10000,
			.key = 5,
			.granule = way & 16 ? take(4) : granules[take(1) % 4],
		};
		frame_damage(&frame, sizeof(frame.opened));
		frame_come(peer, &frame, MESH_FRAME_OPENED);
	}
}

/* CIRCUIT, with the number of writes that have come, or any other. */
void relay_step_event(void)
{
	struct mesh_circuit *circuit;
	struct mesh_frame frame;
	struct mesh_peer *peer;
	uint32_t id;

	peer = side_take(&circuit, take(1) & 1, &id);
	if (!peer)
		return;
	memset(&frame, 0, sizeof(frame));
	frame.circuit.to_comm = id;
	frame.circuit.event = 1 + take(1) % (MESH_CIRCUIT_EVENTS - 1);
	frame.circuit.writes = take(1) % 2 ? circuit->came : take(4);
	frame.circuit.unclean = take(1) % 2;
	frame_damage(&frame, sizeof(frame.circuit));
	frame_come(peer, &frame, MESH_FRAME_CIRCUIT);
}

/* Any frame. */
void relay_step_frame(void)
{
	static const size_t body = sizeof(struct mesh_frame) - sizeof(struct mesh_frame_header);
	enum mesh_frame_type type = 1 + take(1) % (MESH_FRAME_TYPES - 1);
	struct mesh_circuit *circuit;
	struct mesh_frame frame;
	struct mesh_peer *peer;
	uint32_t id;

	memset(&frame, 0, sizeof(frame));
	peer = side_take(&circuit, take(1) & 1, &id);
	take_bytes(&frame.refuse, take(1) % body);
	if (type == MESH_FRAME_REFUSE)
		frame.refuse.comm = id;
	else if (type > MESH_FRAME_CONNECT && type != MESH_FRAME_WITHDRAW &&
		 type != MESH_FRAME_NICS)
		frame.to_comm = id;
	frame_come(peer ? peer : peer_take(), &frame, type);
}

/* ---- messages ------------------------------------------------------------------------------- */

/* Through the fabric; the provider's buffers have room for payload_max. */
static void message_come(const struct mesh_circuit_side *side, struct mesh_message_header *header,
			 const void *payload)
{
	uint8_t *bytes = malloc(sizeof(*header) + header->length);

	check(bytes); /* aligned, as received messages are; ASan watches the end */
	if (!header->comm)
		header->comm = side->sink.id;
	header->token = side->sink.token;
	memcpy(bytes, header, sizeof(*header));
	memset(bytes + sizeof(*header), 0x5a, header->length);
	if (payload)
		memcpy(bytes + sizeof(*header), payload, header->length);
	mesh_lock_take(&side->domain->lock);
	if (mesh_message_check(bytes, sizeof(*header) + header->length))
		mesh_sink_message(side->domain, (void *)bytes, bytes + sizeof(*header));
	mesh_lock_release(&side->domain->lock);
	free(bytes);
}

static uint64_t granules_take(const struct mesh_circuit *circuit)
{
	uint32_t way = take(1);

	if (way % 8 == 7)
		return UINT64_MAX;
	if (way % 8 == 6)
		return take(4) | (uint64_t)take(4) << 32;
	return circuit->hop.used & ((uint64_t)way << way % 57 | 1);
}

/* A message from either side, or more of them than the circuit keeps. */
void relay_step_message(void)
{
	struct mesh_circuit *circuit = relay_circuit_take();
	struct mesh_message_header header = {0};
	struct mesh_message_arrived arrived;
	uint8_t payload[MESH_GRANTS_PER_MESSAGE * sizeof(struct mesh_grant)] = {0};
	struct mesh_circuit_side *side;
	uint32_t way = take(1);
	int count = way & 64 && take(1) > 200 ? FLOOD : 1;

	side = circuit && way & 1 ? &circuit->up : circuit ? &circuit->down : NULL;
	if (!side || !side->peer)
		return;
	header.type = (uint8_t)(1 + take(1) % (MESH_MESSAGE_ARRIVED + 1));
	header.seq = take(1);
	header.comm = way & 2 && take(1) > 240 ? take(4) : 0;
	if (header.type == MESH_MESSAGE_ARRIVED) {
		memset(&arrived, 0, sizeof(arrived));
		arrived.granules = granules_take(circuit);
		memcpy(payload, &arrived, sizeof(arrived));
		header.length = sizeof(arrived);
	} else if (header.type == MESH_MESSAGE_GRANT) {
		header.count = (uint8_t)(1 + take(1) % MESH_GRANTS_PER_MESSAGE);
		header.paths = (uint8_t)(1 + take(1) % MESH_PATHS_MAX);
		header.length = (uint32_t)(header.count * mesh_grant_size(header.paths));
	} else if (header.type == MESH_MESSAGE_WRITTEN) {
		header.length = sizeof(struct mesh_message_written);
	} else if (header.type == MESH_MESSAGE_DATA) {
		header.length = take(2) % (uint32_t)(side->domain->payload_max + 1);
	}
	while (count--)
		message_come(side, &header, header.type == MESH_MESSAGE_DATA ? NULL : payload);
}

/* Segments that lie in the circuit's memory, or are said to. */
void relay_step_segment(void)
{
	struct mesh_circuit *circuit = relay_circuit_take();
	struct mesh_message_relayed what = {.address = 0x20000, .key = 6, .num_segments = 1};
	struct mesh_message_header header = {
		.type = MESH_MESSAGE_RELAYED, .length = sizeof(what), .seq = take(1)};
	uint32_t way = take(1), i, count;

	if (!circuit || !circuit->up.peer)
		return;
	count = 1 + (way & 32 ? take(1) % MESH_GRANULES : 0);
	what.granule = (uint8_t)(take(1) % MESH_GRANULES);
	what.full = way & 1;
	what.length = way & 2 ? take(3) : (uint32_t)circuit->granule;
	if (way & 4 && take(1) > 200)
		what.length = take(4);
	if (way & 8) {
		what.num_segments = take(2);
		what.segment = take(2);
	}
	for (i = 0; i < count && circuit->up.peer; i++) {
		header.size = what.length;
		message_come(&circuit->up, &header, &what);
		what.granule = (uint8_t)((what.granule + 1) % MESH_GRANULES);
	}
}

/* ---- neighbours ----------------------------------------------------------------------------- */

/* What the NIC hears of the node behind it, or of who says that it is that node. */
void relay_step_neighbour(void)
{
	struct mesh_neighbour about = {.num_processes = 2, .total_processes = 2};
	int i, nic = (int)(take(1) % RELAY_NICS);
	struct mesh_heard *heard = &relay_run.heard[nic];
	struct mesh_addr addr;
	uint8_t *bytes;
	size_t size;

	about.node_id = node_take();
	about.providers = take(1) % 4 ? (1u << (MESH_PROVIDER_ID_MAX + 1)) - 1 : (uint8_t)take(1);
	mesh_addr_parse("10.7.0.2/24", &addr);
	addr.bytes[2] = (uint8_t)nic;
	mesh_neighbour_addr_add(&about, &addr);
	strcpy(about.node, "node");
	strcpy(about.netdev, "eth0");
	for (i = 0; i < about.num_processes; i++)
		about.processes[i] = (struct mesh_neighbour_process){
			.process_id = 1 + take(1),
			.job = RELAY_JOB - take(1) % 2,
			.control_port = (uint16_t)take(1),
			.protocol = MESH_PROTOCOL_VERSION,
			.role = (uint8_t)(1 + take(1) % 2),
		};
	size = mesh_neighbour_finish(&about, MESH_NEIGHBOUR_ANSWER);
	bytes = (uint8_t *)&about;
	for (i = (int)take(1) - 200; i > 0; i--)
		bytes[take(2) % size] = (uint8_t)take(1);
	memset(heard, 0, sizeof(*heard));
	heard->error = mesh_neighbour_decode(&about, size, &heard->about);
	relay_run.neighbours.asking.asked[nic].num_heard = !heard->error || take(1) % 2;
}
