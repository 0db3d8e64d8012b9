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

/* Many connections in a row to nodes that do not answer wait for one question, not one each. */
#define ASK_AGAIN_MS 400
/*
 * Answers are waited for until each NIC has one, or for so long after the first question: if the
 * node has answered on another NIC, and if it has not. The listener answers as soon as there is a
 * handle: within a millisecond of a question, unless the processor is busy.
 */
#define FOUND_MS 100
#define MISSING_MS 300

/* What our NIC @dev has heard, or NULL. */
MESH_HOLDS(process)
static const struct mesh_asked *asked_of(struct mesh_process *process, int dev)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	const struct mesh_asked *asked;
	int i, num;

	mesh_process_assert_locked(process);
	if (!neighbours)
		return NULL;
	asked = mesh_neighbours_asked(neighbours, &num);
	for (i = 0; i < num; i++) {
		if (asked[i].ifindex == process->nics[dev]->ifindex)
			return &asked[i];
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
 * The next NIC of ours that may lead to the listener, for all that its addresses say: with guesses,
 * those of the guesses, else all. @next: 0 at first. Returns NULL after the last one.
 */
MESH_HOLDS(process)
static const struct mesh_asked *guess_next(struct mesh_process *process,
					   const struct mesh_path_choice *choice, int *next)
{
	const struct mesh_endpoint_addr *local;
	const struct mesh_asked *asked;
	int num;

	while (*next < choice->num_candidates) {
		local = &process->endpoints[choice->candidates[(*next)++].local];
		asked = asked_of(process, local->nic);
		if (asked && mesh_addr_is_link_local(&local->addr))
			return asked;
	}
	asked = mesh_neighbours_asked(mesh_setup_of(process)->neighbours, &num);
	return !choice->num_candidates && *next < num ? &asked[(*next)++] : NULL;
}

/*
 * True if the node has answered on each NIC that may lead there.
 *
 * @failed: also on those whose latest question could not be sent, so that they ask again
 */
MESH_HOLDS(process)
static bool all_have_heard(struct mesh_process *process, const struct mesh_handle *handle,
			   const struct mesh_path_choice *choice, bool failed)
{
	const struct mesh_asked *asked;
	int next = 0;

	while ((asked = guess_next(process, choice, &next))) {
		if ((failed || !asked->error) && !mesh_asked_has_heard(asked, handle->node_id))
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
	const struct mesh_asked *asked;
	int i, k, num;

	mesh_process_assert_locked(process);
	if (!neighbours || !mesh_handle_lacks_nics(handle))
		return;
	asked = mesh_neighbours_asked(neighbours, &num);
	for (i = 0; i < num; i++) {
		for (k = 0; k < asked[i].num_heard; k++) {
			const struct mesh_heard *heard = asked[i].heard[k];

			if (!heard->error && heard->about.node_id == handle->node_id &&
			    endpoint_of(&heard->about, &endpoint))
				mesh_handle_nic_add(handle, &endpoint);
		}
	}
}

/* When the node was first asked for on all NICs; NULL if it was not, or too long ago. */
MESH_HOLDS(process)
static const uint64_t *sought_find(struct mesh_process *process, uint64_t node_id)
{
	const struct mesh_sought_nodes *sought = &mesh_setup_of(process)->sought_nodes;
	int i;

	for (i = 0; i < MESH_SOUGHT_NODES_MAX; i++) {
		if (node_id && sought->nodes[i].node_id == node_id)
			return &sought->nodes[i].asked_ms;
	}
	return NULL;
}

MESH_HOLDS(process)
static void sought_add(struct mesh_process *process, uint64_t node_id, uint64_t now_ms)
{
	struct mesh_sought_nodes *sought = &mesh_setup_of(process)->sought_nodes;

	sought->nodes[sought->next].node_id = node_id;
	sought->nodes[sought->next].asked_ms = now_ms;
	sought->next = (sought->next + 1) % MESH_SOUGHT_NODES_MAX;
}

void mesh_neighbour_hints_forget(struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	memset(&mesh_setup_of(process)->sought_nodes, 0, sizeof(struct mesh_sought_nodes));
}

bool mesh_neighbour_hints_ask(struct mesh_process *process, const struct mesh_handle *handle,
			      const struct mesh_path_choice *choice)
{
	struct mesh_setup *setup = mesh_setup_of(process);
	uint64_t now_ms = mesh_clock_ms();
	struct mesh_neighbours *neighbours;

	mesh_process_assert_locked(process);
	neighbours = setup->neighbours;
	if (!neighbours || handle->node_id == process->node_id ||
	    !(is_missing(handle, choice) || mesh_path_is_guess(process->endpoints, choice)))
		return false;
	if (all_have_heard(process, handle, choice, true))
		return false;
	if (!sought_find(process, handle->node_id))
		sought_add(process, handle->node_id, now_ms);
	else if (is_found(process, handle, choice) ||
		 mesh_clock_elapsed_ms(setup->neighbours_asked_ms, now_ms) < ASK_AGAIN_MS)
		return true;
	setup->neighbours_asked_ms = now_ms;
	mesh_neighbours_seek(neighbours, handle->node_id);
	return true;
}

bool mesh_neighbour_hints_wait(struct mesh_process *process, const struct mesh_handle *handle,
			       const struct mesh_path_choice *choice, uint64_t since_ms,
			       uint64_t now_ms)
{
	const struct mesh_neighbours *neighbours;
	const struct mesh_asked *asked;
	const uint64_t *asked_ms;
	int next = 0;

	mesh_process_assert_locked(process);
	neighbours = mesh_setup_of(process)->neighbours;
	if (!neighbours || mesh_clock_elapsed_ms(since_ms, now_ms) >= MISSING_MS ||
	    all_have_heard(process, handle, choice, false))
		return false;
	/* On a switch another node may answer first, and on most NICs this one is not there. */
	asked_ms = sought_find(process, handle->node_id);
	if (asked_ms && mesh_clock_elapsed_ms(*asked_ms, now_ms) < FOUND_MS)
		return true;
	if (is_found(process, handle, choice) ||
	    mesh_neighbours_waited_ms(neighbours, now_ms) >= MISSING_MS)
		return false;
	while ((asked = guess_next(process, choice, &next))) {
		if (!asked->answered && !asked->error)
			return true;
	}
	return false;
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

/* The shortest way over cables to the node of @handle. Returns false if none was found. */
MESH_HOLDS(process)
static bool route_find(struct mesh_process *process, const struct mesh_handle *handle,
		       struct mesh_route *route)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;

	mesh_process_assert_locked(process);
	return neighbours && mesh_neighbours_cables(neighbours, handle->node_id, route) == 1;
}

bool mesh_neighbour_hints_route_ask(struct mesh_process *process, const struct mesh_handle *handle)
{
	struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;

	mesh_process_assert_locked(process);
	if (!neighbours || handle->node_id == process->node_id)
		return false;
	return !mesh_neighbours_search(neighbours);
}

bool mesh_neighbour_hints_route_wait(struct mesh_process *process, const struct mesh_handle *handle)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;

	mesh_process_assert_locked(process);
	return neighbours && mesh_neighbours_searches(neighbours, handle->node_id);
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

	*text = '\0';
	if (!route_find(process, handle, &route) || !route.num_relays)
		return text;
	used = (size_t)snprintf(text, size, "The cables lead there over node");
	for (i = 0; i < route.num_relays && used < size; i++) {
		name = mesh_neighbours_node_name(neighbours, route.hops[i]);
		used += (size_t)snprintf(text + used, size - used, "%s %s", i ? "," : "",
					 name ? name : "?");
	}
	if (used < size)
		snprintf(text + used, size - used,
			 ", and none there relays for us (NCCL_MESH_RELAY)");
	return text;
}

/* ---- words --------------------------------------------------------------------------------- */

void mesh_neighbour_hints_look(struct mesh_process *process)
{
	struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;

	mesh_process_assert_locked(process);
	if (neighbours)
		mesh_neighbours_ask(neighbours);
}

const char *mesh_neighbour_hints_text(struct mesh_process *process, char *text, size_t size)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;

	mesh_process_assert_locked(process);
	*text = '\0';
	return neighbours ? mesh_neighbours_words(neighbours, text, size) : text;
}
