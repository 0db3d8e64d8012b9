/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - what a peer is: its state, its name, its users. */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/peer.h"
#include "wire/stats.h"

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} peer_states[MESH_PEER_STATES] = {
	[MESH_PEER_CONNECTING] = {"connecting", 1 << MESH_PEER_CONNECTING | 1 << MESH_PEER_RETRY},
	[MESH_PEER_HELLO] = {"waiting for hello", 1 << MESH_PEER_CONNECTING},
	[MESH_PEER_GREETING] = {"greeting", 1 << MESH_PEER_HELLO},
	[MESH_PEER_UP] = {"up", 1 << MESH_PEER_GREETING},
	[MESH_PEER_RETRY] = {"waiting to try again", 1 << MESH_PEER_CONNECTING |
							     1 << MESH_PEER_HELLO |
							     1 << MESH_PEER_GREETING},
	[MESH_PEER_LOST] = {"lost", 0xff},
};

/* For `fi_mesh watch`: a peer that ends without users does not count as lost. */
MESH_HOLDS(process)
static void state_count(const struct mesh_peer *peer, enum mesh_peer_state state)
{
	struct mesh_process_counters *counters = peer->process->counters;

	if (state == MESH_PEER_UP)
		mesh_count_event(&counters->peers_up);
	else if (state == MESH_PEER_RETRY)
		mesh_count_event(&counters->retries);
	else if (state == MESH_PEER_LOST && peer->state == MESH_PEER_UP && peer->users)
		mesh_count_event(&counters->peers_lost);
}

void mesh_peer_state_set(struct mesh_peer *peer, enum mesh_peer_state state)
{
	bool legal;

	mesh_process_assert_locked(peer->process);
	legal = peer_states[state].may_follow & 1 << peer->state;
	assert(legal);
	(void)legal;
	mesh_trace("peer %s %s: %s -> %s", peer->incoming ? "from" : "to",
		   peer->name[0] ? peer->name : "(unknown)", peer_states[peer->state].name,
		   peer_states[state].name);
	state_count(peer, state);
	if (state <= MESH_PEER_UP && state > peer->failed_in)
		peer->reason[0] = '\0';
	peer->state = state;
	peer->state_ms = mesh_clock_ms();
	mesh_peer_urgent_set(peer, state == MESH_PEER_GREETING || state == MESH_PEER_LOST);
	mesh_peer_stranger_set(peer, peer->incoming && state == MESH_PEER_HELLO);
	mesh_engine_stay_awake(&peer->process->engine);
	mesh_peer_check(peer);
}

void mesh_peer_stranger_set(struct mesh_peer *peer, bool is_stranger)
{
	struct mesh_process *process = peer->process;

	mesh_process_assert_locked(process);
	if (is_stranger && !peer->is_stranger)
		TAILQ_INSERT_TAIL(&process->strangers, peer, stranger_entry);
	else if (!is_stranger && peer->is_stranger)
		TAILQ_REMOVE(&process->strangers, peer, stranger_entry);
	process->num_strangers += is_stranger - peer->is_stranger;
	peer->is_stranger = is_stranger;
}

void mesh_peer_check(struct mesh_peer *peer)
{
	mesh_engine_timer_set(&peer->process->engine, &peer->timer, 0);
}

void mesh_peer_urgent_set(struct mesh_peer *peer, bool urgent)
{
	mesh_process_assert_locked(peer->process);
	peer->process->num_urgent += urgent - peer->urgent;
	peer->urgent = urgent;
}

const char *mesh_peer_text(const struct mesh_peer *peer, char *text)
{
	char address[MESH_ADDR_TEXT_MAX];

	mesh_addr_text(&peer->address.addr, address);
	if (peer->name[0])
		snprintf(text, MESH_PEER_TEXT_MAX, "node %s (%s)", peer->name, address);
	else
		snprintf(text, MESH_PEER_TEXT_MAX, "%s", address);
	return text;
}

void mesh_peer_use(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	peer->users++;
}

void mesh_peer_put(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (!--peer->users)
		mesh_peer_check(peer); /* which may free it */
}

void mesh_peer_user_add(struct mesh_peer *peer, struct mesh_peer_user *user)
{
	mesh_peer_use(peer);
	LIST_INSERT_HEAD(&peer->user_list, user, entry);
}

void mesh_peer_user_remove(struct mesh_peer *peer, struct mesh_peer_user *user)
{
	LIST_REMOVE(user, entry);
	mesh_peer_put(peer);
}

bool mesh_peer_is_idle(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;

	mesh_process_assert_locked(peer->process);
	LIST_FOREACH(user, &peer->user_list, entry) {
		if (!user->ops->is_idle || !user->ops->is_idle(user))
			return false;
	}
	return true;
}

bool mesh_peer_refuses(const struct mesh_peer *peer, uint64_t cookie)
{
	return peer->refusal &&
	       (peer->refusal != MESH_REFUSAL_COOKIE || peer->sent_cookie == cookie);
}

void mesh_peer_drain(struct mesh_peer *peer, uint32_t comm, uint64_t until_ms)
{
	mesh_process_assert_locked(peer->process);
	if (!peer->stray_until_ms)
		LIST_INSERT_HEAD(&peer->process->strays, peer, stray_entry);
	peer->stray = comm;
	peer->stray_until_ms = until_ms;
}

void mesh_peer_drain_end(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->stray_until_ms)
		LIST_REMOVE(peer, stray_entry);
	peer->stray_until_ms = 0;
}

void mesh_peer_port_cancel(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->port_due)
		LIST_REMOVE(peer, port_entry);
	peer->port_due = false;
}

int mesh_peer_sink_begin(struct mesh_peer *peer)
{
	int ret = mesh_random(&peer->sink.token, sizeof(peer->sink.token));

	if (!ret)
		ret = mesh_sink_add(peer->domain, &peer->sink);
	peer->has_sink = !ret;
	return ret;
}

void mesh_peer_sink_end(struct mesh_peer *peer)
{
	if (!peer->has_sink)
		return;
	mesh_domain_lock(peer->domain);
	mesh_sink_remove(peer->domain, &peer->sink);
	mesh_domain_unlock(peer->domain);
	peer->has_sink = false;
}
