/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - what the plugin's own thread does: the work of all objects that is due. */
#include "base/clock.h"
#include "control/controls.h"
#include "control/link_watch.h"
#include "control/peer_life.h"
#include "fabric/poll.h"
#include "setup/connect.h"
#include "setup/listener.h"
#include "setup/nic_watch.h"
#include "setup/work.h"
#include "transport/close.h"
#include "transport/stall.h"

/*
 * Timeouts: while something must be checked all the time, while something has a deadline, and while
 * NCCL has polled recently.
 */
#define URGENT_MS 1
#define PENDING_MS 20
#define AWAKE_MS 20
/* The engine polls for this long after the last poll by another thread, then sleeps. */
#define AWAKE_AFTER_MS 1000

MESH_HOLDS(process)
static bool is_urgent(const struct mesh_process *process)
{
	const struct mesh_peer *peer;

	LIST_FOREACH(peer, &process->peers, entry) {
		if (mesh_peer_urgent(peer))
			return true;
	}
	return false;
}

/* The soonest of two timeouts; -1 is never. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* The timeout of comms whose peer is closing, and waits. */
MESH_HOLDS(process)
static int closing_timeout(struct mesh_process *process)
{
	uint64_t now_ms = mesh_clock_ms();
	struct mesh_peer *peer;
	struct mesh_comm *comm;
	int timeout = -1;

	LIST_FOREACH(peer, &process->peers, entry) {
		if (mesh_peer_drains(peer, now_ms))
			return 0;
	}
	LIST_FOREACH(comm, &process->comms, entry)
		timeout = sooner(timeout, mesh_comm_timeout(comm, now_ms));
	return timeout;
}

MESH_HOLDS(process)
static bool is_pending(struct mesh_process *process)
{
	const struct mesh_connect *connect;
	const struct mesh_peer *peer;

	LIST_FOREACH(connect, &mesh_setup_of(process)->connects, entry) {
		if (connect->state < MESH_CONNECT_DONE) /* else NCCL's call is next */
			return true;
	}
	LIST_FOREACH(peer, &process->peers, entry) {
		if (peer->state == MESH_PEER_HELLO || peer->state == MESH_PEER_CONNECTING ||
		    peer->state == MESH_PEER_RETRY ||
		    (peer->state == MESH_PEER_LOST && !peer->users))
			return true;
	}
	return mesh_links_pending(process) || mesh_controls_paused(process);
}

MESH_HOLDS(process)
static int setup_timeout(void *owner)
{
	struct mesh_process *process = owner;
	int timeout;

	mesh_process_assert_locked(process);
	timeout =
		sooner(closing_timeout(process), mesh_nic_watch_timeout(process, mesh_clock_ms()));
	if (is_urgent(process))
		return sooner(timeout, URGENT_MS);
	if (is_pending(process))
		return sooner(timeout, PENDING_MS);
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
	int dev;

	for (dev = 0; dev < setup->process.num_devs; dev++) {
		domain = setup->process.domains[dev];
		if (!domain)
			continue;
		if (domain_polls(domain) != setup->seen_polls[dev])
			busy = true;
		else
			mesh_domain_poll(domain);
		setup->seen_polls[dev] = domain_polls(domain);
	}
	rest_if_idle(setup, busy, now_ms);
}

MESH_HOLDS(process)
static void setup_tick(void *owner)
{
	struct mesh_process *process = owner;
	uint64_t now = mesh_clock_ms();
	struct mesh_listener *listener;
	struct mesh_connect *connect;
	struct mesh_peer *peer, *next;
	struct mesh_comm *comm;

	mesh_process_assert_locked(process);
	domains_look_after(mesh_setup_of(process), now);
	LIST_FOREACH(connect, &mesh_setup_of(process)->connects, entry)
		mesh_connect_advance(connect, now);
	LIST_FOREACH(listener, &mesh_setup_of(process)->listeners, entry)
		mesh_listener_tick(listener);
	LIST_FOREACH(comm, &process->comms, entry) {
		mesh_comm_tick(comm);
		mesh_stall_tick(comm, now);
	}
	mesh_links_tick(process, now);
	for (peer = LIST_FIRST(&process->peers); peer; peer = next) {
		next = LIST_NEXT(peer, entry); /* a tick may free only its own peer */
		mesh_peer_tick(peer, now);
	}
	mesh_controls_tick(process, now);
	mesh_nic_watch_tick(process, now);
}

const struct mesh_engine_work mesh_setup_work = {
	.timeout = setup_timeout,
	.tick = setup_tick,
};
