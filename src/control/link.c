/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - one liveness state for each link to a process; one verdict for all of its peers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/peer_index.h"

/* While the link is watched, the provider's sockets are searched for again after this. */
#define SEARCH_MS 5000
/* The same, if a socket was closed or none was found. */
#define SEARCH_AGAIN_MS 1000
/* The time for polls between the limit of silent writes and the verdict. */
#define POLLING_MS 1000
/* linux/tcp.h: MAX_TCP_KEEPCNT. */
#define KEEPALIVE_COUNT_MAX 127

/* ---- keep-alive ---------------------------------------------------------------------------- */

/* After so long without traffic the kernel asks, if the link is not watched. In seconds. */
static int idle_s(const struct mesh_process *process)
{
	int limit_s = (int)process->config.dead_peer_timeout_s;

	return limit_s / 4 > 1 ? limit_s / 4 : 1;
}

/*
 * While the link is not watched, the kernel asks, and the engine looks at times whether it was
 * answered. The kernel itself ends a connection a little after the limit, so that a shorter
 * interruption ends nothing: only where the engine has not, because the peer has no link.
 */
MESH_HOLDS(process)
static void keepalive_set(const struct mesh_peer *peer)
{
	int limit_s = (int)peer->process->config.dead_peer_timeout_s;
	struct mesh_tcp_keepalive keepalive = {
		.idle_s = idle_s(peer->process),
		.interval_s = limit_s / MESH_LINK_QUESTIONS > 1 ? limit_s / MESH_LINK_QUESTIONS : 1,
	};

	keepalive.count = limit_s / keepalive.interval_s + 1;
	if (keepalive.count > KEEPALIVE_COUNT_MAX)
		keepalive.count = KEEPALIVE_COUNT_MAX;
	if (peer->link->eager) {
		keepalive.idle_s = 1;
		keepalive.count = KEEPALIVE_COUNT_MAX;
	}
	mesh_tcp_keepalive_set(peer->watch.fd, &keepalive);
}

void mesh_link_keepalives_set(const struct mesh_link *link)
{
	const struct mesh_peer *peer;

	LIST_FOREACH(peer, &link->peers, link_entry)
		keepalive_set(peer);
}

/* ---- members ------------------------------------------------------------------------------- */

MESH_HOLDS(process)
static struct mesh_link *link_find(const struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (other->link && mesh_peer_shares_link(other, peer))
			return other->link;
	}
	return NULL;
}

MESH_HOLDS(process)
static struct mesh_link *link_make(const struct mesh_peer *peer)
{
	struct mesh_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->process = peer->process;
	link->domain = peer->domain;
	LIST_INIT(&link->peers);
	mesh_liveness_init(&link->liveness, peer->process->config.dead_peer_timeout_s * 1000);
	LIST_INSERT_HEAD(&peer->process->links, link, entry);
	return link;
}

void mesh_link_join(struct mesh_peer *peer)
{
	struct mesh_link *link = link_find(peer);

	mesh_process_assert_locked(peer->process);
	if (!link)
		link = link_make(peer);
	if (!link)
		return;
	LIST_INSERT_HEAD(&link->peers, peer, link_entry);
	peer->link = link;
	keepalive_set(peer);
}

void mesh_link_leave(struct mesh_peer *peer)
{
	struct mesh_link *link = peer->link;

	mesh_process_assert_locked(peer->process);
	if (!link)
		return;
	peer->link = NULL;
	LIST_REMOVE(peer, link_entry);
	if (LIST_EMPTY(&link->peers)) {
		mesh_engine_timer_cancel(&link->process->engine, &link->timer);
		LIST_REMOVE(link, entry);
		free(link);
	}
}

/* ---- looking ------------------------------------------------------------------------------- */

MESH_HOLDS(process)
static int data_look(struct mesh_link *link, struct mesh_tcp_look *looks, uint64_t now_ms)
{
	int num = mesh_remote_sockets_look(&link->sockets, looks);
	bool whole = num && num == link->sockets.num;

	if (link->searched_ms && now_ms < link->searched_ms + (whole ? SEARCH_MS : SEARCH_AGAIN_MS))
		return num;
	/* The remotes of all peers of the link have the same endpoint name. */
	mesh_remote_sockets_find(mesh_process_sockets(link->process, now_ms), link->domain,
				 LIST_FIRST(&link->peers)->remote, &link->sockets);
	link->searched_ms = now_ms;
	return mesh_remote_sockets_look(&link->sockets, looks);
}

enum mesh_liveness_verdict mesh_link_look(struct mesh_link *link, uint64_t now_ms)
{
	struct mesh_tcp_look looks[MESH_LIVENESS_SOCKETS];
	const struct mesh_peer *peer;
	int num = 0;

	LIST_FOREACH(peer, &link->peers, link_entry) {
		if (num == MESH_LIVENESS_SOCKETS - MESH_REMOTE_SOCKETS_MAX)
			break;
		looks[num].data = false;
		if (!mesh_tcp_look(peer->watch.fd, &looks[num]))
			num++;
	}
	if (num) /* without a control connection the peer's liveness is unknown */
		num += data_look(link, &looks[num], now_ms);
	return mesh_liveness_learn(&link->liveness, looks, num, now_ms);
}

void mesh_link_idle_look(struct mesh_link *link, uint64_t now_ms)
{
	uint64_t idle_ms = (uint64_t)idle_s(link->process) * 1000, heard_ms = 0, asked_ms = 0, one;
	const struct mesh_peer *peer;
	struct mesh_tcp_look look;

	LIST_FOREACH(peer, &link->peers, link_entry) {
		if (mesh_tcp_look(peer->watch.fd, &look) || now_ms < look.heard_ago_ms)
			continue;
		one = now_ms - look.heard_ago_ms;
		if (one > heard_ms)
			heard_ms = one;
		if (look.probes && (!asked_ms || one + idle_ms < asked_ms))
			asked_ms = one + idle_ms; /* the kernel's first question */
	}
	if (asked_ms)
		mesh_liveness_unanswered(&link->liveness, heard_ms, asked_ms, now_ms);
}

MESH_HOLDS(process)
static void want(struct mesh_link *link, uint64_t until_ms)
{
	mesh_liveness_want(&link->liveness, until_ms);
	if (link->waited_until_ms < until_ms)
		link->waited_until_ms = until_ms;
	if (link->liveness.state == MESH_LIVENESS_IDLE)
		mesh_engine_timer_set(&link->process->engine, &link->timer, 0);
}

void mesh_link_want(struct mesh_peer *peer, uint64_t until_ms)
{
	if (peer->link)
		want(peer->link, until_ms);
}

void mesh_links_want(struct mesh_process *process, const struct mesh_domain *domain,
		     uint64_t until_ms)
{
	struct mesh_link *link;

	mesh_process_assert_locked(process);
	LIST_FOREACH(link, &process->links, entry) {
		if (link->domain == domain)
			want(link, until_ms);
	}
}

void mesh_link_writes_want(struct mesh_peer *peer, uint64_t until_ms)
{
	if (peer->link && peer->link->writes_until_ms < until_ms)
		peer->link->writes_until_ms = until_ms;
}

/*
 * Only completions on RDMA come from the peer's NIC, whatever its process does. They are found by
 * polling: a process of ours that was stopped gets the time for some more polls.
 */
bool mesh_link_writes_are_silent(struct mesh_link *link, uint64_t now_ms)
{
	const struct mesh_remote *remote = LIST_FIRST(&link->peers)->remote;
	uint64_t polls = atomic_load_explicit(&link->domain->polls, memory_order_relaxed);

	if (link->domain->delivery_flag || now_ms >= link->writes_until_ms ||
	    mesh_pace_silence_ns(&remote->flow->pace, mesh_clock_ns()) / MESH_NS_PER_MS <
		    link->liveness.limit_ms) {
		link->silent_ms = 0;
		return false;
	}
	if (!link->silent_ms) {
		link->silent_ms = now_ms;
		link->silent_polls = polls;
	}
	return now_ms - link->silent_ms >= POLLING_MS && polls >= link->silent_polls + 2;
}

void mesh_link_sent(struct mesh_peer *peer)
{
	struct mesh_link *link = peer->link;

	if (!link || link->sent_ms)
		return;
	link->sent_ms = mesh_clock_ms();
	mesh_engine_stay_awake(&peer->process->engine);
	mesh_engine_timer_advance(&peer->process->engine, &link->timer,
				  link->sent_ms + MESH_LINK_FRAME_MS);
}

bool mesh_link_is_fresh(const struct mesh_peer *peer, uint64_t now_ms)
{
	return !peer->link || mesh_liveness_is_fresh(&peer->link->liveness, now_ms);
}

bool mesh_link_is_drained(struct mesh_peer *peer, uint64_t since_ms, uint64_t now_ms)
{
	mesh_process_assert_locked(peer->process);
	if (!peer->link)
		return true;
	/* The verdict is ignored here: the next tick repeats it. */
	mesh_link_look(peer->link, now_ms);
	return peer->link->liveness.drained_ms >= since_ms;
}
