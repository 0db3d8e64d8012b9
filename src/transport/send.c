/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send.c - the sending half of the protocol: small messages are sent at once while the receiver has
 * room for them; large ones wait for the receiver's grant, which names the memory to write to.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "control/process.h"
#include "fabric/remote.h"
#include "transport/data.h"
#include "transport/resend.h"

/* The result of one attempt to post a request. */
enum send_result {
	SEND_POSTED,  /* all of it is posted */
	SEND_BLOCKED, /* it waits for the peer, or for a completion of ours */
	SEND_FULL,    /* enough is in flight: tried again after a completion on one of the paths */
	SEND_BUSY,    /* the provider has no room: tried again after the next poll */
};

/* A request lives until it is posted and nothing of it is unfinished. */
void mesh_message_sent(struct mesh_buffer *buffer, int error)
{
	struct mesh_request *request = buffer->about;
	struct mesh_path *path = buffer->owner;
	struct mesh_comm *comm = path->comm;

	mesh_comm_lock(comm);
	mesh_path_operation_end(path, error); /* what this message said is said again */
	if (request) {
		request->send.unfinished--;
		mesh_request_send_check(request);
	}
	mesh_comm_unlock(comm);
}

/* ---- small messages --------------------------------------------------------------------- */

static bool request_is_eager(const struct mesh_comm *comm, const struct mesh_request *request)
{
	return request->size <= comm->eager_limit;
}

/* One that needs a buffer, or a choice of paths. */
MESH_HOLDS(comm)
__attribute__((noinline)) static bool data_send(struct mesh_comm *comm,
						struct mesh_request *request)
{
	const struct mesh_outgoing message = {
		.header.type = MESH_MESSAGE_DATA,
		.header.length = (uint32_t)request->size,
		.header.seq = request->seq,
		.payload = request->data,
	};

	return mesh_comm_message_send(comm, &message, request);
}

MESH_HOLDS(comm)
static enum send_result eager_send(struct mesh_comm *comm, struct mesh_request *request)
{
	struct mesh_send_side *send = &comm->send;

	if (!mesh_seq_before(request->seq, send->peer_posted + MESH_EAGER_WINDOW))
		return SEND_BLOCKED;
	if (!mesh_copy_prepare(comm, request)) {
		mesh_comm_fail(comm, -ENOMEM, false, "no memory for copies of small messages");
		return SEND_BLOCKED;
	}
	if (!mesh_comm_data_inject(comm, request) && !data_send(comm, request))
		return SEND_BUSY;
	/* Behind the send: the peer has the message sooner. A lost path waits for comm->lock. */
	mesh_copy_keep(comm, request);
	request->send.posted = true;
	mesh_request_state_set(request,
			       request->send.unfinished ? MESH_REQUEST_MOVING : MESH_REQUEST_DONE);
	send->eager_run++;
	return SEND_POSTED;
}

/* ---- large messages --------------------------------------------------------------------- */

/* Requests a grant: the receiver holds its grants back while messages are small. */
MESH_HOLDS(comm)
static enum send_result grant_await(struct mesh_comm *comm)
{
	/*
	 * WANT names the latest message, not the one that waits: small messages in flight over
	 * other paths may arrive after it, and must not start another run at the receiver.
	 */
	const struct mesh_outgoing want = {
		.header.type = MESH_MESSAGE_WANT,
		.header.seq = comm->next_seq - 1,
	};

	/* Only WANT resets eager_run: a grant that was used does not mean that more will follow. */
	if (!comm->send.eager_run)
		return SEND_BLOCKED;
	if (!mesh_comm_message_send(comm, &want, NULL))
		return SEND_BUSY;
	comm->send.eager_run = 0;
	return SEND_BLOCKED;
}

/* Cuts the message into segments, whose size stays. False if the comm has failed. */
MESH_HOLDS(comm)
static bool request_cut(struct mesh_request *request)
{
	struct mesh_comm *comm = request->comm;
	size_t bytes = mesh_segment_size(comm, request->size);

	request->send.flagged = mesh_request_is_flagged(request);
	if (request->send.flagged && bytes > MESH_UNFLAGGED_BYTES)
		bytes = MESH_UNFLAGGED_BYTES;
	assert(bytes <= MESH_MESSAGE_MAX);
	request->send.segment_bytes = (uint32_t)bytes;
	request->send.num_segments = 1;
	if (request->size > bytes)
		request->send.num_segments = (uint32_t)((request->size + bytes - 1) / bytes);
	mesh_request_state_set(request, MESH_REQUEST_MOVING);
	/* Once a write has left it is too late: a loss that cannot be noted looks like success. */
	if (mesh_segments_lost_prepare(comm))
		return true;
	mesh_comm_fail(comm, -ENOMEM, false, "no memory to send segments again that may be lost");
	return false;
}

/* Adds free segments. False if there are enough: a completion frees one; or the comm has failed. */
MESH_HOLDS(comm)
__attribute__((noinline)) static bool segments_add(struct mesh_comm *comm)
{
	struct mesh_send_side *send = &comm->send;
	struct mesh_segment *block;
	int i;

	if (send->num_blocks == MESH_COMM_WRITES / MESH_WRITES_BLOCK)
		return false;
	block = calloc(MESH_WRITES_BLOCK, sizeof(*block));
	if (!block) {
		mesh_comm_fail(comm, -ENOMEM, false, "no memory for writes");
		return false;
	}
	send->blocks[send->num_blocks++] = block;
	for (i = 0; i < MESH_WRITES_BLOCK; i++) {
		block[i].next_free = send->free_segments;
		send->free_segments = &block[i];
	}
	return true;
}

static struct mesh_segment *segment_of_op(struct mesh_op *op)
{
	return mesh_container_of(op, struct mesh_segment, op);
}

/* The write is complete, and the provider did not accept its announcement then. */
MESH_HOLDS(comm)
static void behind_send(struct mesh_segment *segment, int error)
{
	struct mesh_buffer *behind = segment->behind;

	segment->behind = NULL;
	if (!error) {
		mesh_remote_send(behind);
		return;
	}
	mesh_buffer_put(behind);
	segment->request->send.unfinished--;
	mesh_path_operation_end(segment->path, 0);
}

MESH_HOLDS(domain)
static void segment_done(struct mesh_op *op, int error)
{
	struct mesh_segment *segment = segment_of_op(op);
	struct mesh_path *path = segment->path;
	struct mesh_request *request = segment->request;
	struct mesh_comm *comm = request->comm;
	size_t size;
	uint64_t posted_ns = segment->posted_ns;
	/* A plain completion on tcp means only "written to the socket"; one path needs no trips. */
	bool arrived = !error &&
		       ((comm->num_paths > 1 && segment->delivery) || path->is_acknowledged);
	bool starved;

	mesh_comm_lock(comm);
	size = segment->size;
	segment->size = 0;
	starved = !comm->send.free_segments;
	segment->next_free = comm->send.free_segments;
	comm->send.free_segments = segment;
	if (segment->behind)
		behind_send(segment, error);
	mesh_segment_copy_put(segment);
	/* Whether it has arrived is for the receiver to say. */
	if (error || path->state != MESH_PATH_UP)
		mesh_segment_lose(request, segment->index);
	mesh_path_operation_end(path, error);
	request->send.unfinished--;
	mesh_request_send_check(request);
	if (starved)
		mesh_send_push(comm);
	mesh_comm_unlock(comm);
	if (!size)
		return; /* closing has released its room */
	if (mesh_path_is_relayed(path))
		mesh_path_relayed_written(path, size, posted_ns);
	else
		mesh_flow_completed(path->domain, path->flow, size, posted_ns, arrived);
}

/*
 * The path that would complete the segment first is full. The comm waits on the other paths as
 * well, because a completion there may make that path the better choice.
 */
static void room_await(struct mesh_comm *comm)
{
	struct mesh_path *path;
	int i;

	for (i = 0; i < comm->num_up; i++) {
		path = comm->up[i];
		mesh_flow_wait(path->domain, path->flow, &path->waiter);
	}
}

/* True if another segment may be written now. */
static bool path_has_room(const struct mesh_path *path)
{
	return mesh_flow_has_room(path->domain, path->flow) &&
	       (!mesh_path_is_relayed(path) || mesh_path_relayed_has_room(path));
}

/* Writes the arguments of the write of segment @index, without its announcement. */
MESH_HOLDS(comm)
static void segment_write_make(const struct mesh_request *request, uint32_t index,
			       const struct mesh_path *path, const struct mesh_grant *grant,
			       uint64_t now_ns, struct mesh_write *write)
{
	int i = (int)(path - request->comm->paths);
	size_t bytes = request->send.segment_bytes;
	size_t offset = index * bytes;
	size_t left = request->size - offset;

	*write = (struct mesh_write){
		.data = request->data + offset,
		.size = left < bytes ? left : bytes,
		.mr = request->registration->mrs[i],
		.address = grant->targets[i].address + offset,
		.key = grant->targets[i].key,
		/*
		 * The comm has to know that the peer has the bytes, unless the receiver says so
		 * itself. Several paths are measured by it, with what is queued there.
		 */
		.delivery = !mesh_acks_serve(request, path),
		.now_ns = now_ns,
	};
}

/*
 * Takes the first free segment for the write of segment @index, and posts it. Returns 0 or an error
 * of mesh_domain_write(), and then the announcement is given back.
 */
MESH_HOLDS(comm)
static int segment_write(struct mesh_comm *comm, struct mesh_request *request, uint32_t index,
			 struct mesh_path *path, const struct mesh_write *write)
{
	struct mesh_segment *segment = comm->send.free_segments;
	int ret;

	segment->op.complete = segment_done;
	segment->request = request;
	segment->path = path;
	segment->index = index;
	segment->delivery = write->delivery;
	segment->size = write->size;
	segment->posted_ns = write->now_ns;
	ret = mesh_path_is_relayed(path)
		      ? mesh_path_relayed_write(path, write, &segment->op)
		      : mesh_domain_write(path->domain, path->remote, write, &segment->op);
	if (ret < 0) {
		segment->size = 0;
		if (write->behind)
			mesh_buffer_put(write->behind);
		mesh_segment_copy_put(segment);
		return ret;
	}
	segment->behind = ret == MESH_WRITE_ALONE ? write->behind : NULL;
	mesh_count(&path->counters->segments, 1);
	mesh_count(&path->counters->bytes, write->size);
	comm->send.free_segments = segment->next_free;
	comm->send.writes++;
	comm->unfinished += write->behind ? 2 : 1;
	path->unfinished += write->behind ? 2 : 1;
	request->send.unfinished += write->behind ? 2 : 1;
	if (!write->delivery)
		mesh_acks_await(request);
	if (request->send.num_lost)
		mesh_count(&path->counters->resent, write->size);
	mesh_segment_posted(request, index);
	return 0;
}

/*
 * Adds what announces the write. That may be lost although the write has arrived: a message, or an
 * immediate that is not tcp's. False without a buffer for it, or if the comm has failed.
 */
MESH_HOLDS(comm)
static bool segment_announce(struct mesh_request *request, struct mesh_path *path,
			     const struct mesh_announcement *announcement, struct mesh_write *write)
{
	if ((announcement->flag || path->immediate_bits < 64) && !request->send.kept &&
	    !mesh_announcements_keep(request)) {
		mesh_comm_fail(request->comm, -ENOMEM, false,
			       "no memory to announce segments again");
		return false;
	}
	return mesh_announce(request, path, announcement, write);
}

MESH_HOLDS(comm)
static enum send_result segment_post(struct mesh_comm *comm, struct mesh_request *request,
				     const struct mesh_grant *grant)
{
	struct mesh_announcement announcement = {
		.segment = mesh_segment_next(request),
		.num_segments = request->send.num_segments,
		.full = request->size == grant->size,
	};
	bool last = announcement.segment + 1 == announcement.num_segments;
	struct mesh_path *path = comm->up[0];
	struct mesh_write write;
	uint64_t now_ns = 0;
	int ret;

	if (!comm->send.free_segments && !segments_add(comm))
		return SEND_BLOCKED; /* a completion of ours pushes again */
	if (!comm->num_up)
		return SEND_BLOCKED; /* until one is up */
	if (comm->num_up > 1) {
		now_ns = mesh_clock_ns();
		/* It may be full: then waiting for it is faster than using another one. */
		path = comm->up[mesh_pace_choose(comm->paces, comm->num_up,
						 request->send.segment_bytes, comm->rotation++,
						 now_ns)];
	}
	if (!path_has_room(path)) {
		room_await(comm);
		return SEND_FULL;
	}
	if (!now_ns)
		now_ns = mesh_clock_ns(); /* not needed until now */
	segment_write_make(request, announcement.segment, path, grant, now_ns, &write);
	announcement.flag = mesh_flag_to_follow(request, path);
	if (announcement.flag && !mesh_write_unflag(path, comm->send.free_segments, &write))
		return SEND_BUSY;
	if (!segment_announce(request, path, &announcement, &write)) {
		mesh_segment_copy_put(comm->send.free_segments);
		return SEND_BUSY;
	}
	ret = segment_write(comm, request, announcement.segment, path, &write);
	if (ret == -EAGAIN) {
		mesh_count(&path->counters->busy, 1);
		mesh_domain_wait(path->domain, &path->waiter);
		return SEND_BUSY;
	}
	if (ret) {
		mesh_path_suspect(path, ret);
		return SEND_POSTED; /* the next attempt takes another path */
	}
	mesh_count(&path->counters->messages, last);
	request->send.posted = !request->send.num_lost &&
			       request->send.next_segment == announcement.num_segments;
	return SEND_POSTED;
}

/* The peer posted too small a receive: both sides must know. */
MESH_HOLDS(comm)
MESH_COLD static enum send_result overflow(struct mesh_request *request,
					   const struct mesh_grant *grant)
{
	if (!mesh_announce_too_large(request))
		return SEND_BUSY;
	mesh_request_overflow(request, grant->size);
	return SEND_BLOCKED;
}

MESH_HOLDS(comm)
__attribute__((noinline)) static enum send_result granted_send(struct mesh_comm *comm,
							       struct mesh_request *request)
{
	struct mesh_held_grant *held = mesh_comm_held_grant(comm, request->seq);
	enum send_result result = SEND_POSTED;

	if (!held || !held->valid || held->seq != request->seq)
		return grant_await(comm);
	if (request->size > held->grant.size)
		return overflow(request, &held->grant);
	if (!comm->num_up || (request->state == MESH_REQUEST_WAITING && !request_cut(request)))
		return SEND_BLOCKED; /* the paths decide how it is cut */
	if (request->send.num_lost && !request->send.settled)
		return SEND_BLOCKED; /* the receiver is being asked */
	while (result == SEND_POSTED && !request->send.posted)
		result = segment_post(comm, request, &held->grant);
	return result;
}

/* ---- both -------------------------------------------------------------------------------- */

/* @full: the path of an earlier message is full. A small message needs no room: it may overtake. */
MESH_HOLDS(comm)
static inline enum send_result request_push(struct mesh_comm *comm, struct mesh_request *request,
					    bool full)
{
	if (request_is_eager(comm, request))
		return eager_send(comm, request);
	return full ? SEND_FULL : granted_send(comm, request);
}

void mesh_send_push(struct mesh_comm *comm)
{
	struct mesh_send_side *send = &comm->send;
	struct mesh_request *request;
	enum send_result result;
	bool full = false;
	uint32_t seq;

	mesh_comm_assert_locked(comm);
	if (send->resending && !mesh_comm_peer_is_over(comm) && !mesh_copies_send(comm))
		return;
	if (comm->peer_end != MESH_END_OPEN)
		return; /* start nothing new; what is in flight completes */
	for (seq = send->first_pending; seq != comm->next_seq && !comm->error; seq++) {
		request = mesh_comm_request(comm, seq);
		result = request->send.posted ? SEND_POSTED : request_push(comm, request, full);
		if (result == SEND_POSTED && seq == send->first_pending)
			send->first_pending++;
		if (result == SEND_BUSY)
			return;
		full |= result == SEND_FULL;
	}
}

void mesh_send_resume(struct mesh_waiter *waiter)
{
	struct mesh_comm *comm = mesh_path_of_waiter(waiter)->comm;

	mesh_comm_lock(comm);
	mesh_send_push(comm);
	mesh_comm_unlock(comm);
}

bool mesh_send_is_complete(struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_request *request = mesh_comm_request(comm, seq);

	if (!mesh_seq_before(seq, comm->next_seq))
		return false;
	/* Either the slot has been reused, or the request in it is complete. */
	return request->seq != seq || !mesh_request_is_open(request);
}

bool mesh_send_awaits_receiver(struct mesh_comm *comm, uint32_t seq)
{
	const struct mesh_held_grant *held = mesh_comm_held_grant(comm, seq);
	const struct mesh_request *request = mesh_comm_request(comm, seq);

	if (request->seq != seq || request->state != MESH_REQUEST_WAITING)
		return false;
	if (request_is_eager(comm, request))
		return !mesh_seq_before(seq, comm->send.peer_posted + MESH_EAGER_WINDOW);
	return !held || !held->valid || held->seq != seq;
}

/*
 * True for a large message that is not the first one to be posted: what those before it wait for
 * leads to a push of all. After small messages it may have to request its grant before that.
 */
static inline bool request_queues(const struct mesh_comm *comm, const struct mesh_request *request)
{
	return comm->send.first_pending != request->seq && !comm->send.eager_run &&
	       !request_is_eager(comm, request);
}

/* Starts a new request: by itself if none waits before it. */
MESH_HOLDS(comm)
static inline void request_start(struct mesh_comm *comm, struct mesh_request *request)
{
	if (request_queues(comm, request))
		return;
	if (comm->send.first_pending != request->seq || comm->error ||
	    comm->peer_end != MESH_END_OPEN)
		mesh_send_push(comm);
	else if (request_push(comm, request, false) == SEND_POSTED)
		comm->send.first_pending++;
}

int mesh_comm_send(struct mesh_comm *comm, const void *data, size_t size,
		   struct mesh_registration *registration, struct mesh_request **request)
{
	struct mesh_request *taken = NULL;
	int ret;

	ret = mesh_request_check(comm, true, data, size, registration);
	if (ret)
		return ret;
	mesh_comm_lock(comm);
	if (!comm->closing)
		taken = mesh_request_take(comm, true, (void *)(uintptr_t)data, size, registration);
	if (taken)
		request_start(comm, taken);
	else
		ret = comm->error;
	*request = taken;
	mesh_comm_unlock(comm);
	return ret;
}
