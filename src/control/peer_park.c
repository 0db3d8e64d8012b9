/* SPDX-License-Identifier: Apache-2.0 */
/* peer_park.c - takes a peer's link out of use, so that its cable can be pulled without a loss. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "control/peer_greeting.h"
#include "control/peer_park.h"
#include "control/peer_send.h"
#include "wire/stats.h"

/* From one look at a link to the next one: soon at first, because most are idle at once. */
#define LOOK_MIN_MS 5
#define LOOK_MAX_MS 500
/* A drained link is used again by a comm that has lost all its other paths. */
#define LOOK_DRAINED_MS 1000

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} states[MESH_PARK_STATES] = {
	[MESH_PARK_NONE] = {"in use",
			    1 << MESH_PARK_ASKED | 1 << MESH_PARK_FLUSHED | 1 << MESH_PARK_DRAINED},
	[MESH_PARK_ASKED] = {"asked",
			     1 << MESH_PARK_NONE | 1 << MESH_PARK_FLUSHED | 1 << MESH_PARK_DRAINED},
	[MESH_PARK_FLUSHED] = {"flushed", 1 << MESH_PARK_ASKED},
	[MESH_PARK_DRAINED] = {"drained", 1 << MESH_PARK_FLUSHED},
};

MESH_HOLDS(process)
static void state_set(struct mesh_peer *peer, enum mesh_park_state state)
{
	bool legal = states[state].may_follow & 1 << peer->park.state;
	struct mesh_peer_user *user;
	char text[MESH_PEER_TEXT_MAX];

	mesh_process_assert_locked(peer->process);
	assert(legal);
	(void)legal;
	mesh_trace("link of %s with %s: %s -> %s", peer->domain->nic->netdev,
		   mesh_peer_text(peer, text), states[peer->park.state].name, states[state].name);
	peer->park.state = state;
	LIST_FOREACH(user, &peer->user_list, entry) {
		if (user->ops->park)
			user->ops->park(user, state);
	}
}

/* ---- the sink at which the peer greets ------------------------------------------------------ */

/* domain->lock held. */
static void greeting_arrived(struct mesh_sink *sink, const struct mesh_message_header *header,
			     const void *payload)
{
	struct mesh_peer *peer = mesh_container_of(sink, struct mesh_peer, park.sink);

	(void)payload;
	if (mesh_peer_greeting_fits(peer, header))
		atomic_store(&peer->park.greeted, header->seq);
}

MESH_HOLDS(process)
static int sink_begin(struct mesh_peer *peer)
{
	struct mesh_park *park = &peer->park;

	atomic_store(&park->greeted, 0);
	park->sink.message = greeting_arrived;
	return mesh_peer_sink_begin(peer, &park->sink, &park->has_sink);
}

/* ---- the steps ------------------------------------------------------------------------------ */

MESH_HOLDS(process)
static void park_send(struct mesh_peer *peer, bool drained)
{
	const struct mesh_park *park = &peer->park;
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.park.peer_id = park->has_sink ? park->sink.id : 0;
	frame.park.peer_token = park->has_sink ? park->sink.token : 0;
	frame.park.wanted = park->here;
	frame.park.drained = drained;
	mesh_peer_send(peer, &frame, MESH_FRAME_PARK);
}

MESH_HOLDS(process)
static void look_after(struct mesh_peer *peer, uint64_t ms)
{
	peer->park.look_ms = ms;
	mesh_engine_timer_set(&peer->process->engine, &peer->park.timer, mesh_clock_ms() + ms);
}

/* Begins to take the link out of use: with a new sink, so that no older greeting counts. */
MESH_HOLDS(process)
static void round_begin(struct mesh_peer *peer)
{
	mesh_peer_park_end(peer);
	if (sink_begin(peer)) {
		look_after(peer, LOOK_MAX_MS); /* no id is free now */
		return;
	}
	if (peer->park.state != MESH_PARK_ASKED)
		state_set(peer, MESH_PARK_ASKED);
	park_send(peer, false);
	look_after(peer, LOOK_MIN_MS);
}

/* Does what the two ends want now. */
MESH_HOLDS(process)
static void wishes_follow(struct mesh_peer *peer)
{
	struct mesh_park *park = &peer->park;
	bool wanted = park->here || park->there;

	if (peer->state != MESH_PEER_UP)
		return;
	if (wanted && !park->has_sink) {
		round_begin(peer);
	} else if (!wanted && park->state != MESH_PARK_NONE) {
		mesh_peer_park_end(peer);
		park->remote_id = 0;
		state_set(peer, MESH_PARK_NONE);
		park_send(peer, false);
	}
}

/*
 * True if the peer has greeted since it last stopped posting: the greeting names the sink that the
 * peer has had since then. An older one may be late, and the peer has used the link meanwhile.
 */
MESH_HOLDS(process)
static bool is_greeted(const struct mesh_park *park)
{
	return park->remote_id && atomic_load(&park->greeted) == park->remote_id;
}

/* The connecting end greets first; the other one replies when it is idle as well. */
MESH_HOLDS(process)
static void flush_try(struct mesh_peer *peer)
{
	struct mesh_park *park = &peer->park;

	if (!park->remote_id || !mesh_peer_is_idle(peer) || (peer->incoming && !is_greeted(park)))
		return;
	/* First, so that what is posted from now on counts as not flushed. */
	state_set(peer, MESH_PARK_FLUSHED);
	if (mesh_peer_greeting_send(peer, park->remote_id, park->remote_token, park->sink.id))
		state_set(peer, MESH_PARK_ASKED); /* no buffer is free now */
}

/* True if the provider has lost the greeting, with its connection; not each time at once. */
MESH_HOLDS(process)
static bool greeting_has_failed(struct mesh_peer *peer)
{
	return peer->park.state == MESH_PARK_FLUSHED && peer->park.look_ms >= LOOK_MAX_MS &&
	       atomic_exchange(&peer->greet_error, 0);
}

MESH_HOLDS(process)
static void park_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_peer *peer = mesh_container_of(timer, struct mesh_peer, park.timer);
	struct mesh_park *park = &peer->park;
	uint64_t next_ms = 2 * park->look_ms;

	(void)now_ms;
	if (!park->has_sink) {
		wishes_follow(peer);
		return;
	}
	if ((park->state == MESH_PARK_DRAINED && !mesh_peer_is_idle(peer)) ||
	    greeting_has_failed(peer)) {
		round_begin(peer);
		return;
	}
	if (park->state == MESH_PARK_ASKED)
		flush_try(peer);
	if (park->state == MESH_PARK_FLUSHED && !peer->incoming && is_greeted(park)) {
		state_set(peer, MESH_PARK_DRAINED);
		park_send(peer, true);
	}
	if (park->state == MESH_PARK_DRAINED)
		next_ms = LOOK_DRAINED_MS;
	else if (next_ms > LOOK_MAX_MS)
		next_ms = LOOK_MAX_MS;
	look_after(peer, next_ms);
}

/* ---- calls ---------------------------------------------------------------------------------- */

void mesh_peer_park_init(struct mesh_peer *peer)
{
	peer->park.timer.expired = park_expired;
}

void mesh_peer_park_up(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	wishes_follow(peer);
}

void mesh_peer_park(struct mesh_peer *peer, bool wanted)
{
	struct mesh_park *park = &peer->park;

	mesh_process_assert_locked(peer->process);
	if (peer->state != MESH_PEER_UP || park->here == wanted)
		return;
	park->here = wanted;
	if (park->there && park->has_sink)
		park_send(peer, false); /* the link stays out of use, for the peer's wish */
	wishes_follow(peer);
}

void mesh_peer_park_came(struct mesh_peer *peer, const struct mesh_frame_park *frame)
{
	struct mesh_park *park = &peer->park;
	bool renewed = frame->peer_id != park->remote_id || frame->peer_token != park->remote_token;

	mesh_process_assert_locked(peer->process);
	/* Its end may be up, and the greeting that tells us still on its way. */
	if (peer->state != MESH_PEER_UP && peer->state != MESH_PEER_GREETING) {
		mesh_count_event(&peer->process->counters->refused);
		return;
	}
	park->there = frame->wanted;
	park->remote_id = frame->peer_id;
	park->remote_token = frame->peer_token;
	/* What we have greeted is an older sink of the peer, which has begun again. */
	if (renewed && frame->peer_id && park->state > MESH_PARK_ASKED)
		round_begin(peer);
	if (frame->drained && peer->incoming && park->state == MESH_PARK_FLUSHED)
		state_set(peer, MESH_PARK_DRAINED);
	wishes_follow(peer);
	if (park->state == MESH_PARK_ASKED && park->has_sink)
		look_after(peer, LOOK_MIN_MS);
}
