/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph.c - the mesh as its nodes describe it, and routes through it. */
#include "graph_fixture.h"

#define NODES 9
#define TRIALS 3000

TESTS_USE(setup, teardown);

static uint32_t width(char a, char b)
{
	return mesh_graph_hop(&graph, mesh_graph_find(&graph, (uint64_t)a),
			      mesh_graph_find(&graph, (uint64_t)b))
		.mbps;
}

/* ---- the graph ----------------------------------------------------------------------------- */

/* A link counts if both ends have said it, with the same NICs. */
TEST(both_ends)
{
	cables("ab1000");
	say('c', 'a', 0, 5, 1000, false); /* a lie */
	say('a', 'd', 1, 0, 1000, false); /* other NICs than d says */
	say('d', 'a', 1, 1, 1000, false);
	report("abcd");
	assert_int_equal(width('a', 'b'), 1000);
	assert_int_equal(width('b', 'a'), 1000);
	assert_int_equal(width('a', 'c'), 0);
	assert_int_equal(width('c', 'a'), 0);
	assert_int_equal(width('a', 'd'), 0);
	finds('a', 'c', 15, "");
	finds('a', 'b', 0, "b:1000");
	finds('a', 'x', 15, "");
	finds('a', 'a', 15, "");
}

/* Parallel cables add up, at the speed of the slower end; two halves on one wire count twice. */
TEST(width)
{
	cables("ab100 ab200");
	said['b'][1].speed_mbps = 50;
	cables("ac0");
	report("abc");
	assert_int_equal(width('a', 'b'), 150);
	assert_int_equal(width('a', 'c'), 1);
	for (int i = 0; i < 4; i++) {
		say('e', 'f', i / 2, i % 2, 100, false);
		say('f', 'e', i / 2, i % 2, 100, false);
	}
	report("ef");
	assert_int_equal(width('e', 'f'), 200);
}

/* A report replaces the one before; what cannot be is left out. */
TEST(report)
{
	struct mesh_graph_link many[MESH_GRAPH_LINKS_MAX + 9];
	int i;

	cables("ab100");
	say('a', 'a', 2, 3, 100, false);
	say('a', 'c', 16, 0, 100, false);
	say('a', 'c', 0, 255, 100, false);
	report("ab");
	assert_int_equal(graph.nodes[0].num_links, 1);
	unsaid("a");
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
	cables("ab100 bc100 cd100 da100");
	report("abcd");
	finds('a', 'c', 15, "bc:100 dc:100");
	finds('a', 'b', 15, "b:100 dcb:100-");
	/* d goes, and e comes between c and a. */
	mesh_graph_finish(&graph);
	memset(num_said, 0, sizeof(num_said));
	cables("ab100 bc100 cd100 de100 ea100");
	report("abcde");
	finds('a', 'c', 15, "bc:100 edc:100-");
	finds('a', 'c', 1, "bc:100");
	finds('a', 'c', 0, "");
}

/* Fewest relays first, then the widest; who does not relay is not passed. */
TEST(order)
{
	cables("ab10 bz1000 ac100 cz90 ad1000 de1000 ez1000 as1000 sz1000");
	silent['s'] = true;
	report("abcdezs");
	finds('a', 'z', 15, "cz:90 bz:10 dez:1000-");
	/* It may still be the end of a route. */
	finds('s', 'b', 15, "zb:1000 ab:10");
}

/* The widest route blocks both others; two disjoint ones are found all the same. */
TEST(trap)
{
	cables("ab100 bf100 fz100 ac10 cf10 bg10 gz10");
	report("abcfgz");
	finds('a', 'z', 15, "bgz:10 cfz:10");
	/* Without g the widest is the only one of its length. */
	unsaid("g");
	finds('a', 'z', 15, "bfz:100");
}

/* Of several shortest routes the one beside those that are in use. */
TEST(beside)
{
	cables("ab100 ac10 bf100 bg10 cf10 cg10 fz100 gz10");
	report("abcfgz");
	finds_beside('a', 'z', "bf", "cgz:10");
	finds_beside('a', 'z', "xfg", ""); /* and x is unknown */
}

/* What a node has said over another route is added to what it has said before, once. */
TEST(add)
{
	struct mesh_graph_link more[2] = {{.node_id = 'b', .speed_mbps = 100},
					  {.node_id = 'c', .speed_mbps = 100, .nic = 1}};

	cables("ab100");
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
	for (int to = 1; to < NODES; to++) {
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
	char text[16];

	mesh_graph_finish(&graph);
	memset(num_said, 0, sizeof(num_said));
	memset(widths, 0, sizeof(widths));
	for (int i = 0; i < NODES; i++) {
		for (int k = i + 1; k < NODES; k++) {
			if (draw(100) >= 32)
				continue;
			widths[i][k] = widths[k][i] = 1 + draw(5);
			snprintf(text, sizeof(text), "%c%c%u", 'a' + i, 'a' + k, widths[i][k]);
			cables(text);
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
		assert_int_equal(mesh_route_fits(&routes[0], &routes[i]),
				 routes[i].num_relays == routes[0].num_relays);
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
	cables("ax100 xb100 ac10 cd10 db10");
	report("abcdx");
}

TEST(site_first)
{
	detour_make();
	finds('a', 'b', 15, "xb:100 cdb:10-");
	site_set("abcd", 1);
	site_set("x", 2);
	finds('a', 'b', 15, "cdb:10 xb:100-^");
	/* Nothing else leads there. */
	finds('a', 'b', 1, "xb:100^");
}

/* Between two sites the relays are in either; a third one comes later. */
TEST(two_sites)
{
	detour_make();
	site_set("ac", 1);
	site_set("db", 2);
	site_set("x", 3);
	finds('a', 'b', 15, "cdb:10 xb:100-^");
	site_set("x", 2);
	finds('a', 'b', 15, "xb:100 cdb:10-");
	/* A node without a site may be in any, and so may an end. */
	site_set("x", 0);
	finds('a', 'b', 15, "xb:100 cdb:10-");
	site_set("x", 3);
	site_set("b", 0);
	finds('a', 'b', 15, "xb:100 cdb:10-");
}

/* Routes avoid a hop whose cables are all drained, at either end, unless there is no other way. */
TEST(drained)
{
	cables("ab1000 ab500 bc1000 ad100 de100 ec100");
	said['b'][0].drained = true;
	report("abcde");
	assert_int_equal(width('a', 'b'), 500);
	finds('a', 'c', 15, "bc:500 dec:100-");
	said['a'][1].drained = true;
	report("a");
	assert_int_equal(width('a', 'b'), 1500);
	finds('a', 'c', 15, "dec:100 bc:1000-?");
	silent['e'] = true;
	report("e");
	finds('a', 'c', 15, "bc:1000?");
}
