/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_end.c - the states of a comm's two ends, the engine's part of closing (close.c), and the
 * fence of a comm that ends.
 */
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "fabric/endpoint.h"
#include "transport/comm_life.h"
#include "transport/data.h"
#include "transport/resend.h"
#include "wire/stats.h"

/* A receiver that closes says within this time what is complete, or nothing more comes of it. */
#define WORD_MS 200

/* ---- the states ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} ends[MESH_END_STATES] = {
	[MESH_END_OPEN] = {"open", 0},
	[MESH_END_CLOSING] = {"closing", 1 << MESH_END_OPEN},
	[MESH_END_CLOSED] = {"closed", 1 << MESH_END_OPEN | 1 << MESH_END_CLOSING},
	[MESH_END_UNCLEAN] = {"unclean",
			      1 << MESH_END_OPEN | 1 << MESH_END_CLOSING | 1 << MESH_END_CLOSED},
};

static bool end_may_become(enum mesh_end end, enum mesh_end state)
{
	return ends[state].may_follow & 1 << end;
}

/* @end: &comm->own_end or &comm->peer_end */
MESH_HOLDS(comm)
static void end_set(struct mesh_comm *comm, enum mesh_end *end, enum mesh_end state)
{
	bool legal = end_may_become(*end, state);

	mesh_comm_assert_locked(comm);
	assert(legal);
	(void)legal;
	mesh_trace("%s node %s, %s end of the connection: %s -> %s",
		   comm->sending ? "sending to" : "receiving from", comm->peer_name,
		   end == &comm->own_end ? "our" : "its", ends[*end].name, ends[state].name);
	*end = state;
	if (end == &comm->peer_end)
		comm->peer_end_ms = mesh_clock_ms();
}

/* Frames come from another node: one that is late or a duplicate is ignored. */
void mesh_comm_peer_end_learn(struct mesh_comm *comm, enum mesh_end state)
{
	mesh_comm_assert_locked(comm);
	if (end_may_become(comm->peer_end, state))
		end_set(comm, &comm->peer_end, state);
}

bool mesh_comm_end(struct mesh_comm *comm, int error, const char *why)
{
	bool used;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	mesh_comm_peer_end_learn(comm, MESH_END_UNCLEAN);
	if (!mesh_end_is_over(comm->own_end))
		end_set(comm, &comm->own_end, MESH_END_UNCLEAN);
	mesh_doubts_end(comm);
	used = !comm->error && !comm->closing;
	if (used)
		mesh_count_event(&comm->process->counters->comms_failed);
	mesh_comm_fail(comm, error, true, why);
	mesh_comm_unlock(comm);
	return used;
}

/* ---- our own end --------------------------------------------------------------------------- */

/* Sends the frame about @state of our end. */
MESH_HOLDS(process)
static void end_send(struct mesh_comm *comm, enum mesh_end state)
{
	struct mesh_frame frame = {.close = {.closed = state != MESH_END_CLOSING}};

	mesh_comm_lock(comm);
	if (!comm->sending && state != MESH_END_CLOSING)
		frame.close.sent = mesh_requests_done(comm);
	if (comm->sending && state != MESH_END_CLOSING) {
		frame.close.sent = comm->send.first_pending;
		frame.close.writes = comm->send.writes;
		frame.close.unclean = state == MESH_END_UNCLEAN ||
				      mesh_send_is_in_doubt(comm, false) ||
				      (comm->send.num_unacked && comm->send.round);
		frame.close.unacked = comm->send.num_unacked != 0;
	}
	mesh_comm_unlock(comm);
	mesh_comm_frame_send(comm, &frame, MESH_FRAME_CLOSE);
}

void mesh_comm_end_step(struct mesh_comm *comm, enum mesh_end state)
{
	bool news;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	news = !mesh_end_is_over(comm->own_end) && end_may_become(comm->own_end, state);
	if (news)
		end_set(comm, &comm->own_end, state);
	if (news && mesh_comm_is_cut(comm))
		comm->end_in_doubt = true; /* the first path that is back carries it */
	mesh_comm_unlock(comm);
	if (news)
		end_send(comm, state);
}

void mesh_comm_end_repeat(struct mesh_comm *comm)
{
	enum mesh_end state;
	bool repeats;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	repeats = comm->end_in_doubt && !mesh_comm_is_cut(comm);
	if (repeats)
		comm->end_in_doubt = false;
	state = comm->own_end;
	mesh_comm_unlock(comm);
	if (!repeats)
		return;
	if (!comm->sending && comm->closed_ms)
		comm->closed_ms = mesh_clock_ms(); /* what counts for a receiver is the last one */
	end_send(comm, state);
}

void mesh_comm_refuse(const struct mesh_comm *comm)
{
	struct mesh_frame frame = {.close = {.closed = 1}};

	mesh_comm_frame_send(comm, &frame, MESH_FRAME_CLOSE);
}

/* ---- the peer closes ----------------------------------------------------------------------- */

/*
 * A frame about a comm's end has arrived: the process of @peer runs. One engine serves all of its
 * connections, in both directions and over all links.
 */
MESH_HOLDS(process)
static void peer_answered(const struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		other->owes_ms = 0;
		other->warned &= ~MESH_PEER_WARNED_SLOW;
	}
}

/*
 * True if the receiver has not said yet whether messages have arrived, in doubt or not. One that
 * closes answers RESUME, and its CLOSED says the same.
 */
MESH_HOLDS(comm)
static bool awaits_verdict(struct mesh_comm *comm)
{
	if (comm->error || mesh_comm_peer_is_over(comm))
		return false;
	return mesh_send_is_in_doubt(comm, true) ||
	       (comm->send.num_unacked &&
		mesh_clock_elapsed_ms(comm->peer_end_ms, mesh_clock_ms()) < WORD_MS);
}

/* True if the peer waits, and our end can close. If NCCL closes our end, NCCL's thread answers. */
MESH_HOLDS(comm)
static bool answer_is_due(struct mesh_comm *comm)
{
	mesh_comm_assert_locked(comm);
	if (!mesh_comm_peer_asks(comm) || comm->closing)
		return false;
	if (comm->sending)
		return !comm->unfinished && !awaits_verdict(comm);
	return mesh_comm_peer_is_over(comm) &&
	       (comm->error || mesh_receive_has_all(comm, comm->peer_sent));
}

MESH_HOLDS(comm)
static bool is_late(const struct mesh_comm *comm, uint64_t now_ms)
{
	uint64_t limit_ms = comm->process->config.dead_peer_timeout_s * 1000;

	return mesh_clock_elapsed_ms(comm->peer_end_ms, now_ms) > limit_ms;
}

/* Fails the comm if messages that the sender has sent do not arrive. */
MESH_HOLDS(comm)
static void missing_check(struct mesh_comm *comm)
{
	if (!comm->sending && !comm->error && mesh_comm_peer_asks(comm) &&
	    mesh_comm_peer_is_over(comm) && is_late(comm, mesh_clock_ms()) &&
	    !mesh_receive_has_all(comm, comm->peer_sent))
		mesh_comm_fail(
			comm, -EIO, false,
			"the sender closed the connection, or failed, and not all of what it "
			"sent has arrived: see its log");
}

/* True if messages wait or were lost, which the receiver no longer takes. */
MESH_HOLDS(comm)
static bool has_unsent(struct mesh_comm *comm)
{
	return comm->send.first_pending != comm->next_seq || comm->send.num_unacked ||
	       mesh_send_is_in_doubt(comm, false);
}

/*
 * Fails the comm. Returns true if NCCL misses something: messages that the receiver no longer
 * takes, or what receives are posted for. Else this is how every job ends; if NCCL uses the comm
 * all the same, test() reports why it cannot (mesh_comm_end_report()).
 */
MESH_HOLDS(comm)
static bool ended_fail(struct mesh_comm *comm)
{
	bool missed = comm->sending ? has_unsent(comm)
				    : !mesh_receive_has_all(comm, comm->next_seq);

	if (comm->error)
		return false;
	mesh_comm_fail(comm, -EPIPE, true,
		       missed	       ? NULL
		       : comm->sending ? "the receiver closed the connection"
				       : "the sender closed the connection");
	comm->unreported =
		comm->sending ? "the receiver closed the connection, or failed: see its log"
			      : "the sender closed the connection, or failed, while receives were "
				"posted: see its log";
	return missed;
}

/* Answers a closing peer once all that it sent has arrived and nothing of ours is in flight. */
MESH_HOLDS(process)
static void comm_tick(struct mesh_comm *comm)
{
	bool due, missed;

	mesh_comm_lock(comm);
	missing_check(comm);
	mesh_doubts_end(comm);
	due = answer_is_due(comm);
	/* Not earlier: what was in flight when CLOSE arrived has been delivered, and is sent. */
	missed = due && ended_fail(comm);
	mesh_comm_unlock(comm);
	if (missed)
		mesh_comm_end_report(comm);
	if (due)
		mesh_comm_end_step(comm, MESH_END_CLOSED);
}

static void asked_expired(struct mesh_timer *timer, uint64_t now_ms);

/* While the peer waits for our end of a comm that NCCL uses, the engine polls, and looks again. */
MESH_HOLDS(process)
static void asked_wait(struct mesh_comm *comm, uint64_t now_ms)
{
	bool waits, late;

	mesh_comm_lock(comm);
	waits = mesh_comm_peer_asks(comm) && !comm->closing;
	late = is_late(comm, now_ms);
	mesh_comm_unlock(comm);
	if (!waits)
		return;
	comm->timer.expired = asked_expired;
	mesh_engine_timer_set(&comm->process->engine, &comm->timer,
			      now_ms + (late ? MESH_ENGINE_LOOK_MS : MESH_ENGINE_POLL_MS));
}

MESH_HOLDS(process)
static void asked_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_comm *comm = mesh_container_of(timer, struct mesh_comm, timer);

	comm_tick(comm);
	asked_wait(comm, now_ms);
}

/* Learns what CLOSED says: only the first counts are used. */
MESH_HOLDS(comm)
static void closed_learn(struct mesh_comm *comm, const struct mesh_frame_close *frame)
{
	if (!mesh_comm_peer_is_over(comm)) {
		comm->peer_said = frame->unacked ? MESH_SAID_CLOSED_UNACKED : MESH_SAID_CLOSED;
		comm->peer_sent = frame->sent;
		comm->peer_writes = frame->writes;
	} else if (!comm->sending && mesh_end_is_over(comm->own_end)) {
		comm->end_in_doubt = true; /* a sender repeats CLOSED only if it has no answer */
	}
	mesh_comm_peer_end_learn(comm, frame->unclean ? MESH_END_UNCLEAN : MESH_END_CLOSED);
}

void mesh_comm_close_came(struct mesh_comm *comm, const struct mesh_frame_close *frame)
{
	mesh_comm_lock(comm);
	if (!comm->peer_said)
		comm->peer_said = MESH_SAID_CLOSE;
	if (frame->closed)
		closed_learn(comm, frame);
	else
		mesh_comm_peer_end_learn(comm, MESH_END_CLOSING);
	mesh_comm_unlock(comm);
	peer_answered(mesh_comm_frame_peer(comm));
	comm_tick(comm);
	if (frame->closed)
		mesh_comm_end_repeat(comm);
	/*
	 * The answer is CLOSE, because our operations in flight may take long: it proves that this
	 * process runs, and a peer that frees its end meanwhile polls for us.
	 */
	mesh_comm_end_step(comm, MESH_END_CLOSING);
	asked_wait(comm, mesh_clock_ms());
}

/* ---- the fence ------------------------------------------------------------------------------- */

/*
 * True if the path needs no fence: a sender has nothing in flight there; at a receiver it was
 * fenced, or the last relay has reported that it writes nothing more.
 */
MESH_HOLDS(process)
MESH_HOLDS(comm)
static bool path_is_at_rest(const struct mesh_path *path)
{
	if (path->comm->sending)
		return !path->unfinished;
	return path->drained || path->state == MESH_PATH_DOWN;
}

bool mesh_paths_are_at_rest(const struct mesh_comm *comm)
{
	int i = 0;

	mesh_process_assert_locked(comm->process);
	while (i < comm->num_paths && path_is_at_rest(&comm->paths[i]))
		i++;
	return i == comm->num_paths;
}

/*
 * Ends the comm's use of one circuit, without a fence, which would cut the link to the relay: what
 * a sender has in flight ends in the relay's memory, and a receiver asks the last relay to write
 * nothing more. Operations that fail by that are no fault of the link.
 */
MESH_HOLDS(process)
static void circuit_leave(struct mesh_path *path)
{
	struct mesh_domain *domain = path->peer->domain;

	path->broken = true;
	if (path->comm->sending) {
		mesh_domain_lock(domain);
		mesh_path_abandon(path);
		mesh_domain_unlock(domain);
	} else if (!path->drain_asked_ms) {
		mesh_path_drain_ask(path);
	}
}

/* Comms that have ended as well need no fence of their own for this. */
MESH_HOLDS(process)
static void fenced_note(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;
	struct mesh_path *path;

	LIST_FOREACH(user, &peer->user_list, entry) {
		path = mesh_path_if_user(user);
		if (!path)
			continue;
		mesh_comm_lock(path->comm);
		path->drained |= path->comm->peer_end == MESH_END_UNCLEAN;
		mesh_comm_unlock(path->comm);
	}
}

/*
 * The comms with one process share the provider's connection on each link. A fence drops all that
 * is queued there, also messages of other comms that count as sent already. So the link is lost,
 * and they go on by recovery. First, so that none of them posts anything there. On verbs a write
 * cuts the connection, as at the end that has not noticed a loss: our endpoint serves other peers,
 * too.
 *
 * Returns false while the fence is in progress.
 */
MESH_HOLDS(process)
static bool path_fence(struct mesh_path *path)
{
	static const char why[] = "a connection with it that ends is cut off here";
	struct mesh_peer *peer = path->peer;

	if (peer->fenced != MESH_FENCED) {
		if (peer->state == MESH_PEER_UP || peer->cut == MESH_PEER_CUT_CLOSE)
			mesh_endpoint_spend(peer->domain);
		if (peer->state == MESH_PEER_UP)
			mesh_link_lose(peer, why, 0);
		mesh_peer_flow_lose(peer, why);
		if (peer->cut == MESH_PEER_CUT_CLOSE)
			peer->cut = MESH_PEER_CUT_WRITE;
		mesh_peer_bury(peer);
		if (!mesh_peer_fence(peer))
			return peer->fenced == MESH_FENCED_FAILED; /* a WARN says so */
	}
	mesh_domain_lock(peer->domain);
	mesh_path_abandon(path); /* what was not known to be written before */
	mesh_domain_unlock(peer->domain);
	fenced_note(peer);
	return true;
}

/* Returns false until nothing more can be done to have the path at rest. */
MESH_HOLDS(process)
static bool path_rest(struct mesh_path *path, bool late)
{
	struct mesh_comm *comm = path->comm;
	bool rests;

	mesh_comm_lock(comm);
	rests = path->drained || path_is_at_rest(path);
	mesh_comm_unlock(comm);
	if (rests)
		return true;
	if (!mesh_path_has_relay(path) || path->peer->state != MESH_PEER_UP || late ||
	    mesh_relay_is_silent(&path->question, comm->process, mesh_clock_ms()))
		return path_fence(path);
	circuit_leave(path);
	return false;
}

bool mesh_comm_fence_step(struct mesh_comm *comm, bool late)
{
	bool done = true;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		mesh_process_lock(comm->process); /* a fence on tcp may take a moment */
		done &= path_rest(&comm->paths[i], late);
		mesh_process_unlock(comm->process);
	}
	return done;
}

/* ---- writes that never complete -------------------------------------------------------------- */

/* The hop of a relayed path counts its writes by itself. */
static void write_forget(struct mesh_segment *segment)
{
	struct mesh_path *path = segment->path;
	struct mesh_domain *domain = path->domain;
	size_t size;

	mesh_domain_lock(domain);
	mesh_comm_lock(path->comm);
	size = segment->size;
	segment->size = 0;
	mesh_comm_unlock(path->comm);
	if (size && !mesh_path_is_relayed(path))
		mesh_flow_forget(domain, path->flow, size);
	mesh_domain_unlock(domain);
}

void mesh_comm_writes_forget(struct mesh_comm *comm)
{
	struct mesh_segment *segment;
	int i;

	if (!comm->sending)
		return;
	for (i = 0; i < comm->send.num_blocks * MESH_WRITES_BLOCK; i++) {
		segment = &comm->send.blocks[i / MESH_WRITES_BLOCK][i % MESH_WRITES_BLOCK];
		if (segment->path)
			write_forget(segment);
	}
}
