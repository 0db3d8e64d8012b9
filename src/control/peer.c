/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - what a peer is: its state, its name, its users. */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
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
	/* Makes the connects that wait for this peer check it again. */
	mesh_engine_wake(&peer->process->engine);
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

struct mesh_peer *mesh_peer_of_process(const struct mesh_peer *peer, struct mesh_peer *previous)
{
	struct mesh_peer *other;

	mesh_process_assert_locked(peer->process);
	other = previous ? LIST_NEXT(previous, entry) : LIST_FIRST(&peer->process->peers);
	/* The process is unknown, and the id 0, until HELLO has arrived. */
	while (other && other != peer &&
	       (!peer->process_id || other->process_id != peer->process_id))
		other = LIST_NEXT(other, entry);
	return other;
}

void mesh_peer_use(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	peer->users++;
}

void mesh_peer_put(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	peer->users--;
	mesh_engine_wake(&peer->process->engine); /* its tick may free it */
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

bool mesh_peer_refuses(const struct mesh_peer *peer, uint64_t cookie)
{
	return peer->refusal &&
	       (peer->refusal != MESH_REFUSAL_COOKIE || peer->sent_cookie == cookie);
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
