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
#include "control/link.h"
#include "control/peer.h"
#include "control/process.h"
#include "fabric/flow.h"
#include "fabric/poll.h"
#include "transport/comm_life.h"
#include "transport/data.h"
#include "transport/resend.h"

/* The first turns of a waiting loop only yield; a handshake on an idle node takes fewer. */
#define YIELDS 2000
/*
 * A sender whose writes are stuck on a silent link needs this longer than the timeout to give the
 * link up, and then to answer: stall.c, link.c.
 */
#define VERDICT_MS 2500
/* Frames pass on the control connection, data does not. */
#define STUCK_HINT                                                                                 \
	"does a firewall drop the data's packets (RDMA: UDP port 4791), or is the RDMA device gone?"

/* ---- who owes an answer -------------------------------------------------------------------- */

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

/* ---- aborts -------------------------------------------------------------------------------- */

/*
 * True while NCCL aborts: it closes many comms one after the other, those without requests, too, so
 * an abort goes on for a timeout.
 */
MESH_HOLDS(process)
static bool is_aborted(const struct mesh_comm *comm, uint64_t now_ms)
{
	const struct mesh_process *process = comm->process;

	return process->abort_ms && process->abort_owner == comm->owner &&
	       mesh_clock_elapsed_ms(process->abort_ms, now_ms) <
		       process->config.dead_peer_timeout_s * 1000;
}

/* NCCL closes the comm while requests are open: nobody waits for what is in flight. */
static void abort_note(const struct mesh_comm *comm)
{
	struct mesh_process *process = comm->process;
	uint64_t now_ms = mesh_clock_ms();

	mesh_process_lock(process);
	if (!is_aborted(comm, now_ms)) {
		process->abort_owner = comm->owner;
		process->abort_ms = now_ms;
	}
	mesh_process_unlock(process);
}

void mesh_abort_forget(struct mesh_process *process, const void *owner)
{
	mesh_process_lock(process);
	if (process->abort_owner == owner)
		process->abort_ms = 0;
	mesh_process_unlock(process);
}

/* ---- our own closing ---------------------------------------------------------------------- */

/* True if all writes of the sender have arrived, or can no longer arrive. */
MESH_HOLDS(comm)
static bool is_settled(struct mesh_comm *comm)
{
	return comm->peer_end == MESH_END_CLOSED && (comm->peer_said != MESH_SAID_CLOSED_UNACKED ||
						     comm->receive.writes == comm->peer_writes);
}

/* @condition: needs process->lock and comm->lock */
static bool holds(struct mesh_comm *comm, bool (*condition)(struct mesh_comm *))
{
	bool is;

	mesh_process_lock(comm->process);
	mesh_comm_lock(comm);
	is = condition(comm);
	mesh_comm_unlock(comm);
	mesh_process_unlock(comm->process);
	return is;
}

MESH_HOLDS(comm)
static bool is_drained(struct mesh_comm *comm)
{
	return !comm->unfinished;
}

/*
 * True if nothing can touch our memory; else a fence is needed. Only the sender knows what it has
 * written, and a lost or unclean one does not report it.
 */
MESH_HOLDS(process)
MESH_HOLDS(comm)
static bool is_at_rest(struct mesh_comm *comm)
{
	return is_drained(comm) && (comm->sending || !comm->receive.granted || is_settled(comm) ||
				    mesh_paths_are_at_rest(comm));
}

/* True if the peer has sent CLOSED, or is lost. */
MESH_HOLDS(process)
MESH_HOLDS(comm)
static bool is_answered(struct mesh_comm *comm)
{
	return mesh_comm_peer_is_over(comm) ||
	       (!mesh_comm_delivers(comm) && mesh_comm_is_cut(comm));
}

/* True if waiting is of no use: a receiver expects nothing of a lost or unclean sender. */
MESH_HOLDS(process)
MESH_HOLDS(comm)
static bool is_at_rest_or_hopeless(struct mesh_comm *comm)
{
	return (mesh_comm_is_cut(comm) && !mesh_comm_delivers(comm)) ||
	       (!comm->sending && comm->peer_end == MESH_END_UNCLEAN) || is_at_rest(comm);
}

/* ---- waiting ------------------------------------------------------------------------------- */

/* How long a wait may take. All times in milliseconds. */
struct patience {
	uint64_t limit_ms;
	uint64_t answer_ms; /* the same while the peer owes an answer; 0: nobody asks it */
	uint64_t begin_ms;
	uint64_t moved_ms;   /* when something last moved */
	uint64_t looked_ms;  /* at the last turn */
	uint64_t stopped_ms; /* how long this process itself did not run */
	uint32_t unfinished; /* operations in flight at the last turn */
};

static struct patience patience_begin(uint64_t limit_ms)
{
	uint64_t now_ms = mesh_clock_ms();

	return (struct patience){
		.limit_ms = limit_ms,
		.begin_ms = now_ms,
		.moved_ms = now_ms,
		.looked_ms = now_ms,
	};
}

/* When the peer has been silent, or nothing has moved, for too long. */
static uint64_t silent_until(struct mesh_comm *comm, struct patience *patience, uint64_t now_ms)
{
	uint64_t owes_ms = 0;

	mesh_process_lock(comm->process);
	mesh_comm_lock(comm);
	if (comm->unfinished < patience->unfinished)
		patience->moved_ms = now_ms; /* the link may be slow, but it works */
	patience->unfinished = comm->unfinished;
	mesh_comm_unlock(comm);
	if (patience->answer_ms)
		owes_ms = peer_owes_since(mesh_comm_frame_peer(comm));
	mesh_process_unlock(comm->process);
	/* Comms that waited for this peer before us: all of them give up at the same time. */
	return (owes_ms && owes_ms < patience->begin_ms ? owes_ms : patience->moved_ms) +
	       (owes_ms ? patience->answer_ms : patience->limit_ms);
}

static bool patience_is_over(struct mesh_comm *comm, struct patience *patience)
{
	uint64_t now_ms = mesh_clock_ms(), away_ms = now_ms - patience->looked_ms;
	uint64_t until_ms = silent_until(comm, patience, now_ms);

	patience->looked_ms = now_ms;
	if (away_ms > MESH_AWAY_MS)
		patience->stopped_ms += away_ms;
	return now_ms >= until_ms + patience->stopped_ms;
}

static void comm_poll(struct mesh_comm *comm)
{
	int i;

	for (i = 0; i < comm->num_paths; i++)
		mesh_domain_poll(comm->paths[i].domain);
}

/* Between two turns of a loop that waits. @turn: counts them from 0 */
static void pause_take(int turn)
{
	const struct timespec pause = {.tv_nsec = 500000};

	if (turn < YIELDS)
		sched_yield();
	else
		nanosleep(&pause, NULL); /* closing, not the data path */
}

/* Polls until @condition holds. Returns whether it did before the patience was over. */
static bool wait_for(struct mesh_comm *comm, bool (*condition)(struct mesh_comm *),
		     struct patience patience)
{
	int turn;

	for (turn = 0; !holds(comm, condition); turn++) {
		if (patience_is_over(comm, &patience))
			return false;
		comm_poll(comm);
		pause_take(turn);
	}
	return true;
}

/* One line for all of its comms. @waited_ms: for so long */
MESH_HOLDS(process)
static void slow_log(struct mesh_peer *peer, uint64_t waited_ms)
{
	double waited_s = (double)waited_ms / 1000;
	char text[MESH_PEER_TEXT_MAX];

	if (peer->warned & MESH_PEER_WARNED_SLOW)
		return;
	peer->warned |= MESH_PEER_WARNED_SLOW;
	if (peer_owes_since(peer))
		mesh_warn("%s did not answer the end of a connection within %.3g s",
			  mesh_peer_text(peer, text), waited_s);
	else
		mesh_warn("%s answered the end of a connection, but nothing has moved between the "
			  "two on %s for %.3g s: " STUCK_HINT,
			  mesh_peer_text(peer, text), peer->domain->nic->netdev, waited_s);
}

static void slow_warn(struct mesh_comm *comm, const struct patience *patience)
{
	struct mesh_peer *peer;

	mesh_process_lock(comm->process);
	peer = mesh_comm_frame_peer(comm);
	slow_log(peer, peer_owes_since(peer) ? patience->answer_ms : patience->limit_ms);
	mesh_process_unlock(comm->process);
}

/* Notes that the peer owes an answer from @now_ms on, unless its end has ended. */
MESH_HOLDS(process)
static void answer_expect(struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_peer *peer = mesh_comm_frame_peer(comm);

	mesh_comm_lock(comm);
	if (!peer->owes_ms && !mesh_comm_peer_is_over(comm))
		peer->owes_ms = now_ms;
	mesh_comm_unlock(comm);
}

/* Notes that no answer is owed: it has arrived, or is not needed, because the peer is lost. */
static void answer_had(struct mesh_comm *comm, uint64_t begin_ms)
{
	struct mesh_peer *peer;

	mesh_process_lock(comm->process);
	peer = mesh_comm_frame_peer(comm);
	if (peer->owes_ms >= begin_ms)
		peer->owes_ms = 0;
	mesh_process_unlock(comm->process);
}

/* Closes our end, and waits until nothing of it is in flight, which the peer's answer causes. */
static void rest_await(struct mesh_comm *comm)
{
	uint64_t limit_ms = comm->process->config.dead_peer_timeout_s * 1000;
	struct patience patience = patience_begin(limit_ms);

	/* An abort waits no longer than a peer that runs needs. */
	mesh_process_lock(comm->process);
	patience.answer_ms = is_aborted(comm, patience.begin_ms) ? MESH_LINK_FRAME_MS : limit_ms;
	mesh_comm_end_step(comm, MESH_END_CLOSING);
	answer_expect(comm, patience.begin_ms);
	mesh_process_unlock(comm->process);
	if (wait_for(comm, is_at_rest_or_hopeless, patience))
		answer_had(comm, patience.begin_ms);
	else
		slow_warn(comm, &patience);
}

/* ---- the end of it ------------------------------------------------------------------------- */

/*
 * True if all that NCCL has sent counts as sent, but may still be lost with a link; at a receiving
 * end, if all has arrived, but the sender may be in doubt about it.
 */
MESH_HOLDS(comm)
static bool owes_delivery(struct mesh_comm *comm)
{
	mesh_comm_assert_locked(comm);
	if (comm->error || mesh_requests_done(comm) != comm->next_seq)
		return false; /* NCCL aborts */
	return comm->sending ? mesh_copies_may_be_lost(comm) : comm->next_seq;
}

/* Returns false if the comm was closing already. @aborts receives whether requests are open. */
static bool closing_set(struct mesh_comm *comm, bool *aborts)
{
	bool first;

	mesh_comm_lock(comm);
	first = !comm->closing;
	comm->closing = true;
	*aborts = mesh_requests_done(comm) != comm->next_seq;
	if (!first || !owes_delivery(comm))
		mesh_comm_fail(comm, -ECANCELED, true, NULL);
	mesh_comm_unlock(comm);
	if (first && *aborts)
		abort_note(comm);
	return first;
}

/*
 * Leaves the circuits, fences the peer where that does not suffice, and waits until the provider
 * has reported what it dropped.
 */
static void cut_off(struct mesh_comm *comm)
{
	struct patience patience = patience_begin(MESH_LINK_FRAME_MS);
	int turn;

	mesh_process_lock(comm->process);
	/*
	 * Bytes may remain in the peer's socket: it must fence as well. Now: the link that carries
	 * the frame may be lost in a moment.
	 */
	mesh_comm_end_step(comm, MESH_END_UNCLEAN);
	mesh_comm_lock(comm);
	mesh_comm_peer_end_learn(comm, MESH_END_UNCLEAN);
	mesh_comm_fail(comm, -ECANCELED, true, NULL); /* unless it has failed */
	mesh_comm_unlock(comm);
	mesh_process_unlock(comm->process);
	for (turn = 0; !mesh_comm_fence_step(comm, patience_is_over(comm, &patience)); turn++) {
		comm_poll(comm);
		pause_take(turn);
	}
	wait_for(comm, is_drained, patience_begin(MESH_LINK_FRAME_MS));
}

/* Waits until nothing of the comm is in flight. Returns the state that our end then takes. */
static enum mesh_end comm_rest(struct mesh_comm *comm)
{
	if (!holds(comm, is_at_rest))
		rest_await(comm);
	if (holds(comm, is_at_rest))
		return MESH_END_CLOSED;
	cut_off(comm);
	return MESH_END_UNCLEAN;
}

bool mesh_comm_quiesce(struct mesh_comm *comm)
{
	enum mesh_end last;
	bool aborts;

	if (!closing_set(comm, &aborts))
		return false;
	last = comm_rest(comm);
	mesh_process_lock(comm->process);
	mesh_comm_end_step(comm, last);
	if (comm->sending && !aborts)
		answer_expect(comm, mesh_clock_ms());
	mesh_process_unlock(comm->process);
	if (!holds(comm, is_drained))
		mesh_comm_writes_forget(comm);
	return !aborts && !holds(comm, is_answered);
}

/* ---- lingering ------------------------------------------------------------------------------- */

/* True if all that the sender may wait for on this path has reached its kernel, or never will. */
MESH_HOLDS(process)
static bool path_is_acknowledged(const struct mesh_path *path, uint64_t since_ms, uint64_t now_ms)
{
	struct mesh_peer *peer = path->peer;

	if (!mesh_path_lives(path))
		return true; /* REFUSE, before CLOSED, has ended it at the other end as well */
	/* On verbs, and behind a relay, our sockets do not know what has reached the sender. */
	return !path->is_acknowledged && !mesh_path_has_relay(path) && !peer->out_size &&
	       mesh_link_is_drained(peer, since_ms, now_ms);
}

/*
 * True if a receiver may end its process, although the sender has not answered: the sender's kernel
 * has its CLOSED, and all that the provider has sent on every path, such as acknowledgements of
 * writes.
 */
MESH_HOLDS(process)
static bool closed_is_acknowledged(struct mesh_comm *comm, uint64_t now_ms)
{
	bool acknowledged;
	int i;

	mesh_comm_lock(comm);
	acknowledged = !comm->end_in_doubt; /* else it is repeated in a moment */
	mesh_comm_unlock(comm);
	for (i = 0; i < comm->num_paths; i++)
		acknowledged &= path_is_acknowledged(&comm->paths[i], comm->closed_ms, now_ms);
	return acknowledged && !mesh_comm_is_cut(comm);
}

/*
 * True if the peer has answered the end of a comm, is lost, or, after one WARN for all of its
 * comms, has not answered in time.
 */
MESH_HOLDS(process)
static bool close_is_over(struct mesh_comm *comm, uint64_t now_ms)
{
	uint64_t limit_ms = comm->process->config.dead_peer_timeout_s * 1000;
	struct mesh_peer *peer = mesh_comm_frame_peer(comm);
	uint64_t owes_ms = peer_owes_since(peer), since_ms = comm->closed_ms;
	bool answered;

	mesh_comm_lock(comm);
	answered = is_answered(comm);
	mesh_comm_unlock(comm);
	if (answered)
		return true;
	if (is_aborted(comm, now_ms))
		limit_ms = MESH_LINK_FRAME_MS;
	else if (!comm->sending) /* whatever the sender was in doubt about, it warns of it */
		return mesh_clock_elapsed_ms(since_ms, now_ms) >= limit_ms + VERDICT_MS;
	if (owes_ms && owes_ms < since_ms)
		since_ms = owes_ms;
	if (mesh_clock_elapsed_ms(since_ms, now_ms) < limit_ms)
		return false;
	slow_log(peer, limit_ms);
	return true;
}

/* Frees the comm if the peer has answered, or will not. */
MESH_HOLDS(process)
static bool linger_end(struct mesh_comm *comm, uint64_t now_ms)
{
	if (!close_is_over(comm, now_ms))
		return false;
	mesh_comm_free(comm);
	return true;
}

MESH_HOLDS(process)
static void linger_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_comm *comm = mesh_container_of(timer, struct mesh_comm, timer);
	struct mesh_engine *engine = &comm->process->engine;

	comm_poll(comm); /* what the provider itself holds back goes into its sockets */
	if (linger_end(comm, now_ms))
		return;
	/*
	 * A sender answers CLOSED at once, unless its process is stopped, or has freed its end.
	 * Only then its kernel's acknowledgement counts: until a process reads a frame, it may
	 * still lose the link with it.
	 */
	if (!comm->sending && now_ms >= comm->closed_ms + MESH_AWAY_MS &&
	    closed_is_acknowledged(comm, now_ms))
		mesh_comm_free(comm);
	else
		mesh_engine_timer_set(engine, timer, now_ms + MESH_LINK_LOOK_MS);
}

/* Moves the comm from process->comms to process->lingering. */
MESH_HOLDS(process)
static void linger_begin(struct mesh_comm *comm)
{
	struct mesh_process *process = comm->process;

	comm->closed_ms = mesh_clock_ms();
	LIST_REMOVE(comm, entry);
	LIST_INSERT_HEAD(&process->lingering, comm, entry);
	atomic_store(&process->lingers, true);
	comm->timer.expired = linger_expired;
	mesh_engine_timer_set(&process->engine, &comm->timer, comm->closed_ms + MESH_LINK_LOOK_MS);
}

void mesh_comm_linger_check(struct mesh_comm *comm)
{
	if (comm->closed_ms)
		linger_end(comm, mesh_clock_ms());
}

void mesh_comms_linger_await(struct mesh_process *process)
{
	struct mesh_comm *comm, *next;
	uint64_t now_ms, looked_ms = 0;
	int turn;

	/* Without the lock: exit() may have interrupted a thread that holds it. */
	for (turn = 0; atomic_load(&process->lingers); turn++) {
		if (turn) {
			mesh_process_poll(process);
			pause_take(turn - 1);
		}
		now_ms = mesh_clock_ms();
		mesh_process_lock(process);
		/* The engine frees those that are answered, too. */
		for (comm = LIST_FIRST(&process->lingering); comm && now_ms != looked_ms;
		     comm = next) {
			next = LIST_NEXT(comm, entry);
			linger_end(comm, now_ms);
		}
		looked_ms = now_ms;
		if (LIST_EMPTY(&process->lingering))
			atomic_store(&process->lingers, false);
		mesh_process_unlock(process);
	}
}

void mesh_comm_close(struct mesh_comm *comm)
{
	struct mesh_process *process;
	bool awaited, last;

	if (!comm)
		return;
	process = comm->process;
	awaited = mesh_comm_quiesce(comm);
	mesh_registrations_close(comm); /* unpins memory, which takes long */
	mesh_process_lock(process);
	if (awaited)
		linger_begin(comm);
	else
		mesh_comm_free(comm);
	last = LIST_EMPTY(&process->comms);
	mesh_process_unlock(process);
	if (last)
		mesh_comms_linger_await(process);
}
