/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall.c - finds messages that were lost on the way.
 *
 * A small message counts as sent when the provider's socket has it. If that connection is then
 * reset between two living processes, the provider makes a new one and reports nothing. So an end
 * that has waited for a while sends ASK about its oldest request, over the control connection.
 *
 * A sender answers SENT if the receiver's kernel has the message; if the message does not arrive
 * then, the comm fails. About an unacked write (resend.h) it answers nothing: if the receiver's
 * kernel has it, and the receiver asks again, the sender gives the link up. A receiver answers by
 * sending its grants again: they, or the WANT for them, may have been lost. SENT follows if the
 * receive is posted and the sender's kernel has the grants; if they do not arrive then, the comm
 * fails. In both cases the engine that receives ASK polls, even if its NCCL is asleep, so that
 * acknowledgements which the provider has held back are sent.
 *
 * The peer of a comm that has failed is informed at once, because it would wait without end.
 *
 * On RDMA the sender detects the loss without ASK: the peer's NIC acknowledges each write, whatever
 * its process does. A NIC reports an error if there is no acknowledgement, but not every NIC does,
 * and none whose device is gone: so a sender that waits has the writes of its links judged, too.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/process.h"
#include "transport/circuit_end.h"
#include "transport/comm_end.h"
#include "transport/grants.h"
#include "transport/path_state.h"
#include "transport/receive.h"
#include "transport/recovery.h"
#include "transport/request.h"
#include "transport/resend.h"
#include "transport/send.h"
#include "transport/stall.h"

/* Watches the link of each path, because the comm waits for its peer. process->lock held. */
MESH_HOLDS(process)
static void links_want(struct mesh_comm *comm, uint64_t until_ms)
{
	struct mesh_peer *peer;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		peer = comm->paths[i].peer;
		mesh_link_want(peer, until_ms);
		if (comm->sending)
			mesh_link_writes_want(peer, until_ms);
	}
}

/* True if it is time to send ASK about *seq. process->lock held. */
MESH_HOLDS(comm)
MESH_HOLDS(process)
static bool ask_is_due(struct mesh_comm *comm, uint64_t now_ms, uint32_t *seq)
{
	struct mesh_stall *stall = &comm->stall;
	bool over, quiet;

	mesh_comm_assert_locked(comm);
	*seq = mesh_requests_done(comm);
	quiet = *seq == comm->next_seq;
	atomic_store_explicit(&comm->quiet, quiet, memory_order_relaxed);
	/* A receiver that has closed answers nothing, but what is in flight to it may be stuck. */
	over = mesh_comm_peer_is_over(comm);
	if (comm->error || (over && !comm->unfinished) || quiet) {
		stall->since_ms = 0;
		return false;
	}
	if (!stall->since_ms || stall->seq != *seq) {
		stall->seq = *seq;
		stall->since_ms = stall->asked_ms = now_ms;
		stall->sent_ms = 0;
		return false;
	}
	if (now_ms - stall->since_ms >= MESH_WATCH_MS)
		links_want(comm, now_ms + MESH_WATCH_MS);
	if (over || now_ms - stall->asked_ms < MESH_ASK_MS ||
	    !mesh_link_is_fresh(mesh_comm_frame_path(comm)->peer, now_ms))
		return false;
	stall->asked_ms = now_ms;
	return true;
}

/*
 * True if a grant over RDMA is late by as much as a link may be silent. The NIC of the receiver
 * repeats it without end while its packets are dropped, and reports nothing; of the sender no write
 * is in flight that could show the same. @limit_ms: a silent process is lost then
 */
MESH_HOLDS(comm)
static bool grant_is_stuck(const struct mesh_comm *comm, uint64_t waited_ms, uint64_t limit_ms)
{
	return comm->sending && comm->num_up == 1 && comm->up[0]->is_acknowledged &&
	       waited_ms >= (limit_ms < MESH_ASK_MS ? limit_ms : MESH_ASK_MS);
}

MESH_HOLDS(comm)
static void lost_check(struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_stall *stall = &comm->stall;
	uint64_t limit_ms = comm->process->config.dead_peer_timeout_s * 1000;
	char why[200];

	if (comm->sending && !mesh_send_awaits_receiver(comm, stall->seq))
		stall->sent_ms = 0;
	if (!stall->since_ms || !stall->sent_ms)
		return;
	if (grant_is_stuck(comm, now_ms - stall->sent_ms, limit_ms)) {
		stall->sent_ms = 0;
		mesh_path_suspect(comm->up[0], -ETIMEDOUT);
		return;
	}
	if (now_ms - stall->sent_ms < limit_ms)
		return;
	snprintf(why, sizeof(why),
		 "%s %u was sent and has not arrived after %llu s: the provider has lost it, "
		 "because its connection was reset, or carried damaged or foreign bytes",
		 comm->sending ? "the grant of message" : "message", stall->seq,
		 (unsigned long long)limit_ms / 1000);
	mesh_comm_fail(comm, -EIO, false, why);
}

/*
 * True if the comm needs no look. It takes no lock: with thousands of idle comms the locks would
 * cost more than all other work of the engine.
 */
static bool is_idle(const struct mesh_comm *comm)
{
	return atomic_load_explicit(&comm->quiet, memory_order_relaxed) &&
	       !atomic_load_explicit(&comm->error, memory_order_relaxed);
}

void mesh_stall_tick(struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_frame frame = {0};
	uint64_t waited_ms = 0;
	bool ask;

	if (is_idle(comm))
		return;
	mesh_comm_lock(comm);
	ask = ask_is_due(comm, now_ms, &frame.ask.seq);
	lost_check(comm, now_ms);
	if (comm->stall.since_ms)
		waited_ms = now_ms - comm->stall.since_ms;
	if (!comm->sending && comm->receive.ack_ns)
		mesh_ack_send(comm); /* NCCL has not polled */
	mesh_comm_unlock(comm);
	if (waited_ms >= MESH_WATCH_MS)
		mesh_relays_look(comm, now_ms);
	if (ask)
		mesh_comm_frame_send(comm, &frame, MESH_FRAME_ASK);
	mesh_comm_failure_report(comm);
}

/*
 * True if the kernel of the peer has all that was sent here before the first ASK about message
 * @seq. It is not enough that the provider's socket has it: over a slow link the rest may take
 * minutes. If false, SENT is not sent yet, and the peer sends ASK again; meanwhile the link is
 * watched, so that the comm fails here if its data is stuck. process->lock held.
 */
MESH_HOLDS(comm)
MESH_HOLDS(process)
static bool is_delivered(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_stall *stall = &comm->stall;
	uint64_t now_ms = mesh_clock_ms();
	bool drained;

	mesh_comm_assert_locked(comm);
	if (!stall->peer_asked_ms || stall->peer_asked_seq != seq) {
		stall->peer_asked_seq = seq;
		stall->peer_asked_ms = now_ms;
		stall->peer_has_ms = 0;
	}
	drained = mesh_comm_is_acknowledged(comm, stall->peer_asked_ms, now_ms);
	if (drained && !stall->peer_has_ms)
		stall->peer_has_ms = now_ms;
	if (!drained)
		links_want(comm, now_ms + 2 * MESH_ASK_MS);
	return drained;
}

/*
 * The kernel of the peer has had all of a write since it asked last, and its process still asks:
 * it went with a connection whose reset nobody reported. The link is given up, and what it may have
 * lost is asked for and written again.
 */
MESH_HOLDS(comm)
static void write_judge(struct mesh_comm *comm)
{
	if (mesh_clock_elapsed_ms(comm->stall.peer_has_ms, mesh_clock_ms()) >= MESH_ASK_MS / 2)
		mesh_path_suspect(&comm->paths[0], -ECONNRESET);
}

/* What a sender does when it is asked about message @seq. Returns true if it answers SENT. */
MESH_HOLDS(comm)
MESH_HOLDS(process)
static bool sender_asked(struct mesh_comm *comm, uint32_t seq)
{
	bool unacked = mesh_ack_is_missing(comm, seq);

	mesh_comm_assert_locked(comm);
	if ((!unacked && !mesh_send_is_complete(comm, seq)) || !is_delivered(comm, seq))
		return false;
	if (unacked)
		write_judge(comm);
	else /* it was lost with a connection whose reset went unnoticed */
		mesh_send_repeat(comm);
	return !unacked;
}

/* The same of a receiver. */
MESH_HOLDS(comm)
MESH_HOLDS(process)
static bool receiver_asked(struct mesh_comm *comm, uint32_t seq)
{
	bool sent = mesh_seq_before(seq, comm->next_seq) && is_delivered(comm, seq);

	mesh_receive_grants_resend(comm, seq);
	mesh_ack_send(comm); /* it may have been lost */
	return sent;
}

void mesh_stall_asked(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_frame frame = {.sent = {.seq = seq}};
	bool sent;

	mesh_comm_lock(comm);
	sent = comm->sending ? sender_asked(comm, seq) : receiver_asked(comm, seq);
	mesh_comm_unlock(comm);
	if (sent)
		mesh_comm_frame_send(comm, &frame, MESH_FRAME_SENT);
}

void mesh_stall_answered(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_stall *stall;

	mesh_comm_lock(comm);
	stall = &comm->stall;
	if (stall->since_ms && stall->seq == seq && !stall->sent_ms)
		stall->sent_ms = mesh_clock_ms();
	mesh_comm_unlock(comm);
}
