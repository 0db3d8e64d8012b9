/* SPDX-License-Identifier: Apache-2.0 */
/*
 * circuits.c - what happens to the circuits that are open: frames about them, what breaks them, and
 * how they end, and are freed when nothing of them is in flight.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer_send.h"
#include "fabric/fence.h"
#include "nic/rdma_port.h"
#include "relay/circuit.h"
#include "relay/circuits.h"
#include "relay/forward.h"
#include "relay/relay.h"

/*
 * An end has shut a circuit, and its last writes have not arrived: the circuit retires. So long is
 * also between two looks at one that has.
 */
#define SHUT_MS 10000
/*
 * What is in flight to a lost node is cut off after this. For so long a circuit is kept after
 * an operation has failed: the process at its end may have ended.
 */
#define LOST_MS 1000
/* Between two looks at a circuit that ends. */
#define LOOK_MS 100
/* Lines about circuits that broke here, within MESH_LOG_LIMIT_PERIOD_MS. */
#define BROKEN_LINES 8
/* Bytes of the text of what broke one. */
#define WHY_MAX 640

/* ---- breaking ------------------------------------------------------------------------------ */

MESH_HOLDS(process)
static void event_send(struct mesh_circuit_side *to, struct mesh_frame_circuit event)
{
	if (to->peer && !to->lost && to->known)
		mesh_circuit_event_send(to->peer, to->remote_id, event);
}

/* True if the process at this end of the comm has ended: no other circuit leads to it. */
MESH_HOLDS(process)
static bool end_is_over(const struct mesh_circuit_side *side)
{
	return !side->is_relay && side->peer && side->peer->over;
}

/* "node b (10.1.0.2)"; @text has MESH_PEER_TEXT_MAX bytes. */
static const char *side_text(const struct mesh_circuit_side *side, char *text)
{
	if (side->peer)
		return mesh_peer_text(side->peer, text);
	return strcpy(text, "a node");
}

/* "a write from 10.1.0.1 (eth0) to node b (10.1.0.2) failed: Connection timed out (...)" */
MESH_HOLDS(process)
static void failure_text(const struct mesh_circuit_failure *failure, int error, char *text,
			 size_t size)
{
	const struct mesh_circuit_side *side = failure->side;
	const char *cause = mesh_rdma_status_cause(failure->status);
	char local[MESH_ADDR_TEXT_MAX], peer[MESH_PEER_TEXT_MAX];
	const struct mesh_nic *nic = side->domain->nic;

	side_text(side, peer);
	mesh_addr_text(&nic->source, local);
	if (error == -EPROTO)
		snprintf(text, size, "%s has sent %s to %s (%s)", peer, failure->what, local,
			 nic->netdev);
	else
		snprintf(text, size, "%s from %s (%s) to %s failed: %s%s%s%s", failure->what, local,
			 nic->netdev, peer, strerror(-error), cause ? " (" : "", cause ? cause : "",
			 cause ? ")" : "");
}

/*
 * Reports to both ends that the circuit is broken, and logs it.
 *
 * @lost: the side that is
 * @error: of the operation that failed, a negative errno, for both ends; 0: none has
 * @why: what happened there, for the log
 */
MESH_HOLDS(process)
static void lost_report(struct mesh_circuit *circuit, const struct mesh_circuit_side *lost,
			int error, const char *why)
{
	struct mesh_frame_circuit event = {.event = MESH_CIRCUIT_LOST, .error = (uint32_t)-error};
	struct mesh_process *process = circuit->relay->process;
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	circuit->state = end_is_over(lost) ? MESH_CIRCUIT_OVER : MESH_CIRCUIT_BROKEN;
	memcpy(event.by, process->name, sizeof(event.by));
	event.by_node = process->node_id;
	if (lost->peer) {
		memcpy(event.lost, lost->peer->name, sizeof(event.lost));
		event.lost_node = lost->peer->node_id;
	}
	event.unclean = circuit->state == MESH_CIRCUIT_OVER;
	if (error && error != -EPROTO && !event.unclean)
		circuit->suspect_ms = mesh_clock_ms();
	if (mesh_log_limit_pass(&process->limits.relayed, BROKEN_LINES, mesh_clock_ms(), more))
		mesh_info("relay: the circuit from node %s to node %s is broken: %s%s",
			  circuit->origin, circuit->target, why, more);
	event_send(&circuit->up, event);
	event_send(&circuit->down, event);
}

/* The same, unless they know it. */
MESH_HOLDS(process)
static void circuit_break(struct mesh_circuit *circuit, const struct mesh_circuit_side *lost,
			  int error, const char *why)
{
	if (circuit->state == MESH_CIRCUIT_WHOLE)
		lost_report(circuit, lost, error, why);
}

/* Breaks a circuit of which a side is lost, or something has failed. */
MESH_HOLDS(process)
static void circuit_broken(struct mesh_circuit *circuit)
{
	const struct mesh_circuit_side *lost = circuit->up.lost ? &circuit->up : &circuit->down;
	struct mesh_circuit_failure failure;
	char peer[MESH_PEER_TEXT_MAX], why[WHY_MAX] = "";
	size_t used = 0;
	int error;

	mesh_circuit_lock(circuit);
	error = circuit->error;
	failure = circuit->failure;
	mesh_circuit_unlock(circuit);
	if (!lost->lost && failure.side)
		lost = failure.side;
	if (lost->lost)
		used = (size_t)snprintf(
			why, sizeof(why), "%s is lost%s%.256s%s", side_text(lost, peer),
			lost->peer && *lost->peer->reason ? ": " : "",
			lost->peer ? lost->peer->reason : "", failure.what ? "; before, " : "");
	if (failure.what && used < sizeof(why))
		failure_text(&failure, error, why + used, sizeof(why) - used);
	lost_report(circuit, lost, lost->lost ? 0 : error, why);
}

/* What has been reported as a failed operation was the end of a process. */
MESH_HOLDS(process)
static void over_report(struct mesh_circuit *circuit)
{
	const struct mesh_circuit_side *side = end_is_over(&circuit->down) ? &circuit->down
									   : &circuit->up;

	if (circuit->state == MESH_CIRCUIT_BROKEN && end_is_over(side))
		lost_report(circuit, side, 0, "the process at its end has ended");
}

void mesh_circuits_carrier_lost(struct mesh_process *process, const struct mesh_domain *domain)
{
	struct mesh_relay *relay = process->relay;
	struct mesh_circuit *circuit;
	char why[MESH_NIC_NAME_MAX + 32];

	mesh_process_assert_locked(process);
	if (!relay)
		return;
	snprintf(why, sizeof(why), "%s has no carrier", domain->nic->netdev);
	LIST_FOREACH(circuit, &relay->circuits, entry) {
		if (circuit->opening)
			continue;
		if (circuit->down.domain == domain)
			circuit_break(circuit, &circuit->down, 0, why);
		else if (circuit->up.domain == domain)
			circuit_break(circuit, &circuit->up, 0, why);
		else
			continue;
		mesh_relay_wake(circuit->relay);
	}
}

bool mesh_circuits_target_is_over(const struct mesh_relay *relay, uint64_t cookie)
{
	const struct mesh_circuit *circuit;

	mesh_process_assert_locked(relay->process);
	LIST_FOREACH(circuit, &relay->circuits, entry) {
		if (circuit->cookie == cookie && !circuit->opening && end_is_over(&circuit->down))
			return true;
	}
	return false;
}

/* ---- ending -------------------------------------------------------------------------------- */

/* Returns false if memory is short: then the fence is complete, and has been waited for. */
MESH_HOLDS(process)
static bool fence_begin(struct mesh_circuit_side *side, struct mesh_fence *fence)
{
	side->fence = malloc(sizeof(*side->fence));
	if (!side->fence) {
		mesh_remotes_fence(fence, 1);
		return false;
	}
	*side->fence = *fence;
	mesh_fence_begin(side->fence);
	return true;
}

/*
 * On verbs it lasts up to 2.5 s and more, and nobody is to wait for it with process->lock held:
 * returns false while it is in progress. On tcp the provider may still write what it had read for
 * the circuit's memory: until it polls.
 */
MESH_HOLDS(process)
static bool side_fence(struct mesh_circuit_side *side)
{
	struct mesh_fence fence = {.domain = side->domain, .remote = side->remote};
	char text[MESH_PEER_TEXT_MAX];

	if (!side->remote)
		return true;
	if (side->domain->provider != MESH_PROVIDER_VERBS_RXM) {
		mesh_remotes_fence(&fence, 1);
		if (fence.result < 0)
			return false; /* the circuit keeps its memory, and tries again */
		mesh_fence_drain(&fence, mesh_peer_text(side->peer, text));
		return true;
	}
	if (!side->fence && !fence_begin(side, &fence))
		return true;
	if (mesh_fence_step(side->fence))
		return false;
	mesh_fence_report(side->fence);
	free(side->fence);
	side->fence = NULL;
	return true;
}

/*
 * The writes that the connecting end has announced do not come, or not as many. A fence would cut
 * its link, which may carry other circuits, and comms. So this circuit alone ends, and keeps its
 * memory, in which they may still arrive, until they have, or the link is lost.
 */
MESH_HOLDS(process)
static void circuit_retire(struct mesh_circuit *circuit)
{
	mesh_circuit_side_set(&circuit->up, MESH_SIDE_RETIRED);
	mesh_info("relay: node %s has ended the circuit from node %s to node %s, and its last "
		  "writes do not come: its memory is kept for them",
		  circuit->up.peer->name, circuit->origin, circuit->target);
	circuit_break(circuit, &circuit->up, 0, "its connecting end has ended it");
	mesh_relay_wake(circuit->relay);
}

/* What the connecting end has written may never arrive, and must not arrive late. */
MESH_HOLDS(process)
static void up_settle(struct mesh_circuit *circuit, uint64_t now_ms)
{
	struct mesh_circuit_side *up = &circuit->up;

	if (up->state == MESH_SIDE_FENCED)
		return;
	if (up->lost) {
		if (side_fence(up))
			mesh_circuit_side_set(up, MESH_SIDE_FENCED);
	} else if (up->state == MESH_SIDE_SHUT &&
		   mesh_clock_elapsed_ms(circuit->ending_ms, now_ms) > SHUT_MS) {
		circuit_retire(circuit);
	}
}

/*
 * Operations to a node that is lost end by themselves, or else by a fence. One that has begun goes
 * on, also if they end meanwhile: its write may still cut a connection.
 */
MESH_HOLDS(process)
static void down_settle(struct mesh_circuit *circuit, uint64_t now_ms)
{
	struct mesh_circuit_side *down = &circuit->down;
	uint32_t unfinished;

	mesh_circuit_lock(circuit);
	unfinished = down->unfinished;
	mesh_circuit_unlock(circuit);
	if (!down->fence && (!down->lost || !unfinished || circuit->up.state < MESH_SIDE_SHUT ||
			     down->state == MESH_SIDE_FENCED ||
			     mesh_clock_elapsed_ms(circuit->ending_ms, now_ms) <= LOST_MS))
		return;
	if (side_fence(down))
		mesh_circuit_side_set(down, MESH_SIDE_FENCED);
}

/* Nothing more of it is forwarded. */
MESH_HOLDS(process)
static void circuit_stop(struct mesh_circuit *circuit)
{
	mesh_circuit_lock(circuit);
	if (!circuit->error)
		circuit->error = -ECONNRESET;
	mesh_circuit_abandon(circuit);
	mesh_circuit_unlock(circuit);
}

/*
 * Reports to the listener's node that a broken circuit writes nothing more there: then what the
 * connecting end sends again over another path cannot meet what is late.
 */
MESH_HOLDS(process)
static void drained_send(struct mesh_circuit *circuit)
{
	struct mesh_frame_circuit event = {.event = MESH_CIRCUIT_DRAINED};
	struct mesh_circuit_side *down = &circuit->down;
	uint32_t writing;

	if (down->is_relay || down->state >= MESH_SIDE_DRAINED)
		return;
	mesh_circuit_lock(circuit);
	writing = circuit->writing;
	event.unclean = circuit->unclean;
	mesh_circuit_unlock(circuit);
	if (writing)
		return;
	mesh_circuit_side_set(down, MESH_SIDE_DRAINED);
	event_send(down, event);
}

/* True if nothing of the circuit is in flight, and nothing waits. @came: as in the circuit */
MESH_HOLDS(process)
static bool is_idle(struct mesh_circuit *circuit, uint32_t *came)
{
	bool idle;

	mesh_circuit_lock(circuit);
	*came = circuit->came;
	idle = !mesh_circuit_unfinished(circuit) &&
	       (circuit->error ||
		(!circuit->num_waiting && !circuit->up.num_passing && !circuit->down.num_passing));
	mesh_circuit_unlock(circuit);
	return idle;
}

/* True if nothing more can arrive in its memory, and both ends have learned why it ends. */
MESH_HOLDS(process)
static bool is_complete(const struct mesh_circuit *circuit, uint32_t came, uint64_t now_ms)
{
	return circuit->up.state >= MESH_SIDE_SHUT &&
	       (circuit->up.state == MESH_SIDE_FENCED || came == circuit->shut_writes) &&
	       (!circuit->suspect_ms ||
		mesh_clock_elapsed_ms(circuit->suspect_ms, now_ms) > LOST_MS);
}

/* Ends the rest of the circuit in the same way. */
MESH_HOLDS(process)
static void shut_forward(struct mesh_circuit *circuit)
{
	const struct mesh_frame_circuit event = {.event = circuit->shut_event,
						 .writes = circuit->hop.writes};

	if (circuit->down.is_relay)
		event_send(&circuit->down, event);
}

/* Returns true if it was freed. */
MESH_HOLDS(process)
static bool idle_end(struct mesh_circuit *circuit, uint64_t now_ms)
{
	uint32_t came;

	if (!is_idle(circuit, &came))
		return false;
	if (is_complete(circuit, came, now_ms)) {
		shut_forward(circuit);
		mesh_circuit_free(circuit);
		return true;
	}
	/* Not before circuit_stop(): *drained* goes over that link. */
	if (circuit->up.state == MESH_SIDE_RETIRED && circuit->error && circuit->down.peer) {
		shut_forward(circuit);
		mesh_circuit_side_close(&circuit->down);
		mesh_circuits_domains_learn(circuit->relay);
	}
	return false;
}

void mesh_circuit_ending_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_circuit *circuit = mesh_container_of(timer, struct mesh_circuit, timer);
	struct mesh_engine *engine = &circuit->relay->process->engine;

	mesh_process_assert_locked(circuit->relay->process);
	if (circuit->state == MESH_CIRCUIT_WHOLE &&
	    (circuit->up.lost || circuit->down.lost || circuit->error))
		circuit_broken(circuit);
	if (circuit->state != MESH_CIRCUIT_WHOLE) {
		over_report(circuit);
		circuit_stop(circuit);
		drained_send(circuit);
	}
	up_settle(circuit, now_ms);
	down_settle(circuit, now_ms);
	if (idle_end(circuit, now_ms))
		return;
	if (circuit->up.fence || circuit->down.fence)
		mesh_engine_timer_set(engine, &circuit->timer, now_ms + MESH_CIRCUIT_STEP_MS);
	else if (circuit->up.state >= MESH_SIDE_SHUT || circuit->up.lost)
		mesh_engine_timer_set(engine, &circuit->timer,
				      now_ms + (circuit->down.peer ? LOOK_MS : SHUT_MS));
}

/* ---- frames -------------------------------------------------------------------------------- */

/* The connecting end has nothing more to send, and freed its end. @writes: into our memory, ever */
MESH_HOLDS(process)
static void circuit_shut(struct mesh_circuit *circuit, uint32_t writes)
{
	if (circuit->up.state >= MESH_SIDE_SHUT)
		return;
	mesh_circuit_side_set(&circuit->up, MESH_SIDE_SHUT);
	circuit->shut_writes = writes;
	mesh_relay_wake(circuit->relay);
}

/* The other end, or a relay behind it, reports that the circuit is broken. */
MESH_HOLDS(process)
static void lost_pass(struct mesh_circuit_side *from, const struct mesh_frame_circuit *event)
{
	struct mesh_circuit *circuit = from->circuit;

	if (circuit->state != MESH_CIRCUIT_OVER)
		circuit->state = event->unclean ? MESH_CIRCUIT_OVER : MESH_CIRCUIT_BROKEN;
	if (event->error && event->error != EPROTO && !event->unclean)
		circuit->suspect_ms = mesh_clock_ms();
	event_send(from->other, *event);
	mesh_relay_wake(circuit->relay);
}

/*
 * A comm waits behind the node there, which asks whether this process runs: so the next relay is
 * asked as well. If that one does not answer the circuit is broken, as if the link were lost. What
 * else uses the link goes on: a process at the end of a comm may be stopped for any time.
 */
MESH_HOLDS(process)
static void ask_answer(struct mesh_circuit_side *from)
{
	const struct mesh_frame_circuit answer = {.event = MESH_CIRCUIT_ANSWER};
	struct mesh_circuit *circuit = from->circuit;
	struct mesh_circuit_side *next = from->other;
	uint64_t now_ms = mesh_clock_ms();

	event_send(from, answer);
	if (!next->is_relay || !next->peer || next->lost || !next->known)
		return;
	mesh_relay_ask(&next->question, next->peer, next->remote_id, now_ms);
	if (!mesh_relay_is_silent(&next->question, circuit->relay->process, now_ms))
		return;
	circuit_break(circuit, next, 0, "the next relay does not answer, though its kernel does");
	mesh_relay_wake(circuit->relay);
}

/* What says nothing of the circuit's end. Returns false if @event does. */
MESH_HOLDS(process)
static bool question_handle(struct mesh_circuit_side *side, const struct mesh_frame *frame)
{
	switch ((enum mesh_circuit_event)frame->circuit.event) {
	case MESH_CIRCUIT_ASK:
		ask_answer(side);
		return true;
	case MESH_CIRCUIT_ANSWER:
		side->question.asked_ms = 0;
		return true;
	case MESH_CIRCUIT_LEFT:
		mesh_circuit_frame_pass(side->peer, frame);
		return true;
	default:
		return false;
	}
}

/* The connector's NCCL never had the comm, so the listener's must not have it. */
MESH_HOLDS(process)
static void withdrawn_pass(struct mesh_circuit *circuit, const struct mesh_frame_circuit *event)
{
	if (!circuit->down.is_relay && circuit->down.peer && !circuit->down.lost)
		mesh_circuit_withdraw_send(circuit);
	circuit->shut_event = MESH_CIRCUIT_WITHDRAWN;
	/* For a comm that had another one before. */
	circuit_break(circuit, &circuit->up, 0, "its connecting end has withdrawn it");
	circuit_shut(circuit, event->writes);
}

bool mesh_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_circuit_side *side = mesh_circuit_side_find(peer, frame->to_comm);
	const struct mesh_frame_circuit *event = &frame->circuit;

	if (!side || side->circuit->opening || question_handle(side, frame))
		return side;
	if (event->event == MESH_CIRCUIT_LOST)
		lost_pass(side, event);
	else if (side != &side->circuit->up)
		circuit_break(side->circuit, side, -EPROTO, "only the connecting end may shut it");
	else if (event->event == MESH_CIRCUIT_WITHDRAWN)
		withdrawn_pass(side->circuit, event);
	else
		circuit_shut(side->circuit, event->writes);
	return true;
}

bool mesh_circuit_frame_pass(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_circuit_side *side = mesh_circuit_side_find(peer, frame->to_comm);
	struct mesh_circuit_side *to;
	struct mesh_frame passed = *frame;

	if (!side)
		return false;
	/* Its process may end before the connecting end shuts the circuit. */
	if (frame->header.type == MESH_FRAME_CLOSED)
		mesh_circuit_side_set(side, MESH_SIDE_CLOSED);
	to = side->other;
	if (!to->peer || to->lost || !to->known)
		return true;
	passed.to_comm = to->remote_id;
	mesh_relay_moved(side->circuit->relay, false);
	mesh_peer_send(to->peer, &passed, (enum mesh_frame_type)frame->header.type);
	return true;
}

/* ---- all of them --------------------------------------------------------------------------- */

void mesh_circuits_tick(struct mesh_process *process, uint64_t now_ms)
{
	struct mesh_relay *relay = process->relay;
	struct mesh_circuit *circuit, *next;

	mesh_process_assert_locked(process);
	if (!relay || !atomic_load_explicit(&relay->news, memory_order_relaxed) ||
	    !atomic_exchange(&relay->news, false))
		return;
	for (circuit = LIST_FIRST(&relay->circuits); circuit; circuit = next) {
		next = LIST_NEXT(circuit, entry);
		circuit->timer.expired(&circuit->timer, now_ms);
	}
}

void mesh_circuits_close(struct mesh_process *process)
{
	struct mesh_circuit *circuit;

	mesh_process_assert_locked(process);
	if (!process->relay)
		return;
	while ((circuit = LIST_FIRST(&process->relay->circuits)))
		mesh_circuit_free(circuit);
}

MESH_HOLDS(process)
static bool ends_at(const struct mesh_circuit_side *side, uint64_t node_id)
{
	return side->peer && side->peer->node_id == node_id && !side->is_relay;
}

bool mesh_circuits_end_at(const struct mesh_process *process, uint64_t node_id)
{
	const struct mesh_circuit *circuit = NULL;

	mesh_process_assert_locked(process);
	if (process->relay)
		circuit = LIST_FIRST(&process->relay->circuits);
	for (; circuit; circuit = LIST_NEXT(circuit, entry)) {
		if (!circuit->opening && circuit->up.state < MESH_SIDE_SHUT &&
		    (ends_at(&circuit->up, node_id) || ends_at(&circuit->down, node_id)))
			return true;
	}
	return false;
}
