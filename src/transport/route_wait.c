/* SPDX-License-Identifier: Apache-2.0 */
/* route_wait.c - a comm that has lost its paths waits for one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/process.h"
#include "neighbours/neighbours.h"
#include "relay/relay.h"
#include "transport/comm_life.h"
#include "transport/path_life.h"

/* Lines about comms that have waited in vain, within MESH_LOG_LIMIT_PERIOD_MS. */
#define ROUTE_LINES 4
/*
 * Routes avoid a hop that has failed for so long, if there are others: what the nodes there say of
 * it in a search may be older than the failure.
 */
#define DOUBT_MS 2000

void mesh_route_doubt(const struct mesh_process *process, uint64_t node, uint64_t other)
{
	mesh_process_assert_locked(process);
	if (node && other && process->relay && process->relay->neighbours)
		mesh_neighbours_doubt(process->relay->neighbours, node, other, DOUBT_MS);
}

void mesh_route_loss_note(struct mesh_comm *comm, const char *text)
{
	char *copy = strdup(text);

	mesh_process_assert_locked(comm->process);
	if (!copy)
		return;
	free(comm->loss);
	comm->loss = copy;
}

/* True for a comm that goes on when it loses its paths. */
MESH_HOLDS(process)
static bool goes_on(const struct mesh_comm *comm)
{
	return !comm->error && !comm->opener && comm->num_paths >= comm->wanted_paths;
}

/* The same, now without any path. */
MESH_HOLDS(process)
static bool is_routeless(const struct mesh_comm *comm)
{
	return goes_on(comm) && mesh_comm_is_cut(comm);
}

bool mesh_comm_lacks_route(const struct mesh_comm *comm)
{
	mesh_process_assert_locked(comm->process);
	return comm->sending && is_routeless(comm);
}

/* True if neither end is about to close. */
MESH_HOLDS(comm)
static bool is_in_use(const struct mesh_comm *comm)
{
	return !comm->closing && comm->own_end == MESH_END_OPEN && comm->peer_end == MESH_END_OPEN;
}

/* True if a better path may be found for a comm of this tier. @rests: a path of it has room */
MESH_HOLDS(process)
static bool may_improve(const struct mesh_comm *comm, enum mesh_path_tier tier, bool rests)
{
	bool has_room = rests || comm->num_paths < comm->max_paths;

	switch (tier) {
	case MESH_TIER_LINK:
	case MESH_TIER_ROUTED_RDMA:
		return false;
	case MESH_TIER_ROUTED:
		return comm->may_rdma && has_room;
	case MESH_TIER_RELAYS_RDMA:
	case MESH_TIER_RELAYS:
	case MESH_TIER_RESERVE:
		return has_room;
	default:
		return rests;
	}
}

bool mesh_comm_lacks_path(struct mesh_comm *comm)
{
	const struct mesh_path *path;
	bool rests = false, in_use;

	mesh_process_assert_locked(comm->process);
	if (!comm->sending || !goes_on(comm) || mesh_comm_is_cut(comm))
		return false;
	mesh_comm_lock(comm);
	in_use = is_in_use(comm);
	for (path = comm->paths; path < comm->paths + comm->num_paths; path++)
		rests |= mesh_path_has_relay(path) &&
			 (path->state == MESH_PATH_DOWN || path->state == MESH_PATH_JOINING);
	mesh_comm_unlock(comm);
	return in_use && may_improve(comm, mesh_comm_tier(comm), rests);
}

void mesh_reroute_soon(struct mesh_comm *comm)
{
	if (!mesh_comm_lacks_route(comm) && !mesh_comm_lacks_path(comm))
		return;
	atomic_store(&comm->process->routeless, true);
	mesh_engine_wake(&comm->process->engine);
}

void mesh_reroute_want(const struct mesh_path *path)
{
	const struct mesh_peer *peer = path->peer;
	struct mesh_comm *comm = path->comm;
	char why[2 * MESH_NODE_NAME_MAX + MESH_VIA_MAX + 64];

	mesh_process_assert_locked(comm->process);
	if (!comm->routeless_ms && is_routeless(comm))
		comm->routeless_ms = mesh_clock_ms();
	if (!path->broken && path->known && !mesh_path_has_relay(path)) {
		snprintf(why, sizeof(why), "node %.63s has lost node %.63s", comm->process->name,
			 peer->name);
		mesh_route_loss_note(comm, why);
	} else if (!path->broken && path->known) {
		snprintf(why, sizeof(why),
			 "node %.63s has lost node %.63s, its relay (path via %.127s)",
			 comm->process->name, peer->name, path->via ? path->via : "?");
		mesh_route_loss_note(comm, why);
		mesh_route_doubt(comm->process, comm->process->node_id, peer->node_id);
	}
	mesh_reroute_soon(comm);
}

/*
 * When a link of the comm answered last, or a relay carried it. One that is up answered then, and
 * waits for our path.
 */
MESH_HOLDS(process)
static uint64_t comm_heard_ms(const struct mesh_comm *comm)
{
	const struct mesh_peer *peer;
	uint64_t heard_ms = comm->routeless_ms, one_ms;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		peer = comm->paths[i].peer;
		if (mesh_path_has_relay(&comm->paths[i]))
			continue;
		one_ms = peer->state == MESH_PEER_UP ? peer->state_ms : peer->heard_ms;
		if (heard_ms < one_ms)
			heard_ms = one_ms;
	}
	return heard_ms;
}

/* True if some of its paths lead through relays, or else to the peer itself. */
MESH_HOLDS(process)
static bool has_paths(const struct mesh_comm *comm, bool relayed)
{
	int i = 0;

	while (i < comm->num_paths && mesh_path_has_relay(&comm->paths[i]) != relayed)
		i++;
	return i < comm->num_paths;
}

void mesh_route_wait_end(struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_process *process = comm->process;
	unsigned long long limit_s = process->config.recovery_timeout_s;
	char why[512], more[MESH_LOG_LIMIT_TEXT_MAX] = "";
	bool passes;

	mesh_process_assert_locked(process);
	if (!is_routeless(comm) || !comm->routeless_ms ||
	    mesh_clock_elapsed_ms(comm_heard_ms(comm), now_ms) < limit_s * 1000)
		return;
	passes = mesh_log_limit_pass(&process->limits.routeless, ROUTE_LINES, now_ms, more);
	if (has_paths(comm, true))
		snprintf(why, sizeof(why),
			 "no route has led there for %llu s (NCCL_MESH_RECOVERY_TIMEOUT), since "
			 "%.300s: are the cables in, and do the relays run?%s",
			 limit_s, comm->loss ? comm->loss : "its circuit broke", more);
	else
		snprintf(why, sizeof(why),
			 "the peer has not come back over any path for %llu s "
			 "(NCCL_MESH_RECOVERY_TIMEOUT): are the cables in, and the links of both "
			 "nodes up?%s",
			 limit_s, more);
	mesh_comm_lock(comm);
	if (passes)
		mesh_comm_fail(comm, -ETIMEDOUT, comm->closing, why);
	mesh_comm_unlock(comm);
	mesh_comm_end(comm, -ETIMEDOUT, why); /* counts it, too */
}

void mesh_route_wait_tick(struct mesh_comm *comm, uint64_t now_ms)
{
	mesh_process_assert_locked(comm->process);
	if (!is_routeless(comm))
		comm->routeless_ms = 0;
	else if (!comm->routeless_ms)
		comm->routeless_ms = now_ms;
	if (!has_paths(comm, false))
		mesh_route_wait_end(comm, now_ms);
}
