/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opening.c - makes circuits and opens them: finds the way on, asks there, answers the connecting
 * end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer_life.h"
#include "fabric/poll.h"
#include "neighbours/neighbours.h"
#include "relay/circuit.h"
#include "relay/relay.h"

/* The largest granule of a circuit, in bytes. */
#define GRANULE_MAX ((size_t)64 << 10)
/* A circuit takes this part of what is left at most, or the least: others shall find room, too. */
#define MEMORY_PART 16
/* This part of all memory is for circuits with the least: 2,048 of them by default. */
#define LEAST_PART 4

/* ---- making -------------------------------------------------------------------------------- */

/* Reserves a part of the memory that NCCL_MESH_RELAY_MEMORY leaves: the larger the more is left. */
MESH_HOLDS(process)
static int memory_reserve(struct mesh_circuit *circuit)
{
	struct mesh_relay *relay = circuit->relay;
	uint64_t all = relay->process->config.relay_memory_bytes, taken = relay->memory;
	uint64_t most = all - all / LEAST_PART;
	size_t granule = GRANULE_MAX;

	most = most > taken ? (most - taken) / MEMORY_PART : 0;
	while (granule > MESH_GRANULE_MIN && granule * MESH_GRANULES > most)
		granule /= 2;
	if (taken + granule * MESH_GRANULES > all)
		return -ENOSPC;
	circuit->bytes = granule * MESH_GRANULES;
	relay->memory += circuit->bytes;
	return 0;
}

/* Nothing is longer than the memory of the next relay: more than that is given back. */
MESH_HOLDS(process)
static int memory_map(struct mesh_circuit *circuit)
{
	size_t next = mesh_hop_bytes(&circuit->hop);
	void *memory;

	if (circuit->down.is_relay && next < circuit->bytes) {
		circuit->relay->memory -= circuit->bytes - next;
		circuit->bytes = next;
	}
	circuit->granule = circuit->bytes / MESH_GRANULES;
	memory = mmap(NULL, circuit->bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	circuit->memory = memory;
	return 0;
}

void mesh_circuit_memory_close(struct mesh_circuit *circuit)
{
	mesh_mr_close(circuit->mr_up);
	mesh_mr_close(circuit->mr_down);
	if (circuit->memory)
		munmap(circuit->memory, circuit->bytes);
	circuit->relay->memory -= circuit->bytes;
}

static void side_init(struct mesh_circuit *circuit, struct mesh_circuit_side *side,
		      struct mesh_circuit_side *other)
{
	side->circuit = circuit;
	side->other = other;
	TAILQ_INIT(&side->passing);
}

/*
 * Makes a circuit that came over @peer with OPEN, without a way on.
 *
 * Returns 0; -ENOMEM; -ENOSPC: no id, or NCCL_MESH_RELAY_MEMORY is used up.
 */
MESH_NOT_ANALYSED
static int circuit_make(struct mesh_relay *relay, struct mesh_peer *peer,
			const struct mesh_frame_open *request, struct mesh_circuit **circuit)
{
	struct mesh_circuit *made = calloc(1, sizeof(*made));
	int ret;

	mesh_process_assert_locked(relay->process);
	if (!made)
		return -ENOMEM;
	mesh_lock_init(&made->lock);
	made->relay = relay;
	side_init(made, &made->up, &made->down);
	side_init(made, &made->down, &made->up);
	mesh_circuit_forward_init(made);
	made->up.remote_id = request->comm;
	made->up.remote_token = request->token;
	made->up.is_relay = request->at > 0;
	made->down.is_relay = request->at + 1 < request->num_relays;
	made->shut_event = MESH_CIRCUIT_SHUT;
	memcpy(made->origin, request->origin, sizeof(made->origin));
	ret = memory_reserve(made);
	if (!ret)
		ret = mesh_circuit_side_open(&made->up, peer);
	if (ret) {
		mesh_circuit_memory_close(made);
		mesh_lock_destroy(&made->lock);
		free(made);
		return ret;
	}
	made->counters = &made->own_counters;
	LIST_INSERT_HEAD(&relay->circuits, made, entry);
	*circuit = made;
	return 0;
}

void mesh_circuit_opening_end(struct mesh_circuit *circuit)
{
	struct mesh_circuit_opening *opening = circuit->opening;

	if (opening)
		mesh_dial_end(&opening->dial);
	free(opening);
	circuit->opening = NULL;
}

/* ---- the answer ---------------------------------------------------------------------------- */

/*
 * Nothing leads on: the next node's processes may have started after we last asked. The connecting
 * end will ask us again.
 */
MESH_HOLDS(process)
static void neighbours_ask(const struct mesh_relay *relay)
{
	if (relay->neighbours &&
	    mesh_neighbours_waited_ms(relay->neighbours, mesh_clock_ms()) == UINT64_MAX)
		mesh_neighbours_ask(relay->neighbours);
}

/* Refuses the circuit, and frees it: the connecting end does not know its memory. */
MESH_HOLDS(process)
static void circuit_refuse(struct mesh_circuit *circuit, enum mesh_refusal refusal)
{
	if (refusal == MESH_REFUSAL_RELAY_LINK)
		neighbours_ask(circuit->relay);
	if (!mesh_circuit_side_is_lost(&circuit->up))
		mesh_peer_refuse(circuit->up.peer, refusal, circuit->up.remote_id);
	mesh_circuit_free(circuit);
}

/* Appends @name to the comma list @text of MESH_VIA_MAX bytes, as far as it fits. */
static void via_append(char *text, const char *name)
{
	size_t used = strlen(text);

	snprintf(text + used, MESH_VIA_MAX - used, "%s%.63s", used ? "," : "", name);
}

/* The largest small message that this hop and those behind it pass on, in bytes. */
MESH_HOLDS(process)
static uint32_t eager_limit(const struct mesh_peer *down, uint32_t behind)
{
	uint32_t own = (uint32_t)mesh_process_eager_limit(down->process, down->domain->provider);

	if (own > down->eager_limit)
		own = down->eager_limit;
	return own < behind ? own : behind;
}

/*
 * The next relay has opened a circuit, or else the listener's process has accepted one, that does
 * not come about. The latter takes it for one in use until it learns that: WITHDRAW does not end a
 * comm that had another circuit before.
 */
MESH_HOLDS(process)
static void answer_undo(struct mesh_peer *peer, bool is_relay, uint32_t id)
{
	const struct mesh_frame_circuit withdrawn = {.event = MESH_CIRCUIT_WITHDRAWN};
	const struct mesh_frame_circuit drained = {.event = MESH_CIRCUIT_DRAINED};
	struct mesh_frame_circuit lost = {
		.event = MESH_CIRCUIT_LOST,
		.by_node = peer->process->node_id,
		.lost = "?", /* the circuit that knew it is freed */
	};

	memcpy(lost.by, peer->process->name, sizeof(lost.by));
	mesh_circuit_event_send(peer, id, is_relay ? withdrawn : lost);
	if (!is_relay)
		mesh_circuit_event_send(peer, id, drained);
}

void mesh_circuit_withdraw_send(const struct mesh_circuit *circuit)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.withdraw.cookie = circuit->cookie;
	frame.withdraw.listen_id = circuit->listen_id;
	frame.withdraw.comm_key = circuit->comm_key;
	mesh_peer_send(circuit->down.peer, &frame, MESH_FRAME_WITHDRAW);
}

/* The connecting end, or this relay, does not wait for what was asked. */
MESH_HOLDS(process)
static void way_withdraw(const struct mesh_circuit *circuit)
{
	/* A relay that answers later learns it then: mesh_circuit_answered_in_vain(). */
	if (circuit->opening->asked_ms && !circuit->down.is_relay &&
	    !mesh_circuit_side_is_lost(&circuit->down))
		mesh_circuit_withdraw_send(circuit);
}

/* Shows the circuit in the process's page of counters, until it is freed. */
MESH_HOLDS(process)
static void counters_open(struct mesh_circuit *circuit)
{
	struct mesh_process *process = circuit->relay->process;
	struct mesh_circuit_counters *counters = NULL;

	mesh_process_assert_locked(process);
	if (process->stats.page)
		counters = mesh_stats_circuit_open(process->stats.page, circuit->origin,
						   circuit->target, circuit->up.domain->nic->netdev,
						   circuit->down.domain->nic->netdev,
						   mesh_clock_wall_ms());
	mesh_circuit_lock(circuit);
	if (counters)
		circuit->counters = counters;
	circuit->counters->memory = circuit->bytes;
	circuit->counters->slots = MESH_GRANULES;
	mesh_circuit_unlock(circuit);
}

/* On both links. */
MESH_HOLDS(process)
static int memory_register(struct mesh_circuit *circuit)
{
	int ret = memory_map(circuit);

	if (!ret)
		ret = mesh_mr_open(circuit->up.domain, circuit->memory, circuit->bytes,
				   &circuit->mr_up);
	return ret ? ret
		   : mesh_mr_open(circuit->down.domain, circuit->memory, circuit->bytes,
				  &circuit->mr_down);
}

/* Has the thread poll the NICs of the circuit, until there is no circuit left. */
MESH_HOLDS(process)
static void nics_watch(struct mesh_circuit *circuit)
{
	struct mesh_domain *const domains[2] = {circuit->up.domain, circuit->down.domain};
	struct mesh_relay *relay = circuit->relay;
	int i, index;

	for (i = 0; i < 2; i++) {
		index = mesh_process_index_of(relay->process, domains[i]);
		if (index >= MESH_MAIN_DOMAINS)
			continue;		 /* no route leads over a lane */
		mesh_readiness_open(domains[i]); /* without it, it is polled */
		atomic_fetch_or(&relay->thread.domains, 1u << index);
	}
	mesh_relay_thread_wake(&relay->thread);
}

/* The way to the listener exists: OPENED. @behind: what the next node has answered. */
MESH_HOLDS(process)
static void circuit_ready(struct mesh_circuit *circuit, const struct mesh_frame_opened *behind)
{
	struct mesh_process *process = circuit->relay->process;
	struct mesh_hop *hop = &circuit->hop;
	struct mesh_frame frame;
	int ret;

	mesh_circuit_lock(circuit);
	hop->domain = circuit->down.domain;
	hop->remote = circuit->down.remote;
	ret = mesh_hop_open(hop, circuit->down.is_relay ? behind : NULL);
	mesh_circuit_unlock(circuit);
	if (ret || memory_register(circuit)) {
		way_withdraw(circuit); /* a comm that is new there ends with it */
		answer_undo(circuit->down.peer, circuit->down.is_relay, circuit->down.remote_id);
		circuit->down.known = false;
		circuit_refuse(circuit, MESH_REFUSAL_RELAY_FULL);
		return;
	}
	mesh_circuit_opening_end(circuit);
	counters_open(circuit);
	circuit->timer.expired = mesh_circuit_ending_expired;
	memset(&frame, 0, sizeof(frame));
	frame.opened.to_comm = circuit->up.remote_id;
	frame.opened.comm = circuit->up.sink.id;
	frame.opened.token = circuit->up.sink.token;
	frame.opened.eager_limit = eager_limit(circuit->down.peer, behind->eager_limit);
	frame.opened.address = mesh_mr_remote_address(circuit->mr_up, circuit->memory);
	frame.opened.key = mesh_mr_key(circuit->mr_up);
	frame.opened.granule = (uint32_t)circuit->granule;
	frame.opened.lives = behind->lives;
	via_append(frame.opened.via, process->name);
	if (*behind->via)
		via_append(frame.opened.via, behind->via);
	nics_watch(circuit);
	mesh_info("relay: a circuit from node %s to node %s, %s to %s, %zu KiB", circuit->origin,
		  circuit->target, circuit->up.domain->nic->netdev,
		  circuit->down.domain->nic->netdev, circuit->bytes >> 10);
	mesh_peer_send(circuit->up.peer, &frame, MESH_FRAME_OPENED);
	mesh_circuit_up_begin(circuit);
}

/* ---- the way on ---------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void connect_send(struct mesh_circuit *circuit)
{
	const struct mesh_frame_open *request = &circuit->opening->request;
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.connect.cookie = circuit->cookie;
	frame.connect.comm_key = circuit->comm_key;
	frame.connect.listen_id = circuit->listen_id;
	frame.connect.comm = circuit->down.sink.id;
	frame.connect.token = circuit->down.sink.token;
	frame.connect.path = request->path;
	frame.connect.num_paths = request->num_paths;
	frame.connect.epoch = request->epoch;
	memcpy(frame.connect.origin, request->origin, sizeof(frame.connect.origin));
	memcpy(frame.connect.via, request->via, sizeof(frame.connect.via));
	via_append(frame.connect.via, circuit->relay->process->name);
	mesh_peer_send(circuit->down.peer, &frame, MESH_FRAME_CONNECT);
}

MESH_HOLDS(process)
static void open_send(struct mesh_circuit *circuit)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.open = circuit->opening->request;
	frame.open.comm = circuit->down.sink.id;
	frame.open.token = circuit->down.sink.token;
	frame.open.at++;
	via_append(frame.open.via, circuit->relay->process->name);
	mesh_peer_send(circuit->down.peer, &frame, MESH_FRAME_OPEN);
}

/* The candidate is up: asks it. */
MESH_HOLDS(process)
static void way_ask(struct mesh_circuit *circuit)
{
	struct mesh_circuit_opening *opening = circuit->opening;

	if (mesh_circuit_side_open(&circuit->down, opening->dial.peer)) {
		circuit_refuse(circuit, MESH_REFUSAL_RELAY_FULL);
		return;
	}
	opening->asked_ms = mesh_clock_ms();
	if (circuit->down.is_relay)
		open_send(circuit);
	else
		connect_send(circuit);
}

/* Leaves the candidate, and begins with the next one, if there is one. */
MESH_HOLDS(process)
static void way_next(struct mesh_circuit *circuit, uint64_t now_ms)
{
	struct mesh_circuit_opening *opening = circuit->opening;
	struct mesh_dial *dial = &opening->dial;

	mesh_circuit_side_close(&circuit->down);
	mesh_dial_end(dial);
	opening->asked_ms = 0;
	do {
		if (opening->tried == opening->num_nexts) {
			circuit_refuse(circuit, MESH_REFUSAL_RELAY_LINK);
			return;
		}
	} while (mesh_dial_begin(dial, circuit->relay->process,
				 &opening->nexts[opening->tried++].way, now_ms));
}

/* The candidate is not asked yet. May free the circuit. */
MESH_HOLDS(process)
static void way_look(struct mesh_circuit *circuit, uint64_t now_ms)
{
	struct mesh_circuit_opening *opening = circuit->opening;
	enum mesh_dial_state state = mesh_dial_look(&opening->dial, now_ms);
	const struct mesh_peer *peer = opening->dial.peer;

	if (state == MESH_DIAL_UP)
		way_ask(circuit);
	else if (!circuit->down.is_relay && peer && peer->refusal == MESH_REFUSAL_COOKIE &&
		 mesh_peer_refuses(peer, circuit->cookie))
		/* No other way leads there: it has no such listener, and no such comm. */
		circuit_refuse(circuit, MESH_REFUSAL_COOKIE);
	else if (mesh_dial_is_vain(&opening->dial, now_ms))
		way_next(circuit, now_ms);
}

/* Looks at what an opening circuit waits for; may free the circuit. */
MESH_HOLDS(process)
static void opening_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_circuit *circuit = mesh_container_of(timer, struct mesh_circuit, timer);
	struct mesh_circuit_opening *opening = circuit->opening;

	mesh_process_assert_locked(circuit->relay->process);
	if (mesh_circuit_side_is_lost(&circuit->up)) {
		way_withdraw(circuit);
		mesh_circuit_free(circuit);
		return;
	}
	mesh_engine_timer_set(&circuit->relay->process->engine, &circuit->timer,
			      now_ms + MESH_ENGINE_LOOK_MS);
	if (!opening->asked_ms) {
		way_look(circuit, now_ms);
	} else if (mesh_circuit_side_is_lost(&circuit->down) ||
		   mesh_clock_elapsed_ms(opening->asked_ms, now_ms) >= MESH_OPEN_ANSWER_MS) {
		way_withdraw(circuit);
		way_next(circuit, now_ms);
	}
}

/* Fills in where the circuit may go on; returns the refusal if that is nowhere. */
MESH_HOLDS(process)
static enum mesh_refusal ways_find(struct mesh_circuit *circuit)
{
	struct mesh_relay *relay = circuit->relay;
	struct mesh_circuit_opening *opening = circuit->opening;
	const struct mesh_frame_open *request = &opening->request;

	if (mesh_handle_decode(request->handle, &opening->handle) || opening->handle.foreign)
		return MESH_REFUSAL_VERSION;
	circuit->cookie = opening->handle.cookie;
	circuit->listen_id = opening->handle.listen_id;
	circuit->comm_key = request->comm_key;
	memcpy(circuit->target, opening->handle.node, sizeof(circuit->target));
	if (circuit->down.is_relay)
		opening->num_nexts = mesh_nexts_of_node(
			relay->process, relay->neighbours, request->route[request->at + 1],
			request->job, circuit->listen_id, opening->nexts, MESH_NEXTS_MAX);
	else
		opening->num_nexts = mesh_nexts_of_handle(relay->process, relay->neighbours,
							  &opening->handle, opening->nexts,
							  MESH_NEXTS_MAX);
	return opening->num_nexts ? 0 : MESH_REFUSAL_RELAY_LINK;
}

MESH_HOLDS(process)
static enum mesh_refusal open_take(struct mesh_peer *peer, const struct mesh_frame_open *request,
				   struct mesh_circuit **circuit)
{
	struct mesh_process *process = peer->process;

	*circuit = NULL;
	if (!mesh_relay_serves(process, request->job))
		return MESH_REFUSAL_RELAY_JOB;
	if (request->route[request->at] != process->node_id)
		return MESH_REFUSAL_RELAY_ROUTE;
	if (mesh_relay_thread_start(process->relay) ||
	    circuit_make(process->relay, peer, request, circuit))
		return MESH_REFUSAL_RELAY_FULL;
	(*circuit)->timer.expired = opening_expired;
	(*circuit)->opening = calloc(1, sizeof(*(*circuit)->opening));
	if (!(*circuit)->opening)
		return MESH_REFUSAL_RELAY_FULL;
	(*circuit)->opening->request = *request;
	return ways_find(*circuit);
}

void mesh_circuit_open_came(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_circuit *circuit;
	enum mesh_refusal refusal;

	mesh_process_assert_locked(peer->process);
	if (peer->state != MESH_PEER_UP || !peer->incoming)
		return;
	refusal = open_take(peer, &frame->open, &circuit);
	if (!refusal)
		way_next(circuit, mesh_clock_ms());
	else if (circuit)
		circuit_refuse(circuit, refusal);
	else
		mesh_peer_refuse(peer, refusal, frame->open.comm);
	if (peer->process->relay)
		mesh_relay_wake(peer->process->relay);
}

/* ---- frames -------------------------------------------------------------------------------- */

bool mesh_circuit_answered(struct mesh_circuit_side *side, const struct mesh_frame *frame)
{
	struct mesh_circuit *circuit = side->circuit;
	struct mesh_frame_opened behind = {.eager_limit = UINT32_MAX};

	if (side != &circuit->down || !circuit->opening)
		return false;
	/*
	 * REFUSE may be because of something behind it. If each relay of a route asked another
	 * process then, the questions would multiply: the connecting end asks again.
	 */
	if (frame->header.type == MESH_FRAME_REFUSE) {
		circuit_refuse(circuit, (enum mesh_refusal)frame->refuse.refusal);
		return true;
	}
	if (side->is_relay != (frame->header.type == MESH_FRAME_OPENED))
		return true;
	if (side->is_relay) {
		behind = frame->opened;
	} else {
		behind.comm = frame->accept.comm;
		behind.token = frame->accept.token;
		behind.lives = frame->accept.lives;
	}
	side->remote_id = behind.comm;
	side->remote_token = behind.token;
	atomic_store(&side->known, true);
	circuit_ready(circuit, &behind);
	return true;
}

void mesh_circuit_answered_in_vain(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	bool is_relay = frame->header.type == MESH_FRAME_OPENED;

	if (peer->state == MESH_PEER_UP)
		answer_undo(peer, is_relay, is_relay ? frame->opened.comm : frame->accept.comm);
}
