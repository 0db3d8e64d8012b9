/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - one liveness state for each link to a process; one verdict for all of its peers. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/link.h"
#include "control/peer.h"

/* The time for polls between the limit of silent writes and the verdict. */
#define POLLING_MS 1000
/* linux/tcp.h: MAX_TCP_KEEPCNT. */
#define KEEPALIVE_COUNT_MAX 127
/* The kernel counts in ticks of up to 10 ms: what it last heard seems to move by so much. */
#define TICK_MS 20
/* A peer is fresh if its last sign of life is not older than this, which is a round trip. */
#define FRESH_MS 300
/* Where messages go on without the link; docs/protocol/failures.md. */
#define RESUMED_MS 3000
/* Data is stuck if it was retransmitted this often while the link was audible. */
#define STUCK_RESENT 2

/* ---- states -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} states[MESH_LIVENESS_STATES] = {
	[MESH_LIVENESS_IDLE] = {"idle", 1 << MESH_LIVENESS_WATCHED | 1 << MESH_LIVENESS_SILENT},
	[MESH_LIVENESS_WATCHED] = {"watched", 1 << MESH_LIVENESS_IDLE | 1 << MESH_LIVENESS_SILENT},
	[MESH_LIVENESS_SILENT] = {"silent", 1 << MESH_LIVENESS_WATCHED},
};

static void liveness_state_set(struct mesh_liveness *liveness, enum mesh_liveness_state state)
{
	assert(states[state].may_follow & 1 << liveness->state);
	mesh_trace("link: %s -> %s", states[liveness->state].name, states[state].name);
	liveness->state = state;
}

static void watch_extend(struct mesh_liveness *liveness, uint64_t until_ms)
{
	if (liveness->wanted_until_ms < until_ms)
		liveness->wanted_until_ms = until_ms;
}

/* ---- signs of life ------------------------------------------------------------------------- */

static struct mesh_liveness_socket *socket_find(struct mesh_liveness *liveness, uint64_t cookie)
{
	int i;

	for (i = 0; i < liveness->num_sockets; i++) {
		if (liveness->sockets[i].last.cookie == cookie)
			return &liveness->sockets[i];
	}
	return NULL;
}

/*
 * When the socket last heard from the peer. The kernel's own time ignores the peer's keep-alive
 * probes: they only increase the count of segments.
 */
static uint64_t look_heard_ms(const struct mesh_liveness *liveness,
			      const struct mesh_liveness_socket *before,
			      const struct mesh_tcp_look *look, uint64_t now_ms)
{
	uint64_t heard_ms = now_ms > look->heard_ago_ms ? now_ms - look->heard_ago_ms : 0;

	if (!before || before->last.segments_in == look->segments_in)
		return heard_ms;
	return heard_ms > liveness->looked_ms ? heard_ms : now_ms;
}

/*
 * When the first packet without an answer was sent, if one is known now and was not before.
 * Keep-alive probes after 1 s of silence. The cable may have been pulled at any time in this
 * second; counting from its middle keeps the error below half a second in both directions.
 */
static uint64_t asked_estimate(const struct mesh_liveness *liveness, uint64_t now_ms)
{
	const uint64_t most_ms = MESH_LINK_QUIET_MS / 2 + MESH_LINK_LOOK_MS;
	uint64_t slack_ms = liveness->limit_ms / 4 < most_ms ? liveness->limit_ms / 4 : most_ms;
	uint64_t asked_ms = now_ms > slack_ms ? now_ms - slack_ms : 0;

	return asked_ms > liveness->heard_ms ? asked_ms : liveness->heard_ms;
}

/*
 * True if a sign of life now ends a silence. The time since the last one alone does not show this:
 * the engine may not have had a CPU. Where it has not looked for the whole limit, nothing is known
 * of the data in flight either.
 */
static bool was_silent(const struct mesh_liveness *liveness, uint64_t now_ms)
{
	return liveness->state == MESH_LIVENESS_SILENT ||
	       now_ms - liveness->looked_ms >= liveness->limit_ms;
}

static void heard_learn(struct mesh_liveness *liveness, const struct mesh_tcp_look *looks,
			int num_looks, uint64_t now_ms)
{
	uint64_t heard_ms = liveness->heard_ms, one;
	bool asked = false;
	int i;

	for (i = 0; i < num_looks; i++) {
		one = look_heard_ms(liveness, socket_find(liveness, looks[i].cookie), &looks[i],
				    now_ms);
		if (one > heard_ms)
			heard_ms = one;
		asked |= looks[i].probes || (looks[i].unacked && looks[i].retries);
	}
	if (heard_ms > liveness->heard_ms + TICK_MS) {
		if (was_silent(liveness, now_ms))
			liveness->audible_ms = now_ms;
		liveness->heard_ms = heard_ms;
		liveness->asked_ms = 0;
	} else if (asked && !liveness->asked_ms) {
		liveness->asked_ms = asked_estimate(liveness, now_ms);
	}
}

static bool link_is_dead(const struct mesh_liveness *liveness, uint64_t now_ms)
{
	return liveness->asked_ms && now_ms >= liveness->asked_ms + liveness->limit_ms;
}

/* It is silent after more than the interval of the kernel's keep-alive and a round trip. */
static void silence_note(struct mesh_liveness *liveness, uint64_t now_ms)
{
	bool silent = now_ms >= liveness->heard_ms + MESH_LINK_QUIET_MS + FRESH_MS;

	if (silent && liveness->state == MESH_LIVENESS_WATCHED)
		liveness_state_set(liveness, MESH_LIVENESS_SILENT);
	else if (!silent && liveness->state == MESH_LIVENESS_SILENT)
		liveness_state_set(liveness, MESH_LIVENESS_WATCHED);
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

static void socket_learn(const struct mesh_liveness *liveness, struct mesh_liveness_socket *socket,
			 const struct mesh_liveness_socket *before,
			 const struct mesh_tcp_look *look, uint64_t now_ms)
{
	bool moved = !before || data_is_answered(&before->last, look) ||
		     before->moved_ms < liveness->audible_ms;

	*socket = before ? *before : (struct mesh_liveness_socket){.mark = 0};
	socket->last = *look;
	if (moved) {
		socket->moved_ms = now_ms;
		socket->resent = look->resent;
	}
}

static void sockets_learn(struct mesh_liveness *liveness, const struct mesh_tcp_look *looks,
			  int num_looks, uint64_t now_ms)
{
	struct mesh_liveness_socket sockets[MESH_LIVENESS_SOCKETS] = {0};
	int i;

	for (i = 0; i < num_looks; i++)
		socket_learn(liveness, &sockets[i], socket_find(liveness, looks[i].cookie),
			     &looks[i], now_ms);
	memcpy(liveness->sockets, sockets, sizeof(sockets));
	liveness->num_sockets = num_looks;
}

static bool data_is_stuck(const struct mesh_liveness *liveness, uint64_t now_ms)
{
	int i;

	if (liveness->state == MESH_LIVENESS_SILENT)
		return false;
	for (i = 0; i < liveness->num_sockets; i++) {
		const struct mesh_liveness_socket *socket = &liveness->sockets[i];

		if (socket->last.data && now_ms >= socket->moved_ms + liveness->limit_ms &&
		    socket->last.resent - socket->resent >= STUCK_RESENT)
			return true;
	}
	return false;
}

/* ---- drained ------------------------------------------------------------------------------- */

static bool mark_is_passed(const struct mesh_liveness *liveness)
{
	int i;

	for (i = 0; i < liveness->num_sockets; i++) {
		const struct mesh_liveness_socket *socket = &liveness->sockets[i];

		if (socket->last.data && socket->last.bytes_acked < socket->mark)
			return false;
	}
	return true;
}

/* A socket that was closed, or opened after the mark, holds nothing from before the mark. */
static void drained_learn(struct mesh_liveness *liveness, uint64_t now_ms)
{
	int i;

	if (!mark_is_passed(liveness))
		return;
	liveness->drained_ms = liveness->mark_ms;
	liveness->mark_ms = now_ms;
	for (i = 0; i < liveness->num_sockets; i++) {
		struct mesh_liveness_socket *socket = &liveness->sockets[i];

		socket->mark = socket->last.bytes_acked + socket->last.queued;
	}
	if (mark_is_passed(liveness))
		liveness->drained_ms = now_ms;
}

/*
 * Updates the state from a look at all sockets of the link that could be read; without any the
 * verdict is GOES_ON.
 */
static enum mesh_liveness_verdict looks_judge(struct mesh_liveness *liveness,
					      const struct mesh_tcp_look *looks, int num_looks,
					      uint64_t now_ms)
{
	if (!num_looks) {
		liveness->looked_ms = now_ms;
		liveness->drained_ms = now_ms;
		return MESH_LIVENESS_GOES_ON;
	}
	heard_learn(liveness, looks, num_looks, now_ms);
	sockets_learn(liveness, looks, num_looks, now_ms);
	liveness->looked_ms = now_ms;
	drained_learn(liveness, now_ms);
	if (liveness->state == MESH_LIVENESS_IDLE)
		return MESH_LIVENESS_GOES_ON;
	silence_note(liveness, now_ms);
	if (link_is_dead(liveness, now_ms))
		return MESH_LIVENESS_NO_ANSWER;
	return data_is_stuck(liveness, now_ms) ? MESH_LIVENESS_NO_DATA : MESH_LIVENESS_GOES_ON;
}

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
 * interruption ends nothing: only where the engine has not, because the peer has no link. While
 * the link is watched, the probes are frequent, and end nothing.
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
	if (peer->link->liveness.state != MESH_LIVENESS_IDLE) {
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
	link->liveness.limit_ms = peer->process->config.dead_peer_timeout_s * 1000;
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

	/* If a socket was closed, or none was found, in the next list of them. */
	if (link->searched_ms &&
	    now_ms < link->searched_ms + (whole ? 5 : 1) * MESH_PROCESS_SOCKETS_MS)
		return num;
	/* The remotes of all peers of the link have the same endpoint name. */
	mesh_remote_sockets_find(mesh_process_sockets(link->process, now_ms), link->domain,
				 LIST_FIRST(&link->peers)->remote, &link->sockets);
	link->searched_ms = now_ms;
	return mesh_remote_sockets_look(&link->sockets, looks);
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

enum mesh_liveness_verdict mesh_link_look(struct mesh_link *link, uint64_t now_ms)
{
	struct mesh_tcp_look looks[MESH_LIVENESS_SOCKETS];
	enum mesh_liveness_verdict verdict;
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
	verdict = looks_judge(&link->liveness, looks, num, now_ms);
	if (verdict == MESH_LIVENESS_GOES_ON && link->liveness.state == MESH_LIVENESS_WATCHED &&
	    writes_are_silent(link, now_ms))
		return MESH_LIVENESS_NO_WRITES;
	return verdict;
}

void mesh_link_idle_look(struct mesh_link *link, uint64_t now_ms)
{
	uint64_t idle_ms = (uint64_t)idle_s(link->process) * 1000, heard_ms = 0, asked_ms = 0, one;
	struct mesh_liveness *liveness = &link->liveness;
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
	if (!asked_ms)
		return;
	liveness_state_set(liveness, MESH_LIVENESS_WATCHED);
	liveness->heard_ms = heard_ms;
	liveness->asked_ms = asked_ms > heard_ms ? asked_ms : heard_ms;
	liveness->audible_ms = now_ms;
}

void mesh_link_watch_update(struct mesh_link *link, uint64_t now_ms)
{
	struct mesh_liveness *liveness = &link->liveness;

	/* A link that is silent is watched until it is heard again, or dead. */
	if (liveness->state != MESH_LIVENESS_IDLE && liveness->asked_ms)
		watch_extend(liveness, now_ms + MESH_LINK_QUIET_MS);
	if (now_ms >= liveness->wanted_until_ms) {
		if (liveness->state != MESH_LIVENESS_IDLE)
			liveness_state_set(liveness, MESH_LIVENESS_IDLE);
		link->silent_ms = 0;
	} else if (liveness->state == MESH_LIVENESS_IDLE) {
		liveness_state_set(liveness, MESH_LIVENESS_WATCHED);
		/* Probes that failed before the watch do not count. */
		liveness->asked_ms = 0;
		liveness->audible_ms = now_ms;
	}
}

MESH_HOLDS(process)
static void want(struct mesh_link *link, uint64_t until_ms)
{
	watch_extend(&link->liveness, until_ms);
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
	const struct mesh_link *link = peer->link;

	return !link || !link->liveness.heard_ms || now_ms <= link->liveness.heard_ms + FRESH_MS;
}

bool mesh_link_is_drained(struct mesh_peer *peer, uint64_t since_ms, uint64_t now_ms)
{
	mesh_process_assert_locked(peer->process);
	if (!peer->link)
		return true;
	/* The verdict is ignored here: the link's own look repeats it. */
	mesh_link_look(peer->link, now_ms);
	return peer->link->liveness.drained_ms >= since_ms;
}

uint64_t mesh_link_resumed_limit_ms(const struct mesh_process *process)
{
	uint64_t limit_ms = process->config.dead_peer_timeout_s * 1000;

	return limit_ms < RESUMED_MS ? limit_ms : RESUMED_MS;
}
