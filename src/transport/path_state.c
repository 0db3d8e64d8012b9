/* SPDX-License-Identifier: Apache-2.0 */
/* path_state.c - whether a path of a comm carries messages. */
#include <assert.h>

#include "base/log.h"
#include "control/peer_send.h"
#include "control/process.h"
#include "transport/path_state.h"
#include "transport/place.h"

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} states[MESH_PATH_STATES] = {
	[MESH_PATH_JOINING] = {"joining", 1 << MESH_PATH_DOWN},
	[MESH_PATH_UP] = {"up", 1 << MESH_PATH_JOINING},
	[MESH_PATH_SUSPECT] = {"suspect", 1 << MESH_PATH_UP},
	[MESH_PATH_DOWN] = {"down", 1 << MESH_PATH_SUSPECT | 1 << MESH_PATH_JOINING},
};

bool mesh_path_is(const struct mesh_path *path, enum mesh_path_state state)
{
	bool is;

	mesh_comm_lock(path->comm);
	is = path->state == state;
	mesh_comm_unlock(path->comm);
	return is;
}

/* The lowest one of which a path is up. */
MESH_HOLDS(comm)
static enum mesh_path_tier lowest_tier(const struct mesh_comm *comm)
{
	enum mesh_path_tier lowest = MESH_TIER_DRAINED;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		if (comm->paths[i].state == MESH_PATH_UP && comm->paths[i].tier < lowest)
			lowest = comm->paths[i].tier;
	}
	return lowest;
}

enum mesh_path_tier mesh_comm_tier(struct mesh_comm *comm)
{
	enum mesh_path_tier tier;

	mesh_comm_lock(comm);
	tier = lowest_tier(comm);
	mesh_comm_unlock(comm);
	return tier;
}

enum mesh_path_tier mesh_link_tier(const struct mesh_process *process, int dev,
				   const struct mesh_endpoint_addr *remote, bool routed)
{
	mesh_process_assert_locked(process);
	if (remote->reserve || process->dev_reserves[dev])
		return MESH_TIER_RESERVE;
	if (!routed)
		return MESH_TIER_LINK;
	return remote->provider == MESH_PROVIDER_VERBS_RXM ? MESH_TIER_ROUTED_RDMA
							   : MESH_TIER_ROUTED;
}

/* Shows whether the path is out of use, because its link is. */
MESH_HOLDS(comm)
static void use_count(struct mesh_path *path, bool carries)
{
	if (path->counters && path->counters != &path->comm->unlisted)
		mesh_stats_parked_set(path->counters, path->tier == MESH_TIER_DRAINED && !carries
							      ? MESH_STATS_DRAINED
							      : MESH_STATS_IN_USE);
}

/* The array of paths stays as it is; those that carry messages are listed beside it. */
MESH_HOLDS(comm)
static void up_learn(struct mesh_comm *comm)
{
	enum mesh_path_tier tier = lowest_tier(comm);
	struct mesh_path *path;
	bool carries;
	int i, num = 0;

	mesh_comm_assert_locked(comm);
	comm->segment_bytes = comm->process->config.segment_bytes;
	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		carries = path->state == MESH_PATH_UP && path->tier <= tier;
		use_count(path, carries);
		if (!carries)
			continue;
		comm->up[num] = path;
		comm->paces[num++] = path->pace;
		if (comm->segment_bytes > path->segment_bytes)
			comm->segment_bytes = path->segment_bytes;
	}
	comm->num_up = num;
}

void mesh_comm_paths_learn(struct mesh_comm *comm)
{
	size_t segment_max = MESH_MESSAGE_MAX;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		const struct mesh_path *path = &comm->paths[i];

		comm->announces |= path->immediate_bits < 64;
		if (segment_max > path->segment_max)
			segment_max = path->segment_max;
	}
	comm->segment_max = segment_max / MESH_LINE_BYTES * MESH_LINE_BYTES;
}

/* Counts a loss, and shows whether the path is down. */
MESH_HOLDS(comm)
static void state_count(struct mesh_path *path)
{
	if (path->state == MESH_PATH_SUSPECT)
		mesh_count(&path->counters->losses, 1);
	if (path->counters != &path->comm->unlisted)
		mesh_stats_down_set(path->counters, path->state != MESH_PATH_UP);
}

void mesh_path_state_set(struct mesh_path *path, enum mesh_path_state state)
{
	struct mesh_comm *comm = path->comm;
	bool legal = states[state].may_follow & 1 << path->state;

	mesh_comm_assert_locked(comm);
	assert(legal);
	(void)legal;
	mesh_trace("%s node %s, path %d: %s -> %s", comm->sending ? "sending to" : "receiving from",
		   comm->peer_name, (int)(path - comm->paths), states[path->state].name,
		   states[state].name);
	path->state = state;
	state_count(path);
	up_learn(comm);
}

void mesh_path_down(struct mesh_path *path, enum mesh_path_state from)
{
	struct mesh_domain *domain = path->peer->domain;

	mesh_domain_lock(domain);
	mesh_path_sink_remove(path);
	mesh_comm_lock(path->comm);
	if (path->state == from)
		mesh_path_state_set(path, MESH_PATH_DOWN);
	mesh_comm_unlock(path->comm);
	mesh_domain_unlock(domain);
}

/* Grants that the receiver has sent before do not count: each of them is sent again. */
MESH_HOLDS(comm)
static void grants_renew(struct mesh_comm *comm, uint32_t lives)
{
	struct mesh_held_grant *held;
	uint32_t i;

	mesh_comm_assert_locked(comm);
	if (!mesh_seq_before(comm->send.lives, lives))
		return;
	comm->send.lives = lives;
	for (i = 0; i < MESH_COMM_REQUESTS; i++) {
		held = mesh_comm_held_grant(comm, i);
		held->valid &= !mesh_seq_before(held->lives, lives);
	}
}

MESH_HOLDS(process)
static enum mesh_path_tier tier_of(const struct mesh_path *path)
{
	const struct mesh_peer *peer = path->peer;

	if (mesh_peer_is_drained(peer))
		return MESH_TIER_DRAINED;
	if (!mesh_path_has_relay(path))
		return mesh_link_tier(peer->process, path->domain->dev, &peer->address,
				      peer->routed);
	if (path->comm->sending ? path->rdma_hops : path->is_acknowledged)
		return MESH_TIER_RELAYS_RDMA;
	return MESH_TIER_RELAYS;
}

void mesh_comm_tiers_learn(struct mesh_comm *comm)
{
	int i;

	mesh_process_assert_locked(comm->process);
	mesh_comm_assert_locked(comm);
	for (i = 0; i < comm->num_paths; i++)
		comm->paths[i].tier = tier_of(&comm->paths[i]);
	up_learn(comm);
}

void mesh_path_accepted(struct mesh_path *path, const struct mesh_frame_accept *accept)
{
	mesh_process_assert_locked(path->comm->process);
	path->known = true;
	if (mesh_comm_is_opening(path->comm) && path->comm->num_paths == path->comm->wanted_paths)
		path->comm->use = MESH_COMM_ACCEPTED;
	mesh_comm_lock(path->comm);
	if (path->comm->sending)
		grants_renew(path->comm, accept->lives);
	path->remote_id = accept->comm;
	path->remote_token = accept->token;
	mesh_comm_tiers_learn(path->comm);
	mesh_path_state_set(path, MESH_PATH_UP);
	mesh_comm_unlock(path->comm);
}

void mesh_comm_recover_soon(struct mesh_comm *comm)
{
	atomic_store(&comm->process->recover, true);
	mesh_engine_wake(&comm->process->engine);
}

void mesh_path_suspect(struct mesh_path *path, int error)
{
	mesh_comm_assert_locked(path->comm);
	if (path->state != MESH_PATH_UP)
		return;
	path->cause = error;
	mesh_path_state_set(path, MESH_PATH_SUSPECT);
	mesh_comm_recover_soon(path->comm);
}
