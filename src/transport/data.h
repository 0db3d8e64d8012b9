/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - the data protocol, docs/protocol/data.md: NCCL's requests, which isend and irecv take,
 * and test reports and frees; sending, receiving, and the receiver's word; NCCL's memory handles;
 * the messages to the peer, and LL128's lines.
 */
#ifndef MESH_TRANSPORT_DATA_H
#define MESH_TRANSPORT_DATA_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "fabric/buffer.h"
#include "fabric/remote.h"
#include "transport/comm.h"

#define MESH_REQUEST_PENDING INT64_MIN

/**
 * Makes progress and checks whether @request is complete; a complete request is freed.
 *
 * Returns the bytes received or sent if it is, MESH_REQUEST_PENDING if not, or the comm's error
 * (negative errno).
 */
int64_t mesh_request_test(struct mesh_request *request);

/* For each state, one bit for each state that it may follow. */
extern const uint8_t mesh_request_may_follow[MESH_REQUEST_STATES];

/**
 * Changes a request's state, which no other code may do, except from DONE to FREE; asserts the
 * legal steps. comm->lock held.
 */
MESH_HOLDS(comm)
static inline void mesh_request_state_set(struct mesh_request *request,
					  enum mesh_request_state state)
{
	mesh_comm_assert_locked(request->comm);
	assert(mesh_request_may_follow[state] &
	       1 << atomic_load_explicit(&request->state, memory_order_relaxed));
	atomic_store_explicit(&request->state, state, memory_order_release);
}

/** Takes the slot for the next request; NULL if it is in use. @sending: comm's. comm->lock held. */
MESH_HOLDS(comm)
static inline struct mesh_request *mesh_request_take(struct mesh_comm *comm, bool sending,
						     void *data, size_t size,
						     struct mesh_registration *registration)
{
	struct mesh_request *request = mesh_comm_request(comm, comm->next_seq);

	mesh_comm_assert_locked(comm);
	if (atomic_load_explicit(&request->state, memory_order_acquire) != MESH_REQUEST_FREE)
		return NULL;
	request->comm = comm;
	request->seq = comm->next_seq++;
	atomic_store_explicit(&comm->quiet, false, memory_order_relaxed);
	request->data = data;
	request->size = size;
	request->registration = registration;
	if (sending) {
		request->send = (struct mesh_request_send){0};
	} else {
		/* The first segment resets the arrays; small messages have none. */
		request->receive.grant = MESH_GRANT_NONE;
		request->receive.num_segments = 0;
		request->receive.num_arrived = 0;
	}
	mesh_request_state_set(request, MESH_REQUEST_WAITING);
	return request;
}

/**
 * How many requests are complete, from the first on: the number of the oldest that is not.
 *
 * @seq: so many are known to be
 */
MESH_HOLDS(comm)
uint32_t mesh_requests_done_from(struct mesh_comm *comm, uint32_t seq);

/** The same where nothing is known. */
MESH_HOLDS(comm)
static inline uint32_t mesh_requests_done(struct mesh_comm *comm)
{
	return mesh_requests_done_from(comm, comm->next_seq - MESH_COMM_REQUESTS);
}

/** Logs why a call is refused. Returns -EINVAL. */
MESH_COLD
int mesh_request_refuse(const struct mesh_comm *comm, bool sending, const void *data, size_t size);

/**
 * Ends the comm: the message is larger than its receive.
 *
 * @other: bytes of what is at the other end, the receive or the message
 */
MESH_HOLDS(comm)
MESH_COLD
void mesh_request_overflow(const struct mesh_request *request, uint64_t other);

/** Checks what NCCL passed: direction, size, registration. Returns 0 or -EINVAL after a WARN. */
static inline int mesh_request_check(const struct mesh_comm *comm, bool sending, const void *data,
				     size_t size, const struct mesh_registration *registration)
{
	size_t offset;

	if (comm->sending != sending || (sending && size > MESH_MESSAGE_MAX))
		return mesh_request_refuse(comm, sending, data, size);
	if (!size)
		return 0;
	if (!registration)
		return mesh_request_refuse(comm, sending, data, size);
	/* Far too large if the data lies before the registration. */
	offset = (uintptr_t)data - (uintptr_t)registration->data;
	if (size > registration->size || offset > registration->size - size)
		return mesh_request_refuse(comm, sending, data, size);
	return 0;
}

/* ---- sending (send.c) ------------------------------------------------------------------------ */

/**
 * Starts to send @size bytes. *request is NULL if nothing could be started: call again later. It is
 * undefined after an error.
 *
 * @registration: covers the data; may be NULL if @size is 0
 *
 * Returns 0; -EINVAL for a receive comm, a message over MESH_MESSAGE_MAX or outside its
 * registration. On a comm that has failed a request is started nevertheless, and fails in
 * mesh_request_test(), as in NCCL's own transports; the comm's error (negative errno) only if it is
 * closing, or has no request left.
 */
int mesh_comm_send(struct mesh_comm *comm, const void *data, size_t size,
		   struct mesh_registration *registration, struct mesh_request **request);

/** The message in the buffer, of either end, and perhaps about a request, is out. */
void mesh_message_sent(struct mesh_buffer *buffer, int error);

/** Called from a poll: posts what found no room before. domain->lock held. */
void mesh_send_resume(struct mesh_waiter *waiter);

/**
 * Posts what can be posted of each request. A large message that waits for its grant does not delay
 * the messages after it: each message carries its sequence number. comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_send_push(struct mesh_comm *comm);

/** True if message @seq waits for a grant or credit of the receiver. comm->lock held. */
MESH_HOLDS(comm)
bool mesh_send_awaits_receiver(struct mesh_comm *comm, uint32_t seq);

/** True if message @seq is complete at this end. comm->lock held. */
MESH_HOLDS(comm)
bool mesh_send_is_complete(struct mesh_comm *comm, uint32_t seq);

/* ---- receiving (receive.c) ------------------------------------------------------------------- */

/** Starts to receive up to @size bytes; the same rules as mesh_comm_send(). */
int mesh_comm_receive(struct mesh_comm *comm, void *data, size_t size,
		      struct mesh_registration *registration, struct mesh_request **request);

/** What arrives for a receiving comm: DATA, WANT, WRITTEN. domain->lock held. */
void mesh_receive_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			  const void *payload);

/** A segment has been written into a receive. domain->lock held. */
void mesh_receive_written(struct mesh_sink *sink, const struct mesh_immediate *immediate);

/** Called from a poll: sends what found no room before. domain->lock held. */
void mesh_receive_resume(struct mesh_waiter *waiter);

/**
 * Sends all grants again, because they may not have arrived: the sender has waited with message
 * @seq for long. Grants also report how many receives are posted. comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_receive_grants_resend(struct mesh_comm *comm, uint32_t seq);

/** True if the first @count messages have all arrived. comm->lock held. */
MESH_HOLDS(comm)
bool mesh_receive_has_all(struct mesh_comm *comm, uint32_t count);

/** True if the sender has sent something that no receive was posted for. comm->lock held. */
bool mesh_receive_has_early(const struct mesh_comm *comm);

/* ---- the receiver's word: grants, and what is complete (grants.c) ---------------------------- */

/**
 * Sends the grants that are due, and POSTED. What finds no free buffer is sent from a later poll.
 * comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_grants_update(struct mesh_comm *comm);

/**
 * The same after a receive was posted. A sender that holds grants does not wait for this one: the
 * next poll sends it, after what NCCL sends before that, which is usually the answer to the last
 * message. comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_grants_update_soon(struct mesh_comm *comm);

/** A message is complete that came whole over @path: its sender may wait for our word. */
MESH_HOLDS(comm)
void mesh_ack_want(const struct mesh_request *request, const struct mesh_path *path);

/** True if a sender may wait for our word. comm->lock held. */
MESH_HOLDS(comm)
static inline bool mesh_ack_is_wanted(const struct mesh_comm *comm)
{
	return comm->receive.acked != comm->receive.ack_wanted;
}

/** After a receive is complete: says so in a moment, if no GRANT does before. comm->lock held. */
MESH_HOLDS(comm)
void mesh_ack_update(struct mesh_comm *comm);

/** Called from a poll: says what no GRANT has said. comm->lock held. */
MESH_HOLDS(comm)
void mesh_ack_resume(struct mesh_comm *comm);

/** Says it at once, and again. comm->lock held. */
MESH_HOLDS(comm)
void mesh_ack_send(struct mesh_comm *comm);

/** What arrives for a sending comm: GRANT, POSTED. domain->lock held. */
void mesh_credit_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			 const void *payload);

/* ---- NCCL's memory handles: one registration for each path's domain (registration.c) --------- */

/**
 * Registers host memory for the comm. May run beside send, receive and test of the same comm.
 *
 * @size: bytes, may be 0
 */
int mesh_registration_open(struct mesh_comm *comm, void *data, size_t size,
			   struct mesh_registration **registration);

/**
 * Registers what @path, which rests, and is about to move to @domain, needs there, in place of what
 * it has: also what the path behind the comm's last one needs, which is about to be added. Where
 * that pins memory a thread does it, and has the engine look for routes when it is done
 * (process->routeless). process->lock held.
 *
 * Returns 0: the path may move; -EAGAIN: not yet, call it again; or another negative errno: it
 * cannot move there, and the next call tries it again.
 */
MESH_HOLDS(process)
int mesh_registrations_prepare(struct mesh_comm *comm, int path, struct mesh_domain *domain);

/**
 * @path has moved, and carries nothing, or it is open behind the comm's last one: then the comm has
 * it from now on. process->lock held.
 *
 * Returns 0; -EAGAIN if NCCL has registered more since it was prepared: then the path cannot be
 * used, and may be prepared and moved again; or, of a new path, -ECANCELED if NCCL closes the comm,
 * which relies on its paths.
 */
MESH_HOLDS(process)
int mesh_registrations_check(struct mesh_comm *comm, int path);

/** Closes a registration; if requests still use it, the comm is ended first. NULL is allowed. */
void mesh_registration_close(struct mesh_comm *comm, struct mesh_registration *registration);

/** Closes the registrations that NCCL left open, which may take long. No lock held. */
void mesh_registrations_close(struct mesh_comm *comm);

/* ---- messages, over the path that delivers them first, and announcements (message.c) --------- */

/** A message as it goes out. */
struct mesh_outgoing {
	struct mesh_message_header header; /* but for comm and token, which the path fills in */
	const void *payload;		   /* header.length bytes */
};

/**
 * Sends a message to the peer. Short ones leave at once; others take a buffer, and @request, which
 * may be NULL, has one more unfinished operation until they are out. comm->lock held.
 *
 * Returns false if there is no buffer now: the next poll calls comm's resume function. Also while
 * no path is up; then the function that brings one up calls it.
 */
MESH_HOLDS(comm)
bool mesh_comm_message_send(struct mesh_comm *comm, const struct mesh_outgoing *message,
			    struct mesh_request *request);

/**
 * Sends the small message of @request, if it can leave at once and there is no choice of paths: the
 * short form of mesh_comm_message_send(), without an unfinished operation. comm->lock held.
 *
 * Returns false if it has not been sent.
 */
MESH_HOLDS(comm)
bool mesh_comm_data_inject(struct mesh_comm *comm, const struct mesh_request *request);

/** An operation on the path, a message or a write, is over. @error: negative errno, or 0 */
MESH_HOLDS(comm)
void mesh_path_operation_end(struct mesh_path *path, int error);

/* What a write has put into the receiver's memory. */
struct mesh_announcement {
	uint32_t segment, num_segments;
	bool full;     /* the message fills its grant */
	uint64_t flag; /* of the lines, which the write has left out (below); 0: of none */
};

/**
 * Adds to @write, whose segment goes over @path, what announces it: the immediate if that says all,
 * else the message behind it. A write that is not posted leaves the message with the caller.
 * comm->lock held.
 *
 * Returns false if there is no buffer for the message: the next poll calls comm's resume function.
 */
MESH_HOLDS(comm)
bool mesh_announce(struct mesh_request *request, struct mesh_path *path,
		   const struct mesh_announcement *announcement, struct mesh_write *write);

/**
 * Informs the receiver that the message of @request is larger than its receive, so that nothing is
 * written. comm->lock held. Returns as mesh_comm_message_send() does.
 */
MESH_HOLDS(comm)
bool mesh_announce_too_large(struct mesh_request *request);

/* ---- the lines of NCCL's LL128, in which a GPU polls flags while they land (place.c) --------- */

/*
 * Bytes whose last word is a flag in NCCL's LL128 protocol (NCCL_LL128_LINESIZE, device.h).
 * Segments are cut at multiples of it, too.
 */
#define MESH_LINE_BYTES 128
/*
 * Bytes that one write has of a message whose flags travel behind it: a message buffer holds the
 * copy. Messages of more than MESH_SEGMENTS_MAX of them are none of LL128, whose largest has
 * 614,400 bytes (NCCL_LL128_ELEMS_PER_THREAD, device.h).
 */
#define MESH_UNFLAGGED_BYTES ((size_t)8 << 10)

/**
 * Copies @size bytes to @to so that a reader who polls flags inside @to never sees a flag before
 * its data: in order of address, in stores that keep each 8 bytes together (LL has 4 bytes of data
 * and a flag there), and the last word of each 128-byte line after the rest of the line (LL128).
 *
 * @to: lines count from here; fastest and atomic where it is 8-byte aligned, as NCCL's buffers are
 */
void mesh_place(void *to, const void *from, size_t size);

/** Bytes of each segment but the last of a message of @size bytes: whole lines of 128 bytes. */
size_t mesh_segment_size(const struct mesh_comm *comm, size_t size);

/**
 * The flag that each line of a message of LL128 has in its last 8 bytes: the same in all of them,
 * not 0, and below 2^48 (the number of a step, sendProxyProgress() in net.cc). Other data may look
 * so, too; that costs it speed, and nothing else.
 *
 * Returns the flag; 0 if this is no such message.
 */
uint64_t mesh_flag_find(const void *data, size_t size);

/**
 * Copies whole lines, with 0 in place of their flags.
 *
 * @size: bytes, a multiple of MESH_LINE_BYTES
 */
void mesh_flag_leave_out(void *to, const void *from, size_t size);

/** Gives each whole line of @to its flag: a reader who sees one sees what was stored before. */
void mesh_flag_store(void *to, size_t size, uint64_t flag);

/** True if the message has flags, and a path that may carry it may not keep their order. */
MESH_HOLDS(comm)
bool mesh_request_is_flagged(const struct mesh_request *request);

/**
 * True if what is written over the path may arrive in any order. A NIC keeps that of an RDMA write;
 * what the last relay has is not known here.
 */
static inline bool mesh_path_reorders(const struct mesh_path *path)
{
	return !path->is_acknowledged || mesh_path_has_relay(path);
}

/** The flag of a message that is being sent; 0: it has none, or it need not follow. */
MESH_HOLDS(comm)
static inline uint64_t mesh_request_flag(const struct mesh_request *request)
{
	return request->send.flagged ? mesh_flag_find(request->data, MESH_LINE_BYTES) : 0;
}

/** The flag that has to follow what is written over @path; 0: the write has it. */
MESH_HOLDS(comm)
static inline uint64_t mesh_flag_to_follow(const struct mesh_request *request,
					   const struct mesh_path *path)
{
	return mesh_path_reorders(path) ? mesh_request_flag(request) : 0;
}

/**
 * Makes @write, of @segment over @path, one of a copy that lacks the flags. The copy lives until
 * mesh_segment_copy_put(). comm->lock held.
 *
 * Returns false if there is no buffer for it: tried again after the next poll.
 */
MESH_HOLDS(comm)
bool mesh_write_unflag(struct mesh_path *path, struct mesh_segment *segment,
		       struct mesh_write *write);

/** The write is over, or was not posted: nothing reads its copy, if it has one. */
static inline void mesh_segment_copy_put(struct mesh_segment *segment)
{
	if (segment->copy)
		mesh_buffer_put(segment->copy);
	segment->copy = NULL;
}

#endif
