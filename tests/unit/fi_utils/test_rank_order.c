/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rank_order.c - rings and lines in any mesh, and what is reported if there is none; ranks of
 * one site follow each other, over cables where there are some.
 */
#include "plan/rank_order.h"
#include "plan/topology.h"

#include "unit.h"

static void join(struct mesh_topology *topology, int a, int b)
{
	if (mesh_topology_add(topology, (struct mesh_cable_end){a, 0},
			      (struct mesh_cable_end){b, 0}))
		fail_msg("no cable %d - %d", a, b);
}

/* Each pair of letters is a cable: "abbc" joins a with b, and b with c. */
static void mesh_of(struct mesh_topology *topology, int num_nodes, const char *cables)
{
	assert_int_equal(mesh_topology_init(topology, num_nodes), 0);
	for (; *cables; cables += 2)
		join(topology, cables[0] - 'a', cables[1] - 'a');
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

static void order_of(int num_nodes, const char *cables, enum mesh_rank_order_kind kind)
{
	struct mesh_topology topology;

	mesh_of(&topology, num_nodes, cables);
	order_is(&topology, kind, true);
}

TEST(found)
{
	order_of(1, "", MESH_ORDER_RING);
	order_of(2, "ab", MESH_ORDER_RING);
	order_of(3, "abbcca", MESH_ORDER_RING);
	/* A ring with its nodes out of order, and a chord; parallel cables are no second path. */
	order_of(6, "addbdbbffcceeabc", MESH_ORDER_RING);
	order_of(5, "eccaaddb", MESH_ORDER_LINE);
}

TEST(none)
{
	/* A star of three rays has no line, two triangles at one node have a line and no ring. */
	order_of(4, "abacad", MESH_ORDER_GAPS);
	order_of(5, "abbccacddeec", MESH_ORDER_LINE);
	/* Two cables to one neighbour make no ring. */
	order_of(3, "ababbcbc", MESH_ORDER_LINE);
	/* Two parts. */
	order_of(4, "abcd", MESH_ORDER_GAPS);
	/* K(2,4): no single node shows it, only the search does. */
	order_of(6, "acadaeafbcbdbebf", MESH_ORDER_GAPS);
	/* The Petersen graph: a line, no ring. */
	order_of(10, "abbccddeeafhhjjggiifafbgchdiej", MESH_ORDER_LINE);
}

/* The order of four nodes that is found with this hint; @wanted: NULL for any. */
static void hint_is(const char *cables, const int *hint, enum mesh_rank_order_kind kind,
		    const int *wanted)
{
	struct mesh_rank_order order;
	struct mesh_topology topology;

	mesh_of(&topology, 4, cables);
	assert_int_equal(mesh_rank_order_find(&topology, hint, &order), 0);
	assert_int_equal(order.kind, kind);
	assert_true(order.proven);
	if (wanted)
		assert_memory_equal(order.nodes, wanted, 4 * sizeof(*wanted));
	order_holds(&topology, &order);
	mesh_rank_order_free(&order);
	mesh_topology_free(&topology);
}

TEST(hint)
{
	static const int ring[] = {0, 2, 1, 3}, line[] = {1, 0, 2, 3}, wrong[] = {0, 1, 2, 3};

	/* 0 - 2 - 1 - 3 - 0 and 2 - 3 */
	hint_is("accbbdda", ring, MESH_ORDER_RING, ring);
	/* A hint that is not an order is ignored. */
	hint_is("accbbdda", wrong, MESH_ORDER_RING, NULL);
	/* No ring: the hint's line is kept. */
	hint_is("baaccd", line, MESH_ORDER_LINE, line);
}

/* A ring of 1,000 with shuffled numbers is found; a grid of odd size ends in bounded time. */
TEST(large)
{
	struct mesh_rank_order order;
	struct mesh_topology topology;

	assert_int_equal(mesh_topology_init(&topology, 1000), 0);
	for (int i = 0; i < 1000; i++)
		join(&topology, i * 377 % 1000, (i + 1) * 377 % 1000);
	order_is(&topology, MESH_ORDER_RING, true);
	/* 31 x 31 without wrap-around, like a chess board with one field too many: no ring. */
	assert_int_equal(mesh_topology_init(&topology, 31 * 31), 0);
	for (int i = 0; i < 31 * 31; i++) {
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

	assert_int_equal(mesh_topology_init(&topology, 29), 0);
	for (int part = 0; part < 2; part++)
		for (int a = 14 * part; a <= 14 * part + 14; a++)
			for (int b = a + 1; b <= 14 * part + 14; b++)
				join(&topology, a, b);
	order_is(&topology, MESH_ORDER_LINE, true);
}

/* ---- sites --------------------------------------------------------------------------------- */

#define NODES_MAX 16

/*
 * Finds the order of nodes; "aabb" is the site of each. Each pair of letters of
 * @cables joins two nodes.
 */
static void site_order_is(const char *letters, int num_sites, const char *cables,
			  enum mesh_rank_order_kind kind, int gaps)
{
	int sites[NODES_MAX], num = 0, crossings = 0, i;
	bool seen[NODES_MAX] = {false};
	struct mesh_topology topology;
	struct mesh_rank_order order;

	for (; letters[num]; num++)
		sites[num] = letters[num] - 'a';
	mesh_of(&topology, num, cables);
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

TEST(sites)
{
	/* Routers join the sites: a step between two ranks is no cable, and so is the last one. */
	site_order_is("abab", 2, "acbd", MESH_ORDER_GAPS, 1);
	site_order_is("aaabbb", 2, "abbccadeeffd", MESH_ORDER_GAPS, 1);
	site_order_is("ab", 2, "", MESH_ORDER_GAPS, 1);
	site_order_is("aabbcc", 3, "abcdef", MESH_ORDER_GAPS, 2);
	/* A ring of all nodes in the order of the cables crosses at every step here. */
	/* Sites 0-2-4 and 1-3-5, all neighbours inside, and cables 0-1, 2-3, 4-5 across. */
	site_order_is("ababab", 2, "acceeabddffbabcdef", MESH_ORDER_RING, 0);
	/* Two lines, of which one has to be turned round. */
	site_order_is("aaabbb", 2, "abbcdeefcf", MESH_ORDER_LINE, 0);
	site_order_is("aaabbb", 2, "abbcdeefad", MESH_ORDER_LINE, 0);
	site_order_is("aaabbb", 2, "abbcdeefcfad", MESH_ORDER_RING, 0);
	/* Two rings of four, joined by one cable: each begins or ends there. */
	site_order_is("aaaabbbb", 2, "abbccddaeffgghhebg", MESH_ORDER_LINE, 0);
	site_order_is("aaaabbbb", 2, "abbccddaeffgghhebgcf", MESH_ORDER_RING, 0);
}
