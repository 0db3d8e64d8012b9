/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.c - decides when a link is dead, when data is stuck, and when sockets are drained. */
#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "control/liveness.h"

/* The interval of looks: a verdict is late by at most this. */
#define LOOK_MS 100
/* Longer than the kernel's keep-alive interval of 1 s and a round trip: the link is silent. */
#define SILENT_MS 1300
/*
 * Keep-alive probes after 1 s of silence. The cable may have been pulled at any time in this
 * second; counting from its middle keeps the error below half a second in both directions.
 */
#define ASK_SLACK_MS 600
/* The kernel counts in ticks of up to 10 ms: what it last heard seems to move by so much. */
#define TICK_MS 20
/* A peer is fresh if its last sign of life is not older than this. */
#define FRESH_MS 300
/* Data is stuck if it was retransmitted this often while the link was audible. */
#define STUCK_RESENT 2

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} states[MESH_LIVENESS_STATES] = {
	[MESH_LIVENESS_IDLE] = {"idle", 1 << MESH_LIVENESS_WATCHED | 1 << MESH_LIVENESS_SILENT},
	[MESH_LIVENESS_WATCHED] = {"watched", 1 << MESH_LIVENESS_IDLE | 1 << MESH_LIVENESS_SILENT},
	[MESH_LIVENESS_SILENT] = {"silent", 1 << MESH_LIVENESS_WATCHED},
};

static void state_set(struct mesh_liveness *liveness, enum mesh_liveness_state state)
{
	bool legal = states[state].may_follow & 1 << liveness->state;

	assert(legal);
	(void)legal;
	mesh_trace("link: %s -> %s", states[liveness->state].name, states[state].name);
	liveness->state = state;
}

void mesh_liveness_init(struct mesh_liveness *liveness, uint64_t limit_ms)
{
	memset(liveness, 0, sizeof(*liveness));
	liveness->limit_ms = limit_ms;
}

void mesh_liveness_want(struct mesh_liveness *liveness, uint64_t until_ms)
{
	if (liveness->wanted_until_ms < until_ms)
		liveness->wanted_until_ms = until_ms;
}

bool mesh_liveness_is_due(struct mesh_liveness *liveness, uint64_t now_ms)
{
	if (now_ms >= liveness->wanted_until_ms) {
		if (liveness->state != MESH_LIVENESS_IDLE)
			state_set(liveness, MESH_LIVENESS_IDLE);
		return false;
	}
	if (liveness->state == MESH_LIVENESS_IDLE) {
		state_set(liveness, MESH_LIVENESS_WATCHED);
		/* Probes that failed before the watch do not count. */
		liveness->asked_ms = 0;
		liveness->audible_ms = now_ms;
		return true;
	}
	return now_ms >= liveness->looked_ms + LOOK_MS;
}

void mesh_liveness_unanswered(struct mesh_liveness *liveness, uint64_t heard_ms, uint64_t asked_ms,
			      uint64_t now_ms)
{
	assert(liveness->state == MESH_LIVENESS_IDLE);
	state_set(liveness, MESH_LIVENESS_WATCHED);
	liveness->heard_ms = heard_ms;
	liveness->asked_ms = asked_ms > heard_ms ? asked_ms : heard_ms;
	liveness->audible_ms = now_ms;
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

/* When the first packet without an answer was sent, if one is known now and was not before. */
static uint64_t asked_estimate(const struct mesh_liveness *liveness, uint64_t now_ms)
{
	uint64_t slack_ms = liveness->limit_ms / 4 < ASK_SLACK_MS ? liveness->limit_ms / 4
								  : ASK_SLACK_MS;
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

static void silence_note(struct mesh_liveness *liveness, uint64_t now_ms)
{
	bool silent = now_ms >= liveness->heard_ms + SILENT_MS;

	if (silent && liveness->state == MESH_LIVENESS_WATCHED)
		state_set(liveness, MESH_LIVENESS_SILENT);
	else if (!silent && liveness->state == MESH_LIVENESS_SILENT)
		state_set(liveness, MESH_LIVENESS_WATCHED);
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
	memcpy(liveness->sockets, sockets, sizeof(sockets[0]) * (size_t)num_looks);
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

enum mesh_liveness_verdict mesh_liveness_learn(struct mesh_liveness *liveness,
					       const struct mesh_tcp_look *looks, int num_looks,
					       uint64_t now_ms)
{
	if (num_looks > MESH_LIVENESS_SOCKETS)
		num_looks = MESH_LIVENESS_SOCKETS;
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

bool mesh_liveness_is_fresh(const struct mesh_liveness *liveness, uint64_t now_ms)
{
	return !liveness->heard_ms || now_ms <= liveness->heard_ms + FRESH_MS;
}
