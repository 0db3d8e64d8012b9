/* SPDX-License-Identifier: Apache-2.0 */
/*
 * circuit.c - the circuits of a relay: what each is to its peers, frames about those that are open,
 * what breaks them, and how they end, and are freed when nothing of them is in flight.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "fabric/buffer.h"
#include "relay/circuit.h"
#include "relay/relay.h"

/* Lines about circuits that broke here, within MESH_LOG_LIMIT_PERIOD_MS. */
#define BROKEN_LINES 8
/* Bytes of the text of what has failed. */
#define WHY_MAX (MESH_PEER_TEXT_MAX + MESH_PEER_REASON_MAX + 32)

/* ---- a side as the user of a peer ---------------------------------------------------------- */

static struct mesh_circuit_side *side_of_user(struct mesh_peer_user *user)
{
	return mesh_container_of(user, struct mesh_circuit_side, user);
}

MESH_HOLDS(process)
static bool side_is_quiet(struct mesh_peer_user *user)
{
	const struct mesh_circuit_side *side = side_of_user(user);
	struct mesh_circuit *circuit = side->circuit;
	bool quiet;

	mesh_circuit_lock(circuit);
	quiet = !side->unfinished;
	mesh_circuit_unlock(circuit);
	return quiet;
}

/* Moves a side on: not back. */
MESH_HOLDS(process)
static void side_set(struct mesh_circuit_side *side, enum mesh_side_state state)
{
	mesh_process_assert_locked(side->circuit->relay->process);
	if (state > side->state)
		side->state = state;
}

/*
 * What a lost connecting end has written may never arrive, and must not arrive late: on tcp the
 * peer is fenced by now. If that has failed the circuit keeps its memory. On verbs the end of the
 * registration is enough.
 */
MESH_HOLDS(process)
static void side_lost(struct mesh_peer_user *user)
{
	struct mesh_circuit_side *side = side_of_user(user);

	if (side == &side->circuit->up && side->peer->fenced != MESH_FENCED_FAILED)
		side_set(side, MESH_SIDE_FENCED);
	mesh_relay_wake(side->circuit->relay);
}

/* What the connecting end has written may arrive in our memory. */
MESH_HOLDS(process)
static bool side_is_open(struct mesh_peer_user *user)
{
	const struct mesh_circuit_side *side = side_of_user(user);

	return side == &side->circuit->up && side->state != MESH_SIDE_FENCED;
}

/* The link is about to be used again. */
MESH_HOLDS(process)
static void side_fenced(struct mesh_peer_user *user)
{
	struct mesh_circuit_side *side = side_of_user(user);

	side_set(side, MESH_SIDE_FENCED);
	mesh_relay_wake(side->circuit->relay);
}

static const struct mesh_peer_user_ops side_ops = {
	.answers =
		{
			[MESH_USER_IS_QUIET] = side_is_quiet,
			[MESH_USER_IS_OPEN] = side_is_open,
		},
	.lost = side_lost,
	.fenced = side_fenced,
};

int mesh_circuit_side_open(struct mesh_circuit_side *side, struct mesh_peer *peer)
{
	int ret = mesh_random(&side->sink.token, sizeof(side->sink.token));

	if (!ret)
		ret = mesh_sink_add(peer->domain, &side->sink);
	if (ret)
		return ret;
	side->peer = peer;
	side->domain = peer->domain;
	side->remote = peer->remote;
	side->state = MESH_SIDE_CARRIES;
	side->user.ops = &side_ops;
	mesh_peer_user_add(peer, &side->user);
	return 0;
}

void mesh_circuit_side_close(struct mesh_circuit_side *side)
{
	if (!side->peer)
		return;
	mesh_domain_lock(side->domain);
	mesh_sink_remove(side->domain, &side->sink);
	mesh_domain_wait_cancel(side->domain, &side->waiter);
	mesh_domain_unlock(side->domain);
	mesh_peer_user_remove(side->peer, &side->user);
	side->known = false;
	side->peer = NULL;
}

/* ---- breaking ------------------------------------------------------------------------------ */

void mesh_circuit_event_send(struct mesh_peer *peer, uint32_t to, struct mesh_frame_circuit event)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.circuit = event;
	frame.circuit.to_comm = to;
	mesh_peer_send(peer, &frame, MESH_FRAME_CIRCUIT);
}

MESH_HOLDS(process)
static void event_send(struct mesh_circuit_side *to, struct mesh_frame_circuit event)
{
	if (!mesh_circuit_side_is_lost(to) && to->known)
		mesh_circuit_event_send(to->peer, to->remote_id, event);
}

/*
 * Reports to both ends, unless they know it, that the circuit is broken, and logs it.
 *
 * @lost: the side that is
 * @why: what happened there, for the log
 */
MESH_HOLDS(process)
static void circuit_break(struct mesh_circuit *circuit, const struct mesh_circuit_side *lost,
			  const char *why)
{
	struct mesh_frame_circuit event = {.event = MESH_CIRCUIT_LOST};
	struct mesh_process *process = circuit->relay->process;
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	if (circuit->state == MESH_CIRCUIT_BROKEN)
		return;
	circuit->state = MESH_CIRCUIT_BROKEN;
	memcpy(event.by, process->name, sizeof(event.by));
	event.by_node = process->node_id;
	memcpy(event.lost, lost->peer->name, sizeof(event.lost));
	event.lost_node = lost->peer->node_id;
	/* The process at an end of the comm: no other circuit leads to it. */
	event.unclean = !lost->is_relay && lost->peer->over;
	if (mesh_log_limit_pass(&process->limits.relayed, BROKEN_LINES, mesh_clock_ms(), more))
		mesh_info("relay: the circuit from node %s to node %s is broken: %s%s",
			  circuit->origin, circuit->target, why, more);
	event_send(&circuit->up, event);
	event_send(&circuit->down, event);
}

/*
 * Breaks a circuit of which a side is lost, or something has failed: that waits for one look at the
 * link, which may be lost as well, because the process there has ended.
 */
MESH_HOLDS(process)
static void losses_look(struct mesh_circuit *circuit, uint64_t now_ms)
{
	const struct mesh_circuit_side *lost =
		mesh_circuit_side_is_lost(&circuit->up) ? &circuit->up : &circuit->down;
	const struct mesh_circuit_side *failed;
	char peer[MESH_PEER_TEXT_MAX], why[WHY_MAX];
	int error;

	mesh_circuit_lock(circuit);
	error = circuit->error;
	failed = circuit->failed;
	mesh_circuit_unlock(circuit);
	if (error && !circuit->failed_ms)
		circuit->failed_ms = now_ms;
	if (mesh_circuit_side_is_lost(lost)) {
		snprintf(why, sizeof(why), "%s is lost: %s", mesh_peer_text(lost->peer, peer),
			 lost->peer->reason);
		circuit_break(circuit, lost, why);
	} else if (error &&
		   mesh_clock_elapsed_ms(circuit->failed_ms, now_ms) >= MESH_LINK_LOOK_MS) {
		snprintf(why, sizeof(why), "a write or message to %s failed: %s",
			 mesh_peer_text(failed->peer, peer),
			 error == -EPROTO ? "it violates the protocol" : strerror(-error));
		circuit_break(circuit, failed, why);
	}
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
			circuit_break(circuit, &circuit->down, why);
		else if (circuit->up.domain == domain)
			circuit_break(circuit, &circuit->up, why);
		else
			continue;
		mesh_relay_wake(circuit->relay);
	}
}

/* ---- freeing ------------------------------------------------------------------------------- */

/* Returns the bytes that were forwarded. */
MESH_HOLDS(process)
static uint64_t counters_close(struct mesh_circuit *circuit)
{
	struct mesh_circuit_counters *counters;
	uint64_t bytes;

	/* An operation that never ended may still complete: then it counts in own_counters. */
	mesh_circuit_lock(circuit);
	counters = circuit->counters;
	bytes = counters->bytes;
	circuit->counters = &circuit->own_counters;
	mesh_circuit_unlock(circuit);
	if (counters != &circuit->own_counters)
		mesh_stats_circuit_close(circuit->relay->process->stats.page, counters);
	return bytes;
}

static void passing_free(struct mesh_circuit_side *side)
{
	struct mesh_passing *passing;

	while ((passing = TAILQ_FIRST(&side->passing))) {
		TAILQ_REMOVE(&side->passing, passing, entry);
		free(passing);
	}
}

MESH_NOT_ANALYSED
void mesh_circuit_free(struct mesh_circuit *circuit)
{
	struct mesh_relay *relay = circuit->relay;
	uint64_t bytes;
	uint32_t unfinished;

	mesh_process_assert_locked(relay->process);
	LIST_REMOVE(circuit, entry);
	mesh_engine_timer_cancel(&relay->process->engine, &circuit->timer);
	mesh_circuit_side_close(&circuit->up);
	mesh_circuit_side_close(&circuit->down);
	if (LIST_EMPTY(&relay->circuits))
		atomic_store(&relay->thread.domains, 0);
	mesh_circuit_lock(circuit);
	unfinished = mesh_circuit_unfinished(circuit);
	mesh_circuit_unlock(circuit);
	mesh_circuit_opening_end(circuit);
	bytes = counters_close(circuit);
	if (unfinished) {
		/* The provider still holds pointers into it. */
		mesh_info("relay: a circuit keeps %u operations that never ended; its memory stays "
			  "allocated",
			  unfinished);
		return;
	}
	mesh_info("relay: the circuit from node %s to node %s has ended after %llu bytes",
		  circuit->origin, circuit->target, (unsigned long long)bytes);
	mesh_circuit_memory_close(circuit);
	passing_free(&circuit->up);
	passing_free(&circuit->down);
	mesh_hop_close(&circuit->hop);
	mesh_lock_destroy(&circuit->lock);
	free(circuit);
}

/* ---- ending -------------------------------------------------------------------------------- */

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
	side_set(down, MESH_SIDE_DRAINED);
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
static bool is_complete(const struct mesh_circuit *circuit, uint32_t came)
{
	return circuit->up.state >= MESH_SIDE_SHUT &&
	       (circuit->up.state == MESH_SIDE_FENCED || came == circuit->shut_writes) &&
	       (circuit->state == MESH_CIRCUIT_BROKEN || !circuit->error);
}

/* Ends the rest of the circuit in the same way. Returns true if it was freed. */
MESH_HOLDS(process)
static bool idle_end(struct mesh_circuit *circuit)
{
	const struct mesh_frame_circuit event = {.event = circuit->shut_event,
						 .writes = circuit->hop.writes};
	uint32_t came;

	if (!is_idle(circuit, &came) || !is_complete(circuit, came))
		return false;
	if (circuit->down.is_relay)
		event_send(&circuit->down, event);
	mesh_circuit_free(circuit);
	return true;
}

void mesh_circuit_ending_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_circuit *circuit = mesh_container_of(timer, struct mesh_circuit, timer);
	struct mesh_engine *engine = &circuit->relay->process->engine;

	mesh_process_assert_locked(circuit->relay->process);
	if (mesh_circuit_side_is_lost(&circuit->up) && circuit->up.state != MESH_SIDE_FENCED &&
	    circuit->up.peer->fenced == MESH_FENCED_FAILED && mesh_peer_fence(circuit->up.peer))
		side_set(&circuit->up, MESH_SIDE_FENCED); /* there was no descriptor for it */
	if (circuit->state == MESH_CIRCUIT_WHOLE)
		losses_look(circuit, now_ms);
	if (circuit->state == MESH_CIRCUIT_BROKEN) {
		circuit_stop(circuit);
		drained_send(circuit);
	}
	if (idle_end(circuit))
		return;
	if (circuit->up.state >= MESH_SIDE_SHUT || mesh_circuit_side_is_lost(&circuit->up) ||
	    (circuit->error && circuit->state == MESH_CIRCUIT_WHOLE))
		mesh_engine_timer_set(engine, &circuit->timer, now_ms + MESH_LINK_LOOK_MS);
}

/* ---- frames -------------------------------------------------------------------------------- */

/* The connecting end has nothing more to send, and freed its end. @writes: into our memory, ever */
MESH_HOLDS(process)
static void circuit_shut(struct mesh_circuit *circuit, uint32_t writes)
{
	if (circuit->up.state >= MESH_SIDE_SHUT)
		return;
	side_set(&circuit->up, MESH_SIDE_SHUT);
	circuit->shut_writes = writes;
	mesh_relay_wake(circuit->relay);
}

/* The other end, or a relay behind it, reports that the circuit is broken. */
MESH_HOLDS(process)
static void lost_pass(struct mesh_circuit_side *from, const struct mesh_frame_circuit *event)
{
	struct mesh_circuit *circuit = from->circuit;

	circuit->state = MESH_CIRCUIT_BROKEN;
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
	if (mesh_circuit_side_is_lost(next))
		return;
	/* Whoever asks waits: perhaps for a cable that passes nothing. */
	mesh_link_want(next->peer, now_ms + mesh_link_resumed_limit_ms(circuit->relay->process),
		       next == &circuit->down);
	if (!next->is_relay)
		return;
	mesh_relay_ask(&next->question, next->peer, next->remote_id, now_ms);
	if (!mesh_relay_is_silent(&next->question, circuit->relay->process, now_ms))
		return;
	circuit_break(circuit, next, "the next relay does not answer, though its kernel does");
	mesh_relay_wake(circuit->relay);
}

/* The connector's NCCL never had the comm, so the listener's must not have it. */
MESH_HOLDS(process)
static void withdrawn_pass(struct mesh_circuit *circuit, const struct mesh_frame_circuit *event)
{
	if (!circuit->down.is_relay && !mesh_circuit_side_is_lost(&circuit->down))
		mesh_circuit_withdraw_send(circuit);
	circuit->shut_event = MESH_CIRCUIT_WITHDRAWN;
	/* For a comm that had another one before. */
	circuit_break(circuit, &circuit->up, "its connecting end has withdrawn it");
	circuit_shut(circuit, event->writes);
}

MESH_HOLDS(process)
static void event_handle(struct mesh_circuit_side *side, const struct mesh_frame_circuit *event)
{
	if (side->circuit->opening)
		return;
	if (event->event == MESH_CIRCUIT_ASK)
		ask_answer(side);
	else if (event->event == MESH_CIRCUIT_ANSWER)
		side->question.asked_ms = 0;
	else if (event->event == MESH_CIRCUIT_LOST)
		lost_pass(side, event);
	else if (side != &side->circuit->up)
		circuit_break(side->circuit, side, "only the connecting end may shut it");
	else if (event->event == MESH_CIRCUIT_WITHDRAWN)
		withdrawn_pass(side->circuit, event);
	else
		circuit_shut(side->circuit, event->writes);
}

MESH_HOLDS(process)
static void frame_pass(const struct mesh_circuit_side *to, const struct mesh_frame *frame)
{
	struct mesh_frame passed = *frame;

	if (!to->peer || mesh_circuit_side_is_lost(to) || !to->known)
		return;
	passed.to_comm = to->remote_id;
	mesh_relay_moved(to->circuit->relay, false);
	mesh_peer_send(to->peer, &passed, (enum mesh_frame_type)frame->header.type);
}

bool mesh_circuit_frame(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	const enum mesh_frame_type type = (enum mesh_frame_type)frame->header.type;
	struct mesh_circuit_side *side = mesh_circuit_side_find(
		peer, type == MESH_FRAME_REFUSE ? frame->refuse.comm : frame->to_comm);

	if (!side)
		return false;
	/* A listener that accepts a circuit twice, which is open, is not to lose it. */
	if (type == MESH_FRAME_ACCEPT || type == MESH_FRAME_OPENED || type == MESH_FRAME_REFUSE)
		return mesh_circuit_answered(side, frame) || type == MESH_FRAME_ACCEPT;
	if (type == MESH_FRAME_CIRCUIT)
		event_handle(side, &frame->circuit);
	else
		frame_pass(side->other, frame);
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
	return side->peer->node_id == node_id && !side->is_relay;
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
