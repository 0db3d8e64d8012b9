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
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "control/peer_send.h"
#include "control/process.h"
#include "neighbours/neighbours.h"
#include "relay/circuits.h"
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

/* Between two questions: a part of the time that the comm has waited, within bounds. */
#define PAUSE_PART 8

/* ---- a circuit breaks ------------------------------------------------------------------------ */

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

/* Informs the other end, over another path: what is in the stopped relay, it may wait for. */
MESH_HOLDS(process)
static void left_send(const struct mesh_path *path, const struct mesh_frame_circuit *found)
{
	struct mesh_frame frame;

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
	circuit_lost(path, &left);
	left_send(path, &left);
}

/* ---- whether a path is stopped ------------------------------------------------------------- */

/* True if the path carries messages, as far as this end knows. */
MESH_HOLDS(process)
static bool is_up(const struct mesh_path *path)
{
	return mesh_path_is(path, MESH_PATH_UP) && mesh_path_lives(path);
}

/* True if one of its relays is stopped, which @found receives unless that is NULL. */
MESH_HOLDS(process)
static bool is_stopped(const struct mesh_path *path, uint64_t now_ms,
		       struct mesh_frame_circuit *found)
{
	return mesh_path_has_relay(path) &&
	       mesh_silence_is_long(&path->silence, path->peer, now_ms, found);
}

/* True if the path may be used in place of one that is stopped. */
MESH_HOLDS(process)
static bool goes_on(const struct mesh_path *path, uint64_t now_ms)
{
	const struct mesh_silence *silence = &path->silence;

	/* Two that stop together are not left for each other. */
	return is_up(path) && !silence->behind_ms &&
	       (!silence->asked_ms || mesh_clock_elapsed_ms(silence->asked_ms, now_ms) <
					      mesh_link_resumed_limit_ms(path->comm->process) / 2);
}

MESH_HOLDS(process)
static bool another_goes_on(const struct mesh_path *path, uint64_t now_ms)
{
	const struct mesh_comm *comm = path->comm;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		if (&comm->paths[i] != path && goes_on(&comm->paths[i], now_ms))
			return true;
	}
	return false;
}

/*
 * Routes avoid a stopped node for so long, in milliseconds: it is not chosen again as soon as it
 * runs, but before the longest pause between two looks is over.
 */
MESH_HOLDS(process)
static void node_avoid(const struct mesh_process *process, uint64_t node_id, uint64_t for_ms)
{
	if (node_id && process->relay && process->relay->neighbours)
		mesh_neighbours_doubt(process->relay->neighbours, node_id, 0, for_ms);
}

/* ---- leaving it ---------------------------------------------------------------------------- */

/*
 * What the provider still has for the stopped relay would wait for it, with the memory that it
 * comes from: the link is given up. A relay that runs takes it, and its NIC does on RDMA.
 */
MESH_HOLDS(process)
static void stuck_cut(struct mesh_path *path, const struct mesh_frame_circuit *found)
{
	struct mesh_peer *peer = path->peer;
	bool stuck;

	mesh_path_poll(path);
	mesh_comm_lock(path->comm);
	stuck = path->unfinished;
	mesh_comm_unlock(path->comm);
	if (!stuck || peer->state != MESH_PEER_UP || found->lost_node != peer->node_id)
		return;
	mesh_link_lose(peer, "its process is stopped, and messages that take another way are stuck",
		       MESH_REFUSAL_BROKEN);
	mesh_peer_bury(peer);
}

MESH_HOLDS(process)
static void path_leave(struct mesh_path *path, const struct mesh_frame_circuit *found)
{
	struct mesh_frame_circuit left = *found;

	left.event = MESH_CIRCUIT_LEFT;
	left.unclean = 0;
	circuit_lost(path, &left);
	if (path->comm->sending)
		stuck_cut(path, found);
}

/*
 * Informs the other end of the paths, as bits, that were left just now. Not before: one of them
 * might seem to lead there, and deliver that when its relay runs again, and the path is another.
 */
MESH_HOLDS(process)
static void lefts_send(const struct mesh_comm *comm, uint32_t left, uint64_t now_ms)
{
	struct mesh_frame_circuit found;
	int i;

	for (i = 0; left >> i; i++) {
		if (left >> i & 1 && is_stopped(&comm->paths[i], now_ms, &found))
			left_send(&comm->paths[i], &found);
	}
}

/*
 * A circuit of others that ends in the stopped process may lead through this one. It would not
 * survive that a link to it is given up, and it waits for that process anyhow.
 */
MESH_HOLDS(process)
static bool may_leave(const struct mesh_path *path, const struct mesh_frame_circuit *found)
{
	return !found->lost_node || !mesh_circuits_end_at(path->comm->process, found->lost_node);
}

/* ---- while a comm waits -------------------------------------------------------------------- */

static uint64_t pause_ms(uint64_t waited_ms)
{
	uint64_t pause = waited_ms / PAUSE_PART;

	if (pause < MESH_WATCH_MS)
		return MESH_WATCH_MS;
	return pause < MESH_ASK_MS ? pause : MESH_ASK_MS;
}

/* Returns true if the path was left. */
MESH_HOLDS(process)
static bool path_judge(struct mesh_path *path, uint64_t now_ms)
{
	struct mesh_comm *comm = path->comm;
	struct mesh_frame_circuit found;

	if (!is_stopped(path, now_ms, &found))
		return false;
	node_avoid(comm->process, found.lost_node, MESH_RETRY_MAX_MS);
	if (!may_leave(path, &found))
		return false;
	/* The sending end looks for another route; a receiving end waits for what comes of it. */
	if (!comm->sending && !another_goes_on(path, now_ms))
		return false;
	path_leave(path, &found);
	return true;
}

void mesh_stopped_look(struct mesh_comm *comm, uint64_t waited_ms, uint64_t now_ms)
{
	struct mesh_path *path;
	uint32_t left = 0;
	int i;

	mesh_process_assert_locked(comm->process);
	if (!comm->resumes || comm->error || comm->opener)
		return;
	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		if (!mesh_path_has_relay(path) || !is_up(path))
			continue;
		mesh_silence_look(&path->silence, MESH_AWAY_MS, now_ms - waited_ms, now_ms);
		mesh_silence_ask(&path->silence, path->peer, path->remote_id, pause_ms(waited_ms),
				 now_ms);
	}
	for (i = 0; i < comm->num_paths; i++) {
		if (is_up(&comm->paths[i]) && path_judge(&comm->paths[i], now_ms))
			left |= 1u << i;
	}
	lefts_send(comm, left, now_ms);
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

/* ANSWER came. */
MESH_HOLDS(process)
static void answered(struct mesh_path *path, const struct mesh_frame_circuit *answer)
{
	const struct mesh_process *process = path->comm->process;
	const struct mesh_peer *relay = path->peer;
	uint64_t now_ms = mesh_clock_ms();

	if (mesh_silence_is_long(&path->silence, relay, now_ms, NULL) && !*answer->lost)
		node_avoid(process, relay->node_id, 0); /* it runs again, and was not left */
	mesh_silence_answered(&path->silence, answer, now_ms);
}

/*
 * LEFT came: the other end of the comm leaves one of its paths. It may be late, and say so of an
 * earlier circuit; or the receiving end has left one that it has accepted, before OPENED is here.
 */
MESH_HOLDS(process)
static void other_left(struct mesh_comm *comm, const struct mesh_frame_circuit *left)
{
	struct mesh_frame_circuit event = *left;
	struct mesh_path *path;

	if (left->writes >= (uint32_t)comm->num_paths ||
	    !mesh_path_has_relay(&comm->paths[left->writes]) || !comm->resumes) {
		mesh_count_event(&comm->process->counters->refused);
		return;
	}
	path = &comm->paths[left->writes];
	if (left->epoch != path->epoch)
		return;
	if (comm->sending && mesh_path_is(path, MESH_PATH_JOINING) && !comm->opener)
		mesh_path_down(
			path,
			MESH_PATH_JOINING); /* OPENED, if it comes, is answered with CIRCUIT */
	event.unclean = 0;
	if (is_up(path))
		circuit_lost(path, &event);
	if (comm->sending)
		stuck_cut(path, left);
}

void mesh_path_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_path *path = mesh_comm_path_find(peer, frame->to_comm);

	mesh_process_assert_locked(peer->process);
	if (!path)
		return;
	if (frame->circuit.event == MESH_CIRCUIT_LEFT)
		other_left(path->comm, &frame->circuit); /* it names another path */
	else if (!mesh_path_has_relay(path))
		return;
	else if (frame->circuit.event == MESH_CIRCUIT_ANSWER)
		answered(path, &frame->circuit);
	else if (frame->circuit.event == MESH_CIRCUIT_LOST)
		circuit_lost(path, &frame->circuit);
	else if (frame->circuit.event == MESH_CIRCUIT_DRAINED)
		circuit_drained(path, &frame->circuit);
}
