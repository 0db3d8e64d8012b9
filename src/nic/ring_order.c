/* SPDX-License-Identifier: Apache-2.0 */
/* ring_order.c - an order of nodes in which each shares a link with the next. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "nic/ring_order.h"

/* Nodes put into the order in one search, those taken out again included: milliseconds. */
#define STEPS_MAX 20000

struct search {
	const struct mesh_ring *ring;
	int *order;
	bool closes;   /* the last node must share a link with the first */
	uint64_t free; /* nodes that are not in the order yet */
	int steps;     /* left */
};

void mesh_ring_join(struct mesh_ring *ring, int a, int b)
{
	ring->joined[a] |= UINT64_C(1) << b;
	ring->joined[b] |= UINT64_C(1) << a;
}

static bool are_joined(const struct mesh_ring *ring, int a, int b)
{
	return ring->joined[a] >> b & 1;
}

int mesh_ring_gaps(const struct mesh_ring *ring, const int *order, int *first)
{
	int i, gaps = 0;

	for (i = ring->num - 1; i >= 0; i--) {
		if (ring->num < 2 || are_joined(ring, order[i], order[(i + 1) % ring->num]))
			continue;
		gaps++;
		if (first)
			*first = i;
	}
	return gaps;
}

/* Of these nodes, the one with the fewest free neighbours: it becomes unreachable first. */
static int narrowest(const struct search *search, uint64_t nodes)
{
	int i, num, fewest = MESH_RING_NODES_MAX + 1, found = -1;

	for (i = 0; i < search->ring->num; i++) {
		if (!(nodes >> i & 1))
			continue;
		num = __builtin_popcountll(search->ring->joined[i] & search->free);
		if (num >= fewest)
			continue;
		fewest = num;
		found = i;
	}
	return found;
}

/*
 * True if a node that is not in the order yet can no longer be passed: it has too few neighbours
 * among the other such nodes, the order's last node, and, in a ring, the first.
 */
static bool is_dead_end(const struct search *search, int last, int start)
{
	uint64_t open = search->free | UINT64_C(1) << last;
	int i, need, ends = 0;

	if (search->closes)
		open |= UINT64_C(1) << start;
	for (i = 0; i < search->ring->num; i++) {
		if (!(search->free >> i & 1))
			continue;
		need = __builtin_popcountll(search->ring->joined[i] & open);
		ends += need == 1;
		if (!need || (search->closes ? need < 2 : ends > 1))
			return true;
	}
	return false;
}

/* Walks from @start, and back from dead ends, until all nodes are in the order. */
static bool search_from(struct search *search, int start)
{
	uint64_t untried[MESH_RING_NODES_MAX]; /* of each place: what may follow it */
	int length = 1, node;

	search->free = search->ring->num == MESH_RING_NODES_MAX
			       ? UINT64_MAX
			       : (UINT64_C(1) << search->ring->num) - 1;
	search->free &= ~(UINT64_C(1) << start);
	search->order[0] = start;
	untried[0] = search->ring->joined[start] & search->free;
	while (length) {
		node = search->order[length - 1];
		if (length == search->ring->num &&
		    (!search->closes || length < 2 || are_joined(search->ring, node, start)))
			return true;
		if (!untried[length - 1]) {
			search->free |= UINT64_C(1) << node;
			length--;
			continue;
		}
		if (!search->steps--)
			return false;
		node = narrowest(search, untried[length - 1]);
		untried[length - 1] &= ~(UINT64_C(1) << node);
		search->free &= ~(UINT64_C(1) << node);
		search->order[length] = node;
		untried[length++] = is_dead_end(search, node, start)
					    ? 0
					    : search->ring->joined[node] & search->free;
	}
	return false;
}

/* Turns a ring until node 0 comes first. */
static void rotate(int *order, int num)
{
	int turned[MESH_RING_NODES_MAX] = {0}, i, zero = 0;

	for (i = 0; i < num; i++) {
		if (!order[i])
			zero = i;
	}
	for (i = 0; i < num; i++)
		turned[i] = order[(zero + i) % num];
	memcpy(order, turned, (size_t)num * sizeof(*order));
}

int mesh_ring_order_find(const struct mesh_ring *ring, int *order)
{
	struct search search = {.ring = ring, .order = order, .closes = true, .steps = STEPS_MAX};
	int start;

	for (start = 0; start < ring->num; start++) {
		search.steps = STEPS_MAX / ring->num;
		if (search_from(&search, start)) {
			rotate(order, ring->num);
			return 0;
		}
		if (search.steps >= 0)
			break; /* there is no ring */
	}
	search.closes = false;
	for (start = 0; start < ring->num; start++) {
		search.steps = STEPS_MAX / ring->num;
		if (search_from(&search, start))
			return mesh_ring_gaps(ring, order, NULL);
	}
	return -1;
}
