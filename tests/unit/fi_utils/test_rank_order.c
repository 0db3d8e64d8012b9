/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank_order.c - rings and lines in any mesh, and what is reported if there is none. */
#include "plan/rank_order.h"
#include "plan/topology.h"

#include "unit.h"

static void join(struct mesh_topology *topology, int a, int b)
{
	if (mesh_topology_add(topology, (struct mesh_cable_end){a, 0},
			      (struct mesh_cable_end){b, 0}))
		fail_msg("no cable %d - %d", a, b);
}

/* Pairs of nodes, ended by -1. */
static void mesh_of(struct mesh_topology *topology, int num_nodes, const int *pairs)
{
	assert_int_equal(mesh_topology_init(topology, num_nodes), 0);
	for (; *pairs >= 0; pairs += 2)
		join(topology, pairs[0], pairs[1]);
}

/* Each node once; the gaps are as many as the order says. */
static void order_holds(const struct mesh_topology *topology, const struct mesh_rank_order *order)
{
	int num = topology->num_nodes, i, gaps = 0;
	bool *seen = calloc((size_t)num, sizeof(*seen));
	struct mesh_neighbours neighbours;

	assert_non_null(seen);
	assert_int_equal(mesh_neighbours_load(topology, &neighbours), 0);
	for (i = 0; i < num; i++) {
		assert_in_range(order->nodes[i], 0, num - 1);
		assert_false(seen[order->nodes[i]]);
		seen[order->nodes[i]] = true;
		gaps += i &&
			!mesh_neighbours_joined(&neighbours, order->nodes[i - 1], order->nodes[i]);
	}
	assert_int_equal(order->num_gaps, gaps);
	assert_int_equal(order->kind == MESH_ORDER_GAPS, gaps > 0);
	if (order->kind == MESH_ORDER_RING && num > 1)
		assert_true(mesh_neighbours_joined(&neighbours, order->nodes[0],
						   order->nodes[num - 1]));
	mesh_neighbours_free(&neighbours);
	free(seen);
}

static void order_is(struct mesh_topology *topology, enum mesh_rank_order_kind kind, bool proven)
{
	struct mesh_rank_order order;

	assert_int_equal(mesh_rank_order_find(topology, NULL, &order), 0);
	assert_int_equal(order.kind, kind);
	assert_int_equal(order.proven, proven);
	order_holds(topology, &order);
	mesh_rank_order_free(&order);
	mesh_topology_free(topology);
}

#define PAIRS(...) ((const int[]){__VA_ARGS__, -1})

TEST(found)
{
	struct mesh_topology topology;

	mesh_of(&topology, 1, PAIRS(-1));
	order_is(&topology, MESH_ORDER_RING, true);
	mesh_of(&topology, 2, PAIRS(0, 1));
	order_is(&topology, MESH_ORDER_RING, true);
	mesh_of(&topology, 3, PAIRS(0, 1, 1, 2, 2, 0));
	order_is(&topology, MESH_ORDER_RING, true);
	/* A ring with its nodes out of order, and a chord; parallel cables are no second path. */
	mesh_of(&topology, 6, PAIRS(0, 3, 3, 1, 3, 1, 1, 5, 5, 2, 2, 4, 4, 0, 1, 2));
	order_is(&topology, MESH_ORDER_RING, true);
	mesh_of(&topology, 5, PAIRS(4, 2, 2, 0, 0, 3, 3, 1));
	order_is(&topology, MESH_ORDER_LINE, true);
}

TEST(none)
{
	struct mesh_topology topology;

	/* A star of three rays has no line, two triangles at one node have a line and no ring. */
	mesh_of(&topology, 4, PAIRS(0, 1, 0, 2, 0, 3));
	order_is(&topology, MESH_ORDER_GAPS, true);
	mesh_of(&topology, 5, PAIRS(0, 1, 1, 2, 2, 0, 2, 3, 3, 4, 4, 2));
	order_is(&topology, MESH_ORDER_LINE, true);
	/* Two cables to one neighbour make no ring. */
	mesh_of(&topology, 3, PAIRS(0, 1, 0, 1, 1, 2, 1, 2));
	order_is(&topology, MESH_ORDER_LINE, true);
	/* Two parts. */
	mesh_of(&topology, 4, PAIRS(0, 1, 2, 3));
	order_is(&topology, MESH_ORDER_GAPS, true);
	/* K(2,4): no single node shows it, only the search does. */
	mesh_of(&topology, 6, PAIRS(0, 2, 0, 3, 0, 4, 0, 5, 1, 2, 1, 3, 1, 4, 1, 5));
	order_is(&topology, MESH_ORDER_GAPS, true);
	/* The Petersen graph: a line, no ring. */
	mesh_of(&topology, 10,
		PAIRS(0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 5, 7, 7, 9, 9, 6, 6, 8, 8, 5, 0, 5, 1, 6, 2, 7,
		      3, 8, 4, 9));
	order_is(&topology, MESH_ORDER_LINE, true);
}

TEST(hint)
{
	static const int ring[] = {0, 2, 1, 3}, line[] = {1, 0, 2, 3}, wrong[] = {0, 1, 2, 3};
	struct mesh_rank_order order;
	struct mesh_topology topology;

	/* 0 - 2 - 1 - 3 - 0 and 2 - 3 */
	mesh_of(&topology, 4, PAIRS(0, 2, 2, 1, 1, 3, 3, 0));
	assert_int_equal(mesh_rank_order_find(&topology, ring, &order), 0);
	assert_int_equal(order.kind, MESH_ORDER_RING);
	assert_memory_equal(order.nodes, ring, sizeof(ring));
	mesh_rank_order_free(&order);
	/* A hint that is not an order is ignored. */
	assert_int_equal(mesh_rank_order_find(&topology, wrong, &order), 0);
	assert_int_equal(order.kind, MESH_ORDER_RING);
	order_holds(&topology, &order);
	mesh_rank_order_free(&order);
	mesh_topology_free(&topology);
	/* No ring: the hint's line is kept. */
	mesh_of(&topology, 4, PAIRS(1, 0, 0, 2, 2, 3));
	assert_int_equal(mesh_rank_order_find(&topology, line, &order), 0);
	assert_int_equal(order.kind, MESH_ORDER_LINE);
	assert_memory_equal(order.nodes, line, sizeof(line));
	assert_true(order.proven);
	mesh_rank_order_free(&order);
	mesh_topology_free(&topology);
}

/* A ring of 1,000 with shuffled numbers is found; a grid of odd size ends in bounded time. */
TEST(large)
{
	struct mesh_rank_order order;
	struct mesh_topology topology;
	int i;

	assert_int_equal(mesh_topology_init(&topology, 1000), 0);
	for (i = 0; i < 1000; i++)
		join(&topology, i * 377 % 1000, (i + 1) * 377 % 1000);
	order_is(&topology, MESH_ORDER_RING, true);
	/* 31 x 31 without wrap-around, like a chess board with one field too many: no ring. */
	assert_int_equal(mesh_topology_init(&topology, 31 * 31), 0);
	for (i = 0; i < 31 * 31; i++) {
		if (i % 31 < 30)
			join(&topology, i, i + 1);
		if (i / 31 < 30)
			join(&topology, i, i + 31);
	}
	assert_int_equal(mesh_rank_order_find(&topology, NULL, &order), 0);
	assert_int_not_equal(order.kind, MESH_ORDER_RING);
	assert_false(order.proven);
	order_holds(&topology, &order);
	mesh_rank_order_free(&order);
	mesh_topology_free(&topology);
}

/* Two dense parts that share one node: no search would end; that node alone is the proof. */
TEST(cut_node)
{
	struct mesh_topology topology;
	int part, a, b;

	assert_int_equal(mesh_topology_init(&topology, 29), 0);
	for (part = 0; part < 2; part++)
		for (a = 14 * part; a <= 14 * part + 14; a++)
			for (b = a + 1; b <= 14 * part + 14; b++)
				join(&topology, a, b);
	order_is(&topology, MESH_ORDER_LINE, true);
}
