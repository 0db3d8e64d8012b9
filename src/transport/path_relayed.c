/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_relayed.c - the sending end of a path that leads through relays. A segment is written into
 * the memory of the first relay, and is complete when the receiver has it: then the sender's buffer
 * and "sent" are what they are on a direct path.
 *
 * The receiving end has a direct path to the last relay, which writes as a sender does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "control/peer_life.h"
#include "fabric/flow.h"
#include "fabric/remote.h"
#include "relay/hop.h"
#include "relay/relay.h"
#include "transport/comm.h"
#include "transport/data.h"

/*
 * Usual segments that the relay's memory holds. In 4 MiB one has 512 KiB: half of it costs half as
 * much CPU time again (docs/performance.md).
 */
#define SEGMENTS_HELD 8
/* But in small memory fewer of this size, in bytes: each one has a fixed cost. */
#define SEGMENT_MIN ((size_t)16 << 10)

/* ---- a segment in pieces --------------------------------------------------------------------- */

/* Bytes of the largest piece, and of the largest segment that is not cut. */
static size_t piece_max(const struct mesh_hop *hop)
{
	return mesh_hop_bytes(hop) / 2;
}

/* Posts the next piece. @behind: RELAYED; the caller's if this fails. */
MESH_HOLDS(comm)
static int piece_write(struct mesh_path_relayed *relayed, struct mesh_buffer *behind)
{
	struct mesh_path_cut *cut = &relayed->cut;
	struct mesh_write piece = cut->rest;
	int ret;

	if (piece.size > piece_max(&relayed->hop))
		piece.size = piece_max(&relayed->hop);
	piece.behind = behind;
	mesh_message_relayed_of(behind->bytes)->more = piece.size < cut->rest.size;
	ret = mesh_hop_write(&relayed->hop, &piece, cut);
	if (ret)
		return ret;
	cut->in_flight = true;
	cut->rest.data = (const uint8_t *)cut->rest.data + piece.size;
	cut->rest.address += piece.size;
	cut->rest.size -= piece.size;
	return 0;
}

/* RELAYED for the next piece; NULL if there is no buffer. */
MESH_HOLDS(comm)
static struct mesh_buffer *piece_announce(const struct mesh_path_relayed *relayed)
{
	struct mesh_buffer *buffer =
		mesh_remote_buffer_get(relayed->path->domain, relayed->path->remote);

	if (!buffer)
		return NULL;
	memcpy(buffer->bytes, relayed->cut.relayed, sizeof(relayed->cut.relayed));
	buffer->size = sizeof(relayed->cut.relayed);
	buffer->owner = relayed->path;
	buffer->about = relayed->cut.about;
	buffer->sent = relayed->cut.sent;
	return buffer;
}

/* Posts the next piece if there is room. Without room a completion does, or ARRIVED. */
MESH_HOLDS(comm)
static void piece_push(struct mesh_path_relayed *relayed)
{
	struct mesh_path *path = relayed->path;
	struct mesh_request *request = relayed->cut.about;
	struct mesh_buffer *behind;
	int ret;

	if (path->state != MESH_PATH_UP || path->comm->error)
		relayed->cut.error = -ECONNRESET;
	if (relayed->cut.error || !mesh_hop_has_room(&relayed->hop, piece_max(&relayed->hop)))
		return;
	behind = piece_announce(relayed);
	relayed->cut.rest.now_ns = mesh_clock_ns();
	ret = behind ? piece_write(relayed, behind) : -EAGAIN;
	if (!ret) {
		path->comm->unfinished++;
		path->unfinished++;
		request->send.unfinished++;
		return;
	}
	if (behind)
		mesh_buffer_put(behind);
	if (ret == -EAGAIN)
		mesh_domain_wait(relayed->hop.domain, &relayed->cut.waiter);
	else
		relayed->cut.error = ret;
}

/*
 * Starts to write a segment that is longer than a piece; @op completes with it. The owner of the
 * pieces in the hop is the cut.
 */
MESH_HOLDS(comm)
static int cut_begin(struct mesh_path_relayed *relayed, const struct mesh_write *write,
		     struct mesh_op *op)
{
	int ret;

	if (relayed->cut.op)
		return -EAGAIN;
	relayed->cut.rest = *write;
	memcpy(relayed->cut.relayed, write->behind->bytes, sizeof(relayed->cut.relayed));
	relayed->cut.sent = write->behind->sent;
	relayed->cut.about = write->behind->about;
	relayed->cut.error = 0;
	ret = piece_write(relayed, write->behind);
	if (ret)
		return ret;
	relayed->cut.op = op;
	return 0;
}

/* Goes on with the segment that is cut, if there is one, and completes it. No comm->lock. */
MESH_HOLDS(domain)
static void cut_step(struct mesh_path_relayed *relayed)
{
	struct mesh_op *op = NULL;
	int error = 0;

	mesh_comm_lock(relayed->path->comm);
	if (relayed->cut.op && !relayed->cut.in_flight) {
		if (relayed->cut.rest.size)
			piece_push(relayed);
		error = relayed->cut.error;
		if (!relayed->cut.in_flight && (error || !relayed->cut.rest.size)) {
			op = relayed->cut.op;
			relayed->cut.op = NULL;
		}
	}
	mesh_comm_unlock(relayed->path->comm);
	if (op)
		op->complete(op, error);
}

MESH_HOLDS(domain)
static void cut_resume(struct mesh_waiter *waiter)
{
	cut_step(mesh_container_of(waiter, struct mesh_path_relayed, cut.waiter));
}

/* ---- sending ------------------------------------------------------------------------------- */

int mesh_path_relayed_write(const struct mesh_path *path, const struct mesh_write *write,
			    struct mesh_op *op)
{
	int ret;

	mesh_comm_assert_locked(path->comm);
	ret = write->size > piece_max(&path->relayed->hop)
		      ? cut_begin(path->relayed, write, op)
		      : mesh_hop_write(&path->relayed->hop, write, op);
	if (!ret)
		mesh_pace_posted(&path->relayed->pace, write->size, write->now_ns);
	return ret;
}

void mesh_path_relayed_written(const struct mesh_path *path, size_t size, uint64_t posted_ns)
{
	mesh_pace_completed(&path->relayed->pace, size, posted_ns, mesh_clock_ns());
}

bool mesh_path_relayed_has_room(const struct mesh_path *path)
{
	return !path->relayed->cut.op &&
	       mesh_hop_has_room(&path->relayed->hop, path->comm->segment_bytes);
}

/* ---- completing ---------------------------------------------------------------------------- */

/*
 * A segment of the hop is done: a piece, or a whole one, whose error is the receiver's to explain.
 * cut_step() is to follow. @owner: as in mesh_hop_write().
 */
MESH_HOLDS(domain)
static void owner_complete(struct mesh_path *path, void *owner, int error)
{
	struct mesh_path_cut *cut = &path->relayed->cut;
	struct mesh_op *op = owner;

	if (owner != cut) {
		op->complete(op, error);
		return;
	}
	mesh_comm_lock(path->comm);
	cut->in_flight = false;
	if (error)
		cut->error = error;
	mesh_comm_unlock(path->comm);
}

/* There is room in the relay's memory: the rest of what is cut goes first. */
MESH_HOLDS(domain)
static void segment_complete(struct mesh_path *path, void *owner, int error)
{
	owner_complete(path, owner, error);
	cut_step(path->relayed);
	path->waiter.resume(&path->waiter);
}

MESH_HOLDS(domain)
static void hop_written(struct mesh_hop_segment *segment, int error)
{
	struct mesh_path *path =
		mesh_container_of(segment->hop, struct mesh_path_relayed, hop)->path;
	struct mesh_buffer *unsent;
	void *owner;

	mesh_comm_lock(path->comm);
	owner = mesh_hop_written(segment, &error, &unsent);
	mesh_comm_unlock(path->comm);
	if (unsent)
		unsent->op.complete(&unsent->op, error);
	if (owner)
		segment_complete(path, owner, error);
}

MESH_HOLDS(domain)
static void segments_arrived(struct mesh_path *path, const struct mesh_message_arrived *arrived)
{
	uint64_t granules = arrived->granules;
	void *owner;

	do {
		mesh_comm_lock(path->comm);
		owner = mesh_hop_arrived(&path->relayed->hop, &granules);
		mesh_comm_unlock(path->comm);
		if (owner)
			segment_complete(path, owner, 0);
	} while (owner);
}

void mesh_path_relayed_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			       const void *payload)
{
	struct mesh_message_arrived arrived;

	if (header->type != MESH_MESSAGE_ARRIVED) {
		mesh_credit_message(sink, header, payload);
		return;
	}
	memcpy(&arrived, payload, sizeof(arrived));
	segments_arrived(mesh_path_of_sink(sink), &arrived);
}

void mesh_path_abandon(struct mesh_path *path)
{
	void *owner;

	if (!mesh_path_is_relayed(path))
		return;
	do {
		mesh_comm_lock(path->comm);
		path->relayed->cut.error = -ECONNRESET; /* what is left of it is not posted */
		owner = mesh_hop_abandon(&path->relayed->hop, -ECONNRESET);
		mesh_comm_unlock(path->comm);
		if (owner)
			owner_complete(path, owner, -ECONNRESET);
	} while (owner);
	cut_step(path->relayed);
}

/* ---- opening and closing ------------------------------------------------------------------- */

int mesh_path_relayed_make(struct mesh_path *path)
{
	struct mesh_path_relayed *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->path = path;
	made->cut.waiter.resume = cut_resume;
	path->relayed = made;
	return 0;
}

void mesh_path_relayed_begin(struct mesh_path *path)
{
	const struct mesh_pace_bounds bounds = {MESH_PACE_WINDOW_MAX, MESH_PACE_WINDOW_MAX};
	struct mesh_hop *hop = &path->relayed->hop;

	mesh_comm_assert_locked(path->comm);
	hop->domain = path->domain;
	hop->remote = path->remote;
	hop->written = hop_written;
	mesh_pace_init(&path->relayed->pace, path->domain->nic->speed_mbps, &bounds);
	path->pace = &path->relayed->pace;
	path->immediate_bits = 0;
	path->reason = MESH_PATH_WHY_RELAY;
}

void mesh_path_relayed_shut(struct mesh_path *path)
{
	struct mesh_frame_circuit event = {.event = MESH_CIRCUIT_SHUT};

	mesh_process_assert_locked(path->comm->process);
	if (!path->relayed || !mesh_path_has_relay(path) || !path->known)
		return; /* OPENED, if it comes, is answered with CIRCUIT */
	path->known = false;
	if (mesh_comm_is_opening(path->comm))
		event.event = MESH_CIRCUIT_WITHDRAWN;
	event.writes = path->relayed->hop.writes;
	mesh_circuit_event_send(path->peer, path->remote_id, event);
}

int mesh_path_num_relays(const struct mesh_path *path)
{
	mesh_process_assert_locked(path->comm->process);
	return mesh_path_has_relay(path) && mesh_path_is(path, MESH_PATH_UP)
		       ? path->relayed->route.num_relays
		       : 0;
}

int mesh_path_relayed_opened(struct mesh_path *path, const struct mesh_frame_opened *opened)
{
	struct mesh_comm *comm = path->comm;
	size_t bytes, most;
	int ret;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	ret = mesh_hop_open(&path->relayed->hop, opened);
	mesh_comm_unlock(comm);
	if (!ret)
		ret = mesh_path_via_set(path, opened->via);
	if (ret)
		return ret;
	bytes = mesh_hop_bytes(&path->relayed->hop) / SEGMENTS_HELD;
	most = piece_max(&path->relayed->hop);
	path->segment_max = MESH_MESSAGE_MAX; /* in pieces */
	if (bytes < SEGMENT_MIN)
		bytes = most < SEGMENT_MIN ? most : SEGMENT_MIN;
	path->segment_bytes = bytes;
	return 0;
}

void mesh_path_drain_ask(struct mesh_path *path)
{
	const struct mesh_comm *comm = path->comm;
	struct mesh_frame_circuit event = {.event = MESH_CIRCUIT_LOST};

	mesh_process_assert_locked(comm->process);
	path->drain_asked_ms = mesh_clock_ms();
	if (!comm->sending)
		memcpy(event.lost, comm->peer_name, sizeof(event.lost));
	memcpy(event.by, comm->process->name, sizeof(event.by));
	event.by_node = comm->process->node_id;
	mesh_circuit_event_send(path->peer, path->remote_id, event);
}
