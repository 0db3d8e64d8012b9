/* SPDX-License-Identifier: Apache-2.0 */
/* rank_ring.c - whether NCCL's ring follows the cables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "neighbours/neighbours.h"
#include "nic/graph.h"
#include "nic/ring_order.h"
#include "setup/rank_ring.h"
#include "setup/setup.h"
#include "system/this_process.h"

/* Of the names of all nodes in a message; longer ones end in "...". */
#define NAMES_TEXT_MAX 400

/* A node that has ranks of our job. */
struct ring_node {
	uint64_t id;
	uint32_t first_rank;
	const char *name;
};

/* The nodes in the order of their ranks: NCCL's ring passes through them in this order. */
struct rank_ring {
	struct ring_node nodes[MESH_RING_NODES_MAX];
	struct mesh_ring ring;
	int num;
	int own;	/* our place */
	uint32_t ranks; /* on all of them */
};

static void node_add(struct rank_ring *ring, const struct ring_node *node, uint32_t num_ranks)
{
	ring->ranks += num_ranks;
	if (ring->num < MESH_RING_NODES_MAX)
		ring->nodes[ring->num++] = *node;
}

static int node_compare(const void *a, const void *b)
{
	const struct ring_node *node = a, *other = b;

	return (node->first_rank > other->first_rank) - (node->first_rank < other->first_rank);
}

/* Collects the nodes. Returns true if they have all ranks of the job. */
MESH_HOLDS(process)
static bool nodes_collect(const struct mesh_process *process, const struct mesh_explore *explore,
			  const struct mesh_job_rank *rank, struct rank_ring *ring)
{
	const struct mesh_explored *node;
	struct ring_node entry = {process->node_id, rank->rank - rank->local_rank, process->name};
	int i;

	node_add(ring, &entry, rank->each);
	for (i = 1; i < explore->num_nodes; i++) {
		node = &explore->nodes[i];
		if (!node->known || !node->num_ranks)
			continue;
		if (!node->first_rank)
			return false;
		entry = (struct ring_node){node->id, node->first_rank - 1, node->node};
		node_add(ring, &entry, node->num_ranks);
	}
	if (ring->ranks != rank->size || explore->num_nodes > MESH_RING_NODES_MAX)
		return false;
	qsort(ring->nodes, (size_t)ring->num, sizeof(ring->nodes[0]), node_compare);
	for (i = 0; i < ring->num; i++) {
		if (ring->nodes[i].id == process->node_id)
			ring->own = i;
	}
	return true;
}

static void links_collect(const struct mesh_graph *graph, struct rank_ring *ring)
{
	int i, k, a, b;

	ring->ring.num = ring->num;
	for (i = 0; i < ring->num; i++) {
		a = mesh_graph_find(graph, ring->nodes[i].id);
		for (k = 0; k < i && a >= 0; k++) {
			b = mesh_graph_find(graph, ring->nodes[k].id);
			if (b >= 0 && mesh_graph_width(graph, a, b))
				mesh_ring_join(&ring->ring, i, k);
		}
	}
}

/* "a, c, b, d" */
static const char *names_text(const struct rank_ring *ring, const int *order, char *text,
			      size_t size)
{
	size_t used = 0;
	int i;

	*text = '\0';
	for (i = 0; i < ring->num && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
					 ring->nodes[order[i]].name);
	if (used >= size)
		snprintf(text + size - 4, 4, "...");
	return text;
}

static void order_log(const struct rank_ring *ring, int gaps, const int *order, int better)
{
	const struct ring_node *here = &ring->nodes[ring->own];
	const struct ring_node *next = &ring->nodes[(ring->own + 1) % ring->num];
	char names[NAMES_TEXT_MAX];

	mesh_warn("the nodes %s (rank %u) and %s (rank %u) follow each other in NCCL's ring and "
		  "share no cable; relays carry %d of its %d steps. Start the ranks on the nodes "
		  "in the order %s: then %s. `fi_mesh plan` writes the order for a mesh",
		  here->name, here->first_rank, next->name, next->first_rank, gaps, ring->num,
		  names_text(ring, order, names, sizeof(names)),
		  better ? "relays carry one step" : "every step has a cable");
}

void mesh_rank_ring_judge(struct mesh_process *process, uint64_t target)
{
	struct mesh_setup *setup = mesh_setup_of(process);
	const struct mesh_explore *explore = &setup->neighbours->searching.explore;
	int order[MESH_RING_NODES_MAX], i, gaps, better, first = -1;
	struct rank_ring ring = {.num = 0};

	mesh_process_assert_locked(process);
	if (process->role != MESH_PROCESS_RANK || setup->ring_judged || !setup->rank.size ||
	    !nodes_collect(process, explore, &setup->rank, &ring))
		return;
	links_collect(&explore->graph, &ring);
	for (i = 0; i < ring.num; i++)
		order[i] = i;
	gaps = mesh_ring_gaps(&ring.ring, order, &first);
	if (ring.own == first && ring.nodes[(first + 1) % ring.num].id != target)
		return; /* this connection is none of the ring's; one of those follows */
	setup->ring_judged = true;
	if (ring.own != first)
		return; /* another node logs it */
	better = mesh_ring_order_find(&ring.ring, order);
	if (better >= 0 && better < gaps)
		order_log(&ring, gaps, order, better);
}
