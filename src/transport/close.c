/* SPDX-License-Identifier: Apache-2.0 */
/*
 * close.c - brings a comm to rest before NCCL has its memory back.
 *
 * Each end of a comm goes from OPEN through CLOSING to CLOSED (comm.h), and informs the other end
 * of each step. CLOSE is sent at once, while operations are still in flight: from then on the
 * peer's engine polls, so that they complete even if its NCCL does not poll. CLOSED follows when
 * nothing of this end is in flight. A sender's CLOSED carries the number of its messages and
 * writes; a receiver's means that all of them have arrived. So a sender that has received CLOSED
 * may end its process, and a receiver that has received CLOSED waits for the bytes that are still
 * in sockets.
 *
 * The engine of the other process answers the end that closes first; if NCCL closes both ends at
 * the same time, each answers the other. All waits are bounded; a peer that does not answer is
 * fenced.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer_index.h"
#include "control/process.h"
#include "transport/close.h"
#include "transport/comm_end.h"
#include "transport/cut.h"
#include "transport/receive.h"
#include "transport/recovery.h"
#include "transport/send.h"

/* After a fence the provider reports what it dropped at once. */
#define DRAIN_MS 1000
/* The first turns of a waiting loop only yield; a handshake on an idle node takes fewer. */
#define YIELDS 2000
/* If two turns of that loop are further apart than this, this process did not run. */
#define STOPPED_MS 1000
/* The interval of checks, in milliseconds, once a peer has waited for our answer for too long. */
#define LATE_MS 20

/* ---- our own end --------------------------------------------------------------------------- */

/*
 * Takes a step of our end and informs the peer. CLOSED and UNCLEAN travel in the same frame. The
 * engine and NCCL's thread may both come here: the second one does nothing.
 */
MESH_HOLDS(process)
static void own_end_step(struct mesh_comm *comm, enum mesh_end state)
{
	struct mesh_frame frame = {0};
	bool news;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	news = !mesh_end_is_over(comm->own_end) && mesh_end_may_become(comm->own_end, state);
	if (news)
		mesh_comm_end_set(comm, &comm->own_end, state);
	if (comm->sending && state != MESH_END_CLOSING) {
		frame.closed.sent = mesh_send_count(comm);
		frame.closed.writes = comm->send.writes;
		frame.closed.unclean = state == MESH_END_UNCLEAN || comm->send.unclean ||
				       mesh_send_is_in_doubt(comm);
	}
	mesh_comm_unlock(comm);
	if (news)
		mesh_comm_frame_send(comm, &frame,
				     state == MESH_END_CLOSING ? MESH_FRAME_CLOSE
							       : MESH_FRAME_CLOSED);
}

void mesh_comm_refuse(const struct mesh_comm *comm)
{
	struct mesh_frame frame = {.closed = {.sent = 0}};

	mesh_comm_frame_send(comm, &frame, MESH_FRAME_CLOSED);
}

/* ---- who owes an answer -------------------------------------------------------------------- */

/* The peer with which frames about this comm are exchanged. */
MESH_HOLDS(process)
static struct mesh_peer *frame_peer(const struct mesh_comm *comm)
{
	return mesh_path_peer(mesh_comm_frame_path(comm));
}

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
		other->slow_warned = false;
	}
}

/* Since when the peer's process has owed us an answer; 0 if it does not. */
MESH_HOLDS(process)
static uint64_t peer_owes_since(const struct mesh_peer *peer)
{
	uint64_t since_ms = peer->owes_ms;
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (other->owes_ms && other->state != MESH_PEER_LOST &&
		    (!since_ms || other->owes_ms < since_ms))
			since_ms = other->owes_ms;
	}
	return since_ms;
}

/* ---- the peer closes: the engine's part ---------------------------------------------------- */

/* True if the peer waits, and our end can close. If NCCL closes our end, NCCL's thread answers. */
MESH_HOLDS(comm)
static bool answer_is_due(struct mesh_comm *comm)
{
	mesh_comm_assert_locked(comm);
	if (!mesh_comm_peer_asks(comm) || comm->closing)
		return false;
	if (comm->sending)
		return !comm->unfinished;
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
		mesh_comm_fail(comm, -EIO, false,
			       "the sender closed the connection, and not all of what it sent has "
			       "arrived: the provider's connection was reset on the way");
}

/* Fails the comm; logs it if receives are posted, for which nothing will arrive. */
MESH_HOLDS(comm)
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

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	missing_check(comm);
	due = answer_is_due(comm);
	/* Not earlier: what was in flight when CLOSE arrived has been delivered, and is sent. */
	if (due && comm->sending)
		mesh_comm_fail(comm, -EPIPE, comm->send.first_pending == comm->next_seq,
			       "the receiver closed the connection");
	else if (due && !comm->error)
		orphans_fail(comm);
	mesh_comm_unlock(comm);
	if (due)
		own_end_step(comm, MESH_END_CLOSED);
}

/* How soon mesh_comm_tick() is to be called again, in milliseconds; -1: the peer does not wait. */
static int comm_timeout(struct mesh_comm *comm, uint64_t now_ms)
{
	int timeout = -1;

	mesh_comm_lock(comm);
	if (mesh_comm_peer_asks(comm) && !comm->closing)
		timeout = is_late(comm, now_ms) ? LATE_MS : 0;
	mesh_comm_unlock(comm);
	return timeout;
}

void mesh_comm_asked_set(struct mesh_comm *comm, bool asked)
{
	mesh_process_assert_locked(comm->process);
	if (asked && !comm->asked)
		LIST_INSERT_HEAD(&comm->process->asked, comm, asked_entry);
	else if (!asked && comm->asked)
		LIST_REMOVE(comm, asked_entry);
	comm->asked = asked;
}

/*
 * Answers with CLOSE, because our operations in flight may take long: it proves that this process
 * runs, and a peer that frees its end meanwhile polls for us.
 */
MESH_HOLDS(process)
static void echo(struct mesh_comm *comm)
{
	own_end_step(comm, MESH_END_CLOSING);
	mesh_comm_asked_set(comm, comm_timeout(comm, mesh_clock_ms()) >= 0);
}

void mesh_comm_close_came(struct mesh_comm *comm)
{
	mesh_comm_lock(comm);
	comm->close_received = true;
	mesh_comm_peer_end_learn(comm, MESH_END_CLOSING);
	mesh_comm_unlock(comm);
	peer_answered(frame_peer(comm));
	mesh_comm_tick(comm);
	echo(comm);
}

void mesh_comm_closed_came(struct mesh_comm *comm, const struct mesh_frame_closed *frame)
{
	mesh_comm_lock(comm);
	comm->close_received = true;
	/* Only the first counts are used. */
	if (!mesh_comm_peer_is_over(comm)) {
		comm->peer_sent = frame->sent;
		comm->peer_writes = frame->writes;
	}
	mesh_comm_peer_end_learn(comm, frame->unclean ? MESH_END_UNCLEAN : MESH_END_CLOSED);
	mesh_comm_unlock(comm);
	peer_answered(frame_peer(comm));
	mesh_comm_tick(comm);
	echo(comm);
}

void mesh_comms_asked_tick(struct mesh_process *process, uint64_t now_ms)
{
	struct mesh_peer *peer, *next_peer;
	struct mesh_comm *comm, *next;

	mesh_process_assert_locked(process);
	for (comm = LIST_FIRST(&process->asked); comm; comm = next) {
		next = LIST_NEXT(comm, asked_entry);
		mesh_comm_tick(comm);
		if (comm_timeout(comm, now_ms) < 0)
			mesh_comm_asked_set(comm, false);
	}
	for (peer = LIST_FIRST(&process->strays); peer; peer = next_peer) {
		next_peer = LIST_NEXT(peer, stray_entry);
		if (now_ms >= peer->stray_until_ms)
			mesh_peer_drain_end(peer);
	}
}

int mesh_comms_asked_timeout(struct mesh_process *process, uint64_t now_ms)
{
	int timeout = LIST_EMPTY(&process->strays) ? -1 : 0, one;
	struct mesh_comm *comm;

	mesh_process_assert_locked(process);
	LIST_FOREACH(comm, &process->asked, asked_entry) {
		one = comm_timeout(comm, now_ms);
		if (one >= 0 && (timeout < 0 || one < timeout))
			timeout = one;
	}
	return timeout;
}

/* ---- our own closing ---------------------------------------------------------------------- */

/* True if all writes of the sender have arrived, or can no longer arrive. */
MESH_HOLDS(comm)
static bool is_settled(struct mesh_comm *comm)
{
	mesh_comm_assert_locked(comm);
	return comm->peer_end == MESH_END_CUT ||
	       (comm->peer_end == MESH_END_CLOSED &&
		(comm->resumes || comm->receive.writes == comm->peer_writes));
}

/* True if nothing can touch our memory; else a fence is needed. */
static bool is_at_rest(struct mesh_comm *comm)
{
	bool rest;

	mesh_comm_lock(comm);
	rest = !comm->unfinished;
	/*
	 * Only the sender knows what it has written, and a lost or unclean one does not report it.
	 */
	if (!comm->sending && mesh_receive_is_granted(comm) && !is_settled(comm))
		rest = false;
	mesh_comm_unlock(comm);
	return rest;
}

static bool is_drained(struct mesh_comm *comm)
{
	bool drained;

	mesh_comm_lock(comm);
	drained = !comm->unfinished;
	mesh_comm_unlock(comm);
	return drained;
}

/* True if the peer has sent CLOSED, or is lost. */
static bool is_answered(struct mesh_comm *comm)
{
	bool answered;

	mesh_process_lock(comm->process);
	mesh_comm_lock(comm);
	answered = mesh_comm_peer_is_over(comm) || mesh_comm_is_cut(comm);
	mesh_comm_unlock(comm);
	mesh_process_unlock(comm->process);
	return answered;
}

/* True if waiting is of no use: a receiver expects nothing of a lost or unclean sender. */
static bool is_at_rest_or_hopeless(struct mesh_comm *comm)
{
	bool hopeless;

	mesh_process_lock(comm->process);
	mesh_comm_lock(comm);
	hopeless = mesh_comm_is_cut(comm) || (!comm->sending && comm->peer_end == MESH_END_UNCLEAN);
	mesh_comm_unlock(comm);
	mesh_process_unlock(comm->process);
	return hopeless || is_at_rest(comm);
}

/* ---- waiting ------------------------------------------------------------------------------- */

/* How long a wait may take. All times in milliseconds. */
struct patience {
	bool for_peer; /* else for the provider */
	uint64_t limit_ms;
	uint64_t begin_ms;
	uint64_t moved_ms;   /* when something last moved */
	uint64_t looked_ms;  /* at the last turn */
	uint64_t stopped_ms; /* how long this process itself did not run */
	uint32_t unfinished; /* operations in flight at the last turn */
};

static struct patience patience_begin(bool for_peer, uint64_t limit_ms)
{
	uint64_t now_ms = mesh_clock_ms();

	return (struct patience){
		.for_peer = for_peer,
		.limit_ms = limit_ms,
		.begin_ms = now_ms,
		.moved_ms = now_ms,
		.looked_ms = now_ms,
	};
}

/* Since when the peer has been silent, or nothing has moved. */
static uint64_t silent_since(struct mesh_comm *comm, struct patience *patience, uint64_t now_ms)
{
	uint64_t owes_ms = 0;

	mesh_process_lock(comm->process);
	mesh_comm_lock(comm);
	if (comm->unfinished < patience->unfinished)
		patience->moved_ms = now_ms; /* the link may be slow, but it works */
	patience->unfinished = comm->unfinished;
	mesh_comm_unlock(comm);
	if (patience->for_peer)
		owes_ms = peer_owes_since(frame_peer(comm));
	mesh_process_unlock(comm->process);
	/* Comms that waited for this peer before us: all of them give up at the same time. */
	return owes_ms && owes_ms < patience->begin_ms ? owes_ms : patience->moved_ms;
}

static bool patience_is_over(struct mesh_comm *comm, struct patience *patience)
{
	uint64_t now_ms = mesh_clock_ms(), away_ms = now_ms - patience->looked_ms;
	uint64_t since_ms = silent_since(comm, patience, now_ms);

	patience->looked_ms = now_ms;
	if (away_ms > STOPPED_MS)
		patience->stopped_ms += away_ms;
	return now_ms >= since_ms + patience->limit_ms + patience->stopped_ms;
}

static void comm_poll(struct mesh_comm *comm)
{
	int i;

	for (i = 0; i < comm->num_paths; i++)
		mesh_path_poll(&comm->paths[i]);
}

/* Polls until @condition holds. Returns whether it did before the patience was over. */
static bool wait_for(struct mesh_comm *comm, bool (*condition)(struct mesh_comm *),
		     struct patience patience)
{
	const struct timespec pause = {.tv_nsec = 500000};
	int turn;

	for (turn = 0; !condition(comm); turn++) {
		if (patience_is_over(comm, &patience))
			return false;
		comm_poll(comm);
		if (turn < YIELDS)
			sched_yield();
		else
			nanosleep(&pause, NULL); /* closing, not the data path */
	}
	return true;
}

MESH_HOLDS(process)
static void slow_log(const struct mesh_peer *peer)
{
	unsigned long long limit_s = peer->process->config.dead_peer_timeout_s;
	char text[MESH_PEER_TEXT_MAX];

	if (peer_owes_since(peer))
		mesh_warn("%s did not answer the end of a connection within %llu s",
			  mesh_peer_text(peer, text), limit_s);
	else
		mesh_warn("%s answered the end of a connection, but nothing has moved between the "
			  "two on %s for %llu s: " MESH_CUT_STUCK_HINT,
			  mesh_peer_text(peer, text), peer->domain->nic->netdev, limit_s);
}

static void slow_warn(struct mesh_comm *comm)
{
	struct mesh_peer *peer;

	mesh_process_lock(comm->process);
	peer = frame_peer(comm);
	if (!peer->slow_warned)
		slow_log(peer);
	peer->slow_warned = true;
	mesh_process_unlock(comm->process);
}

/* Notes that the peer owes an answer from @now_ms on, unless its end has ended. */
MESH_HOLDS(process)
static void answer_expect(struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_peer *peer = frame_peer(comm);

	mesh_comm_lock(comm);
	if (!peer->owes_ms && !mesh_comm_peer_is_over(comm))
		peer->owes_ms = now_ms;
	mesh_comm_unlock(comm);
}

/*
 * Notes that no answer is owed: it has arrived, or is not needed, because the peer is lost or its
 * NIC has acknowledged everything.
 */
static void answer_had(struct mesh_comm *comm, uint64_t begin_ms)
{
	struct mesh_peer *peer;

	mesh_process_lock(comm->process);
	peer = frame_peer(comm);
	if (peer->owes_ms >= begin_ms)
		peer->owes_ms = 0;
	mesh_process_unlock(comm->process);
}

/* Our end takes a step, and waits until @condition holds, which the peer's answer causes. */
static void step_and_wait(struct mesh_comm *comm, enum mesh_end state,
			  bool (*condition)(struct mesh_comm *))
{
	uint64_t limit_ms = comm->process->config.dead_peer_timeout_s * 1000;
	struct patience patience = patience_begin(true, limit_ms);

	mesh_process_lock(comm->process);
	own_end_step(comm, state);
	answer_expect(comm, patience.begin_ms);
	mesh_process_unlock(comm->process);
	if (wait_for(comm, condition, patience))
		answer_had(comm, patience.begin_ms);
	else
		slow_warn(comm);
}

/* ---- the end of it ------------------------------------------------------------------------- */

/* Returns false if the comm was closing already. */
static bool close_begin(struct mesh_comm *comm)
{
	bool first;

	mesh_comm_lock(comm);
	first = !comm->closing;
	comm->closing = true;
	mesh_comm_fail(comm, -ECANCELED, true, NULL);
	mesh_comm_unlock(comm);
	return first;
}

/* Fences the peer, and waits until the provider has reported what it dropped. */
static void cut_off(struct mesh_comm *comm)
{
	enum mesh_cut_reason reason;

	mesh_process_lock(comm->process);
	reason = peer_owes_since(frame_peer(comm)) ? MESH_CUT_SILENT : MESH_CUT_STUCK;
	mesh_comm_lock(comm);
	if (mesh_comm_is_cut(comm) || comm->peer_end == MESH_END_UNCLEAN)
		reason = MESH_CUT_BROKEN;
	mesh_comm_unlock(comm);
	mesh_process_unlock(comm->process);
	mesh_comm_cut_off(comm, reason);
	wait_for(comm, is_drained, patience_begin(false, DRAIN_MS));
}

/*
 * Writes that have not completed by now may never complete. They keep the comm allocated, but no
 * longer count against the window of the flow, which other comms need.
 */
static void writes_forget(struct mesh_comm *comm)
{
	struct mesh_segment *segment;
	int i;

	if (!comm->sending || is_drained(comm))
		return;
	for (i = 0; i < comm->send.num_blocks * MESH_WRITES_BLOCK; i++) {
		segment = &comm->send.blocks[i / MESH_WRITES_BLOCK][i % MESH_WRITES_BLOCK];
		if (segment->path)
			mesh_path_write_forget(segment->path, segment);
	}
}

void mesh_comm_quiesce(struct mesh_comm *comm)
{
	enum mesh_end last = MESH_END_CLOSED;

	if (!close_begin(comm))
		return;
	if (!is_at_rest(comm))
		step_and_wait(comm, MESH_END_CLOSING, is_at_rest_or_hopeless);
	if (!is_at_rest(comm)) {
		/* Bytes may remain in the peer's socket: it must fence as well. */
		last = MESH_END_UNCLEAN;
		cut_off(comm);
	}
	if (comm->sending) {
		step_and_wait(comm, last, is_answered);
	} else {
		mesh_process_lock(comm->process);
		own_end_step(comm, last);
		mesh_process_unlock(comm->process);
	}
	writes_forget(comm);
}
