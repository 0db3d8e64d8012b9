/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph.c - the mesh as its nodes describe it, and routes through it. */
#include "nic/graph_routes.h"

#include "graph_fixture.h"

#define NODES 9
#define TRIALS 3000

TESTS_USE(setup, teardown);

/* The routes that pass none of these nodes. */
static void find_beside(char from, char to, const char *avoided)
{
	uint64_t ids[8];
	int num;

	for (num = 0; avoided[num]; num++)
		ids[num] = (uint64_t)avoided[num];
	num_routes = mesh_graph_routes_beside(&graph, (uint64_t)from, (uint64_t)to, 15, 1000, ids,
					      num, routes, MESH_ROUTES_MAX);
}

static void find(char from, char to, int relays_max)
{
	num_routes = mesh_graph_routes(&graph, (uint64_t)from, (uint64_t)to, relays_max, 1000,
				       routes, MESH_ROUTES_MAX);
	assert_true(num_routes >= 0);
}

/* "bc" for the route over b to c. */
static const char *text(int i)
{
	static char letters[MESH_ROUTE_RELAYS_MAX + 2];
	int k;

	assert_true(i < num_routes);
	for (k = 0; k <= routes[i].num_relays; k++)
		letters[k] = (char)routes[i].hops[k];
	letters[k] = '\0';
	return letters;
}

static uint32_t width(char a, char b)
{
	return mesh_graph_width(&graph, mesh_graph_find(&graph, (uint64_t)a),
				mesh_graph_find(&graph, (uint64_t)b));
}

/* ---- the graph ----------------------------------------------------------------------------- */

/* A link counts if both ends have said it, with the same NICs. */
TEST(both_ends)
{
	cable('a', 'b', 1000);
	say('c', 'a', 0, 5, 1000); /* a lie */
	say('a', 'd', 1, 0, 1000); /* other NICs than d says */
	say('d', 'a', 1, 1, 1000);
	report("abcd");
	assert_int_equal(width('a', 'b'), 1000);
	assert_int_equal(width('b', 'a'), 1000);
	assert_int_equal(width('a', 'c'), 0);
	assert_int_equal(width('c', 'a'), 0);
	assert_int_equal(width('a', 'd'), 0);
	find('a', 'c', 15);
	assert_int_equal(num_routes, 0);
	find('a', 'b', 0);
	assert_string_equal(text(0), "b");
	find('a', 'x', 15);
	assert_int_equal(num_routes, 0);
	find('a', 'a', 15);
	assert_int_equal(num_routes, 0);
}

/* Parallel cables add up, at the speed of the slower end; two halves on one wire count twice. */
TEST(width)
{
	cable('a', 'b', 100);
	cable('a', 'b', 200);
	said['b'][1].speed_mbps = 50;
	cable('a', 'c', 0);
	report("abc");
	assert_int_equal(width('a', 'b'), 150);
	assert_int_equal(width('a', 'c'), 1);
	say('e', 'f', 0, 0, 100);
	say('e', 'f', 0, 1, 100);
	say('e', 'f', 1, 0, 100);
	say('e', 'f', 1, 1, 100);
	say('f', 'e', 0, 0, 100);
	say('f', 'e', 0, 1, 100);
	say('f', 'e', 1, 0, 100);
	say('f', 'e', 1, 1, 100);
	report("ef");
	assert_int_equal(width('e', 'f'), 200);
}

/* A report replaces the one before; what cannot be is left out. */
TEST(report)
{
	struct mesh_graph_link many[MESH_GRAPH_LINKS_MAX + 9];
	int i;

	cable('a', 'b', 100);
	say('a', 'a', 2, 3, 100);
	say('a', 'c', 16, 0, 100);
	say('a', 'c', 0, 255, 100);
	report("ab");
	assert_int_equal(graph.nodes[0].num_links, 1);
	num_said['a'] = 0;
	report("a");
	assert_int_equal(width('a', 'b'), 0);
	assert_int_equal(graph.num_nodes, 2);
	for (i = 0; i < MESH_GRAPH_LINKS_MAX + 9; i++)
		many[i] = (struct mesh_graph_link){.node_id = 1000 + (uint64_t)i};
	i = mesh_graph_report(&graph, 'z', true, false, many, MESH_GRAPH_LINKS_MAX + 9);
	assert_int_equal(graph.nodes[i].num_links, MESH_GRAPH_LINKS_MAX);
	for (i = graph.num_nodes; i < MESH_GRAPH_NODES_MAX; i++)
		assert_int_equal(
			mesh_graph_report(&graph, 5000 + (uint64_t)i, true, false, many, 1), i);
	assert_int_equal(mesh_graph_report(&graph, 9999, true, false, many, 1), -ENOSPC);
	assert_int_equal(mesh_graph_find(&graph, 9999), -1);
	assert_int_equal(mesh_graph_find(&graph, 'b'), 1);
	assert_int_equal(mesh_graph_find(&graph, 5000 + 700), 700);
}

/* ---- routes -------------------------------------------------------------------------------- */

/* The diagonal of a ring of 4 goes both ways round; a ring of 5 has one and a standby. */
TEST(rings)
{
	cable('a', 'b', 100);
	cable('b', 'c', 100);
	cable('c', 'd', 100);
	cable('d', 'a', 100);
	report("abcd");
	find('a', 'c', 15);
	assert_int_equal(num_routes, 2);
	assert_string_equal(text(0), "bc");
	assert_string_equal(text(1), "dc");
	assert_false(routes[0].standby || routes[1].standby);
	find('a', 'b', 15);
	assert_string_equal(text(0), "b");
	assert_string_equal(text(1), "dcb");
	assert_true(routes[1].standby);
	/* d goes, and e comes between c and a. */
	mesh_graph_finish(&graph);
	memset(num_said, 0, sizeof(num_said));
	cable('a', 'b', 100);
	cable('b', 'c', 100);
	cable('c', 'd', 100);
	cable('d', 'e', 100);
	cable('e', 'a', 100);
	report("abcde");
	find('a', 'c', 15);
	assert_int_equal(num_routes, 2);
	assert_string_equal(text(0), "bc");
	assert_string_equal(text(1), "edc");
	assert_true(routes[1].standby && !routes[0].standby);
	find('a', 'c', 1);
	assert_int_equal(num_routes, 1);
	find('a', 'c', 0);
	assert_int_equal(num_routes, 0);
}

/* Fewest relays first, then the widest; who does not relay is not passed. */
TEST(order)
{
	cable('a', 'b', 10);
	cable('b', 'z', 1000);
	cable('a', 'c', 100);
	cable('c', 'z', 90);
	cable('a', 'd', 1000);
	cable('d', 'e', 1000);
	cable('e', 'z', 1000);
	cable('a', 's', 1000);
	cable('s', 'z', 1000);
	silent['s'] = true;
	report("abcdezs");
	find('a', 'z', 15);
	assert_int_equal(num_routes, 3);
	assert_string_equal(text(0), "cz");
	assert_int_equal(routes[0].width_mbps, 90);
	assert_string_equal(text(1), "bz");
	assert_int_equal(routes[1].width_mbps, 10);
	assert_string_equal(text(2), "dez");
	assert_true(routes[2].standby && !routes[1].standby);
	/* It may still be the end of a route. */
	find('s', 'b', 15);
	assert_int_equal(routes[0].num_relays, 1);
	/* The cables lead over it all the same. */
	assert_int_equal(mesh_graph_cables(&graph, 'a', 'z', 1000, &routes[0]), 1);
	assert_string_equal(text(0), "sz");
}

/* The widest route blocks both others; two disjoint ones are found all the same. */
TEST(trap)
{
	cable('a', 'b', 100);
	cable('b', 'f', 100);
	cable('f', 'z', 100);
	cable('a', 'c', 10);
	cable('c', 'f', 10);
	cable('b', 'g', 10);
	cable('g', 'z', 10);
	report("abcfgz");
	find('a', 'z', 15);
	assert_int_equal(num_routes, 2);
	assert_int_equal(routes[0].num_relays, 2);
	assert_int_equal(routes[1].num_relays, 2);
	assert_false(routes[1].standby);
	/* Without g the widest is the only one of its length. */
	num_said['g'] = 0;
	report("g");
	find('a', 'z', 15);
	assert_int_equal(num_routes, 1);
	assert_string_equal(text(0), "bfz");
}

/* Of several shortest routes the one beside those that are in use. */
TEST(beside)
{
	cable('a', 'b', 100);
	cable('a', 'c', 10);
	cable('b', 'f', 100);
	cable('b', 'g', 10);
	cable('c', 'f', 10);
	cable('c', 'g', 10);
	cable('f', 'z', 100);
	cable('g', 'z', 10);
	report("abcfgz");
	find_beside('a', 'z', "bf");
	assert_string_equal(text(0), "cgz");
	find_beside('a', 'z', "xfg");
	assert_false(num_routes); /* and x is unknown */
}

/* A hop that has failed comes last, and is forgiven in time. */
TEST(doubt)
{
	int i;

	cable('a', 'b', 1000);
	cable('b', 'z', 1000);
	cable('a', 'c', 100);
	cable('c', 'd', 100);
	cable('d', 'z', 100);
	report("abcdz");
	mesh_graph_doubt(&graph, 'z', 'b', 1500);
	find('a', 'z', 15);
	assert_int_equal(num_routes, 2);
	assert_string_equal(text(0), "cdz");
	assert_false(routes[0].standby || routes[0].doubtful);
	assert_string_equal(text(1), "bz");
	assert_true(routes[1].standby && routes[1].doubtful);
	mesh_graph_doubt(&graph, 'a', 'c', 1500);
	find('a', 'z', 15);
	assert_string_equal(text(0), "bz");
	assert_true(routes[0].doubtful && !routes[0].standby && routes[1].standby);
	/* Many doubts forget the one that would end first. */
	for (i = 0; i < MESH_GRAPH_DOUBTS_MAX - 1; i++)
		mesh_graph_doubt(&graph, 100 + (uint64_t)i, 200 + (uint64_t)i, 5000);
	assert_true(mesh_graph_is_doubtful(&graph, 'b', 'z', 1000) !=
		    mesh_graph_is_doubtful(&graph, 'a', 'c', 1000));
	mesh_graph_doubt(&graph, 'z', 'b', 1000);
	assert_false(mesh_graph_is_doubtful(&graph, 'b', 'z', 1000));
}

/* A node with which several others have failed is avoided in all routes. */
TEST(doubted_node)
{
	cable('a', 'm', 1000);
	cable('m', 'z', 1000);
	cable('a', 'b', 100);
	cable('b', 'c', 100);
	cable('c', 'z', 100);
	report("amzbc");
	find('a', 'z', 15);
	assert_string_equal(text(0), "mz");
	mesh_graph_doubt(&graph, 'm', 'x', 5000);
	find('a', 'z', 15);
	assert_string_equal(text(0), "mz");
	mesh_graph_doubt(&graph, 'y', 'm', 5000);
	find('a', 'z', 15);
	assert_string_equal(text(0), "bcz");
	assert_true(routes[1].doubtful);
}

/* A node in doubt comes last in each route, and may be asked in a search. */
TEST(node_in_doubt)
{
	cable('a', 'm', 1000);
	cable('m', 'z', 1000);
	cable('a', 'b', 100);
	cable('b', 'c', 100);
	cable('c', 'z', 100);
	report("amzbc");
	mesh_graph_doubt(&graph, 'm', 0, 5000);
	find('a', 'z', 15);
	assert_string_equal(text(0), "bcz");
	assert_true(routes[1].doubtful);
	assert_false(mesh_graph_hop_is_doubtful(&graph, 'a', 'm', 1000));
	mesh_graph_doubt(&graph, 'm', 0, 0); /* no longer */
	find('a', 'z', 15);
	assert_string_equal(text(0), "mz");
	assert_false(routes[0].doubtful);
}

/* What a node has said over another route is added to what it has said before, once. */
TEST(add)
{
	struct mesh_graph_link more[2] = {{.node_id = 'b', .speed_mbps = 100},
					  {.node_id = 'c', .speed_mbps = 100, .nic = 1}};

	cable('a', 'b', 100);
	report("ab");
	assert_int_equal(mesh_graph_report(&graph, 'a', true, true, more, 2), 0);
	assert_int_equal(graph.nodes[0].num_links, 2);
	assert_int_equal(width('a', 'b'), 100);
	assert_int_equal(mesh_graph_report(&graph, 'a', true, false, more, 1), 0);
	assert_int_equal(graph.nodes[0].num_links, 1);
}

/* ---- random graphs ------------------------------------------------------------------------- */

static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static uint32_t widths[NODES][NODES];
/* All routes of one length from node 0 to node 1, as sets of relays, with their width. */
static uint32_t sets[4096], set_widths[4096];
static int num_sets;

static void routes_list(int at, int left, uint32_t passed, uint32_t narrowest)
{
	int to;

	for (to = 1; to < NODES; to++) {
		uint32_t next = widths[at][to] < narrowest ? widths[at][to] : narrowest;

		if (!widths[at][to] || passed & 1u << to)
			continue;
		if (to == 1 && !left) {
			sets[num_sets] = passed & ~1u;
			set_widths[num_sets++] = next;
			assert_true(num_sets < 4096);
		} else if (to != 1 && left) {
			routes_list(to, left - 1, passed | 1u << to, next);
		}
	}
}

/* The most of these routes that share no relay. */
static int most_disjoint(int from, uint32_t taken)
{
	int i, with, best = 0;

	for (i = from; i < num_sets; i++) {
		if (sets[i] & taken)
			continue;
		with = 1 + most_disjoint(i + 1, taken | sets[i]);
		if (with > best)
			best = with;
	}
	return best;
}

static void random_graph_make(void)
{
	int i, k;

	mesh_graph_finish(&graph);
	memset(num_said, 0, sizeof(num_said));
	memset(widths, 0, sizeof(widths));
	for (i = 0; i < NODES; i++) {
		for (k = i + 1; k < NODES; k++) {
			if (draw(100) >= 32)
				continue;
			widths[i][k] = widths[k][i] = 1 + draw(5);
			cable((char)('a' + i), (char)('a' + k), widths[i][k]);
		}
	}
	report("abcdefghi");
}

/* Each route is one, they share no relay, and they are in order. */
static void routes_check(void)
{
	uint32_t seen = 0, narrowest;
	int i, k, at, to;

	for (i = 0; i < num_routes; i++) {
		narrowest = UINT32_MAX;
		at = 0;
		for (k = 0; k <= routes[i].num_relays; k++) {
			to = (int)routes[i].hops[k] - 'a';
			assert_true(widths[at][to]);
			assert_true(k == routes[i].num_relays ? to == 1 : !(seen & 1u << to));
			if (to != 1)
				seen |= 1u << to;
			if (widths[at][to] < narrowest)
				narrowest = widths[at][to];
			at = to;
		}
		assert_int_equal(routes[i].width_mbps, narrowest);
		assert_int_equal(routes[i].standby, routes[i].num_relays > routes[0].num_relays);
		if (i)
			assert_true(routes[i].num_relays > routes[i - 1].num_relays ||
				    routes[i].width_mbps <= routes[i - 1].width_mbps);
	}
}

/* Against all that there are: the length, how many of it, and that one route is the widest. */
TEST(random)
{
	int trial, relays, i, same, several = 0, none = 0;
	uint32_t widest;

	for (trial = 0; trial < TRIALS; trial++) {
		random_graph_make();
		find('a', 'b', 15);
		routes_check();
		for (relays = 0, num_sets = 0; relays < NODES - 1 && !num_sets; relays++)
			routes_list(0, relays, 1, UINT32_MAX);
		assert_int_equal(!num_routes, !num_sets);
		none += !num_sets;
		if (!num_sets)
			continue;
		for (i = 0, widest = 0; i < num_sets; i++)
			widest = set_widths[i] > widest ? set_widths[i] : widest;
		for (i = 0, same = 0; i < num_routes; i++)
			same += routes[i].num_relays == routes[0].num_relays;
		assert_int_equal(routes[0].num_relays, relays - 1);
		assert_int_equal(same, relays == 1 ? 1 : most_disjoint(0, 0));
		if (same == 1)
			assert_int_equal(routes[0].width_mbps, widest);
		several += same > 1;
	}
	/* The trials have had all cases. */
	assert_true(several > TRIALS / 20 && none > TRIALS / 100);
}

/* ---- sites --------------------------------------------------------------------------------- */

/* From a to b over x, or over c and d. */
static void detour_make(void)
{
	cable('a', 'x', 100);
	cable('x', 'b', 100);
	cable('a', 'c', 10);
	cable('c', 'd', 10);
	cable('d', 'b', 10);
	report("abcdx");
}

TEST(site_first)
{
	detour_make();
	find('a', 'b', 15);
	assert_string_equal(text(0), "xb");
	assert_false(routes[0].leaves);
	site_set("abcd", 1);
	site_set("x", 2);
	find('a', 'b', 15);
	assert_int_equal(num_routes, 2);
	assert_string_equal(text(0), "cdb");
	assert_false(routes[0].leaves || routes[0].standby);
	assert_string_equal(text(1), "xb");
	assert_true(routes[1].leaves && routes[1].standby);
	/* Nothing else leads there. */
	find('a', 'b', 1);
	assert_int_equal(num_routes, 1);
	assert_string_equal(text(0), "xb");
	assert_true(routes[0].leaves);
	assert_false(routes[0].standby);
}

/* Between two sites the relays are in either; a third one comes later. */
TEST(two_sites)
{
	detour_make();
	site_set("ac", 1);
	site_set("db", 2);
	site_set("x", 3);
	find('a', 'b', 15);
	assert_string_equal(text(0), "cdb");
	site_set("x", 2);
	find('a', 'b', 15);
	assert_string_equal(text(0), "xb");
	/* A node without a site may be in any, and so may an end. */
	site_set("x", 0);
	find('a', 'b', 15);
	assert_string_equal(text(0), "xb");
	site_set("x", 3);
	site_set("b", 0);
	find('a', 'b', 15);
	assert_string_equal(text(0), "xb");
}

/* Routes avoid a hop whose cables are all drained, at either end, unless there is no other way. */
TEST(drained)
{
	cable('a', 'b', 1000);
	cable('a', 'b', 500);
	cable('b', 'c', 1000);
	cable('a', 'd', 100);
	cable('d', 'e', 100);
	cable('e', 'c', 100);
	said['b'][0].drained = true;
	report("abcde");
	assert_int_equal(width('a', 'b'), 500);
	find('a', 'c', 15);
	assert_string_equal(text(0), "bc");
	assert_false(routes[0].doubtful);
	said['a'][1].drained = true;
	report("a");
	assert_int_equal(width('a', 'b'), 1500);
	find('a', 'c', 15);
	assert_string_equal(text(0), "dec");
	assert_string_equal(text(1), "bc");
	assert_true(routes[1].standby && routes[1].doubtful);
	silent['e'] = true;
	report("e");
	find('a', 'c', 15);
	assert_int_equal(num_routes, 1);
	assert_string_equal(text(0), "bc");
}
