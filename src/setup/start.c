/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - starts and ends what runs between the first listen or connect and the last close: the
 * plugin's own thread, with the work of all objects that is due, and what is done when a frame
 * arrives or a peer is lost.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/threads.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "fabric/domain.h"
#include "fabric/endpoint.h"
#include "fabric/poll.h"
#include "neighbours/neighbours.h"
#include "relay/relay.h"
#include "setup/connecting.h"
#include "setup/listener.h"
#include "setup/nics.h"
#include "setup/setup.h"
#include "system/this_process.h"
#include "transport/comm_life.h"

/* A process that relays ends so much later, at most. */
#define RELAY_END_MS 2000
/* The engine polls for this long after the last poll by another thread, then sleeps. */
#define AWAKE_AFTER_MS 1000

/* ---- what arrives from peers ----------------------------------------------------------------- */

MESH_HOLDS(process)
static bool hello_is_admitted(struct mesh_process *process, const struct mesh_frame_hello *hello)
{
	return mesh_attach_admits(process, hello) || mesh_relay_admits(process, hello);
}

MESH_HOLDS(process)
static bool nic_is_known(const struct mesh_peer *peer, const struct mesh_endpoint_addr *nic)
{
	int i;

	for (i = 0; i < peer->num_nics; i++) {
		if (mesh_addr_equal(&peer->nics[i].addr, &nic->addr))
			return true;
	}
	return false;
}

MESH_HOLDS(process)
static void peer_nics_learn(struct mesh_peer *peer, const struct mesh_wire_nic *nics, int num_nics)
{
	struct mesh_endpoint_addr nic;
	int i;

	for (i = 0; peer->nics && i < num_nics; i++) {
		if (mesh_wire_nic_decode(&nics[i], &nic) || nic_is_known(peer, &nic) ||
		    peer->num_nics == MESH_NICS_MAX)
			continue;
		peer->nics[peer->num_nics++] = nic;
		peer->late_nics |= 1u << nic.nic;
	}
}

/* Only those that we connected to have a list: their comms send. */
MESH_HOLDS(process)
static void nics_learn(const struct mesh_peer *peer, const struct mesh_wire_nic *nics, int num_nics)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		mesh_peer_drained_learn(other, nics, num_nics);
		peer_nics_learn(other, nics, num_nics);
	}
	atomic_store(&peer->process->late_nics, true);
	mesh_engine_wake(&peer->process->engine);
}

MESH_HOLDS(process)
static void nics_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	/* Its end may be up, and the greeting that tells us still on its way. */
	if (peer->state == MESH_PEER_UP || peer->state == MESH_PEER_GREETING)
		nics_learn(peer, frame->nics.nics, frame->nics.num_nics);
}

MESH_HOLDS(process)
static void introduced(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	mesh_listener_introduced(peer, hello);
	nics_learn(peer, hello->nics, hello->num_nics); /* it may have new ones, or addresses */
}

MESH_HOLDS(process)
static void peer_up(struct mesh_peer *peer)
{
	mesh_rejoin_peer_up(peer);
	mesh_connects_hasten(peer->process);
	mesh_process_assert_locked(peer->process);
	if (peer->process->relay)
		mesh_relay_wake(peer->process->relay); /* a circuit may wait for it */
}

MESH_HOLDS(process)
static void peer_lost(struct mesh_peer *peer)
{
	mesh_listener_peer_lost(peer);
	mesh_connects_hasten(peer->process);
}

MESH_HOLDS(process)
static void connect_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (!peer->incoming || !peer->remote)
		mesh_peer_lose(peer, "it sent CONNECT before HELLO");
	else if (!mesh_attach_came(peer, &frame->connect))
		mesh_listener_connect(peer, &frame->connect);
}

/* An attempt to connect that waits for an answer about this path looks at it next. */
MESH_HOLDS(process)
static void opener_hasten(struct mesh_peer *peer, uint32_t comm)
{
	const struct mesh_path *path = mesh_comm_path_find(peer, comm);
	struct mesh_connect *connect = path ? path->comm->opener : NULL;

	if (connect && connect->state < MESH_CONNECT_DONE)
		mesh_connect_hasten(connect);
}

MESH_HOLDS(process)
static void accept_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	opener_hasten(peer, frame->accept.to_comm);
	if (!mesh_circuit_frame(peer, frame) && !mesh_attach_accepted(peer, &frame->accept))
		mesh_circuit_answered_in_vain(peer, frame);
}

MESH_HOLDS(process)
static void refuse_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	opener_hasten(peer, frame->refuse.comm);
	if (!mesh_circuit_frame(peer, frame))
		mesh_attach_refused(peer, &frame->refuse);
}

/* A frame about a comm: of an end that is here, or of a circuit. */
MESH_HOLDS(process)
static void comm_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (!mesh_circuit_frame(peer, frame))
		mesh_comm_frame_handle(peer, frame);
}

MESH_HOLDS(process)
static void opened_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	opener_hasten(peer, frame->opened.to_comm);
	if (!mesh_circuit_frame(peer, frame) && !mesh_attach_opened(peer, &frame->opened))
		mesh_circuit_answered_in_vain(peer, frame);
}

MESH_HOLDS(process)
static void circuit_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (mesh_circuit_frame(peer, frame))
		return;
	mesh_path_circuit_event(peer, frame);
	mesh_connects_hasten(peer->process);
}

const struct mesh_peer_events mesh_setup_events = {
	.opens = mesh_opening_need,
	.admits = hello_is_admitted,
	.introduced = introduced,
	.foreign = mesh_listener_foreign,
	.lost = peer_lost,
	.up = peer_up,
	.frames =
		{
			[MESH_FRAME_REFUSE] = refuse_handle,
			[MESH_FRAME_CONNECT] = connect_handle,
			[MESH_FRAME_ACCEPT] = accept_handle,
			[MESH_FRAME_CLOSE] = comm_handle,
			[MESH_FRAME_ASK] = comm_handle,
			[MESH_FRAME_WITHDRAW] = mesh_listener_withdrawn,
			[MESH_FRAME_RESUME] = comm_handle,
			[MESH_FRAME_HAVE] = comm_handle,
			[MESH_FRAME_OPEN] = mesh_circuit_open_came,
			[MESH_FRAME_OPENED] = opened_handle,
			[MESH_FRAME_CIRCUIT] = circuit_handle,
			[MESH_FRAME_NICS] = nics_handle,
		},
};

/* ---- what the engine does ------------------------------------------------------------------- */

MESH_HOLDS(process)
static int setup_timeout(void *owner)
{
	struct mesh_process *process = owner;

	mesh_process_assert_locked(process);
	if (!LIST_EMPTY(&process->lingering))
		return MESH_ENGINE_POLL_MS;
	return atomic_load_explicit(&process->engine.awake, memory_order_relaxed)
		       ? MESH_ENGINE_LOOK_MS
		       : -1;
}

static uint64_t domain_polls(const struct mesh_domain *domain)
{
	return atomic_load_explicit(&domain->polls, memory_order_relaxed);
}

/* @busy: another thread has polled. One that has just woken the engine is going to. */
MESH_HOLDS(process)
static void rest_if_idle(struct mesh_setup *setup, bool busy, uint64_t now_ms)
{
	_Atomic(bool) *awake = &setup->process.engine.awake;

	if (!atomic_load_explicit(awake, memory_order_relaxed)) {
		setup->busy_ms = 0;
	} else if (busy || !setup->busy_ms) {
		setup->busy_ms = now_ms;
	} else if (now_ms - setup->busy_ms >= AWAKE_AFTER_MS) {
		atomic_store_explicit(awake, false, memory_order_relaxed);
		setup->busy_ms = 0;
	}
}

/*
 * Polls each domain that no other thread has polled since the last look. A provider may hold
 * something back (an acknowledgement that the socket did not accept) while NCCL's threads sleep.
 * While they poll, a poll here would only delay them.
 */
MESH_HOLDS(process)
static void domains_look_after(struct mesh_setup *setup, uint64_t now_ms)
{
	struct mesh_domain *domain;
	bool busy = false;
	int i;

	for (i = 0; i < MESH_DOMAINS_MAX; i++) {
		domain = setup->process.domains[i];
		if (!domain)
			continue;
		if (domain_polls(domain) != setup->seen_polls[i])
			busy = true;
		else
			mesh_domain_poll(domain);
		setup->seen_polls[i] = domain_polls(domain);
	}
	rest_if_idle(setup, busy, now_ms);
}

/* The only walk over all comms. What it finds, it finds after half a second at the earliest. */
MESH_HOLDS(process)
static void stalls_look_for(struct mesh_setup *setup, uint64_t now_ms)
{
	struct mesh_comm *comm;

	if (mesh_clock_elapsed_ms(setup->stalls_ms, now_ms) < MESH_LINK_LOOK_MS)
		return;
	setup->stalls_ms = now_ms;
	LIST_FOREACH(comm, &setup->process.comms, entry)
		mesh_stall_tick(comm, now_ms);
}

MESH_HOLDS(process)
static void setup_tick(void *owner)
{
	struct mesh_process *process = owner;
	uint64_t now = mesh_clock_ms();

	mesh_process_assert_locked(process);
	domains_look_after(mesh_setup_of(process), now);
	mesh_endpoints_check(process);
	mesh_comms_recover(process);
	mesh_circuits_tick(process, now);
	stalls_look_for(mesh_setup_of(process), now);
	mesh_seekers_tick(process);
}

static const struct mesh_engine_work setup_work = {
	.timeout = setup_timeout,
	.tick = setup_tick,
};

/* ---- start and end -------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void page_open(struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	/* The page is optional; if it is missing, the reason was logged. */
	mesh_stats_file_open(process->config.stats_dir, process->node_id, process->name,
			     &process->stats);
	process->counters = process->stats.page ? &process->stats.page->header.counters
						: &process->own_counters;
}

MESH_HOLDS(process)
static void page_close(struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	process->counters = &process->own_counters;
	mesh_stats_file_close(&process->stats);
}

MESH_HOLDS(process)
static void domains_close(struct mesh_process *process)
{
	int i;

	for (i = 0; i < MESH_DOMAINS_MAX; i++) {
		mesh_domain_close(process->domains[i]);
		atomic_store(&process->domains[i], NULL);
		process->dev_states[i] = MESH_DEV_CLOSED;
		process->failures[i].text[0] = '\0';
	}
	process->num_endpoints = 0;
	process->nics_away = 0;
}

MESH_HOLDS(process)
static void self_fill(struct mesh_process *process, struct mesh_neighbour_self *self)
{
	const struct mesh_setup *setup = mesh_setup_of(process);

	memset(self, 0, sizeof(*self));
	self->node_id = process->node_id;
	memcpy(self->node, process->name, sizeof(self->node));
	mesh_neighbour_site_set(self, process->config.site);
	self->job = setup->job;
	self->process = (struct mesh_neighbour_process){
		.process_id = process->process_id,
		.job = self->job,
		.control_port = process->control_port,
		.protocol = MESH_PROTOCOL_VERSION,
		.role = process->role == MESH_PROCESS_RANK ? MESH_NEIGHBOUR_RANK
							   : MESH_NEIGHBOUR_SERVICE,
	};
	if (process->role == MESH_PROCESS_GUEST || process->role == MESH_PROCESS_PROBE)
		self->process.job = self->process.control_port = 0; /* it relays for none */
	if (process->role == MESH_PROCESS_RANK && setup->rank.size)
		self->process.rank = setup->rank.rank + 1;
	if (strcmp(process->config.relay, "any") != 0)
		return;
	self->job = 0; /* processes of all jobs may relay for this one */
	if (process->role == MESH_PROCESS_SERVICE)
		self->process.job = 0;
}

/* Answers neighbours, and asks once on each NIC. */
MESH_HOLDS(process)
static void neighbours_open(struct mesh_process *process)
{
	struct mesh_neighbour_self self;

	if (!process->config.neighbours)
		return;
	self_fill(process, &self);
	mesh_setup_of(process)->neighbours = mesh_neighbours_open(&process->engine, &self);
	mesh_nic_watch_publish(process);
}

/* Without it, other nodes find no way through this one. */
MESH_HOLDS(process)
static void relay_open(struct mesh_process *process)
{
	if (mesh_relay_open(process, mesh_setup_of(process)->job))
		mesh_warn("no memory to relay for other nodes");
	else
		process->relay->neighbours = mesh_setup_of(process)->neighbours;
}

/* What neither a listener nor a connect() waits for: the engine's first timer. */
MESH_HOLDS(process)
static void start_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_process *process =
		&mesh_container_of(timer, struct mesh_setup, start_timer)->process;

	(void)now_ms;
	mesh_nic_watch_start(process);
	neighbours_open(process);
	relay_open(process);
}

int mesh_setup_start(struct mesh_process *process)
{
	struct mesh_setup *setup = mesh_setup_of(process);
	int ret;

	mesh_process_assert_locked(process);
	if (atomic_load(&process->started))
		return 0;
	ret = mesh_engine_open(&process->engine, &process->lock, &setup_work, process);
	if (ret)
		return ret;
	mesh_openings_start(process);
	ret = mesh_controls_open(process);
	if (ret)
		goto close_engine;
	/* The thread is last, because it cannot be stopped while we hold the lock. */
	ret = mesh_engine_start(&process->engine);
	if (ret)
		goto close_controls;
	page_open(process);
	setup->start_timer.expired = start_expired;
	mesh_engine_timer_set(&process->engine, &setup->start_timer, 0);
	atomic_store(&process->started, true);
	return 0;
close_controls:
	mesh_controls_close(process);
close_engine:
	mesh_engine_close(&process->engine);
	return ret;
}

/* Other nodes' connections lead through this process: their ends are about to close as well. */
static void relay_await(struct mesh_process *process)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t until_ms = mesh_clock_ms() + RELAY_END_MS;
	bool used;

	do {
		mesh_process_lock(process);
		used = process->relay && !LIST_EMPTY(&process->relay->circuits);
		mesh_process_unlock(process);
		if (used)
			nanosleep(&pause, NULL);
	} while (used && mesh_clock_ms() < until_ms);
	if (used)
		mesh_info("relay: this process ends while it relays connections of other nodes");
}

/* What an endpoint ends while it is closed belongs to peers and circuits, which are freed next. */
static void endpoints_await(const struct mesh_process *process)
{
	const struct mesh_domain *domain;
	int i;

	for (i = 0; i < MESH_DOMAINS_MAX; i++) {
		domain = process->domains[i];
		if (domain)
			mesh_endpoint_close_await(domain);
	}
}

void mesh_setup_stop(struct mesh_process *process)
{
	struct mesh_peer *peer;

	mesh_process_lock(process);
	mesh_engine_timer_cancel(&process->engine, &mesh_setup_of(process)->start_timer);
	mesh_process_unlock(process); /* from now on process->relay is constant */
	relay_await(process);
	mesh_relay_stop(process);
	mesh_engine_stop(&process->engine);
	mesh_threads_await();
	endpoints_await(process);
	mesh_process_lock(process);
	mesh_nic_watch_close(process);
	if (atomic_load(&process->started)) {
		mesh_rejoins_close(process);
		mesh_seekers_close(process);
		mesh_circuits_close(process);
		mesh_relay_close(process);
		while ((peer = LIST_FIRST(&process->peers)))
			mesh_peer_free(peer);
		mesh_socket_table_free(&process->sockets);
		mesh_neighbours_close(mesh_setup_of(process)->neighbours);
		mesh_setup_of(process)->neighbours = NULL;
		mesh_controls_close(process);
		mesh_engine_close(&process->engine);
		atomic_store(&process->started, false);
		page_close(process);
	}
	domains_close(process);
	mesh_nics_forget(process);
	mesh_process_unlock(process);
}
