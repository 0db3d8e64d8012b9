/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.c - a segment that passes through the relays in pieces. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "transport/comm.h"
#include "transport/path_state.h"
#include "transport/pieces.h"

/* Posts the next piece. @behind: RELAYED; the caller's if this fails. */
MESH_HOLDS(comm)
static int piece_write(struct mesh_cut *cut, struct mesh_buffer *behind)
{
	struct mesh_write piece = cut->rest;
	int ret;

	if (piece.size > mesh_piece_max(cut->hop))
		piece.size = mesh_piece_max(cut->hop);
	piece.behind = behind;
	mesh_message_relayed_of(behind->bytes)->more = piece.size < cut->rest.size;
	ret = mesh_hop_write(cut->hop, &piece, cut);
	if (ret)
		return ret;
	cut->in_flight++;
	cut->rest.data = (const uint8_t *)cut->rest.data + piece.size;
	cut->rest.address += piece.size;
	cut->rest.size -= piece.size;
	return 0;
}

/* RELAYED for the next piece; NULL if there is no buffer. */
MESH_HOLDS(comm)
static struct mesh_buffer *piece_announce(const struct mesh_cut *cut)
{
	struct mesh_buffer *buffer = mesh_path_buffer_get(cut->path);

	if (!buffer)
		return NULL;
	memcpy(buffer->bytes, cut->relayed, sizeof(cut->relayed));
	buffer->size = sizeof(cut->relayed);
	buffer->owner = cut->path;
	buffer->about = cut->about;
	buffer->sent = cut->sent;
	return buffer;
}

/* The last piece waits for the others. */
MESH_HOLDS(comm)
static bool piece_is_due(const struct mesh_cut *cut)
{
	size_t most = mesh_piece_max(cut->hop);

	if (!cut->rest.size || cut->error)
		return false;
	if (cut->rest.size <= most)
		return !cut->in_flight && mesh_hop_has_room(cut->hop, cut->rest.size);
	return mesh_hop_has_room(cut->hop, most);
}

/* Posts pieces as far as there is room. Without room a completion posts them, or ARRIVED. */
MESH_HOLDS(comm)
static void pieces_push(struct mesh_cut *cut)
{
	struct mesh_path *path = cut->path;
	struct mesh_request *request = cut->about;
	struct mesh_buffer *behind;
	int ret = 0;

	if (path->state != MESH_PATH_UP || path->comm->error)
		cut->error = -ECONNRESET;
	while (!ret && piece_is_due(cut)) {
		behind = piece_announce(cut);
		cut->rest.now_ns = mesh_clock_ns();
		ret = behind ? piece_write(cut, behind) : -EAGAIN;
		if (!ret) {
			path->comm->unfinished++;
			path->unfinished++;
			request->send.unfinished++;
		} else if (behind) {
			mesh_buffer_put(behind);
		}
	}
	if (ret == -EAGAIN)
		mesh_domain_wait(cut->hop->domain, &cut->waiter);
	else if (ret)
		cut->error = ret;
}

int mesh_cut_begin(struct mesh_cut *cut, const struct mesh_write *write, struct mesh_op *op)
{
	int ret;

	if (cut->op)
		return -EAGAIN;
	cut->rest = *write;
	memcpy(cut->relayed, write->behind->bytes, sizeof(cut->relayed));
	cut->sent = write->behind->sent;
	cut->about = write->behind->about;
	cut->error = 0;
	ret = piece_write(cut, write->behind);
	if (ret)
		return ret;
	cut->op = op;
	pieces_push(cut);
	return 0;
}

void mesh_cut_step(struct mesh_cut *cut)
{
	struct mesh_op *op = NULL;
	int error;

	mesh_comm_lock(cut->path->comm);
	if (cut->op)
		pieces_push(cut);
	error = cut->error;
	if (!cut->in_flight && (error || !cut->rest.size)) {
		op = cut->op;
		cut->op = NULL;
	}
	mesh_comm_unlock(cut->path->comm);
	if (op)
		op->complete(op, error);
}

MESH_HOLDS(domain)
static void cut_resume(struct mesh_waiter *waiter)
{
	mesh_cut_step(mesh_container_of(waiter, struct mesh_cut, waiter));
}

void mesh_cut_init(struct mesh_cut *cut, struct mesh_path *path, struct mesh_hop *hop)
{
	cut->path = path;
	cut->hop = hop;
	cut->waiter.resume = cut_resume;
}

void mesh_cut_piece_done(struct mesh_cut *cut, int error)
{
	struct mesh_comm *comm = cut->path->comm;

	mesh_comm_lock(comm);
	cut->in_flight--;
	if (error)
		cut->error = error;
	/* Not only when all pieces are done: what the receiver lacks never ends the others. */
	if (error && comm->resumes)
		mesh_path_suspect(cut->path, error);
	else if (error)
		mesh_comm_fail(comm, error, comm->closing,
			       "a piece of a message was not delivered");
	mesh_comm_unlock(comm);
}
