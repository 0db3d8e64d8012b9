/* SPDX-License-Identifier: Apache-2.0 */
/* ending.c - ends circuits, and frees them when nothing of them is in flight. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer_send.h"
#include "fabric/fence.h"
#include "nic/rdma_port.h"
#include "relay/ending.h"
#include "relay/forward.h"
#include "relay/relay.h"

/* An end has shut a circuit, and its last writes have not arrived: the circuit retires. */
#define SHUT_MS 10000
/* Between two looks at one that has retired. */
#define RETIRED_MS 10000
/*
 * What is in flight to a lost node is cut off after this. For so long a circuit is kept after
 * an operation has failed: the process at its end may have ended.
 */
#define LOST_MS 1000
/* Between two looks at a circuit that ends, and at a fence that is in progress. */
#define LOOK_MS 100
#define FENCE_LOOK_MS 5
/* Lines about circuits that broke here, within MESH_LOG_LIMIT_PERIOD_MS. */
#define BROKEN_LINES 8
/* Bytes of the text of what broke one. */
#define WHY_MAX 640

MESH_HOLDS(process)
static void event_send(struct mesh_circuit_side *to, struct mesh_frame_circuit event)
{
	struct mesh_frame frame;

	if (!to->peer || to->lost || !to->known)
		return;
	memset(&frame, 0, sizeof(frame));
	frame.circuit = event;
	frame.circuit.to_comm = to->remote_id;
	mesh_peer_send(to->peer, &frame, MESH_FRAME_CIRCUIT);
}

/* True if the process at this end of the comm has ended: no other circuit leads to it. */
MESH_HOLDS(process)
static bool end_is_over(const struct mesh_circuit *circuit, const struct mesh_circuit_side *side)
{
	bool to_relay = side == &circuit->up ? circuit->from_relay : circuit->to_relay;

	return !to_relay && side->peer && side->peer->over;
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
	mesh_circuit_break(circuit, lost, lost->lost ? 0 : error, why);
}

void mesh_circuit_break(struct mesh_circuit *circuit, const struct mesh_circuit_side *lost,
			int error, const char *why)
{
	struct mesh_frame_circuit event = {.event = MESH_CIRCUIT_LOST, .error = (uint32_t)-error};
	struct mesh_process *process = circuit->relay->process;
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	mesh_process_assert_locked(process);
	if (circuit->reported)
		return;
	circuit->reported = true;
	memcpy(event.by, process->name, sizeof(event.by));
	event.by_node = process->node_id;
	if (lost->peer) {
		memcpy(event.lost, lost->peer->name, sizeof(event.lost));
		event.lost_node = lost->peer->node_id;
	}
	event.unclean = circuit->over = end_is_over(circuit, lost);
	if (error && error != -EPROTO && !circuit->over)
		circuit->suspect_ms = mesh_clock_ms();
	if (mesh_log_limit_pass(&process->limits.relayed, BROKEN_LINES, mesh_clock_ms(), more))
		mesh_info("relay: the circuit from node %s to node %s is broken: %s%s",
			  circuit->origin, circuit->target, why, more);
	event_send(&circuit->up, event);
	event_send(&circuit->down, event);
}

/* What has been reported as a failed operation was the end of a process. */
MESH_HOLDS(process)
static void over_report(struct mesh_circuit *circuit)
{
	const struct mesh_circuit_side *lost = NULL;

	if (circuit->over)
		return;
	if (end_is_over(circuit, &circuit->down))
		lost = &circuit->down;
	else if (end_is_over(circuit, &circuit->up))
		lost = &circuit->up;
	if (!lost)
		return;
	circuit->reported = false;
	mesh_circuit_break(circuit, lost, 0, "the process at its end has ended");
}

bool mesh_circuits_target_is_over(const struct mesh_relay *relay, uint64_t cookie)
{
	const struct mesh_circuit *circuit;

	mesh_process_assert_locked(relay->process);
	LIST_FOREACH(circuit, &relay->circuits, entry) {
		if (circuit->cookie == cookie && !circuit->opening &&
		    end_is_over(circuit, &circuit->down))
			return true;
	}
	return false;
}

void mesh_circuit_shut(struct mesh_circuit *circuit, uint32_t writes)
{
	mesh_process_assert_locked(circuit->relay->process);
	if (circuit->shut)
		return;
	circuit->shut = true;
	circuit->shut_writes = writes;
	circuit->ending_ms = mesh_clock_ms();
	mesh_circuit_check_soon(circuit);
}

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
	circuit->retired = true;
	mesh_info("relay: node %s has ended the circuit from node %s to node %s, and its last "
		  "writes do not come: its memory is kept for them",
		  circuit->up.peer->name, circuit->origin, circuit->target);
	mesh_circuit_break(circuit, &circuit->up, 0, "its connecting end has ended it");
	mesh_circuit_check_soon(circuit);
}

/* What the connecting end has written may never arrive, and must not arrive late. */
MESH_HOLDS(process)
static void up_settle(struct mesh_circuit *circuit, uint64_t now_ms)
{
	if (circuit->fenced_up)
		return;
	if (circuit->up.lost) {
		if (side_fence(&circuit->up))
			mesh_circuit_up_fenced(circuit);
	} else if (circuit->shut && !circuit->retired &&
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
	bool unfinished;

	mesh_circuit_lock(circuit);
	unfinished = circuit->down.unfinished;
	mesh_circuit_unlock(circuit);
	if (circuit->down.fence ||
	    (circuit->down.lost && unfinished && circuit->shut && !circuit->fenced_down &&
	     mesh_clock_elapsed_ms(circuit->ending_ms, now_ms) > LOST_MS))
		circuit->fenced_down = side_fence(&circuit->down);
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
	bool drained;

	if (circuit->to_relay || circuit->drained)
		return;
	mesh_circuit_lock(circuit);
	drained = circuit->error && !circuit->writing;
	event.unclean = circuit->unclean;
	mesh_circuit_unlock(circuit);
	if (!drained)
		return;
	circuit->drained = true;
	event_send(&circuit->down, event);
}

/* True if nothing of the circuit is in flight, and nothing more can arrive in its memory. */
MESH_HOLDS(process)
static bool is_at_rest(struct mesh_circuit *circuit, uint64_t now_ms)
{
	bool rest;

	if (!circuit->shut ||
	    (circuit->suspect_ms && mesh_clock_elapsed_ms(circuit->suspect_ms, now_ms) <= LOST_MS))
		return false;
	mesh_circuit_lock(circuit);
	rest = !mesh_circuit_unfinished(circuit) &&
	       (circuit->fenced_up || circuit->came == circuit->shut_writes) &&
	       (circuit->error ||
		(!circuit->num_waiting && !circuit->up.num_passing && !circuit->down.num_passing));
	mesh_circuit_unlock(circuit);
	return rest;
}

/* Ends the rest of the circuit in the same way. */
MESH_HOLDS(process)
static void shut_forward(struct mesh_circuit *circuit)
{
	struct mesh_frame_circuit event = {
		.event = circuit->withdrawn ? MESH_CIRCUIT_WITHDRAWN : MESH_CIRCUIT_SHUT,
		.writes = circuit->hop.writes,
	};

	if (circuit->to_relay)
		event_send(&circuit->down, event);
}

/* The way on of a circuit that has retired ends as soon as nothing is in flight there. */
MESH_HOLDS(process)
static void retired_end(struct mesh_circuit *circuit)
{
	bool rest;

	if (!circuit->retired || !circuit->down.is_user)
		return;
	mesh_circuit_lock(circuit);
	rest = circuit->error && !mesh_circuit_unfinished(circuit);
	mesh_circuit_unlock(circuit);
	if (!rest)
		return;
	shut_forward(circuit);
	mesh_circuit_down_close(circuit);
	mesh_circuits_domains_learn(circuit->relay);
}

void mesh_circuit_ending_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_circuit *circuit = mesh_container_of(timer, struct mesh_circuit, timer);
	struct mesh_engine *engine = &circuit->relay->process->engine;

	mesh_process_assert_locked(circuit->relay->process);
	if (!circuit->reported && (circuit->up.lost || circuit->down.lost || circuit->error))
		circuit_broken(circuit);
	if (circuit->reported) {
		over_report(circuit);
		circuit_stop(circuit);
		drained_send(circuit);
	}
	up_settle(circuit, now_ms);
	down_settle(circuit, now_ms);
	if (is_at_rest(circuit, now_ms)) {
		shut_forward(circuit);
		mesh_circuit_free(circuit);
		return;
	}
	retired_end(circuit);
	if (circuit->up.fence || circuit->down.fence)
		mesh_engine_timer_set(engine, &circuit->timer, now_ms + FENCE_LOOK_MS);
	else if (circuit->shut || (circuit->up.lost && !circuit->fenced_up))
		mesh_engine_timer_set(engine, &circuit->timer,
				      now_ms + (circuit->down.is_user ? LOOK_MS : RETIRED_MS));
}
