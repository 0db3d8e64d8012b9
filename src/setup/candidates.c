/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidates.c - which NICs of two nodes a connection tries, in which order, by what neighbours
 * have answered.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/process.h"
#include "fabric/provider.h"
#include "neighbours/neighbours.h"
#include "nic/nic.h"
#include "nic/path_choice.h"
#include "setup/candidates.h"
#include "setup/setup.h"
#include "system/node.h"

/*
 * The longest wait for an answer of the node. If there is one, those of its other NICs follow
 * within MESH_ASKING_SETTLE_MS of the question. The listener answers as soon as there is a handle:
 * within a millisecond, unless the processor is busy.
 */
#define ANSWERS_MS 300

/* For mesh_path_choose_routed(), which asks for each pair of NICs. */
struct router {
	const struct mesh_process *process;
	struct mesh_routes *routes;
};

static bool route_leads(const struct mesh_endpoint_addr *local,
			const struct mesh_endpoint_addr *remote, const void *arg)
{
	const struct router *router = arg;

	return mesh_route_leads(router->routes, &local->addr,
				router->process->nics[local->nic]->ifindex, &remote->addr);
}

/* Leaves out the reserves of both nodes. Returns true if there are any. */
static bool reserves_hide(struct mesh_endpoint_addr *endpoints, int num)
{
	bool any = false;
	int i;

	for (i = 0; i < num; i++) {
		if (endpoints[i].reserve)
			endpoints[i].addr.family = MESH_FAMILY_NONE; /* reaches no other address */
		any |= endpoints[i].reserve;
	}
	return any;
}

/* The direct paths between these NICs, then the routed ones. */
static void candidates_choose(const struct mesh_process *process,
			      const struct mesh_endpoint_addr *local, int num_local,
			      const struct mesh_endpoint_addr *remote, int num_remote,
			      const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	struct mesh_routes routes = {0};
	const struct router router = {process, &routes};

	mesh_path_choose(local, num_local, remote, num_remote, hints, choice);
	if (strcmp(process->config.routed, "off"))
		mesh_path_choose_routed(local, num_local, remote, num_remote, hints, route_leads,
					&router, choice);
	mesh_routes_close(&routes);
}

/*
 * A NIC without RDMA beside others that have it may be the management network's: where it is a
 * reserve at both ends, only the setting allows it. The same holds for other reserves whose routes
 * lead to the node, such as the default route.
 */
static bool is_doubtful(const struct mesh_process *process, const struct mesh_endpoint_addr *local,
			const struct mesh_endpoint_addr *remote, enum mesh_path_class class)
{
	bool is_spare = process->nics[local->nic]->verdict == MESH_NIC_SPARE_NO_RDMA;

	if (!local->reserve || !strcmp(process->config.routed, "management"))
		return false;
	return is_spare ? remote->reserve : class == MESH_PATH_ROUTED;
}

/* On a switched fabric, puts the paths of NICs near those that NCCL chose first. */
MESH_HOLDS(process)
static void near_first(struct mesh_process *process, const struct mesh_handle *handle,
		       const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	struct mesh_near_rule rule = {
		.remote = handle->near,
		.num_nics = process->num_nics,
		.always = !strcmp(process->config.near, "always"),
	};
	int dev = hints->local_nic;

	if (dev < 0 || dev >= process->num_nics || hints->same_node ||
	    !strcmp(process->config.near, "off"))
		return;
	rule.local = mesh_nics_near(process->nics, process->num_nics, dev);
	mesh_path_near_first(process->endpoints, handle->endpoints, hints, &rule, choice);
}

/* True if a direct path is over a NIC of ours that is not drained. */
MESH_HOLDS(process)
static bool has_direct(const struct mesh_process *process, const struct mesh_path_choice *choice)
{
	const struct mesh_path_candidate *pair;
	int i;

	for (i = 0; i < choice->num_candidates; i++) {
		pair = &choice->candidates[i];
		if (!mesh_path_class_is_routed(pair->class) &&
		    !mesh_process_is_drained(process, process->endpoints[pair->local].nic))
			return true;
	}
	return false;
}

/* Where a path stands, whatever its class: 0 comes first. */
MESH_HOLDS(process)
static int place_of(const struct mesh_process *process, const struct mesh_path_candidate *pair)
{
	if (pair->class == MESH_PATH_UNLIKELY)
		return 2;
	return mesh_process_is_drained(process, process->endpoints[pair->local].nic);
}

/*
 * Puts the paths over our drained NICs behind the others, whatever their class, but before those
 * that neighbours contradict. Else they keep their order.
 */
MESH_HOLDS(process)
static void drained_last(const struct mesh_process *process, struct mesh_path_choice *choice)
{
	const struct mesh_path_choice all = *choice;
	int place, i, at = 0;

	for (place = 0; place <= 2; place++) {
		for (i = 0; i < all.num_candidates; i++) {
			if (place_of(process, &all.candidates[i]) == place)
				choice->candidates[at++] = all.candidates[i];
		}
	}
}

/* Adds the paths that some reserve is an end of, to be tried after the others. */
MESH_HOLDS(process)
static void reserves_add(const struct mesh_process *process, const struct mesh_handle *handle,
			 const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	const struct mesh_endpoint_addr *local, *remote;
	struct mesh_path_choice all;
	struct mesh_path_candidate pair;
	int i;

	candidates_choose(process, process->endpoints, process->num_endpoints, handle->endpoints,
			  handle->num_endpoints, hints, &all);
	for (i = 0; i < all.num_candidates; i++) {
		pair = all.candidates[i];
		local = &process->endpoints[pair.local];
		remote = &handle->endpoints[pair.remote];
		if ((!local->reserve && !remote->reserve) ||
		    is_doubtful(process, local, remote, pair.class) ||
		    choice->num_candidates == MESH_PATH_CHOICE_MAX)
			continue;
		pair.class = mesh_path_class_is_routed(pair.class) ? MESH_PATH_RESERVE_ROUTED
								   : MESH_PATH_RESERVE;
		pair.reason = MESH_PATH_WHY_RESERVE;
		choice->candidates[choice->num_candidates++] = pair;
	}
}

/* ---- what neighbours have answered ---------------------------------------------------------- */

/* What our NIC @dev has heard, or NULL. */
MESH_HOLDS(process)
static const struct mesh_asked *asked_of(struct mesh_process *process, int dev)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	int link = -1;

	mesh_process_assert_locked(process);
	if (neighbours)
		link = mesh_asking_link_find(&neighbours->asking, process->nics[dev]->ifindex);
	return link < 0 ? NULL : &neighbours->asking.asked[link];
}

MESH_HOLDS(process)
static enum mesh_path_proof proof_of(struct mesh_process *process, const struct mesh_handle *handle,
				     const struct mesh_path_candidate *pair)
{
	const struct mesh_endpoint_addr *local = &process->endpoints[pair->local];
	const struct mesh_asked *asked = asked_of(process, local->nic);
	bool node = false, other = false;
	int i;

	/* Behind a router other nodes are what is to be expected. */
	if (!mesh_addr_same_subnet(&local->addr, &handle->endpoints[pair->remote].addr))
		return MESH_PROOF_NONE;
	for (i = 0; asked && i < asked->num_heard; i++) {
		const struct mesh_heard *heard = asked->heard[i];

		if (!heard->error && heard->about.node_id != handle->node_id) {
			other = true;
			continue;
		}
		if (mesh_neighbour_has_addr(&heard->about, &handle->endpoints[pair->remote].addr))
			return MESH_PROOF_THERE;
		node = true; /* or another version, of which the id is not known */
	}
	/* Another NIC of that node: its address may be new, but a guess would be wrong. */
	if (node && mesh_addr_is_link_local(&local->addr))
		return MESH_PROOF_OTHER;
	return other && !node ? MESH_PROOF_OTHER : MESH_PROOF_NONE;
}

MESH_HOLDS(process)
static void likely_first(struct mesh_process *process, const struct mesh_handle *handle,
			 struct mesh_path_choice *choice)
{
	enum mesh_path_proof proofs[MESH_PATH_CHOICE_MAX];
	int i;

	if (!mesh_setup_of(process)->neighbours || !handle->node_id ||
	    handle->node_id == process->node_id)
		return;
	for (i = 0; i < choice->num_candidates; i++)
		proofs[i] = proof_of(process, handle, &choice->candidates[i]);
	mesh_path_order(process->endpoints, handle->endpoints, proofs, choice);
}

/* The NIC that has answered, as an endpoint; false if it has none that we could use. */
static bool endpoint_of(const struct mesh_neighbour *about, struct mesh_endpoint_addr *endpoint)
{
	const bool tcp = about->providers & 1u << MESH_PROVIDER_TCP;

	memset(endpoint, 0, sizeof(*endpoint));
	if (!about->num_addrs)
		return false;
	mesh_neighbour_addr_get(&about->addrs[0], &endpoint->addr);
	endpoint->nic = about->nic;
	endpoint->speed_mbps = (int)about->speed_mbps;
	if (about->providers & 1u << MESH_PROVIDER_VERBS_RXM)
		endpoint->provider = MESH_PROVIDER_VERBS_RXM;
	else if (about->providers & 1u << MESH_PROVIDER_TCP_RXM)
		endpoint->provider = MESH_PROVIDER_TCP_RXM;
	else if (tcp)
		endpoint->provider = MESH_PROVIDER_TCP;
	endpoint->also_tcp = tcp && endpoint->provider == MESH_PROVIDER_VERBS_RXM;
	return endpoint->provider != MESH_PROVIDER_NONE && endpoint->nic < MESH_NICS_MAX;
}

bool mesh_candidates_learn(struct mesh_process *process, struct mesh_handle *handle)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	struct mesh_endpoint_addr endpoint;
	const struct mesh_heard *heard;
	struct mesh_heard_at at = {0};
	bool any = false;

	mesh_process_assert_locked(process);
	if (!neighbours || !mesh_handle_lacks_nics(handle) || !handle->node_id)
		return false;
	while ((heard = mesh_asking_heard_next(&neighbours->asking, handle->node_id, 0, &at))) {
		if (endpoint_of(&heard->about, &endpoint))
			any |= mesh_handle_nic_add(handle, &endpoint);
	}
	return any;
}

void mesh_candidates_find(struct mesh_process *process, int dev, struct mesh_handle *handle,
			  struct mesh_path_choice *choice)
{
	const struct mesh_path_hints hints = {
		.local_nic = dev,
		.remote_nic = handle->dev,
		.spread = handle->listen_id,
		.same_node = handle->node_id == process->node_id,
		.fallback = mesh_provider_list_falls_back(process->config.provider),
		.same_count = handle->total_nics == process->num_devs,
		.rails = &process->rails,
	};
	struct mesh_endpoint_addr local[MESH_NICS_MAX], remote[MESH_NICS_MAX];
	int num_local = process->num_endpoints, num_remote, i;
	bool reserves;

	mesh_process_assert_locked(process);
	mesh_candidates_learn(process, handle);
	num_remote = handle->num_endpoints;
	if (process->role == MESH_PROCESS_GUEST) {
		memset(choice, 0, sizeof(*choice));
		return;
	}
	memcpy(remote, handle->endpoints, sizeof(remote));
	for (i = 0; i < num_local; i++) {
		process->endpoints[i].reserve = process->dev_reserves[process->endpoints[i].nic];
		local[i] = process->endpoints[i];
	}
	reserves = reserves_hide(local, num_local);
	reserves |= reserves_hide(remote, num_remote);
	candidates_choose(process, local, num_local, remote, num_remote, &hints, choice);
	near_first(process, handle, &hints, choice);
	if (reserves && !has_direct(process, choice))
		reserves_add(process, handle, &hints, choice);
	likely_first(process, handle, choice);
	drained_last(process, choice);
}

MESH_HOLDS(process)
static bool is_found(struct mesh_process *process, const struct mesh_handle *handle,
		     const struct mesh_path_choice *choice)
{
	int i;

	for (i = 0; i < choice->num_candidates; i++) {
		if (proof_of(process, handle, &choice->candidates[i]) == MESH_PROOF_THERE)
			return true;
	}
	return false;
}

/* A NIC that the handle had no room for may share a link. */
static bool is_missing(const struct mesh_handle *handle, const struct mesh_path_choice *choice)
{
	return !choice->num_candidates && mesh_handle_lacks_nics(handle);
}

bool mesh_candidates_wait(struct mesh_process *process, const struct mesh_handle *handle,
			  const struct mesh_path_choice *choice, bool begins, uint64_t since_ms,
			  uint64_t now_ms)
{
	struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	bool found = is_found(process, handle, choice);
	uint64_t waited_ms;

	mesh_process_assert_locked(process);
	if (!neighbours || handle->node_id == process->node_id ||
	    !(is_missing(handle, choice) || mesh_path_is_guess(process->endpoints, choice)) ||
	    mesh_clock_elapsed_ms(since_ms, now_ms) >= ANSWERS_MS)
		return false;
	waited_ms = mesh_neighbours_waited_ms(neighbours, now_ms);
	/* Many connections in a row to a node that does not answer wait for one round. */
	if (begins && !found &&
	    (waited_ms == UINT64_MAX || neighbours->asking.sought != handle->node_id)) {
		mesh_asking_seek(&neighbours->asking, handle->node_id, now_ms);
		return true;
	}
	/* On a switch another node may answer first, and on most NICs this one is not there. */
	return waited_ms < MESH_ASKING_SETTLE_MS || (waited_ms < ANSWERS_MS && !found);
}
