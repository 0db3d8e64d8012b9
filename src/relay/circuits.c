/* SPDX-License-Identifier: Apache-2.0 */
/* circuits.c - what happens to the circuits of this process: frames, lost peers, ticks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "control/peer_send.h"
#include "relay/circuits.h"
#include "relay/ending.h"
#include "relay/forward.h"
#include "relay/relay.h"

/* An end that waits asks more often than this, unless this process is stopped. */
#define ASKED_GAP_MS 4000

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

/* True if another relay is on this side, and not an end of the circuit. */
static bool leads_to_relay(const struct mesh_circuit_side *side)
{
	const struct mesh_circuit *circuit = side->circuit;

	return side == &circuit->up ? circuit->from_relay : circuit->to_relay;
}

MESH_HOLDS(process)
static bool ends_at(const struct mesh_circuit_side *side, uint64_t node_id)
{
	return side->peer && side->peer->node_id == node_id && !leads_to_relay(side);
}

bool mesh_circuits_end_at(const struct mesh_process *process, uint64_t node_id)
{
	const struct mesh_circuit *circuit = NULL;

	mesh_process_assert_locked(process);
	if (process->relay)
		circuit = LIST_FIRST(&process->relay->circuits);
	for (; circuit; circuit = LIST_NEXT(circuit, entry)) {
		if (!circuit->opening && !circuit->shut &&
		    (ends_at(&circuit->up, node_id) || ends_at(&circuit->down, node_id)))
			return true;
	}
	return false;
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
			mesh_circuit_break(circuit, &circuit->down, 0, why);
		else if (circuit->up.domain == domain)
			mesh_circuit_break(circuit, &circuit->up, 0, why);
		else
			continue;
		mesh_circuit_check_soon(circuit);
	}
}

/* ---- frames -------------------------------------------------------------------------------- */

/* The other end, or a relay behind it, reports that the circuit is broken. */
MESH_HOLDS(process)
static void lost_pass(struct mesh_circuit_side *from, const struct mesh_frame_circuit *event)
{
	struct mesh_circuit *circuit = from->circuit;
	struct mesh_circuit_side *to = from->other;
	struct mesh_frame frame;

	circuit->reported = true;
	circuit->over |= event->unclean;
	if (event->error && event->error != EPROTO && !event->unclean)
		circuit->suspect_ms = mesh_clock_ms();
	memset(&frame, 0, sizeof(frame));
	frame.circuit = *event;
	frame.circuit.to_comm = to->remote_id;
	if (to->peer && !to->lost && to->known)
		mesh_peer_send(to->peer, &frame, MESH_FRAME_CIRCUIT);
	mesh_circuit_check_soon(circuit);
}

/*
 * The node there asks whether this process runs, and whether those behind it do: answers for the
 * next relay by what it has said, and asks it again.
 */
MESH_HOLDS(process)
static void ask_answer(struct mesh_circuit_side *from)
{
	struct mesh_circuit_side *next = from->other;
	struct mesh_frame frame;
	uint64_t now_ms = mesh_clock_ms();
	bool asks = leads_to_relay(next) && next->peer && !next->lost && next->known;

	memset(&frame, 0, sizeof(frame));
	if (asks) {
		mesh_silence_look(&next->silence, ASKED_GAP_MS, 0, now_ms);
		mesh_silence_is_long(&next->silence, next->peer, now_ms, &frame.circuit);
	}
	frame.circuit.to_comm = from->remote_id;
	frame.circuit.event = MESH_CIRCUIT_ANSWER;
	if (from->known && !from->lost)
		mesh_peer_send(from->peer, &frame, MESH_FRAME_CIRCUIT);
	if (asks)
		mesh_silence_ask(&next->silence, next->peer, next->remote_id, 0, now_ms);
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
		if (!leads_to_relay(side))
			return true; /* an end is not asked */
		mesh_silence_answered(&side->silence, &frame->circuit, mesh_clock_ms());
		if (*frame->circuit.lost) /* it shall be known at once */
			mesh_circuit_frame_pass(side->peer, frame);
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
	struct mesh_frame frame;

	if (!circuit->to_relay && circuit->down.peer && !circuit->down.lost) {
		memset(&frame, 0, sizeof(frame));
		frame.withdraw.cookie = circuit->cookie;
		frame.withdraw.listen_id = circuit->listen_id;
		frame.withdraw.comm_key = circuit->comm_key;
		mesh_peer_send(circuit->down.peer, &frame, MESH_FRAME_WITHDRAW);
	}
	circuit->withdrawn = true;
	/* For a comm that had another one before. */
	mesh_circuit_break(circuit, &circuit->up, 0, "its connecting end has withdrawn it");
	mesh_circuit_shut(circuit, event->writes);
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
		mesh_circuit_break(side->circuit, side, -EPROTO,
				   "only the connecting end may shut it");
	else if (event->event == MESH_CIRCUIT_WITHDRAWN)
		withdrawn_pass(side->circuit, event);
	else
		mesh_circuit_shut(side->circuit, event->writes);
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
		side->closed = true;
	to = side->other;
	if (!to->peer || to->lost || !to->known)
		return true;
	passed.to_comm = to->remote_id;
	mesh_relay_thread_moved(&side->circuit->relay->thread, false);
	mesh_peer_send(to->peer, &passed, (enum mesh_frame_type)frame->header.type);
	return true;
}
