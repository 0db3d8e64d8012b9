/* SPDX-License-Identifier: Apache-2.0 */
/* circuit.c - makes and frees circuits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/peer_send.h"
#include "fabric/poll.h"
#include "fabric/buffer.h"
#include "relay/circuit.h"
#include "relay/relay.h"

/* The largest granule of a circuit, in bytes. */
#define GRANULE_MAX ((size_t)64 << 10)
/* A circuit takes this part of what is left at most, or the least: others shall find room, too. */
#define MEMORY_PART 16
/* This part of all memory is for circuits with the least: 2,048 of them by default. */
#define LEAST_PART 4

/* ---- a side as the user of a peer ---------------------------------------------------------- */

static struct mesh_circuit_side *side_of_user(struct mesh_peer_user *user)
{
	return mesh_container_of(user, struct mesh_circuit_side, user);
}

MESH_HOLDS(process)
static bool side_misses(struct mesh_peer_user *user)
{
	const struct mesh_circuit_side *side = side_of_user(user);

	return !side->circuit->opening && side->circuit->up.state < MESH_SIDE_SHUT &&
	       side->state == MESH_SIDE_CARRIES;
}

static bool side_is_known(struct mesh_peer_user *user)
{
	(void)user;
	return true;
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

MESH_HOLDS(process)
static void side_lost(struct mesh_peer_user *user)
{
	struct mesh_circuit_side *side = side_of_user(user);

	side->lost = true;
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

	mesh_circuit_side_set(side, MESH_SIDE_FENCED);
	mesh_relay_wake(side->circuit->relay);
}

static const struct mesh_peer_user_ops side_ops = {
	.answers =
		{
			[MESH_USER_MISSES] = side_misses,
			[MESH_USER_IS_KNOWN] = side_is_known,
			[MESH_USER_IS_QUIET] = side_is_quiet,
			[MESH_USER_IS_OPEN] = side_is_open,
		},
	.lost = side_lost,
	.fenced = side_fenced,
};

void mesh_circuit_side_set(struct mesh_circuit_side *side, enum mesh_side_state state)
{
	mesh_process_assert_locked(side->circuit->relay->process);
	if (state > side->state)
		side->state = state;
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

void mesh_circuit_event_send(struct mesh_peer *peer, uint32_t to, struct mesh_frame_circuit event)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.circuit = event;
	frame.circuit.to_comm = to;
	mesh_peer_send(peer, &frame, MESH_FRAME_CIRCUIT);
}

/* ---- making -------------------------------------------------------------------------------- */

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
	side->lost = false;
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

MESH_HOLDS(process)
static void memory_close(struct mesh_circuit *circuit)
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

MESH_NOT_ANALYSED
int mesh_circuit_make(struct mesh_relay *relay, struct mesh_peer *peer,
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
	made->up.sink.message = mesh_circuit_from_up;
	made->up.waiter.resume = mesh_circuit_resume;
	made->down.sink.message = mesh_circuit_from_down;
	made->down.waiter.resume = mesh_circuit_resume;
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
		memory_close(made);
		mesh_lock_destroy(&made->lock);
		free(made);
		return ret;
	}
	made->counters = &made->own_counters;
	LIST_INSERT_HEAD(&relay->circuits, made, entry);
	*circuit = made;
	return 0;
}

/* ---- counters ------------------------------------------------------------------------------ */

void mesh_circuit_counters_open(struct mesh_circuit *circuit)
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

/* ---- the way on ---------------------------------------------------------------------------- */

int mesh_circuit_memory_register(struct mesh_circuit *circuit)
{
	int ret = memory_map(circuit);

	if (!ret)
		ret = mesh_mr_open(circuit->up.domain, circuit->memory, circuit->bytes,
				   &circuit->mr_up);
	return ret ? ret
		   : mesh_mr_open(circuit->down.domain, circuit->memory, circuit->bytes,
				  &circuit->mr_down);
}

void mesh_circuits_domains_learn(struct mesh_relay *relay)
{
	struct mesh_process *process = relay->process;
	struct mesh_circuit *circuit;
	struct mesh_domain *domain;
	uint32_t domains = 0;
	int i;

	mesh_process_assert_locked(process);
	LIST_FOREACH(circuit, &relay->circuits, entry) {
		for (i = 0; i < MESH_MAIN_DOMAINS; i++) {
			domain = process->domains[i];
			if ((circuit->up.peer && circuit->up.domain == domain) ||
			    (circuit->down.peer && circuit->down.domain == domain))
				domains |= 1u << i;
		}
	}
	for (i = 0; i < MESH_MAIN_DOMAINS; i++) {
		if (domains >> i & 1)
			mesh_readiness_open(process->domains[i]); /* without it, it is polled */
	}
	mesh_relay_domains_set(relay, domains);
}

/* ---- freeing ------------------------------------------------------------------------------- */

void mesh_circuit_opening_end(struct mesh_circuit *circuit)
{
	struct mesh_circuit_opening *opening = circuit->opening;

	if (opening)
		mesh_dial_end(&opening->dial);
	free(opening);
	circuit->opening = NULL;
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
	mesh_circuits_domains_learn(relay);
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
	memory_close(circuit);
	passing_free(&circuit->up);
	passing_free(&circuit->down);
	mesh_hop_close(&circuit->hop);
	mesh_lock_destroy(&circuit->lock);
	free(circuit);
}
