/* SPDX-License-Identifier: Apache-2.0 */
/* rank_ring.c - whether NCCL's ring follows the cables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "neighbours/neighbours.h"
#include "nic/graph.h"
#include "setup/relay_try.h"
#include "setup/setup.h"
#include "system/this_process.h"

/* Of the names of all nodes in a message; longer ones end in "...". */
#define NAMES_TEXT_MAX 400
/* Nodes of the largest mesh that is judged: one bit each. */
#define NODES_MAX 64
/* Nodes tried in one search, while NCCL's thread waits: some milliseconds. */
#define STEPS_MAX 20000

/* A node that has ranks of our job. */
struct ring_node {
	uint64_t id;
	uint32_t first_rank;
	const char *name;
};

/* The nodes in the order of their ranks: NCCL's ring passes through them in this order. */
struct rank_ring {
	struct ring_node nodes[NODES_MAX];
	uint64_t joined[NODES_MAX]; /* bit k of element i: the two share a cable */
	int num;
	int own;	/* our place */
	uint32_t ranks; /* on all of them */
};

static void node_add(struct rank_ring *ring, const struct ring_node *node, uint32_t num_ranks)
{
	ring->ranks += num_ranks;
	if (ring->num < NODES_MAX)
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
	if (ring->ranks != rank->size || explore->num_nodes > NODES_MAX)
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

	for (i = 0; i < ring->num; i++) {
		a = mesh_graph_find(graph, ring->nodes[i].id);
		for (k = 0; k < i && a >= 0; k++) {
			b = mesh_graph_find(graph, ring->nodes[k].id);
			if (b < 0 || !mesh_graph_hop(graph, a, b).mbps)
				continue;
			ring->joined[i] |= UINT64_C(1) << k;
			ring->joined[k] |= UINT64_C(1) << i;
		}
	}
}

/* ---- an order that follows the cables -------------------------------------------------------- */

static bool are_joined(const struct rank_ring *ring, int a, int b)
{
	return ring->joined[a] >> b & 1;
}

/*
 * How many nodes share no cable with the one after them in @order, the last with the first. @first:
 * the place of the first of them; untouched if there is none
 */
static int gaps_count(const struct rank_ring *ring, const int *order, int *first)
{
	int i, gaps = 0;

	for (i = ring->num - 1; i >= 0; i--) {
		if (ring->num < 2 || are_joined(ring, order[i], order[(i + 1) % ring->num]))
			continue;
		gaps++;
		*first = i;
	}
	return gaps;
}

struct walk {
	const struct rank_ring *ring;
	int *order;
	uint64_t left; /* nodes that are not in the order yet */
	int steps;     /* left */
	bool closes;   /* the last node must share a cable with the first */
};

/* Of these nodes, the one with the fewest free neighbours: it becomes unreachable first. */
static int narrowest(const struct walk *walk, uint64_t nodes)
{
	int i, num, fewest = NODES_MAX + 1, found = -1;

	for (i = 0; i < walk->ring->num; i++) {
		num = __builtin_popcountll(walk->ring->joined[i] & walk->left);
		if (!(nodes >> i & 1) || num >= fewest)
			continue;
		fewest = num;
		found = i;
	}
	return found;
}

/* Appends what is left to the first @length nodes of the order; takes back what leads nowhere. */
static bool walk_on(struct walk *walk, int length)
{
	int node = walk->order[length - 1], next;
	uint64_t untried = walk->ring->joined[node] & walk->left;

	if (length == walk->ring->num)
		return !walk->closes || are_joined(walk->ring, node, walk->order[0]);
	while (untried && walk->steps-- > 0) {
		next = narrowest(walk, untried);
		untried &= ~(UINT64_C(1) << next);
		walk->left &= ~(UINT64_C(1) << next);
		walk->order[length] = next;
		if (walk_on(walk, length + 1))
			return true;
		walk->left |= UINT64_C(1) << next;
	}
	return false;
}

/* Finds an order without a gap, else one with a single gap. Returns its gaps; -1: none found. */
static int order_find(const struct rank_ring *ring, int *order)
{
	struct walk walk = {.ring = ring, .order = order};
	int gaps, start;

	for (gaps = 0; gaps < 2; gaps++) {
		for (start = 0; start < ring->num; start++) {
			walk.closes = !gaps;
			walk.steps = STEPS_MAX / ring->num;
			walk.left = (UINT64_MAX >> (NODES_MAX - ring->num)) &
				    ~(UINT64_C(1) << start);
			order[0] = start;
			if (walk_on(&walk, 1))
				return gaps;
		}
	}
	return -1;
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
	int order[NODES_MAX], i, gaps, better, first = -1;
	struct rank_ring ring = {.num = 0};

	mesh_process_assert_locked(process);
	if (process->role != MESH_PROCESS_RANK || setup->ring_judged || !setup->rank.size ||
	    !nodes_collect(process, explore, &setup->rank, &ring))
		return;
	links_collect(&explore->graph, &ring);
	for (i = 0; i < ring.num; i++)
		order[i] = i;
	gaps = gaps_count(&ring, order, &first);
	if (ring.own == first && ring.nodes[(first + 1) % ring.num].id != target)
		return; /* this connection is none of the ring's; one of those follows */
	setup->ring_judged = true;
	if (ring.own != first)
		return; /* another node logs it */
	better = order_find(&ring, order);
	if (better >= 0 && better < gaps)
		order_log(&ring, gaps, order, better);
}
