/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - what the plugin's own thread does: the work of all objects that is due. */
#include "base/clock.h"
#include "control/link_watch.h"
#include "control/peer_life.h"
#include "fabric/poll.h"
#include "relay/circuits.h"
#include "setup/late_nics.h"
#include "setup/nic_watch.h"
#include "setup/reroutes.h"
#include "setup/work.h"
#include "transport/comm_end.h"
#include "transport/recovery.h"
#include "transport/route_wait.h"
#include "transport/stall.h"

/*
 * Timeouts of what has no deadline of its own: while a peer greets or was lost a moment ago, and
 * while NCCL has polled recently.
 */
#define URGENT_MS 1
#define AWAKE_MS 20
/* The engine polls for this long after the last poll by another thread, then sleeps. */
#define AWAKE_AFTER_MS 1000
/* Between two looks for lost messages. */
#define STALLS_MS 100

/* The soonest of two timeouts; -1 is never. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

MESH_HOLDS(process)
static int setup_timeout(void *owner)
{
	struct mesh_process *process = owner;
	int timeout;

	mesh_process_assert_locked(process);
	timeout = sooner(mesh_comms_asked_timeout(process, mesh_clock_ms()),
			 mesh_nic_watch_timeout(process, mesh_clock_ms()));
	if (process->num_urgent || !LIST_EMPTY(&process->lingering))
		return sooner(timeout, URGENT_MS);
	if (atomic_load_explicit(&process->engine.awake, memory_order_relaxed))
		return sooner(timeout, AWAKE_MS);
	return timeout;
}

static uint64_t domain_polls(const struct mesh_domain *domain)
{
	return atomic_load_explicit(&domain->polls, memory_order_relaxed);
}

/* @busy: another thread has polled. One that has just woken the engine is going to. */
MESH_HOLDS(process)
static void rest_if_idle(struct mesh_setup *setup, bool busy, uint64_t now_ms)
{
	bool awake = atomic_load_explicit(&setup->process.engine.awake, memory_order_relaxed);

	if (busy || (awake && !setup->was_awake))
		setup->busy_ms = now_ms;
	setup->was_awake = awake && now_ms - setup->busy_ms < AWAKE_AFTER_MS;
	if (awake && !setup->was_awake)
		atomic_store_explicit(&setup->process.engine.awake, false, memory_order_relaxed);
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

	if (mesh_clock_elapsed_ms(setup->stalls_ms, now_ms) < STALLS_MS)
		return;
	setup->stalls_ms = now_ms;
	LIST_FOREACH(comm, &setup->process.comms, entry) {
		mesh_stall_tick(comm, now_ms);
		mesh_route_wait_tick(comm, now_ms);
	}
}

MESH_HOLDS(process)
static void setup_tick(void *owner)
{
	struct mesh_process *process = owner;
	uint64_t now = mesh_clock_ms();

	mesh_process_assert_locked(process);
	domains_look_after(mesh_setup_of(process), now);
	mesh_comms_asked_tick(process, now);
	mesh_endpoints_check(process);
	mesh_comms_recover(process);
	mesh_circuits_tick(process, now);
	stalls_look_for(mesh_setup_of(process), now);
	mesh_peers_greeted_check(process);
	mesh_nic_watch_tick(process, now);
	mesh_late_nics_tick(process);
	mesh_reroutes_tick(process);
}

const struct mesh_engine_work mesh_setup_work = {
	.timeout = setup_timeout,
	.tick = setup_tick,
};
