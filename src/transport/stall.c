/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall.c - a comm waits for its peer, or for a path: finds messages that were lost on the way, and
 * relays that are stopped.
 *
 * A small message counts as sent when the provider's socket has it. If that connection is then
 * reset between two living processes, the provider makes a new one and reports nothing. So an end
 * that has waited for a while sends ASK about its oldest request, over the control connection. The
 * engine that receives it polls, even if its NCCL is asleep, so that acknowledgements which the
 * provider has held back are sent.
 *
 * A sender answers by sending its small messages again, a receiver its grants: they, or the WANT
 * for them, may have been lost. If the other end's kernel has what it asks for, and it asks again
 * later, its link is given up: the message went with a connection whose reset nobody reported, or
 * RDMA packets do not pass. What the link carried is then sent again as after any loss.
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
#include "base/log.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "relay/relay.h"
#include "transport/comm_life.h"
#include "transport/data.h"
#include "transport/resend.h"

/* Lines about comms that have waited in vain, within MESH_LOG_LIMIT_PERIOD_MS. */
#define ROUTE_LINES 4

/* ---- a comm that waits for a path ------------------------------------------------------------ */

/* True for a comm that goes on when it loses its paths. */
MESH_HOLDS(process)
static bool goes_on(const struct mesh_comm *comm)
{
	return !comm->error && !comm->opener && comm->num_paths >= comm->wanted_paths;
}

/* The same, now without any path. */
MESH_HOLDS(process)
static bool is_routeless(const struct mesh_comm *comm)
{
	return goes_on(comm) && mesh_comm_is_cut(comm);
}

bool mesh_comm_lacks_route(const struct mesh_comm *comm)
{
	mesh_process_assert_locked(comm->process);
	return comm->sending && is_routeless(comm);
}

/* True if neither end is about to close. */
MESH_HOLDS(comm)
static bool is_in_use(const struct mesh_comm *comm)
{
	return !comm->closing && comm->own_end == MESH_END_OPEN && comm->peer_end == MESH_END_OPEN;
}

/* True if a better path may be found for a comm of this tier. @rests: a path of it has room */
MESH_HOLDS(process)
static bool may_improve(const struct mesh_comm *comm, enum mesh_path_tier tier, bool rests)
{
	bool has_room = rests || comm->num_paths < comm->max_paths;

	switch (tier) {
	case MESH_TIER_LINK:
	case MESH_TIER_ROUTED_RDMA:
		return false;
	case MESH_TIER_ROUTED:
		return comm->may_rdma && has_room;
	case MESH_TIER_RELAYS_RDMA:
	case MESH_TIER_RELAYS:
	case MESH_TIER_RESERVE:
		return has_room;
	default:
		return rests;
	}
}

bool mesh_comm_lacks_path(struct mesh_comm *comm)
{
	const struct mesh_path *path;
	bool rests = false, in_use;

	mesh_process_assert_locked(comm->process);
	if (!comm->sending || !goes_on(comm) || mesh_comm_is_cut(comm))
		return false;
	mesh_comm_lock(comm);
	in_use = is_in_use(comm);
	for (path = comm->paths; path < comm->paths + comm->num_paths; path++)
		rests |= mesh_path_has_relay(path) &&
			 (path->state == MESH_PATH_DOWN || path->state == MESH_PATH_JOINING);
	mesh_comm_unlock(comm);
	return in_use && may_improve(comm, mesh_comm_tier(comm), rests);
}

void mesh_reroute_soon(struct mesh_comm *comm)
{
	if (!mesh_comm_lacks_route(comm) && !mesh_comm_lacks_path(comm))
		return;
	atomic_store(&comm->process->routeless, true);
	mesh_engine_wake(&comm->process->engine);
}

/* Learns since when the comm waits, and ends it if it has waited for a path for too long. */
MESH_HOLDS(process)
static void route_wait_look(struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_process *process = comm->process;
	unsigned long long limit_s = process->config.recovery_timeout_s;
	char why[320], more[MESH_LOG_LIMIT_TEXT_MAX] = "";
	bool passes;

	if (!is_routeless(comm))
		comm->routeless_ms = 0;
	else if (!comm->routeless_ms)
		comm->routeless_ms = now_ms;
	if (!comm->routeless_ms ||
	    mesh_clock_elapsed_ms(comm->routeless_ms, now_ms) < limit_s * 1000)
		return;
	passes = mesh_log_limit_pass(&process->limits.routeless, ROUTE_LINES, now_ms, more);
	snprintf(why, sizeof(why),
		 "the peer has not come back over any path for %llu s "
		 "(NCCL_MESH_RECOVERY_TIMEOUT): are the cables in, are the links of both nodes up, "
		 "and do the relays run?%s",
		 limit_s, more);
	mesh_comm_lock(comm);
	if (passes)
		mesh_comm_fail(comm, -ETIMEDOUT, comm->closing, why);
	mesh_comm_unlock(comm);
	mesh_comm_end(comm, -ETIMEDOUT, why); /* counts it, too */
}

/* ---- a relay that does not answer ------------------------------------------------------------ */

/*
 * True if the path may be left when its relay is stopped. The sending end looks for another route;
 * a receiving end without another path waits for what comes of that. And a circuit of others that
 * ends in the stopped process may lead through this one: it waits for that process anyhow.
 */
MESH_HOLDS(process)
static bool may_leave(const struct mesh_path *path)
{
	const struct mesh_comm *comm = path->comm;

	return (comm->sending || !mesh_path_is_waited_for(path)) &&
	       !mesh_circuits_end_at(comm->process, path->peer->node_id);
}

/*
 * Asks the relay of each path, and loses the link to one that does not answer, with all paths over
 * it: what the provider still has for it would wait, with the memory that it comes from. The kernel
 * of a stopped relay answers, so its link looks alive; the relays ask the next ones. The peer
 * itself may be stopped as long as it likes: nobody asks it.
 */
MESH_HOLDS(process)
static void relays_look(struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_path *path;

	if (comm->error || comm->opener)
		return;
	for (path = comm->paths; path < comm->paths + comm->num_paths; path++) {
		if (!mesh_path_has_relay(path) || !mesh_path_lives(path) ||
		    !mesh_path_is(path, MESH_PATH_UP))
			continue;
		mesh_relay_ask(&path->question, path->peer, path->remote_id, now_ms);
		if (mesh_relay_is_silent(&path->question, comm->process, now_ms) && may_leave(path))
			mesh_link_lose(path->peer,
				       "it does not answer, though its kernel does: its process "
				       "is stopped",
				       MESH_REFUSAL_BROKEN);
	}
}

/* ---- messages that were lost ----------------------------------------------------------------- */

/* Watches the link of each path, because the comm waits for its peer. process->lock held. */
MESH_HOLDS(process)
static void links_want(struct mesh_comm *comm, uint64_t until_ms)
{
	int i;

	for (i = 0; i < comm->num_paths; i++)
		mesh_link_want(comm->paths[i].peer, until_ms, comm->sending);
}

/* True if the receiver lacks something that counts as sent, and asks for it. */
MESH_HOLDS(comm)
static bool is_asked(const struct mesh_stall *stall, uint64_t now_ms)
{
	return stall->lacked_ms &&
	       mesh_clock_elapsed_ms(stall->lacked_ms, now_ms) < 2 * MESH_ASK_MS;
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
	atomic_store_explicit(&comm->quiet, quiet && !is_asked(stall, now_ms),
			      memory_order_relaxed);
	/* A receiver that has closed answers nothing, but what is in flight to it may be stuck. */
	over = mesh_comm_peer_is_over(comm);
	if (comm->error || (over && !comm->unfinished) || quiet) {
		stall->since_ms = 0;
		return false;
	}
	if (!stall->since_ms || stall->seq != *seq) {
		stall->seq = *seq;
		stall->since_ms = stall->asked_ms = now_ms;
		return false;
	}
	/* Over links that work it would have arrived. */
	if (now_ms - stall->since_ms >= MESH_LINK_FRAME_MS)
		links_want(comm, now_ms + MESH_LINK_FRAME_MS);
	if (over || now_ms - stall->asked_ms < MESH_ASK_MS ||
	    !mesh_link_is_fresh(mesh_comm_frame_path(comm)->peer, now_ms))
		return false;
	stall->asked_ms = now_ms;
	return true;
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

/*
 * If the comm has failed: closes our end towards the peer, whose NCCL must not wait until ours has
 * noticed the error and closes the comm.
 */
MESH_HOLDS(process)
static void failure_report(struct mesh_comm *comm)
{
	enum mesh_end state = MESH_END_CLOSING;
	bool failed;

	mesh_comm_lock(comm);
	failed = comm->error && !comm->closing;
	/* A receiver is closed when the sender has said what it has written: answer_is_due(). */
	if (comm->sending && !comm->unfinished)
		state = MESH_END_CLOSED;
	mesh_comm_unlock(comm);
	if (failed)
		mesh_comm_end_step(comm, state);
}

void mesh_stall_tick(struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_frame frame = {0};
	bool ask, waits;

	route_wait_look(comm, now_ms);
	if (is_idle(comm))
		return;
	mesh_comm_lock(comm);
	ask = ask_is_due(comm, now_ms, &frame.ask.seq);
	frame.ask.lacks = !comm->sending || mesh_send_awaits_receiver(comm, frame.ask.seq);
	waits = is_asked(&comm->stall, now_ms) ||
		(comm->stall.since_ms && now_ms - comm->stall.since_ms >= MESH_LINK_FRAME_MS);
	if (!comm->sending && comm->receive.ack_ns)
		mesh_ack_send(comm); /* NCCL has not polled */
	mesh_comm_unlock(comm);
	if (waits)
		relays_look(comm, now_ms);
	if (ask)
		mesh_comm_frame_send(comm, &frame, MESH_FRAME_ASK);
	failure_report(comm);
}

/* True if the peer's kernel has all that the provider's sockets held for it at @since_ms. */
MESH_HOLDS(process)
static bool is_acknowledged(const struct mesh_comm *comm, uint64_t since_ms, uint64_t now_ms)
{
	bool drained = true;
	int i;

	for (i = 0; i < comm->num_paths; i++)
		drained &= mesh_link_is_drained(comm->paths[i].peer, since_ms, now_ms);
	return drained;
}

/*
 * True if the kernel of the peer has all that was sent here before the first ASK about message
 * @seq. It is not enough that the provider's socket has it: over a slow link the rest may take
 * minutes. Until then the link is watched, so that it is lost here if its data is stuck.
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
	drained = is_acknowledged(comm, stall->peer_asked_ms, now_ms);
	if (drained && !stall->peer_has_ms)
		stall->peer_has_ms = now_ms;
	if (!drained)
		links_want(comm, now_ms + 2 * MESH_ASK_MS);
	return drained;
}

/*
 * The kernel of the peer has had since it asked last what it still asks for: the paths that may
 * have lost it are given up. Not those through relays: it may wait in one of them.
 */
MESH_HOLDS(comm)
static void lost_judge(struct mesh_comm *comm)
{
	int i;

	if (mesh_clock_elapsed_ms(comm->stall.peer_has_ms, mesh_clock_ms()) < MESH_ASK_MS / 2)
		return;
	comm->stall.peer_asked_ms = 0;
	for (i = 0; i < comm->num_paths; i++) {
		if (!mesh_path_has_relay(&comm->paths[i]))
			mesh_path_suspect(&comm->paths[i], -ECONNRESET);
	}
}

void mesh_stall_asked(struct mesh_comm *comm, const struct mesh_frame_ask *ask)
{
	bool unacked, sent;

	mesh_comm_lock(comm);
	unacked = comm->sending && mesh_ack_is_missing(comm, ask->seq);
	sent = comm->sending ? unacked || mesh_send_is_complete(comm, ask->seq)
			     : mesh_seq_before(ask->seq, comm->next_seq);
	if (comm->sending && sent && ask->lacks) {
		comm->stall.lacked_ms = mesh_clock_ms(); /* a relay on the way may be stopped */
		comm->quiet = false;
	}
	sent = ask->lacks && sent && is_delivered(comm, ask->seq);
	if (comm->sending && sent && !unacked)
		mesh_send_repeat(comm);
	if (!comm->sending) {
		mesh_receive_grants_resend(comm, ask->seq);
		mesh_ack_send(comm);
	}
	if (sent)
		lost_judge(comm);
	mesh_comm_unlock(comm);
}
