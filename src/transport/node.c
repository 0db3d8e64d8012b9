/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - opens the domains and runs what is due: the engine's view of everything. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/domain_open.h"
#include "fabric/poll.h"
#include "transport/connect.h"
#include "transport/counters.h"
#include "transport/link.h"
#include "transport/listener.h"
#include "transport/node.h"
#include "transport/openings.h"
#include "transport/peer.h"
#include "transport/protocol.h"

/* While something must be looked at all the time, while something has a deadline, and while NCCL
 * has been polling lately. */
#define URGENT_MS 1
#define PENDING_MS 20
#define AWAKE_MS 20
/* After the last poll that was not its own the engine goes on looking for so long, then sleeps. */
#define AWAKE_AFTER_MS 1000

const char *mesh_endpoints_text(const struct mesh_endpoint_addr *endpoints, int num_endpoints,
				const struct mesh_node *node, char *text, size_t size)
{
	char address[MESH_ADDR_TEXT_MAX];
	size_t used = 0;
	int i, n;

	snprintf(text, size, "no NIC");
	for (i = 0; i < num_endpoints && used < size; i++) {
		mesh_addr_text_prefix(&endpoints[i].addr, address);
		n = snprintf(text + used, size - used, "%s%s", used ? ", " : "", address);
		if (node && n > 0 && used + (size_t)n < size)
			n += snprintf(text + used + n, size - used - (size_t)n, " (%s)",
				      node->nics[endpoints[i].nic]->netdev);
		used += (size_t)n;
	}
	return text;
}

int mesh_node_offers(const struct mesh_node *node, struct mesh_endpoint_addr *endpoints)
{
	const struct mesh_domain *domain;
	int dev, count = 0;

	for (dev = 0; dev < node->num_devs; dev++) {
		if (node->dev_states[dev] == MESH_DEV_FAILED)
			continue;
		domain = node->domains[dev];
		endpoints[count++] = (struct mesh_endpoint_addr){
			.addr = node->nics[dev]->source,
			.port = domain ? domain->port : 0,
			.nic = (uint8_t)dev,
			.provider = node->providers[dev],
			.speed_mbps = node->nics[dev]->speed_mbps,
		};
	}
	return count;
}

static void domains_close(struct mesh_node *node)
{
	int dev;

	for (dev = 0; dev < node->num_devs; dev++) {
		mesh_domain_close(node->domains[dev]);
		atomic_store(&node->domains[dev], NULL);
		node->dev_states[dev] = MESH_DEV_CLOSED;
	}
	node->num_endpoints = 0;
	node->settled = false;
}

int mesh_node_start(struct mesh_node *node)
{
	int ret;

	mesh_lock_assert_held(&node->lock);
	if (atomic_load(&node->started))
		return 0;
	ret = mesh_engine_open(&node->engine, node);
	if (ret)
		return ret;
	mesh_openings_start(node, false);
	ret = mesh_controls_open(node);
	if (ret)
		goto close_engine;
	/* Last, because the thread could not be ended again while we hold the lock. */
	ret = mesh_engine_start(&node->engine);
	if (ret)
		goto close_controls;
	mesh_counters_open(node);
	atomic_store(&node->started, true);
	return 0;
close_controls:
	mesh_controls_close(node);
close_engine:
	mesh_engine_close(&node->engine);
	return ret;
}

int mesh_node_retry(struct mesh_node *node)
{
	mesh_lock_assert_held(&node->lock);
	if (!atomic_load(&node->started) || mesh_openings_result(node, mesh_clock_ms()) != -ENODEV)
		return 0;
	mesh_openings_start(node, false);
	mesh_controls_close(node);
	return mesh_controls_open(node);
}

void mesh_node_stop(struct mesh_node *node)
{
	struct mesh_peer *peer;

	mesh_engine_stop(&node->engine);
	mesh_openings_await();
	mesh_lock_take(&node->lock);
	if (atomic_load(&node->started)) {
		while ((peer = LIST_FIRST(&node->peers)))
			mesh_peer_free(peer);
		mesh_controls_close(node);
		mesh_engine_close(&node->engine);
		atomic_store(&node->started, false);
		mesh_counters_close(node);
	}
	domains_close(node); /* also those that were opened ahead, and never used */
	mesh_lock_release(&node->lock);
}

void mesh_node_poll(struct mesh_node *node)
{
	struct mesh_domain *domain;
	int dev;

	if (!atomic_load(&node->started))
		return;
	for (dev = 0; dev < node->num_devs; dev++) {
		domain = atomic_load(&node->domains[dev]);
		if (domain)
			mesh_domain_poll(domain);
	}
}

/* ---- what is due --------------------------------------------------------------------------- */

static bool is_urgent(const struct mesh_node *node)
{
	const struct mesh_peer *peer;

	LIST_FOREACH(peer, &node->peers, entry) {
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

/* Of comms whose peer is closing, and waits. */
static int closing_timeout(struct mesh_node *node)
{
	uint64_t now_ms = mesh_clock_ms();
	struct mesh_peer *peer;
	struct mesh_comm *comm;
	int timeout = -1;

	LIST_FOREACH(peer, &node->peers, entry) {
		if (mesh_peer_drains(peer, now_ms))
			return 0;
	}
	LIST_FOREACH(comm, &node->comms, entry)
		timeout = sooner(timeout, mesh_comm_timeout(comm, now_ms));
	return timeout;
}

static bool is_pending(const struct mesh_node *node)
{
	const struct mesh_connect *connect;
	const struct mesh_peer *peer;

	LIST_FOREACH(connect, &node->connects, entry) {
		if (connect->state < MESH_CONNECT_DONE) /* the rest waits for NCCL, if it comes */
			return true;
	}
	LIST_FOREACH(peer, &node->peers, entry) {
		if (peer->state == MESH_PEER_HELLO || peer->state == MESH_PEER_CONNECTING ||
		    peer->state == MESH_PEER_RETRY ||
		    (peer->state == MESH_PEER_LOST && !peer->users))
			return true;
	}
	return mesh_links_pending(node) || mesh_controls_paused(node);
}

int mesh_node_timeout(struct mesh_node *node)
{
	int timeout;

	mesh_lock_assert_held(&node->lock);
	timeout = closing_timeout(node);
	if (is_urgent(node))
		return sooner(timeout, URGENT_MS);
	if (is_pending(node))
		return sooner(timeout, PENDING_MS);
	if (atomic_load_explicit(&node->engine.awake, memory_order_relaxed))
		return sooner(timeout, AWAKE_MS);
	return timeout;
}

static uint64_t domain_polls(const struct mesh_domain *domain)
{
	return atomic_load_explicit(&domain->polls, memory_order_relaxed);
}

/* @busy: somebody else has polled. So will whoever has just woken the engine. */
static void rest_if_idle(struct mesh_node *node, bool busy, uint64_t now_ms)
{
	bool awake = atomic_load_explicit(&node->engine.awake, memory_order_relaxed);

	if (busy || (awake && !node->was_awake))
		node->busy_ms = now_ms;
	node->was_awake = awake && now_ms - node->busy_ms < AWAKE_AFTER_MS;
	if (awake && !node->was_awake)
		atomic_store_explicit(&node->engine.awake, false, memory_order_relaxed);
}

/*
 * Polls each domain that nobody else has polled since the last look. A provider may have kept
 * something back (an acknowledgement that the socket did not take), and NCCL's threads may be
 * asleep; while they poll, a poll of ours would only be in their way.
 */
static void domains_look_after(struct mesh_node *node, uint64_t now_ms)
{
	struct mesh_domain *domain;
	bool busy = false;
	int dev;

	for (dev = 0; dev < node->num_devs; dev++) {
		domain = node->domains[dev];
		if (!domain)
			continue;
		if (domain_polls(domain) != node->seen_polls[dev])
			busy = true;
		else
			mesh_domain_poll(domain);
		node->seen_polls[dev] = domain_polls(domain);
	}
	rest_if_idle(node, busy, now_ms);
}

void mesh_node_tick(struct mesh_node *node)
{
	uint64_t now = mesh_clock_ms();
	struct mesh_listener *listener;
	struct mesh_connect *connect;
	struct mesh_peer *peer, *next;
	struct mesh_comm *comm;

	mesh_lock_assert_held(&node->lock);
	domains_look_after(node, now);
	LIST_FOREACH(connect, &node->connects, entry)
		mesh_connect_advance(connect, now);
	LIST_FOREACH(listener, &node->listeners, entry)
		mesh_listener_tick(listener);
	LIST_FOREACH(comm, &node->comms, entry) {
		mesh_comm_tick(comm);
		mesh_stall_tick(comm, now);
	}
	mesh_links_tick(node, now);
	for (peer = LIST_FIRST(&node->peers); peer; peer = next) {
		next = LIST_NEXT(peer, entry); /* a tick may free its own peer, no other */
		mesh_peer_tick(peer, now);
	}
	mesh_controls_tick(node, now);
}
