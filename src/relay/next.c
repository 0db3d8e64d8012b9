/* SPDX-License-Identifier: Apache-2.0 */
/* next.c - where a circuit may go on. */
#include <string.h>

#include "neighbours/neighbours.h"
#include "nic/path_choice.h"
#include "relay/next.h"

/* The heard NIC's address that shares a subnet with our endpoint; else NULL. */
static const struct mesh_neighbour_addr *common_addr(const struct mesh_endpoint_addr *local,
						     const struct mesh_neighbour *about)
{
	struct mesh_addr addr;

	if (!about->num_addrs)
		return NULL;
	/* A node's endpoint is bound to the first one. */
	mesh_neighbour_addr_get(&about->addrs[0], &addr);
	return mesh_addr_same_subnet(&local->addr, &addr) ? &about->addrs[0] : NULL;
}

/* The provider that our NIC has in common with the one that was heard. */
MESH_HOLDS(process)
static enum mesh_provider_id common_provider(const struct mesh_process *process, int dev,
					     const struct mesh_neighbour *about)
{
	enum mesh_provider_id provider = process->providers[dev];

	if (!(about->providers >> provider & 1))
		provider = MESH_PROVIDER_TCP;
	return about->providers >> provider & 1 ? provider : MESH_PROVIDER_NONE;
}

/* The endpoint of our NIC; NULL: it has none. */
MESH_HOLDS(process)
static const struct mesh_endpoint_addr *endpoint_of(const struct mesh_process *process,
						    unsigned int ifindex)
{
	int i;

	for (i = 0; i < process->num_endpoints; i++) {
		if (process->nics[process->endpoints[i].nic]->ifindex == ifindex)
			return &process->endpoints[i];
	}
	return NULL;
}

/* A NIC of another node that was heard on ours. Returns false if the two have no path. */
MESH_HOLDS(process)
static bool heard_take(const struct mesh_process *process, const struct mesh_neighbours *neighbours,
		       const struct mesh_heard_at *at, const struct mesh_heard *heard,
		       struct mesh_next *next)
{
	const struct mesh_endpoint_addr *ours =
		endpoint_of(process, neighbours->asking.links[at->link].ifindex);
	const struct mesh_neighbour *about = &heard->about;
	const struct mesh_neighbour_addr *addr = ours ? common_addr(ours, about) : NULL;

	if (!addr)
		return false;
	memset(next, 0, sizeof(*next));
	mesh_neighbour_addr_get(addr, &next->way.address.addr);
	next->way.address.provider = common_provider(process, ours->nic, about);
	next->way.address.nic = about->nic;
	next->way.index = mesh_process_domain_index(process, ours->nic, next->way.address.provider);
	next->way.needs_carrier = true;
	next->drained = about->flags & MESH_NEIGHBOUR_DRAINED ||
			mesh_process_is_drained(process, ours->nic);
	next->node_id = about->node_id;
	memcpy(next->node, about->node, sizeof(next->node));
	return next->way.index >= 0;
}

/* The best that suitability() returns. */
#define SUITABILITY_MAX 3

/*
 * How far a process may be asked to relay for @job: 3 it belongs to that job, 2 it is there for
 * such jobs, 1 it may relay for all (@any), 0 not at all.
 */
static int suitability(const struct mesh_neighbour_process *process, uint64_t job, bool any)
{
	if (!process->control_port || process->protocol != MESH_PROTOCOL_VERSION)
		return 0;
	if (job && process->job == job)
		return SUITABILITY_MAX;
	if (mesh_neighbour_serves(process, job))
		return 2;
	return any ? 1 : 0;
}

/* The process at place @at of those of the node that may relay for @job, the best first. */
static const struct mesh_neighbour_process *process_find(const struct mesh_neighbour *about,
							 uint64_t job, bool any, int at)
{
	int i, wanted;

	for (wanted = SUITABILITY_MAX; wanted > 0; wanted--) {
		for (i = 0; i < about->num_processes; i++) {
			if (suitability(&about->processes[i], job, any) == wanted && !at--)
				return &about->processes[i];
		}
	}
	return NULL;
}

static void process_name(const struct mesh_neighbour_process *process, struct mesh_next *next)
{
	next->way.control_port = process->control_port;
	next->way.listen_id = MESH_LISTEN_RELAY;
	next->way.cookie = process->process_id;
}

/* Drained ones come last, then each turn has those over RDMA first. */
static bool is_before(const struct mesh_next *a, const struct mesh_next *b)
{
	if (a->drained != b->drained)
		return b->drained;
	if (a->turn != b->turn)
		return a->turn < b->turn;
	return a->way.address.provider == MESH_PROVIDER_VERBS_RXM &&
	       b->way.address.provider != MESH_PROVIDER_VERBS_RXM;
}

/* Else they keep their order. */
static void nexts_sort(struct mesh_next *nexts, int num)
{
	struct mesh_next next;
	int i, k;

	for (i = 1; i < num; i++) {
		next = nexts[i];
		for (k = i; k && is_before(&next, &nexts[k - 1]); k--)
			nexts[k] = nexts[k - 1];
		nexts[k] = next;
	}
}

int mesh_nexts_of_node(const struct mesh_process *process, const struct mesh_neighbours *neighbours,
		       uint64_t node_id, uint64_t job, struct mesh_next *nexts, int max)
{
	bool any = !strcmp(process->config.relay, "any");
	const struct mesh_neighbour_process *found;
	const struct mesh_heard *heard;
	struct mesh_heard_at place;
	int at, num = 0;

	mesh_process_assert_locked(process);
	for (at = 0; neighbours && at < MESH_NEIGHBOUR_PROCESSES_MAX; at++) {
		place = (struct mesh_heard_at){0};
		while (num < max &&
		       (heard = mesh_asking_heard_next(&neighbours->asking, node_id, 0, &place))) {
			found = process_find(&heard->about, job, any, at);
			if (!found || !heard_take(process, neighbours, &place, heard, &nexts[num]))
				continue;
			process_name(found, &nexts[num]);
			nexts[num++].turn = at;
		}
	}
	nexts_sort(nexts, num);
	return num;
}

static void listener_name(const struct mesh_handle *handle, struct mesh_next *next)
{
	mesh_way_listener_set(&next->way, handle);
	next->node_id = handle->node_id;
	memcpy(next->node, handle->node, sizeof(next->node));
}

/* True if another one leads there over the same two NICs. */
static bool is_listed(const struct mesh_next *nexts, int num, const struct mesh_next *next)
{
	int i;

	for (i = 0; i < num; i++) {
		if (nexts[i].way.index == next->way.index &&
		    mesh_addr_equal(&nexts[i].way.address.addr, &next->way.address.addr))
			return true;
	}
	return false;
}

/* By common subnets, the best first; returns the new number. */
MESH_HOLDS(process)
static int subnets_take(const struct mesh_process *process, const struct mesh_handle *handle,
			struct mesh_next *nexts, int num, int max)
{
	const struct mesh_path_hints hints = {
		.remote_nic = handle->dev,
		.spread = handle->listen_id,
		.same_node = handle->node_id == process->node_id,
	};
	const struct mesh_path_candidate *pair;
	struct mesh_path_choice choice;

	mesh_path_choose(process->endpoints, process->num_endpoints, handle->endpoints,
			 handle->num_endpoints, &hints, &choice);
	for (pair = choice.candidates;
	     pair < choice.candidates + choice.num_candidates && num < max; pair++) {
		/* Every link has the same link-local subnet: such a pair proves nothing. */
		if (mesh_addr_is_link_local(&handle->endpoints[pair->remote].addr))
			continue;
		nexts[num] = (struct mesh_next){.turn = 1};
		if (!mesh_way_of_pair(process, handle, pair, &nexts[num].way) ||
		    is_listed(nexts, num, &nexts[num]))
			continue;
		nexts[num].drained =
			mesh_process_is_drained(process, mesh_way_dev(&nexts[num].way));
		num++;
	}
	return num;
}

int mesh_nexts_of_handle(const struct mesh_process *process,
			 const struct mesh_neighbours *neighbours, const struct mesh_handle *handle,
			 struct mesh_next *nexts, int max)
{
	const struct mesh_heard *heard;
	struct mesh_heard_at at = {0};
	int i, num = 0;

	mesh_process_assert_locked(process);
	while (neighbours && handle->node_id && num < max &&
	       (heard = mesh_asking_heard_next(&neighbours->asking, handle->node_id, 0, &at))) {
		num += heard_take(process, neighbours, &at, heard, &nexts[num]);
	}
	num = subnets_take(process, handle, nexts, num, max);
	for (i = 0; i < num; i++)
		listener_name(handle, &nexts[i]);
	nexts_sort(nexts, num);
	return num;
}
