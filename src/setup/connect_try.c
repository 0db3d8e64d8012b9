/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_try.c - the peers that a connection tries together: candidates whose NICs are all
 * different. Each of them that is up becomes a path of the comm.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer_life.h"
#include "nic/addr.h"
#include "setup/connect_try.h"

/* A peer that is not up after this is replaced by the next candidates, and retried later. */
#define CANDIDATE_MS 3000
/* A peer that failed is replaced after this. */
#define FAILED_MS 250
/* If every candidate refuses for this long, the process is gone, and more time does not help. */
#define REFUSED_MS 3000
/*
 * Once one peer is up, the others have this long to follow; a peer that failed has only the second.
 */
#define FOLLOW_MS 3000
#define FOLLOW_RETRY_MS 600
/* Every link has link-local addresses, and most pairs of them do not connect: they get less. */
#define FOLLOW_LINK_LOCAL_MS 300
/* Lines about connections that find no room, within MESH_LOG_LIMIT_PERIOD_MS. */
#define FULL_LINES 8
/* A path that is this many times slower than the fastest would only slow the comm down. */
#define SPEED_RATIO_MAX 8

static int paths_max(const struct mesh_connect *connect)
{
	const struct mesh_process *process = connect->net->process;

	/* Between two ranks of one node every path is the same memory. */
	if (connect->handle.node_id == process->node_id)
		return 1;
	return (int)process->config.max_paths;
}

MESH_HOLDS(process)
static int peer_enter(struct mesh_connect *connect, struct mesh_path_candidate pair)
{
	struct mesh_process *process = connect->net->process;
	const struct mesh_handle *handle = &connect->handle;
	struct mesh_domain *domain = mesh_process_domain(process, &process->endpoints[pair.local]);
	int ret;

	ret = mesh_peer_get(process, domain, &handle->endpoints[pair.remote], handle->control_port,
			    handle->listen_id, handle->cookie, &connect->peers[connect->num_peers]);
	if (!ret)
		connect->pairs[connect->num_peers++] = pair;
	return ret;
}

/* True if neither NIC of the pair is in the try yet. */
static bool pair_is_apart(const struct mesh_connect *connect, struct mesh_path_candidate pair)
{
	int i;

	for (i = 0; i < connect->num_peers; i++) {
		if (connect->pairs[i].local == pair.local ||
		    connect->pairs[i].remote == pair.remote)
			return false;
	}
	return true;
}

int mesh_connect_try_start(struct mesh_connect *connect, uint64_t now_ms)
{
	const struct mesh_path_choice *choice = &connect->choice;
	struct mesh_process *process = connect->net->process;
	int max = paths_max(connect), i, k, ret = 0;
	char node[MESH_HANDLE_NODE_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	connect->try_ms = now_ms;
	connect->up_ms = 0;
	connect->num_peers = 0;
	for (i = 0; i < choice->num_candidates && connect->num_peers < max && !ret; i++) {
		k = (connect->first_candidate + i) % choice->num_candidates;
		if (pair_is_apart(connect, choice->candidates[k]))
			ret = peer_enter(connect, choice->candidates[k]);
		if (connect->num_peers == i + 1)
			connect->next_candidate = (k + 1) % choice->num_candidates;
	}
	if (connect->num_peers)
		return 0;
	if (mesh_log_limit_pass(&process->limits.full, FULL_LINES, now_ms, more))
		mesh_warn("node %s cannot begin to connect to node %s: %s%s", process->name,
			  mesh_handle_node_text(&connect->handle, node), strerror(-ret), more);
	return ret;
}

MESH_HOLDS(process)
static void peer_leave(struct mesh_connect *connect, int i)
{
	mesh_peer_put(connect->peers[i]);
	connect->num_peers--;
	memmove(&connect->peers[i], &connect->peers[i + 1],
		(size_t)(connect->num_peers - i) * sizeof(connect->peers[0]));
	memmove(&connect->pairs[i], &connect->pairs[i + 1],
		(size_t)(connect->num_peers - i) * sizeof(connect->pairs[0]));
}

void mesh_connect_try_end(struct mesh_connect *connect)
{
	while (connect->num_peers)
		peer_leave(connect, connect->num_peers - 1);
}

/* Since when all of them refuse, in milliseconds of the clock; 0 if one does not. */
MESH_HOLDS(process)
static uint64_t refused_since(const struct mesh_connect *connect)
{
	uint64_t since = 0;
	int i;

	for (i = 0; i < connect->num_peers; i++) {
		if (!connect->peers[i]->first_refused_ms)
			return 0;
		if (connect->peers[i]->first_refused_ms > since)
			since = connect->peers[i]->first_refused_ms;
	}
	return since;
}

int mesh_connect_try_next(struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t refused_ms = refused_since(connect);

	if (!refused_ms)
		connect->refused_ms = 0;
	else if (!connect->refused_ms)
		connect->refused_ms = refused_ms;
	mesh_connect_try_end(connect);
	connect->first_candidate = connect->next_candidate;
	return mesh_connect_try_start(connect, now_ms);
}

static bool is_link_local(const struct mesh_peer *peer)
{
	return mesh_addr_is_link_local(&peer->address.addr);
}

/* True if nothing has answered there for long, in this try or an earlier one. */
MESH_HOLDS(process)
static bool is_silent(const struct mesh_peer *peer, uint64_t now_ms)
{
	return peer->silent_ms && mesh_clock_elapsed_ms(peer->silent_ms, now_ms) >= FOLLOW_MS;
}

/* True if it may be worth waiting for this peer, now that another one is up. */
MESH_HOLDS(process)
static bool may_follow(const struct mesh_connect *connect, const struct mesh_peer *peer,
		       uint64_t now_ms)
{
	uint64_t waited_ms = now_ms - connect->up_ms;

	if (peer->state == MESH_PEER_UP || peer->state == MESH_PEER_LOST || peer->refusal)
		return false;
	if (is_silent(peer, now_ms))
		return false;
	if (is_link_local(peer))
		return waited_ms < FOLLOW_LINK_LOCAL_MS;
	return waited_ms < (peer->state == MESH_PEER_RETRY ? FOLLOW_RETRY_MS : FOLLOW_MS);
}

bool mesh_connect_try_is_ready(struct mesh_connect *connect, uint64_t now_ms)
{
	int i;

	for (i = 0; i < connect->num_peers && !connect->up_ms; i++) {
		if (connect->peers[i]->state == MESH_PEER_UP)
			connect->up_ms = now_ms;
	}
	if (!connect->up_ms)
		return false;
	for (i = 0; i < connect->num_peers; i++) {
		if (may_follow(connect, connect->peers[i], now_ms))
			return false;
	}
	for (i = 0; i < connect->num_peers; i++) {
		if (connect->peers[i]->state == MESH_PEER_UP)
			return true;
	}
	connect->up_ms = 0; /* it was up, and is lost now */
	return false;
}

/* Mbit/s of the slower end; 0 where neither end knows. */
static int path_speed(const struct mesh_peer *peer)
{
	int local = peer->domain->nic->speed_mbps, remote = peer->speed_mbps;

	if (!local || !remote)
		return local ? local : remote;
	return local < remote ? local : remote;
}

void mesh_connect_try_settle(struct mesh_connect *connect)
{
	int fastest = 0, i, speed;

	for (i = connect->num_peers - 1; i >= 0; i--) {
		if (connect->peers[i]->state != MESH_PEER_UP)
			peer_leave(connect, i);
	}
	for (i = 0; i < connect->num_peers; i++) {
		speed = path_speed(connect->peers[i]);
		if (speed > fastest)
			fastest = speed;
	}
	for (i = connect->num_peers - 1; i >= 0; i--) {
		speed = path_speed(connect->peers[i]);
		if (speed && speed < fastest / SPEED_RATIO_MAX)
			peer_leave(connect, i);
	}
}

/* True if this try contains every candidate. */
static bool has_no_others(const struct mesh_connect *connect)
{
	return connect->num_peers == connect->choice.num_candidates;
}

/* True if the peer's time is over. A failed peer keeps FAILED_MS, to pace the attempts. */
MESH_HOLDS(process)
static bool peer_is_spent(const struct mesh_connect *connect, const struct mesh_peer *peer,
			  uint64_t now_ms)
{
	uint64_t age_ms = now_ms - connect->try_ms;

	if (peer->state == MESH_PEER_LOST || peer->refusal)
		return age_ms > FAILED_MS;
	if (has_no_others(connect))
		return false;
	return age_ms > (peer->state == MESH_PEER_RETRY ? FAILED_MS : CANDIDATE_MS);
}

/* True if this peer cannot come up, but a new peer at the same address may. */
MESH_HOLDS(process)
static bool is_over(const struct mesh_connect *connect, const struct mesh_peer *peer)
{
	return peer->state == MESH_PEER_LOST ||
	       (peer->refusal && !mesh_peer_refuses(peer, connect->handle.cookie));
}

bool mesh_connect_try_is_spent(const struct mesh_connect *connect, uint64_t now_ms)
{
	bool all = true;
	int i;

	for (i = 0; i < connect->num_peers; i++) {
		/* Even if the others are still waiting. */
		if (is_over(connect, connect->peers[i]) && now_ms - connect->try_ms > FAILED_MS)
			return true;
		all &= peer_is_spent(connect, connect->peers[i], now_ms);
	}
	return all;
}

bool mesh_connect_try_is_refused(const struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t since_ms = connect->refused_ms ? connect->refused_ms : refused_since(connect);
	bool all = true, any = false, refuses;
	int i;

	for (i = 0; i < connect->num_peers; i++) {
		refuses = mesh_peer_refuses(connect->peers[i], connect->handle.cookie);
		all &= refuses || is_silent(connect->peers[i], now_ms);
		any |= refuses;
	}
	/* The candidates outside this try are tried first. */
	if (!has_no_others(connect) && now_ms - connect->started_ms <= REFUSED_MS)
		return false;
	/* The peers refuse explicitly, or no process listens there. */
	return (all && any) ||
	       (refused_since(connect) && mesh_clock_elapsed_ms(since_ms, now_ms) > REFUSED_MS);
}

const struct mesh_peer *mesh_connect_try_informative(const struct mesh_connect *connect)
{
	const struct mesh_peer *informative = connect->peers[0];
	int i;

	if (connect->state == MESH_CONNECT_SENT)
		return connect->peers[connect->num_accepted];
	for (i = 0; i < connect->num_peers; i++) {
		if (connect->peers[i]->refusal)
			return connect->peers[i];
		if (!informative->reason[0])
			informative = connect->peers[i];
	}
	return informative->reason[0] ? informative : connect->peers[0];
}
