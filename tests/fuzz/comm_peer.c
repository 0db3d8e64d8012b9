/* SPDX-License-Identifier: Apache-2.0 */
/* comm_peer.c - what the peer of fuzz_comm.c sends. */
#include <stdlib.h>
#include <string.h>

#include "control/peer_life.h"
#include "fabric/buffer.h"
#include "wire/frame.h"

#include "comm_run.h"

static const size_t frame_bytes[MESH_FRAME_TYPES] = {
	[MESH_FRAME_HELLO] = sizeof(struct mesh_frame_hello),
	[MESH_FRAME_REFUSE] = sizeof(struct mesh_frame_refuse),
	[MESH_FRAME_CONNECT] = 32,
	[MESH_FRAME_ACCEPT] = sizeof(struct mesh_frame_accept) - 4,
	[MESH_FRAME_CLOSE] = sizeof(struct mesh_frame_close),
	[MESH_FRAME_ASK] = sizeof(struct mesh_frame_ask),
	[MESH_FRAME_PORT] = 2,
	[MESH_FRAME_WITHDRAW] = sizeof(struct mesh_frame_withdraw),
	[MESH_FRAME_RESUME] = sizeof(struct mesh_frame_resume),
	[MESH_FRAME_HAVE] = sizeof(struct mesh_frame_have),
	[MESH_FRAME_OPEN] = sizeof(struct mesh_frame_open),
	[MESH_FRAME_OPENED] = sizeof(struct mesh_frame_opened),
	[MESH_FRAME_CIRCUIT] = 16,
	[MESH_FRAME_NICS] = sizeof(struct mesh_frame_nics),
};

/* Values that bytes at random seldom hit: ids, keys, and the numbers of messages and rounds. */
static void frame_aim(struct mesh_frame *frame, enum mesh_frame_type type)
{
	struct mesh_comm *comm;
	int i, k;

	comm = take_comm(&i);
	if (type == MESH_FRAME_REFUSE)
		frame->refuse.comm = frame->refuse.comm ? take_id() : 0;
	else if (type == MESH_FRAME_PORT)
		return;
	else if (type != MESH_FRAME_CONNECT)
		frame->to_comm = take_id();
	if (type == MESH_FRAME_CONNECT) {
		frame->connect.comm_key = (uint64_t)i + 1;
		frame->connect.path %= MESH_PATHS_MAX;
		frame->connect.epoch = 1 + frame->connect.reserved_too / 2;
		if (frame->connect.reserved_too % 2 && comm)
			frame->connect.num_paths = (uint8_t)comm->wanted_paths;
		frame->connect.reserved_too = frame->connect.asks = 0;
	}
	if (type == MESH_FRAME_RESUME) {
		frame->resume.seq = take_seq(comm);
		frame->resume.count %= MESH_COMM_REQUESTS + 2;
		for (k = 0; comm && k < comm->num_paths; k++)
			frame->resume.epochs[k] = comm->paths[k].epoch;
	}
	if (type == MESH_FRAME_HAVE) {
		frame->have.seq = take_seq(comm);
		frame->have.complete %= 2;
		if (comm && run.sending)
			frame->have.round = comm->send.round - frame->have.round % 4;
	}
}

/* A frame comes over a control connection, sometimes in two parts. */
void step_frame(void)
{
	struct mesh_peer *peer = take_peer();
	enum mesh_frame_type type = 1 + take(1) % (MESH_FRAME_TYPES - 1);
	uint32_t way = take(1);
	struct mesh_frame frame, decoded;
	size_t size;

	memset(&frame, 0, sizeof(frame));
	take_bytes(&frame.refuse, frame_bytes[type] < 64 ? frame_bytes[type] : 16 + way);
	if (way % 8)
		frame_aim(&frame, type);
	size = mesh_frame_finish(&frame, type);
	/* Most bytes that are no frame are left out: they only end the connection. */
	if (peer->watch.fd < 0 || (way != 255 && mesh_frame_decode(&frame, size, &decoded) <= 0))
		return;
	if (type == MESH_FRAME_HELLO && way % 16)
		return; /* the same */
	mesh_lock_take(&fixture.setup.process.lock);
	memcpy(peer->in, &frame, size);
	peer->in_size = way & 64 ? size / 2 : size;
	mesh_peer_frames_handle(peer);
	if (peer->watch.fd >= 0 && peer->in_size) {
		memcpy(peer->in, &frame, size);
		peer->in_size = size;
		mesh_peer_frames_handle(peer);
	}
	peer->in_size = 0;
	mesh_lock_release(&fixture.setup.process.lock);
}

static void grants_fill(int comm, const struct mesh_message_header *header, uint8_t *payload)
{
	struct mesh_grant grant;
	size_t size = mesh_grant_size(header->paths);
	struct granted *granted;

	for (int i = 0; i < header->count; i++) {
		memset(&grant, 0, sizeof(grant));
		grant.size = take(1) % 4 ? STRIDE : take(4);
		for (int k = 0; k < header->paths; k++) {
			granted = &run.grants[run.num_grants++ % GRANTS];
			granted->comm = comm;
			granted->seq = header->seq + (uint32_t)i;
			granted->size = grant.size;
			granted->key = grant.targets[k].key = run.num_grants;
			granted->address = grant.targets[k].address = run.num_grants << 32;
		}
		memcpy(payload + (size_t)i * size, &grant, size);
	}
}

/* A message comes through the fabric. */
void step_message(void)
{
	static const uint8_t types[] = {MESH_MESSAGE_GRANT,   MESH_MESSAGE_POSTED,
					MESH_MESSAGE_WANT,    MESH_MESSAGE_DATA,
					MESH_MESSAGE_WRITTEN, MESH_MESSAGE_DATA};
	struct mesh_message_header header = {0};
	struct mesh_comm *comm;
	struct mesh_path *path;
	uint32_t way = take(1);
	uint8_t *bytes;
	int i;

	comm = take_comm(&i);
	if (!comm)
		return;
	path = take_path(comm);
	header.type = way < 248 ? types[way % sizeof(types)] : (uint8_t)take(1);
	header.seq = take_seq(comm);
	header.comm = take(1) % 16 ? path->sink.id : take_id();
	header.token = path->sink.token;
	if (header.type == MESH_MESSAGE_GRANT) {
		header.count = (uint8_t)(1 + take(1) % MESH_GRANTS_PER_MESSAGE);
		header.paths =
			(uint8_t)(way & 1 ? comm->num_paths : 1 + (int)(take(1) % MESH_PATHS_MAX));
		header.length = (uint32_t)(header.count * mesh_grant_size(header.paths));
	} else if (header.type == MESH_MESSAGE_WRITTEN) {
		header.length = sizeof(struct mesh_message_written);
		header.size = take(1) % 4 ? (uint32_t)STRIDE / 2 : take(4);
	} else if (header.type == MESH_MESSAGE_DATA) {
		header.length = take(2) % 4096;
	}
	/* Aligned, as received messages are; ASan watches the end. */
	bytes = malloc(sizeof(header) + header.length);
	check(bytes);
	memcpy(bytes, &header, sizeof(header));
	memset(bytes + sizeof(header), 0x5a, header.length);
	if (header.type == MESH_MESSAGE_GRANT)
		grants_fill(i, &header, bytes + sizeof(header));
	else if (header.type == MESH_MESSAGE_WRITTEN)
		((struct mesh_message_written *)(void *)(bytes + sizeof(header)))[0] =
			(struct mesh_message_written){take(1) % 4, take(1) % 8, take(1) % 2};
	mesh_lock_take(&path->domain->lock);
	if (mesh_message_check(bytes, sizeof(header) + header.length))
		mesh_sink_message(path->domain, (void *)bytes, bytes + sizeof(header));
	mesh_lock_release(&path->domain->lock);
	free(bytes);
}

/* A write of the peer is reported. */
void step_immediate(void)
{
	struct mesh_immediate immediate = {0};
	struct mesh_domain *domain;
	struct mesh_comm *comm;
	uint32_t way = take(1);
	int i;

	comm = take_comm(&i);
	if (!comm)
		return;
	domain = take_path(comm)->domain;
	immediate.comm = take_id() & (MESH_COMM_IDS - 1);
	immediate.seq = take_seq(comm) & 0x3f;
	immediate.segment = way % 8 ? take(1) % 4 : take(2) % MESH_SEGMENTS_MAX;
	immediate.last = way & 16;
	immediate.size = way & 32 ? take(4) : way & 64 ? (uint32_t)STRIDE / 2 : 0;
	mesh_lock_take(&domain->lock);
	mesh_sink_written(domain, mesh_immediate_encode(&immediate));
	mesh_lock_release(&domain->lock);
}
