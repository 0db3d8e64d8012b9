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
#include "control/process.h"
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

/* True if nothing is lost, but the other path of the comm is better. */
static bool is_left_for_better(const struct mesh_frame_circuit *event)
{
	return !*event->lost;
}

/*
 * "node b, through which this path leads, has lost node c (path via b)"; "... node c: an operation
 * failed: Input/output error (path ..."
 */
static const char *event_text(const struct mesh_path *path, const struct mesh_frame_circuit *event,
			      char *text, size_t size)
{
	if (is_left_for_better(event))
		snprintf(text, size, "it has a better path now (path via %.127s)",
			 path->via ? path->via : "?");
	else if (event->event == MESH_CIRCUIT_LEFT)
		snprintf(text, size,
			 "node %.63s, a relay of this path, does not answer node %.63s, although "
			 "its kernel does: its process may be stopped (path via %.127s)",
			 event->lost, event->by, path->via ? path->via : "?");
	else
		snprintf(text, size,
			 "node %.63s, through which this path leads, has lost node %.63s%s%s%.64s "
			 "(path via %.127s)",
			 event->by, event->lost, event->unclean ? ", whose process has ended" : "",
			 event->error ? ": an operation failed: " : "",
			 event->error ? strerror((int)event->error) : "",
			 path->via ? path->via : "?");
	return text;
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

void mesh_path_circuit_lost(struct mesh_path *path, const struct mesh_frame_circuit *event)
{
	struct mesh_domain *domain = path->peer->domain;
	struct mesh_comm *comm = path->comm;
	bool resumed, waits;
	char why[448];

	mesh_process_assert_locked(comm->process);
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
	if (event->event == MESH_CIRCUIT_LOST)
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

void mesh_path_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_path *path = mesh_comm_path_find(peer, frame->to_comm);

	mesh_process_assert_locked(peer->process);
	if (!path || !mesh_path_has_relay(path))
		return;
	if (frame->circuit.event == MESH_CIRCUIT_LOST)
		mesh_path_circuit_lost(path, &frame->circuit);
	else if (frame->circuit.event == MESH_CIRCUIT_DRAINED)
		circuit_drained(path, &frame->circuit);
}

/* Informs the other end, over another path: what is in the stopped relay, it may wait for. */
void mesh_path_left_send(const struct mesh_path *path, const struct mesh_frame_circuit *found)
{
	struct mesh_frame frame;

	mesh_process_assert_locked(path->comm->process);
	memset(&frame, 0, sizeof(frame));
	frame.circuit = *found;
	frame.circuit.event = MESH_CIRCUIT_LEFT;
	frame.circuit.writes = (uint32_t)(path - path->comm->paths);
	frame.circuit.epoch = path->epoch;
	if (!mesh_comm_is_cut(path->comm))
		mesh_comm_frame_send(path->comm, &frame, MESH_FRAME_CIRCUIT);
}

void mesh_path_leave(struct mesh_path *path)
{
	const struct mesh_frame_circuit left = {.event = MESH_CIRCUIT_LEFT};

	mesh_process_assert_locked(path->comm->process);
	mesh_path_drain_ask(path); /* before the circuit is shut: else no relay reports that */
	mesh_path_circuit_lost(path, &left);
	mesh_path_left_send(path, &left);
}
