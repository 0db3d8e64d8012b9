/* SPDX-License-Identifier: Apache-2.0 */
/*
 * circuit_end.c - what a comm does when a circuit that one of its paths leads through breaks: it
 * goes on over its other paths, as after the loss of a link (recovery.c), waits for another route
 * (attach.c), or fails.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/link.h"
#include "control/peer_end.h"
#include "control/peer_send.h"
#include "control/process.h"
#include "relay/relay.h"
#include "transport/circuit_end.h"
#include "transport/comm.h"
#include "transport/path_relayed.h"
#include "transport/path_state.h"
#include "transport/questions.h"
#include "transport/recovery.h"
#include "transport/route_wait.h"
#include "wire/stats.h"

/* Lines about circuits that broke, within MESH_LOG_LIMIT_PERIOD_MS. */
#define CIRCUIT_LINES 4

/* ---- a circuit breaks ------------------------------------------------------------------------ */

/* True if nothing is lost, but the other path of the comm is better. */
static bool is_left_for_better(const struct mesh_frame_circuit *event)
{
	return !*event->lost;
}

/* "node b, through which this path leads, has lost node c (path via b)" */
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
			 "node %.63s, through which this path leads, has lost node %.63s%s (path "
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

/* True if the path carries messages, as far as this end knows. */
MESH_HOLDS(process)
static bool is_up(const struct mesh_path *path)
{
	return mesh_path_is(path, MESH_PATH_UP) && mesh_path_lives(path);
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
	resumed = mesh_path_is_resumed(path) && !event->unclean;
	waits = mesh_path_is_waited_for(path);
	event_text(path, event, why, sizeof(why));
	if (!is_left_for_better(event))
		mesh_route_loss_note(comm, why);
	mesh_route_doubt(comm->process, event->by_node, event->lost_node);
	mesh_comm_lock(comm);
	if (resumed && !is_left_for_better(event) && !comm->closing &&
	    !mesh_comm_peer_is_over(comm))
		resumed_log(path, waits, why);
	else if (!resumed && !mesh_comm_peer_is_over(comm))
		mesh_comm_fail(comm, -ECONNRESET, comm->closing, why);
	mesh_comm_unlock(comm);
	mesh_domain_lock(domain);
	if (resumed)
		mesh_path_lost(path);
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

/* ---- a relay that does not answer ------------------------------------------------------------ */

/*
 * The link to a relay that does not answer is lost, with all paths over it: what the provider still
 * has for it would wait, with the memory that it comes from. The other ends learn it afterwards,
 * over other paths: the relay reports nothing. Those of sending comms learn it as after each loss.
 */
MESH_HOLDS(process)
static void relay_lose(struct mesh_peer *relay)
{
	struct mesh_peer *peer = NULL;
	struct mesh_peer_user *user;
	struct mesh_path *path;

	mesh_link_lose(relay, "it does not answer, though its kernel does: its process is stopped",
		       MESH_REFUSAL_BROKEN);
	while ((peer = mesh_peer_of_process(relay, peer))) {
		LIST_FOREACH(user, &peer->user_list, entry) {
			path = mesh_path_if_user(user);
			if (path && peer->state == MESH_PEER_LOST && mesh_path_has_relay(path) &&
			    !path->comm->sending && !mesh_comm_is_cut(path->comm))
				mesh_resume_send(path->comm);
		}
	}
}

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

void mesh_relays_look(struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_path *path;

	mesh_process_assert_locked(comm->process);
	if (comm->error || comm->opener)
		return;
	for (path = comm->paths; path < comm->paths + comm->num_paths; path++) {
		if (!mesh_path_has_relay(path) || !is_up(path))
			continue;
		mesh_relay_ask(&path->question, path->peer, path->remote_id, now_ms);
		if (mesh_relay_is_silent(&path->question, comm->process, now_ms) && may_leave(path))
			relay_lose(path->peer);
	}
}

/* ---- what relays and the other end say ------------------------------------------------------- */

MESH_HOLDS(process)
static void circuit_drained(struct mesh_path *path, const struct mesh_frame_circuit *event)
{
	struct mesh_comm *comm = path->comm;

	if (comm->sending || !mesh_path_has_relay(path) || !path->broken) {
		mesh_count_event(&comm->process->counters->refused);
		return;
	}
	if (event->unclean)
		mesh_path_fence(path);
	else
		mesh_path_drained(path);
	mesh_questions_answer(comm);
}

/* Also of one that the receiving end has accepted, before OPENED is here. */
MESH_HOLDS(process)
static void path_left(struct mesh_path *path)
{
	struct mesh_frame_circuit left = {.event = MESH_CIRCUIT_LOST};
	struct mesh_comm *comm = path->comm;

	memcpy(left.lost, comm->peer_name, sizeof(left.lost));
	/* A late OPENED is answered with CIRCUIT. */
	if (mesh_path_is(path, MESH_PATH_JOINING) && !comm->opener)
		mesh_path_down(path, MESH_PATH_JOINING);
	if (is_up(path))
		circuit_lost(path, &left);
}

void mesh_paths_left(struct mesh_comm *comm, const struct mesh_frame_resume *resume)
{
	struct mesh_path *path;
	int i;

	mesh_process_assert_locked(comm->process);
	if (resume->dead >> comm->num_paths)
		mesh_count_event(&comm->process->counters->refused);
	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		/* The loss of a link is known here as well, or is about to be. */
		if (resume->dead >> i & 1 && mesh_path_has_relay(path) &&
		    resume->epochs[i] == path->epoch)
			path_left(path);
	}
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
		circuit_drained(path, &frame->circuit);
}
