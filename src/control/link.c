/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - links: which ones are alive.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "control/link.h"
#include "control/peer.h"

/* Looks at a link that is not watched, within its limit of silence. */
#define IDLE_LOOKS 2
/* Probes within the limit of silence, at most; each takes a second at least. */
#define PROBES 120
/* linux/tcp.h: MAX_TCP_KEEPCNT. */
#define PROBES_MAX 127
/* Data is stuck if it was retransmitted this often while the link was audible. */
#define STUCK_RESENT 2

/* ---- keep-alive ---------------------------------------------------------------------------- */

/* More probes than the limit of silence has time for: the engine looks, and has the verdict. */
static void keepalive_set(const struct mesh_peer *peer)
{
	const struct mesh_tcp_keepalive keepalive = {
		.idle_s = MESH_LINK_QUIET_MS / 1000,
		.interval_s = 1 + (int)peer->process->config.dead_peer_timeout_s / PROBES,
		.count = PROBES_MAX,
	};

	mesh_tcp_keepalive_set(peer->watch.fd, &keepalive);
}

/* ---- who waits for it ---------------------------------------------------------------------- */

static bool is_watched(const struct mesh_link *link, uint64_t now_ms)
{
	return now_ms < link->wanted_until_ms;
}

MESH_HOLDS(process)
static void want(struct mesh_link *link, uint64_t until_ms, uint64_t now_ms)
{
	if (!is_watched(link, now_ms)) {
		link->audible_ms = now_ms; /* what the sockets did before does not count */
		mesh_engine_timer_set(&link->process->engine, &link->timer, 0);
	}
	if (link->wanted_until_ms < until_ms)
		link->wanted_until_ms = until_ms;
}

void mesh_link_want(struct mesh_peer *peer, uint64_t until_ms, bool writes)
{
	struct mesh_link *link = peer->link;

	if (!link)
		return;
	want(link, until_ms, mesh_clock_ms());
	if (writes && link->writes_until_ms < until_ms)
		link->writes_until_ms = until_ms;
}

/* Looks at it then, or before. */
static void look_by(struct mesh_link *link, uint64_t due_ms)
{
	if (!link->timer.set || due_ms < link->timer.due_ms)
		mesh_engine_timer_set(&link->process->engine, &link->timer, due_ms);
}

void mesh_link_sent(struct mesh_peer *peer)
{
	if (!peer->link)
		return;
	mesh_engine_stay_awake(&peer->process->engine);
	look_by(peer->link, mesh_clock_ms() + MESH_LINK_FRAME_MS);
}

uint64_t mesh_link_resumed_limit_ms(const struct mesh_process *process)
{
	uint64_t limit_ms = process->config.dead_peer_timeout_s * 1000;

	return limit_ms < MESH_DIAL_MS ? limit_ms : MESH_DIAL_MS;
}

/* How long the link may be silent: less if comms or circuits use it, which go on elsewhere. */
MESH_HOLDS(process)
static uint64_t limit_of(const struct mesh_link *link)
{
	const struct mesh_peer *peer;

	LIST_FOREACH(peer, &link->peers, link_entry) {
		if (!LIST_EMPTY(&peer->user_list))
			return mesh_link_resumed_limit_ms(link->process);
	}
	return link->process->config.dead_peer_timeout_s * 1000;
}

/* ---- signs of life ------------------------------------------------------------------------- */

/* It is silent after more than the kernel's pause before a probe and a round trip. */
static bool is_silent(const struct mesh_link *link, uint64_t now_ms)
{
	return now_ms >= link->heard_ms + MESH_LINK_QUIET_MS + MESH_LINK_FRAME_MS;
}

bool mesh_link_is_fresh(const struct mesh_peer *peer, uint64_t now_ms)
{
	const struct mesh_link *link = peer->link;

	return !link || !link->heard_ms || now_ms <= link->heard_ms + MESH_LINK_FRAME_MS;
}

/*
 * When the first packet without an answer was sent, which is seen now. On a link that is watched
 * the cable may have been pulled at any time in the second before the kernel asks: counting from
 * its middle keeps the error below half a second in both directions. So does a short limit: one
 * lost probe, long ago, is no verdict.
 */
MESH_HOLDS(process)
static uint64_t asked_estimate(const struct mesh_link *link, uint64_t now_ms)
{
	uint64_t asked_ms = link->heard_ms + MESH_LINK_QUIET_MS;

	if (is_watched(link, now_ms) || limit_of(link) <= MESH_DIAL_MS)
		asked_ms = now_ms - MESH_LINK_QUIET_MS / 2;
	if (asked_ms > now_ms)
		asked_ms = now_ms;
	return asked_ms > link->heard_ms ? asked_ms : link->heard_ms;
}

static struct mesh_link_socket *socket_find(struct mesh_link *link, uint64_t cookie)
{
	int i;

	for (i = 0; i < link->num_sockets; i++) {
		if (link->sockets[i].last.cookie == cookie)
			return &link->sockets[i];
	}
	return NULL;
}

/*
 * True if something has come over the connection since it was looked at last. The kernel's own time
 * ignores the peer's keep-alive probes, which may be all that comes while our frame is in flight:
 * the kernel repeats that ever more seldom.
 */
static bool has_received(struct mesh_link *link, const struct mesh_tcp_look *look)
{
	const struct mesh_link_socket *socket = socket_find(link, look->cookie);

	return socket && socket->last.segments_in != look->segments_in;
}

MESH_HOLDS(process)
static void hear(struct mesh_link *link, const struct mesh_tcp_look *looks, int num_looks,
		 uint64_t now_ms)
{
	uint64_t heard_ms = 0;
	bool asked = false;
	int i;

	for (i = 0; i < num_looks; i++) {
		if (now_ms > heard_ms + looks[i].heard_ago_ms)
			heard_ms = now_ms - looks[i].heard_ago_ms;
		if (link->asked_ms && has_received(link, &looks[i])) /* looks are frequent now */
			heard_ms = now_ms;
		asked |= looks[i].probes || (looks[i].unacked && looks[i].retries);
		if (looks[i].queued && !looks[i].data) /* a frame is not acknowledged */
			want(link, now_ms + MESH_LINK_FRAME_MS, now_ms);
	}
	/* The kernel counts in ticks: what it last heard seems to move. */
	if (heard_ms > link->heard_ms + MESH_LINK_LOOK_MS) {
		if (is_silent(link, now_ms))
			link->audible_ms = now_ms;
		link->heard_ms = heard_ms;
		link->asked_ms = 0;
	} else if (asked && !link->asked_ms) {
		link->asked_ms = asked_estimate(link, now_ms);
	}
	if (link->asked_ms) /* until it is heard again, or dead */
		want(link, now_ms + MESH_LINK_QUIET_MS, now_ms);
}

/* ---- data in flight ------------------------------------------------------------------------ */

/*
 * An acknowledgement without progress counts as an answer: the peer's kernel has no room for the
 * data, because its process is stopped. If the network drops large frames, no acknowledgement
 * arrives.
 */
static bool data_is_answered(const struct mesh_tcp_look *before, const struct mesh_tcp_look *look)
{
	return !look->unacked || look->bytes_acked != before->bytes_acked ||
	       look->segments_in - look->data_segments_in !=
		       before->segments_in - before->data_segments_in;
}

static void sockets_learn(struct mesh_link *link, const struct mesh_tcp_look *looks, int num_looks,
			  uint64_t now_ms)
{
	struct mesh_link_socket sockets[MESH_LINK_SOCKETS] = {0}, *socket;
	const struct mesh_link_socket *before;
	int i;

	for (i = 0; i < num_looks; i++) {
		socket = &sockets[i];
		before = socket_find(link, looks[i].cookie);
		if (before)
			*socket = *before;
		if (!before || data_is_answered(&before->last, &looks[i]) ||
		    before->moved_ms < link->audible_ms) {
			socket->moved_ms = now_ms;
			socket->resent = looks[i].resent;
		}
		socket->last = looks[i];
	}
	memcpy(link->sockets, sockets, sizeof(sockets));
	link->num_sockets = num_looks;
}

static bool data_is_stuck(const struct mesh_link *link, uint64_t now_ms)
{
	const struct mesh_link_socket *socket;

	if (is_silent(link, now_ms))
		return false;
	for (socket = link->sockets; socket < link->sockets + link->num_sockets; socket++) {
		if (socket->last.data && now_ms >= socket->moved_ms + link->limit_ms &&
		    socket->last.resent - socket->resent >= STUCK_RESENT)
			return true;
	}
	return false;
}

static bool mark_is_passed(const struct mesh_link *link)
{
	const struct mesh_link_socket *socket;

	for (socket = link->sockets; socket < link->sockets + link->num_sockets; socket++) {
		if (socket->last.data && socket->last.queued &&
		    socket->last.bytes_acked < socket->mark)
			return false;
	}
	return true;
}

/* A socket that was closed, or opened after the mark, holds nothing from before the mark. */
static void drained_learn(struct mesh_link *link, uint64_t now_ms)
{
	struct mesh_link_socket *socket;

	if (!mark_is_passed(link))
		return;
	link->drained_ms = link->mark_ms;
	link->mark_ms = now_ms;
	for (socket = link->sockets; socket < link->sockets + link->num_sockets; socket++)
		socket->mark = socket->last.bytes_acked + socket->last.queued;
	if (mark_is_passed(link))
		link->drained_ms = now_ms;
}

/* ---- looking ------------------------------------------------------------------------------- */

/* Of the control connections. Returns the number of @looks. */
MESH_HOLDS(process)
static int control_look(const struct mesh_link *link, struct mesh_tcp_look *looks)
{
	const struct mesh_peer *peer;
	int num = 0;

	LIST_FOREACH(peer, &link->peers, link_entry) {
		if (num == MESH_LINK_SOCKETS - MESH_REMOTE_SOCKETS_MAX)
			break;
		looks[num].data = false;
		if (!mesh_tcp_look(peer->watch.fd, &looks[num]))
			num++;
	}
	return num;
}

/* Reads the state of all TCP connections with the process over this link. */
MESH_HOLDS(process)
static void link_look(struct mesh_link *link, uint64_t now_ms)
{
	struct mesh_tcp_look looks[MESH_LINK_SOCKETS];
	int num = control_look(link, looks);

	if (!num) { /* nothing is known of it */
		link->drained_ms = now_ms;
		return;
	}
	/* The remotes of all peers of the link have the same endpoint name. */
	num += mesh_remote_sockets_look(&link->process->sockets, link->domain,
					LIST_FIRST(&link->peers)->remote, &looks[num], now_ms);
	hear(link, looks, num, now_ms);
	sockets_learn(link, looks, num, now_ms);
	drained_learn(link, now_ms);
}

bool mesh_link_is_drained(struct mesh_peer *peer, uint64_t since_ms, uint64_t now_ms)
{
	mesh_process_assert_locked(peer->process);
	if (!peer->link)
		return true;
	link_look(peer->link, now_ms);
	return peer->link->drained_ms >= since_ms;
}

/*
 * True if RDMA writes have had no answer for the limit, although the peer's kernel answers on TCP;
 * false if nothing waits for them. Only completions on RDMA come from the peer's NIC, whatever its
 * process does. They are found by polling: a process of ours that was stopped gets the time for
 * some more polls.
 */
MESH_HOLDS(process)
static bool writes_are_silent(struct mesh_link *link, uint64_t now_ms)
{
	const struct mesh_remote *remote = LIST_FIRST(&link->peers)->remote;
	uint64_t polls = atomic_load_explicit(&link->domain->polls, memory_order_relaxed);

	if (link->domain->delivery_flag || now_ms >= link->writes_until_ms ||
	    mesh_pace_silence_ns(&remote->flow->pace, mesh_clock_ns()) / MESH_NS_PER_MS <
		    link->limit_ms) {
		link->silent_ms = 0;
		return false;
	}
	if (!link->silent_ms) {
		link->silent_ms = now_ms;
		link->silent_polls = polls;
	}
	return now_ms - link->silent_ms >= MESH_LINK_QUIET_MS && polls >= link->silent_polls + 2;
}

/* Has the link lost, if it is dead. */
MESH_HOLDS(process)
static void link_judge(struct mesh_link *link, uint64_t now_ms)
{
	if (link->asked_ms && now_ms >= link->asked_ms + link->limit_ms)
		link->verdict = MESH_REFUSAL_NO_ANSWER;
	else if (data_is_stuck(link, now_ms))
		link->verdict = MESH_REFUSAL_NO_DATA;
	else if (!is_silent(link, now_ms) && writes_are_silent(link, now_ms))
		link->verdict = MESH_REFUSAL_NO_WRITES;
	if (link->verdict)
		mesh_peer_check(LIST_FIRST(&link->peers));
}

/* All links that are not watched have the same times, so that the engine wakes once for them. */
MESH_HOLDS(process)
static uint64_t idle_next(const struct mesh_link *link, uint64_t now_ms)
{
	uint64_t period_ms = link->process->config.dead_peer_timeout_s * 1000 / IDLE_LOOKS;

	return now_ms - now_ms % period_ms + period_ms;
}

MESH_HOLDS(process)
static void link_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_link *link = mesh_container_of(timer, struct mesh_link, timer);
	struct mesh_tcp_look looks[MESH_LINK_SOCKETS];
	bool looked = is_watched(link, now_ms);
	int num_looks;

	mesh_process_assert_locked(link->process);
	if (looked) {
		link_look(link, now_ms);
	} else {
		num_looks = control_look(link, looks);
		hear(link, looks, num_looks, now_ms);
	}
	if (!is_watched(link, now_ms)) {
		link->limit_ms = link->process->config.dead_peer_timeout_s * 1000;
		link->silent_ms = 0;
		mesh_engine_timer_set(&link->process->engine, timer, idle_next(link, now_ms));
		return;
	}
	link->limit_ms = limit_of(link);
	mesh_engine_timer_set(&link->process->engine, timer, now_ms + MESH_LINK_LOOK_MS);
	if (looked) /* else it is watched since now */
		link_judge(link, now_ms);
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
	link->timer.expired = link_expired;
	link->limit_ms = peer->process->config.dead_peer_timeout_s * 1000;
	LIST_INIT(&link->peers);
	LIST_INSERT_HEAD(&peer->process->links, link, entry);
	return link;
}

bool mesh_link_join(struct mesh_peer *peer)
{
	struct mesh_link *link = link_find(peer);

	mesh_process_assert_locked(peer->process);
	if (!link)
		link = link_make(peer);
	if (!link)
		return false;
	LIST_INSERT_HEAD(&link->peers, peer, link_entry);
	peer->link = link;
	keepalive_set(peer);
	look_by(link, idle_next(link, mesh_clock_ms()));
	return true;
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
