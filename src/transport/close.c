/* SPDX-License-Identifier: Apache-2.0 */
/*
 * close.c - brings a comm to rest before NCCL has its memory back.
 *
 * A sender drains what it has in flight, says CLOSE with the number of its messages, and waits
 * for CLOSED: then everything has arrived, and this process may end. A receiver says CLOSE, and
 * waits for CLOSED if the sender could still write into one of its receives. CLOSE from the other
 * side counts as an answer: it says the same. Both tell how many writes there were, and a receiver
 * waits for them all: the socket may still have them. All of it is bounded in time; who does not
 * answer is fenced off.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/fence.h"
#include "fabric/poll.h"
#include "transport/comm.h"
#include "transport/counters.h"
#include "transport/node.h"
#include "transport/protocol.h"

/* After a fence the provider reports what it dropped at once. */
#define DRAIN_MS 1000
/* Turns of a waiting loop that only yield; a handshake on a quiet node takes fewer. */
#define YIELDS 2000

/* ---- the peer's end ----------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} peer_ends[MESH_PEER_END_STATES] = {
	[MESH_PEER_END_OPEN] = {"open", 0},
	[MESH_PEER_END_ASKED] = {"asked", 1 << MESH_PEER_END_OPEN | 1 << MESH_PEER_END_QUIET},
	[MESH_PEER_END_ASKED_UNCLEAN] = {"asked, unclean", 1 << MESH_PEER_END_OPEN |
								   1 << MESH_PEER_END_ASKED |
								   1 << MESH_PEER_END_QUIET |
								   1 << MESH_PEER_END_UNCLEAN},
	[MESH_PEER_END_QUIET] = {"quiet", 1 << MESH_PEER_END_OPEN | 1 << MESH_PEER_END_ASKED},
	[MESH_PEER_END_UNCLEAN] = {"unclean", 1 << MESH_PEER_END_OPEN | 1 << MESH_PEER_END_ASKED |
						      1 << MESH_PEER_END_ASKED_UNCLEAN |
						      1 << MESH_PEER_END_QUIET},
};

void mesh_comm_peer_end_set(struct mesh_comm *comm, enum mesh_peer_end state)
{
	bool legal = peer_ends[state].may_follow & 1 << comm->peer_end;

	mesh_lock_assert_held(&comm->lock);
	assert(legal);
	(void)legal;
	mesh_trace("%s node %s, its end of the connection: %s -> %s",
		   comm->sending ? "sending to" : "receiving from", comm->peer_name,
		   peer_ends[comm->peer_end].name, peer_ends[state].name);
	comm->peer_end = state;
}

/*
 * The peer waits for an answer (@asks), or not any more. Frames are foreign: one that comes twice
 * says nothing new, and none makes clean what was not.
 */
static void peer_end_learn(struct mesh_comm *comm, bool asks, bool unclean)
{
	enum mesh_peer_end state;

	if (unclean || mesh_comm_peer_is_unclean(comm))
		state = asks ? MESH_PEER_END_ASKED_UNCLEAN : MESH_PEER_END_UNCLEAN;
	else
		state = asks ? MESH_PEER_END_ASKED : MESH_PEER_END_QUIET;
	if (state != comm->peer_end)
		mesh_comm_peer_end_set(comm, state);
}

void mesh_comm_close_asked(struct mesh_comm *comm, const struct mesh_frame_comm *frame)
{
	mesh_lock_take(&comm->lock);
	if (!mesh_comm_peer_asks(comm))
		comm->peer_asked_ms = mesh_clock_ms();
	comm->peer_sent = frame->sent;
	comm->peer_writes = frame->writes;
	/* A sender drains before it says so, if it can; a receiver takes nothing more. */
	peer_end_learn(comm, true, frame->unclean);
	mesh_lock_release(&comm->lock);
	comm->paths[0].peer->slow_close = false;
	mesh_comm_tick(comm);
}

void mesh_comm_close_answered(struct mesh_comm *comm, const struct mesh_frame_comm *frame)
{
	mesh_lock_take(&comm->lock);
	comm->peer_writes = frame->writes;
	peer_end_learn(comm, mesh_comm_peer_asks(comm), frame->unclean);
	mesh_lock_release(&comm->lock);
	comm->paths[0].peer->slow_close = false;
}

void mesh_comm_peer_lost(struct mesh_comm *comm)
{
	mesh_lock_take(&comm->lock);
	peer_end_learn(comm, false, true);
	if (!comm->error && !comm->closing)
		mesh_count_event(&comm->node->counters->comms_failed);
	/* The peer's own line has said it for all of its comms. */
	mesh_comm_fail(comm, -ECONNRESET, true, "the peer is lost");
	mesh_lock_release(&comm->lock);
}

/* ---- the answer, which is the engine's part ------------------------------------------------ */

/* CLOSE or CLOSED. @cut: some operations did not end, and were cut off. */
static void frame_send(struct mesh_comm *comm, enum mesh_frame_type type, bool cut)
{
	struct mesh_frame_comm fields = {0};

	mesh_lock_take(&comm->lock);
	if (comm->sending) {
		fields.sent = mesh_send_count(comm);
		fields.writes = comm->send.writes;
		fields.unclean = cut || comm->send.unclean;
	}
	mesh_lock_release(&comm->lock);
	mesh_comm_frame_send(comm, type, fields);
}

static bool answer_is_due(struct mesh_comm *comm)
{
	if (!mesh_comm_peer_asks(comm))
		return false;
	if (comm->sending)
		return !comm->unfinished;
	return comm->error || mesh_receive_has_all(comm, comm->peer_sent);
}

/* What the sender has sent does not come: its connection was reset on the way. */
static void missing_check(struct mesh_comm *comm)
{
	uint64_t limit_ms = comm->node->config.dead_peer_timeout_s * 1000;

	if (mesh_comm_peer_asks(comm) && !comm->sending && !comm->error &&
	    mesh_clock_ms() - comm->peer_asked_ms > limit_ms &&
	    !mesh_receive_has_all(comm, comm->peer_sent))
		mesh_comm_fail(comm, -EIO, false,
			       "the sender closed the connection, and not all of what it sent has "
			       "arrived: the provider's connection was reset on the way");
}

/* Receives that the peer will never send for. */
static void orphans_fail(struct mesh_comm *comm)
{
	bool orphans = !mesh_receive_has_all(comm, comm->next_seq);

	mesh_comm_fail(comm, -EPIPE, !orphans,
		       orphans ? "the sender closed the connection while receives were posted"
			       : "the sender closed the connection");
}

void mesh_comm_tick(struct mesh_comm *comm)
{
	bool due;

	mesh_lock_assert_held(&comm->node->lock);
	mesh_lock_take(&comm->lock);
	missing_check(comm);
	due = answer_is_due(comm);
	if (due)
		peer_end_learn(comm, false, false);
	/* Only now: what was on its way when CLOSE came has been delivered, and counts as sent. */
	if (due && comm->sending)
		mesh_comm_fail(comm, -EPIPE, comm->send.first_pending == comm->next_seq,
			       "the receiver closed the connection");
	else if (due && !comm->error)
		orphans_fail(comm);
	mesh_lock_release(&comm->lock);
	if (due)
		frame_send(comm, MESH_FRAME_CLOSED, false);
}

bool mesh_comm_urgent(struct mesh_comm *comm)
{
	bool urgent;

	mesh_lock_take(&comm->lock);
	urgent = mesh_comm_peer_asks(comm);
	mesh_lock_release(&comm->lock);
	return urgent;
}

/* ---- our own closing ---------------------------------------------------------------------- */

/* True if all that the sender will ever have written is here. */
static bool is_settled(struct mesh_comm *comm)
{
	mesh_lock_assert_held(&comm->lock);
	return mesh_comm_peer_is_over(comm) && !mesh_comm_peer_is_unclean(comm) &&
	       comm->receive.writes == comm->peer_writes;
}

/*
 * The peer's word that it starts nothing any more, or its loss. A sender asks for it, and so does a
 * receiver that could still be written to.
 */
static bool is_answered(struct mesh_comm *comm)
{
	bool answered;

	mesh_lock_take(&comm->node->lock);
	mesh_lock_take(&comm->lock);
	answered = mesh_comm_peer_is_unclean(comm) || mesh_comm_is_cut(comm);
	if (comm->sending)
		answered |= mesh_comm_peer_is_over(comm);
	else
		answered |= is_settled(comm) || !mesh_receive_is_granted(comm);
	mesh_lock_release(&comm->lock);
	mesh_lock_release(&comm->node->lock);
	return answered;
}

static bool is_drained(struct mesh_comm *comm)
{
	bool drained;

	mesh_lock_take(&comm->lock);
	drained = !comm->unfinished;
	mesh_lock_release(&comm->lock);
	return drained;
}

static bool is_drained_or_lost(struct mesh_comm *comm)
{
	bool lost;

	mesh_lock_take(&comm->node->lock);
	lost = mesh_comm_is_cut(comm);
	mesh_lock_release(&comm->node->lock);
	return lost || is_drained(comm);
}

static void comm_poll(struct mesh_comm *comm)
{
	int i;

	for (i = 0; i < comm->num_paths; i++)
		mesh_domain_poll(comm->paths[i].domain);
}

/* Polls until @condition holds. Returns whether it did within @limit_ms. */
static bool wait_for(struct mesh_comm *comm, bool (*condition)(struct mesh_comm *),
		     uint64_t limit_ms)
{
	const struct timespec pause = {.tv_nsec = 500000};
	uint64_t deadline = mesh_clock_ms() + limit_ms;
	int turn;

	for (turn = 0; !condition(comm); turn++) {
		if (mesh_clock_ms() >= deadline)
			return false;
		comm_poll(comm);
		if (turn < YIELDS)
			sched_yield();
		else
			nanosleep(&pause, NULL); /* closing, not the data path */
	}
	return true;
}

/* Returns false if it was done before. */
static bool close_begin(struct mesh_comm *comm)
{
	bool first;

	mesh_lock_take(&comm->lock);
	first = !comm->closing;
	comm->closing = true;
	mesh_comm_fail(comm, -ECANCELED, true, NULL);
	mesh_lock_release(&comm->lock);
	return first;
}

static void close_tell(struct mesh_comm *comm, bool unclean)
{
	mesh_lock_take(&comm->node->lock);
	frame_send(comm, MESH_FRAME_CLOSE, unclean);
	mesh_lock_release(&comm->node->lock);
}

/* How long this peer is worth waiting for: one that kept us waiting before is not. */
static uint64_t patience_ms(struct mesh_comm *comm)
{
	bool slow;

	mesh_lock_take(&comm->node->lock);
	slow = comm->paths[0].peer->slow_close;
	mesh_lock_release(&comm->node->lock);
	return slow ? 0 : comm->node->config.dead_peer_timeout_s * 1000;
}

static void slow_remember(struct mesh_comm *comm)
{
	struct mesh_peer *peer = comm->paths[0].peer;
	char text[MESH_PEER_TEXT_MAX];

	mesh_lock_take(&comm->node->lock);
	if (!peer->slow_close)
		mesh_warn("%s did not answer the end of a connection within %llu s",
			  mesh_peer_text(peer, text),
			  (unsigned long long)comm->node->config.dead_peer_timeout_s);
	peer->slow_close = true;
	mesh_lock_release(&comm->node->lock);
}

/* True if nothing can touch our memory any more; else only a fence helps. */
static bool is_at_rest(struct mesh_comm *comm)
{
	bool rest;

	mesh_lock_take(&comm->lock);
	rest = !comm->unfinished;
	/* CLOSED is the sender's word. A lost peer gave none, and its bytes may still be queued. */
	if (!comm->sending && mesh_receive_is_granted(comm) && !is_settled(comm))
		rest = false;
	mesh_lock_release(&comm->lock);
	return rest;
}

/* Cuts the peer off; the provider then reports what it dropped. */
static void cut_off(struct mesh_comm *comm)
{
	struct mesh_fence fences[MESH_PATHS_MAX] = {0};
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		fences[i].domain = comm->paths[i].domain;
		fences[i].remote = comm->paths[i].remote;
	}
	mesh_remotes_fence(fences, comm->num_paths);
	wait_for(comm, is_drained, DRAIN_MS);
}

static void segment_forget(struct mesh_comm *comm, struct mesh_segment *segment)
{
	struct mesh_domain *domain = segment->path->domain;
	struct mesh_flow *flow;

	mesh_lock_take(&domain->lock);
	mesh_lock_take(&comm->lock);
	flow = segment->flow;
	segment->flow = NULL;
	mesh_lock_release(&comm->lock);
	if (flow)
		mesh_flow_forget(domain, flow, segment->size);
	mesh_lock_release(&domain->lock);
}

/*
 * What has not ended by now may never end. It keeps the comm, but not the room that others need
 * on the way to that endpoint.
 */
static void writes_forget(struct mesh_comm *comm)
{
	int i;

	if (!comm->sending || is_drained(comm))
		return;
	for (i = 0; i < MESH_COMM_WRITES; i++) {
		if (comm->send.segments[i].path)
			segment_forget(comm, &comm->send.segments[i]);
	}
}

void mesh_comm_quiesce(struct mesh_comm *comm)
{
	bool drained;

	if (!close_begin(comm))
		return;
	if (!wait_for(comm, is_drained_or_lost, patience_ms(comm)))
		slow_remember(comm);
	/* One path may be lost while bytes are on their way over another. */
	drained = is_drained(comm);
	/* A sender cuts before it tells, a receiver once the sender has had its chance to stop. */
	if (comm->sending && !drained)
		cut_off(comm);
	/* What was cut off may still lie in the peer's socket: it must fence, too. */
	close_tell(comm, !drained);
	if (!wait_for(comm, is_answered, patience_ms(comm)))
		slow_remember(comm);
	if (!comm->sending && !is_at_rest(comm))
		cut_off(comm);
	writes_forget(comm);
}

void mesh_comm_close(struct mesh_comm *comm)
{
	struct mesh_node *node;

	if (!comm)
		return;
	node = comm->node;
	mesh_comm_quiesce(comm);
	mesh_lock_take(&node->lock);
	mesh_comm_free(comm);
	mesh_lock_release(&node->lock);
}
