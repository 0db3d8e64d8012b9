/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - what a peer is: its state, its name, its users, and how it is found. */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/peer.h"
#include "control/process.h"
#include "fabric/remote.h"
#include "wire/stats.h"

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} peer_states[MESH_PEER_STATES] = {
	[MESH_PEER_CONNECTING] = {"connecting", 1 << MESH_PEER_CONNECTING},
	[MESH_PEER_HELLO] = {"waiting for hello", 1 << MESH_PEER_CONNECTING},
	[MESH_PEER_OPENING] = {"waiting for our NIC", 1 << MESH_PEER_HELLO},
	[MESH_PEER_GREETING] = {"greeting", 1 << MESH_PEER_HELLO | 1 << MESH_PEER_OPENING},
	[MESH_PEER_UP] = {"up", 1 << MESH_PEER_GREETING},
	[MESH_PEER_LOST] = {"lost", 0xff},
};

/* For `fi_mesh watch`: a peer that ends without users does not count as lost. */
MESH_HOLDS(process)
static void state_count(const struct mesh_peer *peer, enum mesh_peer_state state)
{
	struct mesh_process_counters *counters = peer->process->counters;

	if (state == MESH_PEER_UP)
		mesh_count_event(&counters->peers_up);
	else if (state == MESH_PEER_LOST && peer->retry_ms)
		mesh_count_event(&counters->retries);
	else if (state == MESH_PEER_LOST && peer->state == MESH_PEER_UP && peer->users)
		mesh_count_event(&counters->peers_lost);
}

void mesh_peer_state_set(struct mesh_peer *peer, enum mesh_peer_state state)
{
	mesh_process_assert_locked(peer->process);
	assert(peer_states[state].may_follow & 1 << peer->state);
	mesh_trace("peer %s %s: %s -> %s", peer->incoming ? "from" : "to",
		   peer->name[0] ? peer->name : "(unknown)", peer_states[peer->state].name,
		   peer_states[state].name);
	state_count(peer, state);
	if (state <= MESH_PEER_UP && state > peer->failed_in)
		peer->reason[0] = '\0';
	peer->state = state;
	peer->state_ms = mesh_clock_ms();
	mesh_engine_stay_awake(&peer->process->engine);
	mesh_peer_check(peer);
}

void mesh_peer_check(struct mesh_peer *peer)
{
	mesh_engine_timer_set(&peer->process->engine, &peer->timer, 0);
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

bool mesh_peer_users_say(const struct mesh_peer *peer, enum mesh_peer_question question,
			 bool answer)
{
	struct mesh_peer_user *user;

	mesh_process_assert_locked(peer->process);
	LIST_FOREACH(user, &peer->user_list, entry) {
		if ((user->ops->answers[question] && user->ops->answers[question](user)) == answer)
			return true;
	}
	return false;
}

bool mesh_peer_is_resumed(const struct mesh_peer *peer)
{
	return mesh_peer_users_say(peer, MESH_USER_RESUMES, true);
}

bool mesh_peer_refuses(const struct mesh_peer *peer, uint64_t cookie)
{
	return peer->refusal && (peer->refusal != MESH_REFUSAL_COOKIE || peer->cookie == cookie);
}

int mesh_peer_sink_begin(struct mesh_peer *peer)
{
	int ret = mesh_random(&peer->sink.token, sizeof(peer->sink.token));

	return ret ? ret : mesh_sink_add(peer->domain, &peer->sink);
}

void mesh_peer_sink_end(struct mesh_peer *peer)
{
	if (!peer->domain)
		return;
	mesh_domain_lock(peer->domain);
	mesh_sink_remove(peer->domain, &peer->sink);
	mesh_domain_unlock(peer->domain);
}

/* ---- the peers of a process ----------------------------------------------------------------- */

/* Spreads the bits of @key; the multiplier is 2^64 divided by the golden ratio. */
static unsigned int bucket_of(uint64_t key)
{
	return (unsigned int)(key * 0x9e3779b97f4a7c15u >> 32) % MESH_PEER_BUCKETS;
}

void mesh_peer_process_set(struct mesh_peer *peer, uint64_t process_id)
{
	struct mesh_process *process = peer->process;

	mesh_process_assert_locked(process);
	if (peer->process_id && peer->process_entry.le_prev)
		LIST_REMOVE(peer, process_entry);
	peer->process_id = process_id;
	if (process_id)
		LIST_INSERT_HEAD(&process->peers_by_process[bucket_of(process_id)], peer,
				 process_entry);
}

struct mesh_peer *mesh_peer_of_process(const struct mesh_peer *peer, struct mesh_peer *previous)
{
	struct mesh_process *process = peer->process;
	struct mesh_peer *other;

	mesh_process_assert_locked(process);
	if (!previous)
		return (struct mesh_peer *)peer;
	if (previous != peer)
		other = LIST_NEXT(previous, process_entry);
	else
		other = LIST_FIRST(&process->peers_by_process[bucket_of(peer->process_id)]);
	/* The process is unknown, and the id 0, until HELLO has arrived. */
	while (other &&
	       (other == peer || !peer->process_id || other->process_id != peer->process_id))
		other = LIST_NEXT(other, process_entry);
	return other;
}

struct mesh_peer *mesh_peer_flow_other(const struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (other != peer && other->state == MESH_PEER_UP && other->remote &&
		    peer->remote && other->remote->flow == peer->remote->flow)
			break;
	}
	return other;
}

bool mesh_process_is_known(const struct mesh_process *process, uint64_t process_id)
{
	const struct mesh_peer *peer;

	mesh_process_assert_locked(process);
	LIST_FOREACH(peer, &process->peers_by_process[bucket_of(process_id)], process_entry) {
		if (peer->process_id == process_id && !LIST_EMPTY(&peer->user_list) && !peer->over)
			return true;
	}
	return false;
}
