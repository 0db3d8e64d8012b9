/* SPDX-License-Identifier: Apache-2.0 */
/* test_site_order.c - ranks of one site follow each other, over cables where there are some. */
#include "plan/site_order.h"
#include "plan/topology.h"

#include "unit.h"

#define NODES_MAX 16

/* Finds the order of @num nodes; "aabb" is the site of each. Pairs of nodes, ended by -1. */
static void order_is(const char *letters, int num_sites, const int *pairs,
		     enum mesh_rank_order_kind kind, int gaps)
{
	int sites[NODES_MAX], num = 0, crossings = 0, i;
	bool seen[NODES_MAX] = {false};
	struct mesh_topology topology;
	struct mesh_rank_order order;

	for (; letters[num]; num++)
		sites[num] = letters[num] - 'a';
	assert_int_equal(mesh_topology_init(&topology, num), 0);
	for (; *pairs >= 0; pairs += 2)
		assert_int_equal(mesh_topology_add(&topology, (struct mesh_cable_end){pairs[0], 0},
						   (struct mesh_cable_end){pairs[1], 0}),
				 0);
	assert_int_equal(mesh_site_order_find(&topology, sites, num_sites, &order), 0);
	for (i = 0; i < num; i++) {
		assert_in_range(order.nodes[i], 0, num - 1);
		assert_false(seen[order.nodes[i]]);
		seen[order.nodes[i]] = true;
		crossings += sites[order.nodes[i]] != sites[order.nodes[(i + 1) % num]];
	}
	assert_int_equal(crossings, num_sites);
	assert_int_equal(order.kind, kind);
	assert_int_equal(order.num_gaps, gaps);
	mesh_rank_order_free(&order);
	mesh_topology_free(&topology);
}

#define PAIRS(...) ((const int[]){__VA_ARGS__, -1})

/* Routers join the sites: one step between two ranks is no cable, and so is the last one. */
TEST(no_cables)
{
	order_is("abab", 2, PAIRS(0, 2, 1, 3), MESH_ORDER_GAPS, 1);
	order_is("aaabbb", 2, PAIRS(0, 1, 1, 2, 2, 0, 3, 4, 4, 5, 5, 3), MESH_ORDER_GAPS, 1);
	order_is("ab", 2, PAIRS(-1), MESH_ORDER_GAPS, 1);
	order_is("aabbcc", 3, PAIRS(0, 1, 2, 3, 4, 5), MESH_ORDER_GAPS, 2);
}

/* A ring of all nodes in the order of the cables crosses at every step here. */
TEST(crossing_cables)
{
	/* Sites 0-2-4 and 1-3-5, all neighbours inside, and cables 0-1, 2-3, 4-5 across. */
	order_is("ababab", 2, PAIRS(0, 2, 2, 4, 4, 0, 1, 3, 3, 5, 5, 1, 0, 1, 2, 3, 4, 5),
		 MESH_ORDER_RING, 0);
}

/* Two lines, of which one has to be turned round. */
TEST(turned)
{
	order_is("aaabbb", 2, PAIRS(0, 1, 1, 2, 3, 4, 4, 5, 2, 5), MESH_ORDER_LINE, 0);
	order_is("aaabbb", 2, PAIRS(0, 1, 1, 2, 3, 4, 4, 5, 0, 3), MESH_ORDER_LINE, 0);
	order_is("aaabbb", 2, PAIRS(0, 1, 1, 2, 3, 4, 4, 5, 2, 5, 0, 3), MESH_ORDER_RING, 0);
}

/* Two rings of four, joined by one cable: each begins or ends there. */
TEST(cut)
{
	order_is("aaaabbbb", 2, PAIRS(0, 1, 1, 2, 2, 3, 3, 0, 4, 5, 5, 6, 6, 7, 7, 4, 1, 6),
		 MESH_ORDER_LINE, 0);
	order_is("aaaabbbb", 2, PAIRS(0, 1, 1, 2, 2, 3, 3, 0, 4, 5, 5, 6, 6, 7, 7, 4, 1, 6, 2, 5),
		 MESH_ORDER_RING, 0);
}
