/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_ops.c - what is the same for all paths: each leads over one of our NICs to one of a peer's,
 * the process at the other end or a relay. Here it is opened, moved to another peer, and closed;
 * and whether it carries messages.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "system/tcp_look.h"
#include "transport/comm.h"
#include "transport/data.h"

struct mesh_path_ends mesh_path_describe(const struct mesh_path *path)
{
	const struct mesh_domain *domain = path->domain;
	struct mesh_path_ends ends = {
		.local = &domain->nic->source,
		.remote = &path->peer->address.addr,
		.nic = domain->nic->netdev,
		.provider = domain->provider,
		.via = path->peer->routed ? MESH_STATS_ROUTED : MESH_STATS_DIRECT,
	};

	if (path->has_relay)
		ends.via = MESH_STATS_RELAY;
	/* Names are stable: users' scripts read them. */
	ends.via_text = path->via ? path->via : mesh_stats_via_text(ends.via);
	return ends;
}

/* ---- counting ----------------------------------------------------------------------------- */

/*
 * What it counts `fi_mesh watch` shows (wire/stats.h has the page). Counting is an addition in
 * memory, under a lock that is held anyway. It never fails: a path for which the page has no room
 * counts in memory that no tool reads.
 */
MESH_HOLDS(process)
static void counters_open(struct mesh_path *path)
{
	struct mesh_process *process = path->comm->process;
	const struct mesh_path_ends ends = mesh_path_describe(path);
	const struct mesh_stats_link link = {
		.local = *ends.local,
		.remote = *ends.remote,
		.nic = ends.nic,
		.peer = path->comm->peer_name,
		.sending = path->comm->sending,
		.provider = ends.provider,
		.via = ends.via,
	};
	struct mesh_counters *counters = NULL;

	if (process->stats.page)
		counters = mesh_stats_open(process->stats.page, &link, mesh_clock_wall_ms());
	mesh_comm_lock(path->comm);
	path->counters = counters ? counters : &path->comm->unlisted;
	mesh_comm_unlock(path->comm);
}

MESH_HOLDS(process)
static void counters_close(struct mesh_path *path)
{
	struct mesh_process *process = path->comm->process;
	struct mesh_counters *counters;

	/* An operation that never ended may still complete: then it counts as unlisted. */
	mesh_comm_lock(path->comm);
	counters = path->counters;
	path->counters = &path->comm->unlisted;
	mesh_comm_unlock(path->comm);
	if (counters != &path->comm->unlisted)
		mesh_stats_close(process->stats.page, counters);
}

/* It has other ends, or other relays: it counts apart from what it was. */
MESH_HOLDS(process)
static void counters_renew(struct mesh_path *path)
{
	counters_close(path);
	counters_open(path);
}

/* ---- opening, moving, closing -------------------------------------------------------------- */

MESH_HOLDS(domain)
void mesh_path_wait_cancel(struct mesh_path *path)
{
	mesh_domain_wait_cancel(path->domain, &path->waiter);
	if (path->relayed)
		mesh_domain_wait_cancel(path->domain, &path->relayed->cut.waiter);
}

/* Gives the sink an id and a token of its own. @relay: as in mesh_path_move(). */
MESH_HOLDS(process)
static int sink_begin(struct mesh_path *path, struct mesh_peer *peer, bool relay)
{
	struct mesh_sink *sink = &path->sink;
	int ret;

	sink->message = mesh_receive_message;
	sink->written = mesh_receive_written;
	if (path->comm->sending) {
		sink->message = relay ? mesh_path_relayed_message : mesh_credit_message;
		sink->written = NULL;
	}
	ret = mesh_random(&sink->token, sizeof(sink->token));
	if (!ret && relay && path->comm->sending && !path->relayed)
		ret = mesh_path_relayed_make(path);
	return ret ? ret : mesh_sink_add(peer->domain, sink);
}

/* What the domain determines. */
MESH_HOLDS(comm)
static void domain_learn(struct mesh_path *path, struct mesh_domain *domain)
{
	path->polls = &domain->polls;
	path->inject_max = domain->inject_max;
	if (path->inject_max > MESH_PATH_INJECT_MAX)
		path->inject_max = MESH_PATH_INJECT_MAX;
	path->payload_max = domain->payload_max;
	path->segment_max = domain->segment_max;
	path->segment_bytes = domain->provider == MESH_PROVIDER_VERBS_RXM ? SIZE_MAX
									  : MESH_COPY_SEGMENT;
	path->immediate_bits = domain->immediate_bits;
	path->is_acknowledged = !domain->delivery_flag;
	path->domain = domain;
}

int mesh_path_via_set(struct mesh_path *path, const char *via)
{
	char *named;

	mesh_process_assert_locked(path->comm->process);
	if (!strcmp(via, path->via ? path->via : ""))
		return 0;
	named = *via ? strdup(via) : NULL;
	if (!named && *via)
		return -ENOMEM;
	mesh_comm_lock(path->comm);
	free(path->via);
	path->via = named;
	mesh_comm_unlock(path->comm);
	counters_renew(path);
	return 0;
}

/* It has no circuit any more, if it had one. */
MESH_HOLDS(process)
MESH_HOLDS(comm)
static void relayed_rest(struct mesh_path *path)
{
	struct mesh_path_relayed *relayed = path->relayed;

	if (!relayed)
		return;
	mesh_hop_close(&relayed->hop);
	memset(&relayed->hop, 0, sizeof(relayed->hop));
	relayed->route = (struct mesh_route){.num_relays = 0};
}

/* The path leads to this peer from now on. */
MESH_HOLDS(process)
static void peer_begin(struct mesh_path *path, struct mesh_peer *peer, bool relay)
{
	struct mesh_comm *comm = path->comm;

	mesh_comm_lock(comm);
	domain_learn(path, peer->domain);
	free(path->via);
	path->via = NULL;
	relayed_rest(path);
	path->peer = peer;
	path->remote = peer->remote;
	path->flow = peer->remote->flow;
	path->has_relay = relay;
	path->pace = &path->flow->pace;
	if (relay && comm->sending)
		mesh_path_relayed_begin(path);
	mesh_comm_unlock(comm);
	mesh_pace_latency_set(&path->flow->pace, mesh_socket_round_trip_ns(peer->watch.fd));
	mesh_peer_user_add(peer, &path->user);
}

int mesh_path_open(struct mesh_path *path, struct mesh_comm *comm, struct mesh_peer *peer,
		   bool relay)
{
	int ret;

	mesh_process_assert_locked(comm->process);
	path->comm = comm;
	path->waiter.resume = comm->sending ? mesh_send_resume : mesh_receive_resume;
	path->user.ops = &mesh_path_user_ops;
	ret = sink_begin(path, peer, relay);
	if (ret) {
		free(path->relayed);
		path->relayed = NULL;
		return ret;
	}
	peer_begin(path, peer, relay);
	counters_open(path);
	return 0;
}

/* Other threads poll the path meanwhile, and nothing else: it is down. */
int mesh_path_move(struct mesh_path *path, struct mesh_peer *peer, bool relay)
{
	struct mesh_domain *before = path->domain;
	int ret, moved;

	mesh_process_assert_locked(path->comm->process);
	mesh_path_relayed_shut(path);
	mesh_domain_lock(before);
	mesh_path_wait_cancel(path);
	mesh_domain_unlock(before);
	ret = sink_begin(path, peer, relay);
	if (ret)
		return ret;
	moved = path->domain != peer->domain || mesh_path_has_relay(path) != relay ||
		!mesh_addr_equal(&path->peer->address.addr, &peer->address.addr);
	mesh_peer_user_remove(path->peer, &path->user);
	peer_begin(path, peer, relay);
	if (moved)
		counters_renew(path);
	return 0;
}

/* Frees what a path has once it has led through relays. */
MESH_NOT_ANALYSED
static void relayed_free(struct mesh_path *path)
{
	if (!path->relayed || path->unfinished)
		return; /* the provider still holds pointers into it */
	mesh_hop_close(&path->relayed->hop);
	free(path->relayed);
	path->relayed = NULL;
}

void mesh_path_close(struct mesh_path *path)
{
	struct mesh_domain *domain = path->domain;

	mesh_process_assert_locked(path->comm->process);
	mesh_path_relayed_shut(path);
	mesh_domain_lock(domain);
	mesh_sink_remove(path->domain, &path->sink);
	mesh_path_wait_cancel(path);
	mesh_domain_unlock(domain);
	relayed_free(path);
	counters_close(path);
	free(path->via);
	mesh_peer_user_remove(path->peer, &path->user);
}

struct mesh_path *mesh_comm_path_find(struct mesh_peer *peer, uint32_t id)
{
	struct mesh_sink *sink;
	struct mesh_path *path;

	mesh_process_assert_locked(peer->process);
	mesh_domain_lock(peer->domain);
	sink = mesh_sink_find(peer->domain, id);
	mesh_domain_unlock(peer->domain);
	if (!sink ||
	    (sink->message != mesh_credit_message && sink->message != mesh_receive_message &&
	     sink->message != mesh_path_relayed_message))
		return NULL;
	path = mesh_path_of_sink(sink); /* it is removed with process->lock held */
	return path->peer == peer ? path : NULL;
}

/* ---- whether it carries messages ----------------------------------------------------------- */

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
	mesh_sink_remove(path->domain, &path->sink);
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
	for (i = 0; comm->send.grants && i < MESH_COMM_REQUESTS; i++) {
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
