/* SPDX-License-Identifier: Apache-2.0 */
/* neighbour_hints.c - what neighbours have answered, for connections. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "neighbours/neighbours.h"
#include "nic/path_choice.h"
#include "setup/candidates.h"
#include "setup/neighbour_hints.h"
#include "setup/setup.h"

/*
 * The longest wait for the node to answer on each NIC. If it has on one, those of
 * its other NICs follow within MESH_ASKING_SETTLE_MS. The listener answers as soon as there is a
 * handle: within a millisecond of a question, unless the processor is busy.
 */
#define ANSWERS_MS 300

/* What our NIC @dev has heard, or NULL. */
MESH_HOLDS(process)
static const struct mesh_asked *asked_of(struct mesh_process *process, int dev)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	const struct mesh_asked *asked;
	int i;

	mesh_process_assert_locked(process);
	if (!neighbours)
		return NULL;
	for (i = 0; i < neighbours->asking.num_links; i++) {
		asked = &neighbours->asking.asked[i];
		if (asked->ifindex == process->nics[dev]->ifindex)
			return asked;
	}
	return NULL;
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

/*
 * True if the node has answered on each NIC of ours that may lead there, for all that its addresses
 * say: with guesses, those of the guesses, else all.
 *
 * @failed: also on those whose latest question could not be sent, so that they ask again
 */
MESH_HOLDS(process)
static bool all_have_heard(struct mesh_process *process, const struct mesh_handle *handle,
			   const struct mesh_path_choice *choice, bool failed)
{
	const struct mesh_asking *asking = &mesh_setup_of(process)->neighbours->asking;
	int i, num = choice->num_candidates ? choice->num_candidates : asking->num_links;
	const struct mesh_endpoint_addr *local;
	const struct mesh_asked *asked;

	for (i = 0; i < num; i++) {
		asked = &asking->asked[i];
		if (choice->num_candidates) {
			local = &process->endpoints[choice->candidates[i].local];
			asked = mesh_addr_is_link_local(&local->addr)
					? asked_of(process, local->nic)
					: NULL;
		}
		if (asked && (failed || !asked->error) &&
		    !mesh_asked_has_heard(asked, handle->node_id))
			return false;
	}
	return true;
}

/* A NIC that the handle had no room for may share a link. */
static bool is_missing(const struct mesh_handle *handle, const struct mesh_path_choice *choice)
{
	return !choice->num_candidates && mesh_handle_lacks_nics(handle);
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

void mesh_neighbour_hints_learn(struct mesh_process *process, struct mesh_handle *handle)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	struct mesh_endpoint_addr endpoint;
	const struct mesh_heard *heard;
	struct mesh_heard_at at = {0};

	mesh_process_assert_locked(process);
	if (!neighbours || !mesh_handle_lacks_nics(handle) || !handle->node_id)
		return;
	while ((heard = mesh_asking_heard_next(&neighbours->asking, handle->node_id, 0, &at))) {
		if (endpoint_of(&heard->about, &endpoint))
			mesh_handle_nic_add(handle, &endpoint);
	}
}

bool mesh_neighbour_hints_ask(struct mesh_process *process, const struct mesh_handle *handle,
			      const struct mesh_path_choice *choice)
{
	struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	uint64_t now_ms = mesh_clock_ms(), waited_ms;

	mesh_process_assert_locked(process);
	if (!neighbours || handle->node_id == process->node_id ||
	    !(is_missing(handle, choice) || mesh_path_is_guess(process->endpoints, choice)) ||
	    all_have_heard(process, handle, choice, true))
		return false;
	waited_ms = mesh_neighbours_waited_ms(neighbours, now_ms);
	if (is_found(process, handle, choice))
		return waited_ms < MESH_ASKING_SETTLE_MS;
	/* Many connections in a row to a node that does not answer wait for one round. */
	if (waited_ms == UINT64_MAX || neighbours->asking.sought != handle->node_id)
		mesh_asking_seek(&neighbours->asking, handle->node_id, now_ms);
	return true;
}

bool mesh_neighbour_hints_wait(struct mesh_process *process, const struct mesh_handle *handle,
			       const struct mesh_path_choice *choice, uint64_t since_ms,
			       uint64_t now_ms)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	uint64_t waited_ms;

	mesh_process_assert_locked(process);
	if (!neighbours || mesh_clock_elapsed_ms(since_ms, now_ms) >= ANSWERS_MS ||
	    all_have_heard(process, handle, choice, false))
		return false;
	/* On a switch another node may answer first, and on most NICs this one is not there. */
	waited_ms = mesh_neighbours_waited_ms(neighbours, now_ms);
	return waited_ms < MESH_ASKING_SETTLE_MS ||
	       (waited_ms < ANSWERS_MS && !is_found(process, handle, choice));
}

void mesh_neighbour_hints_order(struct mesh_process *process, const struct mesh_handle *handle,
				struct mesh_path_choice *choice)
{
	enum mesh_path_proof proofs[MESH_PATH_CHOICE_MAX];
	int i;

	mesh_process_assert_locked(process);
	if (!mesh_setup_of(process)->neighbours || handle->node_id == process->node_id)
		return;
	for (i = 0; i < choice->num_candidates; i++)
		proofs[i] = proof_of(process, handle, &choice->candidates[i]);
	mesh_path_order(process->endpoints, handle->endpoints, proofs, choice);
	mesh_candidates_drained_last(process, choice); /* the classes are in order again */
}

/* ---- routes -------------------------------------------------------------------------------- */

bool mesh_neighbour_hints_route_wait(struct mesh_process *process, const struct mesh_handle *handle,
				     bool *asked)
{
	struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;

	mesh_process_assert_locked(process);
	if (!neighbours || handle->node_id == process->node_id)
		return false;
	if (!*asked)
		mesh_neighbours_search(neighbours);
	*asked = true;
	return mesh_neighbours_searches(neighbours, handle->node_id);
}

const char *mesh_neighbour_hints_route_text(struct mesh_process *process,
					    const struct mesh_handle *handle, char *text,
					    size_t size)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	struct mesh_route route;
	const char *name;
	size_t used;
	int i;

	mesh_process_assert_locked(process);
	*text = '\0';
	if (!neighbours ||
	    mesh_graph_cables(&neighbours->searching.explore.graph, process->node_id,
			      handle->node_id, mesh_clock_ms(), &route) != 1 ||
	    !route.num_relays)
		return text;
	used = (size_t)snprintf(text, size, "The cables lead there over node");
	for (i = 0; i < route.num_relays && used < size; i++) {
		name = mesh_explore_node_name(&neighbours->searching.explore, route.hops[i]);
		used += (size_t)snprintf(text + used, size - used, "%s %s", i ? "," : "",
					 name ? name : "?");
	}
	if (used < size)
		snprintf(text + used, size - used,
			 ", and none there relays for us (NCCL_MESH_RELAY)");
	return text;
}

/* ---- words --------------------------------------------------------------------------------- */

const char *mesh_neighbour_hints_text(struct mesh_process *process, char *text, size_t size)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;

	mesh_process_assert_locked(process);
	*text = '\0';
	return neighbours ? mesh_asking_words(&neighbours->asking, text, size) : text;
}
