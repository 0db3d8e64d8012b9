/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery.c - a comm goes on over its other paths when one is lost.
 *
 * A lost path is a lost link: the process that notices it first loses all peers on it, with their
 * comms' paths, and says so over another link (control/peer_end.c). Then each end of a comm stops
 * using the path, and repeats over the others what may have been lost and does no harm if it comes
 * twice: the receiver its grants, the sender its small messages. About a large message the sender
 * asks: once no operation of it is in flight, RESUME; the receiver fences the path, which after
 * that carries nothing into its memory, and answers with HAVE. A path through relays is fenced by
 * the report of the last relay: its link may carry others.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "neighbours/neighbours.h"
#include "relay/relay.h"
#include "transport/comm.h"
#include "transport/comm_life.h"
#include "transport/data.h"
#include "transport/resend.h"
#include "wire/stats.h"

/* Lines about circuits that broke, within MESH_LOG_LIMIT_PERIOD_MS. */
#define CIRCUIT_LINES 4

/* Small messages pass: the greeting did. */
static const char futile_hint[] = "; no large message has arrived since the link came up: is the "
				  "MTU the same at both ends, and no smaller on a switch between "
				  "them?";

/* ---- losing a path ------------------------------------------------------------------------- */

/* True if the comm has another path over which it goes on now. */
MESH_HOLDS(process)
static bool another_lives(const struct mesh_path *path)
{
	const struct mesh_comm *comm = path->comm;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		if (&comm->paths[i] != path && mesh_path_lives(&comm->paths[i]))
			return true;
	}
	return false;
}

/* True if the comm goes on when this path is lost: over other paths, or when one is back. */
MESH_HOLDS(process)
static bool path_goes_on(const struct mesh_path *path)
{
	const struct mesh_comm *comm = path->comm;

	mesh_process_assert_locked(comm->process);
	if (comm->num_paths < comm->wanted_paths)
		return false;
	if (path->peer->fenced == MESH_FENCED_FAILED)
		return false;
	/* The end of a relay is not the end of the peer. */
	if (!mesh_path_has_relay(path) && path->peer->over)
		return false;
	/* One that has failed, or is closed, waits for nothing. */
	return another_lives(path) || (!comm->error && !mesh_comm_is_opening(comm));
}

bool mesh_path_is_waited_for(const struct mesh_path *path)
{
	return path_goes_on(path) && !another_lives(path);
}

void mesh_send_repeat(struct mesh_comm *comm)
{
	mesh_comm_assert_locked(comm);
	mesh_copies_rewind(comm);
	/* A WANT may be lost: the next large message sends another one. */
	if (comm->send.first_pending != comm->next_seq)
		comm->send.eager_run++;
	mesh_send_push(comm);
}

/* Messages that went over the path, and may be lost, go once more over the others. */
MESH_HOLDS(comm)
static void comm_repeat(struct mesh_comm *comm)
{
	mesh_comm_assert_locked(comm);
	if (comm->sending) {
		comm->send.round++; /* what was asked may be lost, too */
		mesh_send_repeat(comm);
	} else {
		mesh_receive_grants_resend(comm, comm->next_seq - 1);
		mesh_ack_send(comm);
	}
}

/* @node has lost the next one of the path's route: one of the two is a relay. 0: unknown */
MESH_HOLDS(process)
static void relay_loss_note(const struct mesh_path *path, uint64_t node, uint64_t next)
{
	struct mesh_path_relayed *relayed = path->relayed;
	const struct mesh_route *route = relayed ? &relayed->route : NULL;

	if (!relayed || !node || !next)
		return; /* only a sending end looks for routes */
	relayed->lost_node = next == route->hops[route->num_relays] ? node : next;
	relayed->lost_ms = mesh_clock_ms();
}

/* Our own operations on it end by themselves: the provider's connections were cut. */
MESH_HOLDS(process)
MESH_HOLDS(domain)
static void path_stop(struct mesh_path *path)
{
	struct mesh_comm *comm = path->comm;
	const struct mesh_process *process = comm->process;

	mesh_path_wait_cancel(path);
	mesh_comm_lock(comm);
	if (path->state == MESH_PATH_UP)
		mesh_path_state_set(path, MESH_PATH_SUSPECT);
	/* The peer may write until it has stopped as well; then it says so with RESUME. */
	if (comm->sending &&
	    (path->state == MESH_PATH_SUSPECT || path->state == MESH_PATH_JOINING)) {
		mesh_sink_remove(path->domain, &path->sink);
		mesh_path_state_set(path, MESH_PATH_DOWN);
	}
	if (comm->sending)
		mesh_acks_doubt(path);
	comm->stall.since_ms = 0; /* whatever is late may have been lost with the path */
	comm->end_in_doubt = comm->own_end != MESH_END_OPEN;
	comm_repeat(comm);
	mesh_comm_recover_soon(comm);
	mesh_comm_unlock(comm);
	/* Of a circuit that broke it is known. */
	if (!path->broken && path->known && mesh_path_has_relay(path))
		relay_loss_note(path, process->node_id, path->peer->node_id);
	mesh_reroute_soon(comm);
}

/* Its process may run: stall.c informs it, as of each comm that fails. One WARN has the cause. */
MESH_HOLDS(process)
static void unfenced_fail(struct mesh_comm *comm)
{
	mesh_comm_lock(comm);
	mesh_comm_fail(comm, -ECONNRESET, true, "the lost connection with the peer cannot be cut");
	mesh_comm_unlock(comm);
}

/*
 * Nothing that we post on the path reaches its peer: the comm goes on over its other paths, waits
 * for one, or ends if it cannot.
 */
MESH_HOLDS(process)
MESH_HOLDS(domain)
static void path_lose(struct mesh_path *path)
{
	if (path_goes_on(path))
		path_stop(path);
	else if (path->peer->fenced == MESH_FENCED_FAILED)
		unfenced_fail(path->comm);
	else
		mesh_comm_end(path->comm, -ECONNRESET, "the peer is lost");
	mesh_path_abandon(path);
}

/* ---- the sending end ----------------------------------------------------------------------- */

/*
 * The first path on which an operation has failed while its peer is up; NULL if there is none. A
 * relay that reports a broken circuit is not to blame.
 */
MESH_HOLDS(process)
MESH_HOLDS(comm)
static struct mesh_path *suspect_find(struct mesh_comm *comm)
{
	int i;

	mesh_comm_assert_locked(comm);
	for (i = 0; i < comm->num_paths; i++) {
		if (comm->paths[i].state == MESH_PATH_SUSPECT && !comm->paths[i].broken &&
		    comm->paths[i].peer->state == MESH_PEER_UP)
			return &comm->paths[i];
	}
	return NULL;
}

/*
 * True if the receiver does not know yet which paths are lost, and nothing of ours is in flight
 * there. While a path is suspect it may carry more that is in doubt.
 */
MESH_HOLDS(comm)
static bool resume_is_due(const struct mesh_comm *comm)
{
	const struct mesh_path *path;

	mesh_comm_assert_locked(comm);
	if (!comm->sending || comm->send.resumed == comm->send.round || comm->error ||
	    mesh_comm_peer_is_over(comm)) /* its CLOSED has the answer */
		return false;
	for (path = comm->paths; path < comm->paths + comm->num_paths; path++) {
		if (path->state == MESH_PATH_SUSPECT ||
		    (path->state != MESH_PATH_UP && path->unfinished))
			return false;
	}
	return true;
}

/* The messages in doubt, and others between them. */
MESH_HOLDS(comm)
static void doubts_name(struct mesh_comm *comm, struct mesh_frame_resume *resume)
{
	const struct mesh_request *request;
	uint32_t seq;

	mesh_comm_assert_locked(comm);
	for (seq = comm->next_seq - MESH_COMM_REQUESTS; seq != comm->next_seq; seq++) {
		request = mesh_comm_request(comm, seq);
		if (request->seq != seq || !mesh_request_is_in_doubt(request) ||
		    request->send.settled)
			continue;
		if (!resume->count)
			resume->seq = seq;
		resume->count = (uint16_t)(seq + 1 - resume->seq);
	}
}

/* Informs the receiver which lives are over here, and asks about messages in doubt. */
MESH_HOLDS(process)
static void resume_send(struct mesh_comm *comm)
{
	const struct mesh_path *path;
	struct mesh_frame frame;
	int i;

	memset(&frame, 0, sizeof(frame));
	mesh_comm_lock(comm);
	frame.resume.round = comm->send.resumed = comm->send.round;
	doubts_name(comm, &frame.resume);
	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		if (path->state == MESH_PATH_UP || !path->remote_id)
			continue; /* the receiver has not accepted one that has no id */
		frame.resume.dead |= (uint16_t)(1u << i);
		/* One that is asked for is not over. */
		frame.resume.epochs[i] = path->epoch - (path->state == MESH_PATH_JOINING);
	}
	mesh_comm_unlock(comm);
	mesh_comm_frame_send(comm, &frame, MESH_FRAME_RESUME);
}

/* An operation on the path has failed with @cause, a negative errno. */
MESH_HOLDS(process)
static void suspect_lose(const struct mesh_path *path, int cause)
{
	const char *futile = mesh_path_is_futile(path) ? futile_hint : "";
	char reason[MESH_PEER_REASON_MAX];

	snprintf(reason, sizeof(reason), "an operation on it failed: %s%s", strerror(-cause),
		 futile);
	mesh_link_lose(path->peer, reason, MESH_REFUSAL_BROKEN);
	mesh_peer_bury(path->peer);
}

MESH_HOLDS(process)
static void comm_recover(struct mesh_comm *comm)
{
	struct mesh_path *suspect;
	bool resumes;
	int cause = 0;

	mesh_comm_lock(comm);
	suspect = suspect_find(comm);
	if (suspect)
		cause = suspect->cause;
	resumes = !suspect && !mesh_comm_is_cut(comm) && resume_is_due(comm);
	mesh_comm_unlock(comm);
	if (suspect)
		suspect_lose(suspect, cause);
	if (resumes)
		resume_send(comm);
}

void mesh_comms_recover(struct mesh_process *process)
{
	struct mesh_comm *comm;

	mesh_process_assert_locked(process);
	if (!atomic_exchange(&process->recover, false))
		return;
	mesh_peers_unread_handle(process); /* before a link is lost */
	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		comm_recover(comm);
		mesh_comm_end_repeat(comm);
	}
}

/* The receiver has said what it has of @request: posts the rest again, or is done. */
MESH_HOLDS(comm)
static void request_resume(struct mesh_comm *comm, struct mesh_request *request)
{
	mesh_comm_assert_locked(comm);
	if (!request->send.num_lost) {
		mesh_request_send_check(request);
	} else {
		request->send.posted = false;
		if (mesh_seq_before(request->seq, comm->send.first_pending))
			comm->send.first_pending = request->seq;
	}
	mesh_send_push(comm);
}

void mesh_have_came(struct mesh_comm *comm, const struct mesh_frame_have *have)
{
	struct mesh_request *request;

	mesh_comm_lock(comm);
	request = mesh_comm_request(comm, have->seq);
	if (comm->sending && request->seq == have->seq && mesh_request_is_open(request) &&
	    request->send.num_lost && !request->send.settled && have->round == comm->send.resumed &&
	    have->round == comm->send.round) {
		if (mesh_segments_exceed(request, have))
			mesh_count_event(&comm->process->counters->refused);
		mesh_segments_settle(request, have);
		request_resume(comm, request);
	}
	mesh_comm_unlock(comm);
}

/* ---- a circuit breaks ------------------------------------------------------------------------ */

/* True if nothing is lost, but the other path of the comm is better. */
static bool is_left_for_better(const struct mesh_frame_circuit *event)
{
	return !*event->lost;
}

/* "node b, which relays this path, has lost node c (path via b)" */
static void event_text(const struct mesh_path *path, const struct mesh_frame_circuit *event,
		       char *text, size_t size)
{
	const char *via = path->via ? path->via : "?";

	if (is_left_for_better(event))
		snprintf(text, size, "it has a better path now (path via %.127s)", via);
	else if (!*event->by)
		snprintf(text, size,
			 "node %.63s, the other end, has lost the relay (path via %.127s)",
			 event->lost, via);
	else
		snprintf(text, size,
			 "node %.63s, which relays this path, has lost node %.63s%s (path "
			 "via %.127s)",
			 event->by, event->lost, event->unclean ? ", whose process has ended" : "",
			 via);
}

/* One cable that breaks may break many circuits. */
static void resumed_log(const struct mesh_path *path, bool waits, const char *why)
{
	const struct mesh_comm *comm = path->comm;
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	if (mesh_log_limit_pass(&comm->process->limits.circuits, CIRCUIT_LINES, mesh_clock_ms(),
				more))
		mesh_warn("%s node %s: %s; its messages %s%s",
			  comm->sending ? "sending to" : "receiving from", comm->peer_name, why,
			  waits ? "wait for another route (NCCL_MESH_RECOVERY_TIMEOUT)"
				: "go over the other paths now",
			  more);
}

/* The path's circuit is broken, or is left: @event says where. */
MESH_HOLDS(process)
static void circuit_lost(struct mesh_path *path, const struct mesh_frame_circuit *event)
{
	struct mesh_domain *domain = path->peer->domain;
	struct mesh_comm *comm = path->comm;
	bool resumed, waits;
	char why[448];

	/* The end of a process is known later than what failed because of it. */
	if (path->broken && !event->unclean)
		return;
	path->broken = true;
	/* No other circuit leads to a process that has ended. */
	resumed = path_goes_on(path) && !event->unclean;
	waits = mesh_path_is_waited_for(path);
	event_text(path, event, why, sizeof(why));
	relay_loss_note(path, event->by_node, event->lost_node);
	mesh_comm_lock(comm);
	if (resumed && !is_left_for_better(event) && !comm->closing &&
	    !mesh_comm_peer_is_over(comm))
		resumed_log(path, waits, why);
	else if (!resumed && !mesh_comm_peer_is_over(comm))
		mesh_comm_fail(comm, -ECONNRESET, comm->closing, why);
	mesh_comm_unlock(comm);
	mesh_domain_lock(domain);
	if (resumed)
		path_lose(path);
	else
		mesh_path_abandon(path);
	mesh_domain_unlock(domain);
	if (resumed && path->relayed)
		mesh_path_relayed_shut(path);
}

void mesh_path_leave(struct mesh_path *path)
{
	const struct mesh_frame_circuit left = {.event = MESH_CIRCUIT_LOST};

	mesh_process_assert_locked(path->comm->process);
	mesh_path_drain_ask(path); /* before the circuit is shut: else no relay reports that */
	circuit_lost(path, &left);
}

void mesh_path_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_path *path = mesh_comm_path_find(peer, frame->to_comm);

	mesh_process_assert_locked(peer->process);
	if (!path || !mesh_path_has_relay(path))
		return;
	if (frame->circuit.event == MESH_CIRCUIT_ANSWER)
		path->question.asked_ms = 0;
	else if (frame->circuit.event == MESH_CIRCUIT_LOST)
		circuit_lost(path, &frame->circuit);
	else if (frame->circuit.event == MESH_CIRCUIT_DRAINED)
		mesh_path_circuit_drained(path, &frame->circuit);
}

/* ---- a path as the user of a peer ---------------------------------------------------------- */

/* True if no operation of ours is in flight on a lost path. */
MESH_HOLDS(process)
static bool path_is_quiet(struct mesh_peer_user *user)
{
	const struct mesh_path *path = mesh_path_of_user(user);
	bool quiet;

	mesh_comm_lock(path->comm);
	quiet = !path->unfinished && (path->state != MESH_PATH_UP || path->comm->error);
	mesh_comm_unlock(path->comm);
	return quiet;
}

MESH_HOLDS(process)
static bool path_misses(struct mesh_peer_user *user)
{
	struct mesh_comm *comm = mesh_path_of_user(user)->comm;
	bool misses;

	mesh_comm_lock(comm);
	/*
	 * One that waits for accept() does not count: strangers can cause any number of these.
	 * After the peer's end, what NCCL has posted may still be missing.
	 */
	misses = comm->use < MESH_COMM_WAITS && !comm->closing &&
		 (!mesh_comm_peer_is_over(comm) ||
		  (!comm->error && mesh_requests_done(comm) != comm->next_seq));
	mesh_comm_unlock(comm);
	return misses;
}

MESH_HOLDS(process)
static bool path_resumes(struct mesh_peer_user *user)
{
	return path_goes_on(mesh_path_of_user(user));
}

MESH_HOLDS(process)
MESH_HOLDS(domain)
static void path_lost(struct mesh_peer_user *user)
{
	struct mesh_path *path = mesh_path_of_user(user);
	bool returns = path_goes_on(path) && !mesh_path_has_relay(path);

	path_lose(path);
	if (returns)
		mesh_rejoin_want(path);
}

MESH_HOLDS(process)
static bool path_waits(struct mesh_peer_user *user)
{
	return mesh_path_is_waited_for(mesh_path_of_user(user));
}

MESH_HOLDS(process)
static void path_fenced(struct mesh_peer_user *user)
{
	struct mesh_path *path = mesh_path_of_user(user);

	if (mesh_path_is(path, MESH_PATH_SUSPECT))
		mesh_path_down(path, MESH_PATH_SUSPECT);
}

/* A comm that has failed asks for nothing, but NCCL still has its memory. */
MESH_HOLDS(process)
static bool path_is_open(struct mesh_peer_user *user)
{
	const struct mesh_path *path = mesh_path_of_user(user);

	return mesh_path_is(path, MESH_PATH_SUSPECT) ||
	       (path->comm->error && !path->comm->sending && mesh_path_is(path, MESH_PATH_UP));
}

MESH_HOLDS(process)
static void link_drained(struct mesh_peer_user *user)
{
	mesh_comm_tiers_renew(mesh_path_of_user(user)->comm);
}

const struct mesh_peer_user_ops mesh_path_user_ops = {
	.answers =
		{
			[MESH_USER_MISSES] = path_misses,
			[MESH_USER_RESUMES] = path_resumes,
			[MESH_USER_WAITS] = path_waits,
			[MESH_USER_IS_QUIET] = path_is_quiet,
			[MESH_USER_IS_OPEN] = path_is_open,
		},
	.lost = path_lost,
	.fenced = path_fenced,
	.drained = link_drained,
};
