/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_try.c - the peers that a connection tries together: candidates whose NICs are all
 * different. Each of them that is up becomes a path of the comm.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer_life.h"
#include "nic/addr.h"
#include "setup/carriers.h"
#include "setup/connect_judge.h"
#include "setup/connect_try.h"
#include "setup/dead_routes.h"
#include "setup/openings.h"
#include "setup/relay_try.h"
#include "transport/rejoin.h"

/* Lines about connections that find no room, within MESH_LOG_LIMIT_PERIOD_MS. */
#define FULL_LINES 8

static int paths_max(const struct mesh_connect *connect)
{
	const struct mesh_process *process = connect->net->process;

	/* Between two ranks of one node every path is the same memory. */
	if (connect->handle.node_id == process->node_id)
		return 1;
	return (int)process->config.max_paths;
}

MESH_HOLDS(process)
static int peer_enter(struct mesh_connect *connect, struct mesh_path_candidate pair,
		      struct mesh_domain *domain)
{
	struct mesh_process *process = connect->net->process;
	const struct mesh_handle *handle = &connect->handle;
	int ret;

	ret = mesh_peer_get(process, domain, &handle->endpoints[pair.remote], handle->control_port,
			    handle->listen_id, handle->cookie, &connect->peers[connect->num_peers]);
	if (ret)
		return ret;
	connect->peers[connect->num_peers]->routed =
		mesh_path_class_is_routed(pair.class); /* its HELLO is not sent yet */
	connect->pairs[connect->num_peers++] = pair;
	return 0;
}

/* Removes candidate @k: it cannot become a path. */
static void candidate_remove(struct mesh_connect *connect, int k)
{
	struct mesh_path_choice *choice = &connect->choice;

	choice->num_candidates--;
	memmove(&choice->candidates[k], &choice->candidates[k + 1],
		(size_t)(choice->num_candidates - k) * sizeof(choice->candidates[0]));
	if (k < connect->next_candidate)
		connect->next_candidate--;
	if (k < connect->first_candidate)
		connect->first_candidate--;
	if (connect->next_candidate >= choice->num_candidates)
		connect->next_candidate = 0;
	if (connect->first_candidate >= choice->num_candidates)
		connect->first_candidate = 0;
}

/* The candidates of one try: indices into the choice. */
struct selection {
	int candidates[MESH_PATHS_MAX];
	int num;
	int next;      /* the first one that is left out */
	uint32_t away; /* bit mask of NICs that have no carrier: their candidates wait */
};

/*
 * True if neither NIC of candidate @k is in the try yet. Classes are not tried together: routed
 * paths carry data only if no direct one is up.
 */
static bool is_apart(const struct mesh_path_choice *choice, const struct selection *selection,
		     int k)
{
	const struct mesh_path_candidate *pair = &choice->candidates[k], *other;
	int i;

	for (i = 0; i < selection->num; i++) {
		other = &choice->candidates[selection->candidates[i]];
		if (other->class != pair->class || other->local == pair->local ||
		    other->remote == pair->remote)
			return false;
	}
	return true;
}

/* Without those whose domain is slow to open, or that have no carrier: the others do not wait. */
MESH_HOLDS(process)
static void candidates_select(const struct mesh_connect *connect, struct selection *selection)
{
	const struct mesh_endpoint_addr *endpoints = connect->net->process->endpoints;
	const struct mesh_path_choice *choice = &connect->choice;
	int max = paths_max(connect), i, k;
	bool left = false;

	selection->num = 0;
	selection->next = connect->next_candidate;
	for (i = 0; i < choice->num_candidates && selection->num < max; i++) {
		k = (connect->first_candidate + i) % choice->num_candidates;
		if (mesh_connect_candidate_is_slow(connect, k) ||
		    selection->away & 1u << endpoints[choice->candidates[k].local].nic)
			continue;
		if (is_apart(choice, selection, k))
			selection->candidates[selection->num++] = k;
		else
			left = true;
		if (!left)
			selection->next = (k + 1) % choice->num_candidates;
	}
}

/*
 * True if the domain could not be opened because the NIC has no carrier, or has lost it since: it
 * may come back.
 */
MESH_HOLDS(process)
static bool is_away(const struct mesh_connect *connect, int index)
{
	struct mesh_process *process = connect->net->process;
	int dev = index % MESH_NICS_MAX;

	if (process->dev_states[index] == MESH_DEV_FAILED)
		return !mesh_carrier_look(process, dev);
	return process->dev_states[index] == MESH_DEV_OPEN && !mesh_carrier_look(process, dev) &&
	       mesh_connect_nic_is_away(connect, dev);
}

/*
 * Starts to open a candidate's domain. Returns 0 if it is open; -EAGAIN; -EBUSY if it takes too
 * long; -ENOLINK if it has no carrier, or cannot be opened without; -ENODEV if it cannot be opened.
 */
MESH_HOLDS(process)
static int domain_need(struct mesh_connect *connect, const struct mesh_path_candidate *pair)
{
	struct mesh_process *process = connect->net->process;
	int index = mesh_process_domain_index(process, process->endpoints[pair->local].nic,
					      pair->provider);
	bool again, opening = false;

	if (index < 0)
		return -ENODEV;
	if (is_away(connect, index)) {
		connect->needed &= ~(1u << index); /* it is tried again with carrier */
		return -ENOLINK;
	}
	/* What has failed without a carrier is opened again now that there is one. */
	again = !(connect->needed & 1u << index) || process->dev_away[index];
	connect->needed |= 1u << index;
	if (!process->domains[index])
		opening = mesh_opening_need(process, index, again);
	if (opening)
		return -EAGAIN;
	if (process->dev_states[index] == MESH_DEV_FAILED)
		return is_away(connect, index) ? -EAGAIN : -ENODEV;
	if (mesh_opening_is_slow(process, index))
		return -EBUSY;
	return process->domains[index] ? 0 : -ENODEV;
}

/*
 * Removes the candidates whose domain cannot be opened, and selects those of the next try. Returns
 * 0; -EAGAIN while a domain is being opened for one; -ENOLINK if one has no carrier, and the others
 * are slow; -ENODEV if no candidate is left.
 */
MESH_HOLDS(process)
static int candidates_open(struct mesh_connect *connect, struct selection *selection)
{
	const struct mesh_endpoint_addr *endpoints = connect->net->process->endpoints;
	struct mesh_path_choice *choice = &connect->choice;
	int dev, i, k = 0, need, ret;

	selection->away = 0;
	while (choice->num_candidates) {
		candidates_select(connect, selection);
		if (!selection->num)
			return selection->away ? -ENOLINK : -EAGAIN;
		ret = 0;
		for (i = 0; i < selection->num && (!ret || ret == -EAGAIN); i++) {
			k = selection->candidates[i];
			need = domain_need(connect, &choice->candidates[k]);
			ret = need ? need : ret;
		}
		if (ret == -EBUSY)
			continue; /* without it: its turn comes when it is open */
		if (!ret || ret == -EAGAIN)
			return ret;
		dev = endpoints[choice->candidates[k].local].nic;
		if (ret == -ENOLINK) {
			selection->away |= 1u << dev; /* its turn comes with a carrier */
			continue;
		}
		connect->unopened = 1 + dev;
		candidate_remove(connect, k);
	}
	return -ENODEV;
}

int mesh_connect_try_start(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_process *process = connect->net->process;
	char node[MESH_HANDLE_NODE_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];
	const struct mesh_path_candidate *pair;
	struct selection selection;
	int i, ret;

	ret = candidates_open(connect, &selection);
	connect->away = ret == -ENOLINK || (ret == -EAGAIN && connect->away);
	if (ret)
		return ret;
	connect->try_ms = now_ms;
	connect->up_ms = 0;
	connect->num_peers = connect->num_missed = 0;
	connect->lanes = 0;
	connect->lanes_begun = false;
	connect->next_candidate = selection.next;
	for (i = 0; i < selection.num && !ret; i++) {
		pair = &connect->choice.candidates[selection.candidates[i]];
		ret = peer_enter(connect, *pair,
				 mesh_process_domain(process, process->endpoints[pair->local].nic,
						     pair->provider));
	}
	if (connect->num_peers)
		return 0;
	if (mesh_log_limit_pass(&process->limits.full, FULL_LINES, now_ms, more))
		mesh_warn("node %s cannot begin to connect to node %s: %s%s", process->name,
			  mesh_handle_node_text(&connect->handle, node), strerror(-ret), more);
	return ret;
}

void mesh_connect_try_lane(struct mesh_connect *connect, int i, struct mesh_domain *domain)
{
	mesh_process_assert_locked(connect->net->process);
	if (connect->num_peers < MESH_PATHS_MAX)
		(void)!peer_enter(connect, connect->pairs[i], domain);
}

bool mesh_connect_try_away(struct mesh_connect *connect, uint64_t now_ms)
{
	if (!connect->away || connect->relay->num_peers || mesh_connect_try_start(connect, now_ms))
		return false;
	mesh_relay_try_close(connect->relay);
	connect->relay = NULL;
	connect->detoured = false;
	return true;
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
	if (connect->relay)
		mesh_relay_try_end(connect->relay);
}

static bool pairs_equal(struct mesh_path_candidate a, struct mesh_path_candidate b)
{
	return a.local == b.local && a.remote == b.remote && a.class == b.class;
}

MESH_HOLDS(process)
static void dead_ends_forget(struct mesh_connect *connect)
{
	struct mesh_path_choice *choice = &connect->choice;
	int i, k;

	for (i = 0; i < connect->num_peers; i++) {
		for (k = 0;
		     mesh_connect_peer_is_dead_end(connect->peers[i]) && k < choice->num_candidates;
		     k++) {
			if (!pairs_equal(choice->candidates[k], connect->pairs[i]))
				continue;
			candidate_remove(connect, k);
			break;
		}
	}
}

int mesh_connect_try_next(struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t refused_ms = mesh_connect_refused_since(connect);

	dead_ends_forget(connect);
	if (!refused_ms)
		connect->refused_ms = 0;
	else if (!connect->refused_ms)
		connect->refused_ms = refused_ms;
	mesh_connect_try_end(connect);
	connect->first_candidate = connect->next_candidate;
	return mesh_connect_try_start(connect, now_ms);
}

int mesh_connect_try_again(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_peer *before[MESH_PATHS_MAX];
	int i, num = connect->num_peers, ret;

	memcpy(before, connect->peers, sizeof(before));
	connect->first_candidate = 0;
	ret = mesh_connect_try_start(connect, now_ms);
	if (ret == -EAGAIN)
		return ret;
	if (ret)
		connect->num_peers = 0;
	for (i = 0; i < num; i++)
		mesh_peer_put(before[i]);
	return ret;
}

/* Not for link-local addresses, which every link has. @remote: where the pair leads */
static bool may_join(const struct mesh_path_candidate *pair, const struct mesh_addr *remote)
{
	return pair->class == MESH_PATH_DIRECT && pair->provider == MESH_PROVIDER_TCP &&
	       !mesh_addr_is_link_local(remote);
}

/* True for a link that should work, and may do so later. */
MESH_HOLDS(process)
static bool is_missed(const struct mesh_connect *connect, int i)
{
	const struct mesh_peer *peer = connect->peers[i];

	return !peer->refusal && !peer->domain->lane &&
	       may_join(&connect->pairs[i], &peer->address.addr);
}

static bool shares_nic(const struct mesh_path_candidate *pair,
		       const struct mesh_path_candidate *others, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		if (others[i].local == pair->local || others[i].remote == pair->remote)
			return true;
	}
	return false;
}

/* The same of candidates that had no turn, because their NIC has no carrier. */
MESH_HOLDS(process)
static void away_remember(struct mesh_connect *connect)
{
	const struct mesh_endpoint_addr *endpoints = connect->net->process->endpoints;
	const struct mesh_path_candidate *pair;
	int k;

	for (k = 0; k < connect->choice.num_candidates && connect->num_missed < MESH_PATHS_MAX;
	     k++) {
		pair = &connect->choice.candidates[k];
		if (mesh_connect_nic_is_away(connect, endpoints[pair->local].nic) &&
		    may_join(pair, &connect->handle.endpoints[pair->remote].addr) &&
		    !shares_nic(pair, connect->pairs, connect->num_peers) &&
		    !shares_nic(pair, connect->missed, connect->num_missed))
			connect->missed[connect->num_missed++] = *pair;
	}
}

void mesh_connect_try_settle(struct mesh_connect *connect)
{
	int fastest = 0, i, speed;

	for (i = connect->num_peers - 1; i >= 0; i--) {
		if (connect->peers[i]->state == MESH_PEER_UP)
			continue;
		if (is_missed(connect, i) && connect->num_missed < MESH_PATHS_MAX)
			connect->missed[connect->num_missed++] = connect->pairs[i];
		peer_leave(connect, i);
	}
	away_remember(connect);
	for (i = 0; i < connect->num_peers; i++) {
		speed = mesh_peer_speed_mbps(connect->peers[i]);
		if (speed > fastest)
			fastest = speed;
	}
	for (i = connect->num_peers - 1; i >= 0; i--) {
		speed = mesh_peer_speed_mbps(connect->peers[i]);
		if (speed && speed < fastest / MESH_PATH_SPEED_RATIO_MAX)
			peer_leave(connect, i);
	}
	if (connect->num_peers && mesh_path_class_is_routed(connect->pairs[0].class))
		mesh_dead_routes_remove(connect->net->process, connect->handle.node_id,
					MESH_DEAD_ROUTED);
}

void mesh_connect_try_late_want(const struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;
	const struct mesh_peer *peer = mesh_path_peer(&connect->comm->paths[0]);
	const struct mesh_path_candidate *pair;
	struct mesh_domain *domain;
	int i;

	mesh_process_assert_locked(process);
	atomic_store(&process->late_nics, true);
	for (i = 0; i < connect->num_missed && !connect->relay; i++) {
		pair = &connect->missed[i];
		domain = mesh_process_domain(process, process->endpoints[pair->local].nic,
					     pair->provider);
		if (domain)
			mesh_rejoin_new(peer, domain, &connect->handle.endpoints[pair->remote]);
	}
}

enum mesh_path_reason mesh_connect_try_reason(const struct mesh_connect *connect, int i)
{
	return connect->relay ? MESH_PATH_WHY_RELAY : connect->pairs[i].reason;
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
