/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - one liveness for each process and link; one verdict for all peers there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/provider_sockets.h"
#include "system/tcp_look.h"
#include "transport/link.h"
#include "transport/liveness.h"
#include "transport/node.h"

/* Longer without a sign of life, and the kernel is made to ask again, this often. */
#define QUIET_MS 1000
#define POKE_MS 200
/* The provider's sockets are searched for anew after this while somebody waits. */
#define SEARCH_MS 5000
/* Where one has gone, or there was none. */
#define SEARCH_AGAIN_MS 1000
/* A frame is acknowledged within this; else somebody waits for it. */
#define FRAME_MS 500
/* linux/tcp.h: MAX_TCP_KEEPCNT. */
#define KEEPALIVE_COUNT_MAX 127
/* The kernel's questions in a time of silence; as many again are ours. */
#define QUESTIONS 60

struct mesh_link {
	LIST_ENTRY(mesh_link) entry; /* node->links */
	struct mesh_node *node;
	struct mesh_domain *domain;
	uint64_t process_id;
	struct mesh_addr address;
	int num_peers;
	bool eager; /* keep-alive asks often, and does not end the connection */
	struct mesh_liveness liveness;
	struct mesh_remote_sockets sockets;
	uint64_t searched_ms; /* for the sockets; 0: never */
	uint64_t poked_ms;
	uint64_t sent_ms; /* a frame, which may not be acknowledged yet; 0: none */
};

/* ---- keep-alive ---------------------------------------------------------------------------- */

/*
 * While nobody waits, the kernel alone notices a dead link: it wakes the engine by ending the
 * connection, a little later than the limit, so that an interruption that is shorter ends nothing.
 */
static void keepalive_set(const struct mesh_peer *peer)
{
	int limit_s = (int)peer->node->config.dead_peer_timeout_s;
	struct mesh_tcp_keepalive keepalive = {
		.idle_s = limit_s / 4 > 1 ? limit_s / 4 : 1,
		.interval_s = limit_s / QUESTIONS > 1 ? limit_s / QUESTIONS : 1,
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

static void keepalives_set(const struct mesh_link *link)
{
	const struct mesh_peer *peer;

	LIST_FOREACH(peer, &link->node->peers, entry) {
		if (peer->link == link)
			keepalive_set(peer);
	}
}

/* Setting what is set already makes the kernel ask at once. */
static void silence_poke(struct mesh_link *link, uint64_t now_ms)
{
	uint64_t pause_ms = link->liveness.limit_ms / QUESTIONS;

	if (pause_ms < POKE_MS)
		pause_ms = POKE_MS;
	if (now_ms < link->liveness.heard_ms + QUIET_MS || now_ms < link->poked_ms + pause_ms)
		return;
	link->poked_ms = now_ms;
	keepalives_set(link);
}

/* ---- members ------------------------------------------------------------------------------- */

static struct mesh_link *link_find(const struct mesh_peer *peer)
{
	struct mesh_link *link;

	LIST_FOREACH(link, &peer->node->links, entry) {
		if (link->domain == peer->domain && link->process_id == peer->process_id &&
		    mesh_addr_equal(&link->address, &peer->address.addr))
			return link;
	}
	return NULL;
}

static struct mesh_link *link_make(const struct mesh_peer *peer)
{
	struct mesh_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->node = peer->node;
	link->domain = peer->domain;
	link->process_id = peer->process_id;
	link->address = peer->address.addr;
	mesh_liveness_init(&link->liveness, peer->node->config.dead_peer_timeout_s * 1000);
	LIST_INSERT_HEAD(&peer->node->links, link, entry);
	return link;
}

void mesh_link_join(struct mesh_peer *peer)
{
	struct mesh_link *link = link_find(peer);

	mesh_lock_assert_held(&peer->node->lock);
	if (!link)
		link = link_make(peer);
	if (!link)
		return;
	link->num_peers++;
	peer->link = link;
	keepalive_set(peer);
}

static void link_put(struct mesh_link *link)
{
	if (--link->num_peers)
		return;
	LIST_REMOVE(link, entry);
	free(link);
}

void mesh_link_leave(struct mesh_peer *peer)
{
	struct mesh_link *link = peer->link;

	mesh_lock_assert_held(&peer->node->lock);
	peer->link = NULL;
	if (link)
		link_put(link);
}

/* ---- looking ------------------------------------------------------------------------------- */

/* Any peer of the link: their remotes have the same name. */
static struct mesh_remote *link_remote(const struct mesh_link *link)
{
	const struct mesh_peer *peer;

	LIST_FOREACH(peer, &link->node->peers, entry) {
		if (peer->link == link)
			return peer->remote;
	}
	return NULL;
}

static int data_look(struct mesh_link *link, struct mesh_tcp_look *looks, uint64_t now_ms)
{
	int num = mesh_remote_sockets_look(&link->sockets, looks);
	bool whole = num && num == link->sockets.num;
	const struct mesh_remote *remote;

	if (link->searched_ms && now_ms < link->searched_ms + (whole ? SEARCH_MS : SEARCH_AGAIN_MS))
		return num;
	remote = link_remote(link);
	if (!remote)
		return num;
	mesh_remote_sockets_find(link->domain, remote, &link->sockets);
	link->searched_ms = now_ms;
	return mesh_remote_sockets_look(&link->sockets, looks);
}

static enum mesh_liveness_verdict link_look(struct mesh_link *link, uint64_t now_ms)
{
	struct mesh_tcp_look looks[MESH_LIVENESS_SOCKETS];
	const struct mesh_peer *peer;
	int num = 0;

	LIST_FOREACH(peer, &link->node->peers, entry) {
		if (peer->link != link || num == MESH_LIVENESS_SOCKETS - MESH_REMOTE_SOCKETS_MAX)
			continue;
		looks[num].data = false;
		if (!mesh_tcp_look(peer->watch.fd, &looks[num]))
			num++;
	}
	if (num) /* else there is no telling whether the peer's kernel answers */
		num += data_look(link, &looks[num], now_ms);
	return mesh_liveness_learn(&link->liveness, looks, num, now_ms);
}

void mesh_link_want(struct mesh_peer *peer, uint64_t until_ms)
{
	if (peer->link)
		mesh_liveness_want(&peer->link->liveness, until_ms);
}

void mesh_link_sent(struct mesh_peer *peer)
{
	if (!peer->link || peer->link->sent_ms)
		return;
	peer->link->sent_ms = mesh_clock_ms();
	mesh_engine_wake(&peer->node->engine);
}

/* Frames that are not acknowledged: then somebody waits. */
static void frames_check(struct mesh_link *link, uint64_t now_ms)
{
	struct mesh_tcp_look look = {.queued = 0};
	const struct mesh_peer *peer;

	if (!link->sent_ms || mesh_clock_elapsed_ms(link->sent_ms, now_ms) < FRAME_MS)
		return;
	LIST_FOREACH(peer, &link->node->peers, entry) {
		if (peer->link == link && !mesh_tcp_look(peer->watch.fd, &look) && look.queued) {
			mesh_liveness_want(&link->liveness, now_ms + FRAME_MS);
			return;
		}
	}
	link->sent_ms = 0;
}

bool mesh_link_is_fresh(const struct mesh_peer *peer, uint64_t now_ms)
{
	return !peer->link || mesh_liveness_is_fresh(&peer->link->liveness, now_ms);
}

bool mesh_link_is_drained(struct mesh_peer *peer, uint64_t since_ms, uint64_t now_ms)
{
	mesh_lock_assert_held(&peer->node->lock);
	if (!peer->link)
		return true;
	/* A verdict comes again at the next tick. */
	link_look(peer->link, now_ms);
	return peer->link->liveness.drained_ms >= since_ms;
}

/* ---- verdicts ------------------------------------------------------------------------------ */

static void refusal_tell(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t detail)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.refuse.refusal = refusal;
	frame.refuse.detail = detail;
	mesh_peer_send(peer, &frame, MESH_FRAME_REFUSE);
}

/*
 * Over each link that is left to the same process: which one is lost. It comes before what the
 * comms will send when they close, so that the other node knows the reason, too.
 */
static void others_tell(const struct mesh_peer *lost, enum mesh_refusal refusal)
{
	uint32_t detail = mesh_link_name((uint8_t)lost->domain->dev, lost->address.nic);
	struct mesh_peer *peer;

	LIST_FOREACH(peer, &lost->node->peers, entry) {
		if (peer->link && peer->link != lost->link && peer->process_id == lost->process_id)
			refusal_tell(peer, refusal, detail);
	}
}

void mesh_link_lose(struct mesh_peer *peer, const char *reason, enum mesh_refusal tell)
{
	struct mesh_link *link = peer->link;
	struct mesh_node *node = peer->node;

	mesh_lock_assert_held(&node->lock);
	if (!link) {
		mesh_peer_lose(peer, reason);
		return;
	}
	if (tell)
		others_tell(peer, tell);
	link->num_peers++; /* it stays until the end */
	LIST_FOREACH(peer, &node->peers, entry) {
		if (peer->link != link)
			continue;
		if (tell)
			refusal_tell(peer, tell, 0);
		mesh_peer_lose(peer, reason);
		peer->lost_ms = 0; /* nothing is on its way any more: its comms need not wait */
	}
	link_put(link);
}

void mesh_link_given_up(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t detail)
{
	struct mesh_peer *other;

	mesh_lock_assert_held(&peer->node->lock);
	LIST_FOREACH(other, &peer->node->peers, entry) {
		if (!other->link || other->process_id != peer->process_id)
			continue;
		if (detail ? mesh_link_name(other->address.nic, (uint8_t)other->domain->dev) ==
				     detail
			   : other == peer)
			break;
	}
	if (other)
		mesh_link_lose(other, mesh_refusal_text(refusal), 0);
}

void mesh_link_timed_out(struct mesh_peer *peer)
{
	char reason[MESH_PEER_REASON_MAX];

	snprintf(reason, sizeof(reason),
		 "no answer for %llu s: cable pulled, link down, node stopped",
		 (unsigned long long)peer->node->config.dead_peer_timeout_s);
	mesh_link_lose(peer, reason, MESH_REFUSAL_NO_ANSWER);
}

static void link_judge(struct mesh_link *link, enum mesh_liveness_verdict verdict)
{
	unsigned long long limit_s = link->liveness.limit_ms / 1000;
	char reason[MESH_PEER_REASON_MAX];
	struct mesh_peer *peer;

	LIST_FOREACH(peer, &link->node->peers, entry) {
		if (peer->link == link)
			break;
	}
	if (!peer)
		return;
	if (verdict == MESH_LIVENESS_NO_ANSWER) {
		mesh_link_timed_out(peer);
	} else if (verdict == MESH_LIVENESS_NO_DATA) {
		snprintf(reason, sizeof(reason),
			 "it has acknowledged no data for %llu s, though small packets get "
			 "through: large frames are lost (is the MTU of both NICs the same?)",
			 limit_s);
		mesh_link_lose(peer, reason, MESH_REFUSAL_NO_DATA);
	}
}

void mesh_links_tick(struct mesh_node *node, uint64_t now_ms)
{
	struct mesh_link *link, *next;
	bool due, eager;

	mesh_lock_assert_held(&node->lock);
	for (link = LIST_FIRST(&node->links); link; link = next) {
		next = LIST_NEXT(link, entry); /* a verdict frees its own link, no other */
		frames_check(link, now_ms);
		due = mesh_liveness_is_due(&link->liveness, now_ms);
		eager = link->liveness.state != MESH_LIVENESS_IDLE;
		if (eager != link->eager) {
			link->eager = eager;
			keepalives_set(link);
		}
		if (!due)
			continue;
		silence_poke(link, now_ms);
		link_judge(link, link_look(link, now_ms));
	}
}

bool mesh_links_pending(const struct mesh_node *node)
{
	const struct mesh_link *link;

	LIST_FOREACH(link, &node->links, entry) {
		if (link->liveness.state == MESH_LIVENESS_SILENT || link->sent_ms)
			return true;
	}
	return false;
}
