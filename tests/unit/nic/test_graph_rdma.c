/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_rdma.c - routes with RDMA on each hop come before others. */
#include "nic/graph_routes.h"

#include "graph_fixture.h"

TESTS_USE(setup, teardown);

/* A cable between the next NICs of both, of which these have RDMA. */
static void cable_of(char a, char b, uint32_t speed, bool a_has, bool b_has)
{
	int nic = num_said[(int)a]++, peer_nic = num_said[(int)b]++;

	said[(int)a][nic] = (struct mesh_graph_link){.node_id = (uint64_t)b,
						     .speed_mbps = speed,
						     .nic = (uint8_t)nic,
						     .peer_nic = (uint8_t)peer_nic,
						     .rdma = a_has};
	said[(int)b][peer_nic] = (struct mesh_graph_link){.node_id = (uint64_t)a,
							  .speed_mbps = speed,
							  .nic = (uint8_t)peer_nic,
							  .peer_nic = (uint8_t)nic,
							  .rdma = b_has};
}

static void rdma(char a, char b, uint32_t speed)
{
	cable_of(a, b, speed, true, true);
}

/* From a to z. */
static void find(void)
{
	num_routes = mesh_graph_routes(&graph, 'a', 'z', 15, 1000, routes, MESH_ROUTES_MAX);
	assert_true(num_routes >= 0);
}

/* Route @i leads over these nodes, to z at last. */
static void leads(int i, const char *nodes)
{
	int k;

	assert_true(i < num_routes);
	assert_int_equal(routes[i].num_relays + 1, strlen(nodes));
	for (k = 0; nodes[k]; k++)
		assert_int_equal(routes[i].hops[k], nodes[k]);
}

/* It goes before wider and shorter ones, and these are not used beside it. */
TEST(rdma_first)
{
	cable('a', 'b', 100000);
	cable('b', 'z', 100000);
	rdma('a', 'c', 10000);
	rdma('c', 'z', 10000);
	rdma('a', 'd', 10000);
	rdma('d', 'e', 10000);
	rdma('e', 'z', 10000);
	report("abcdez");
	find();
	assert_int_equal(num_routes, 3);
	leads(0, "cz");
	leads(1, "dez");
	leads(2, "bz");
	assert_true(routes[0].rdma && routes[1].rdma && !routes[2].rdma);
	assert_true(!routes[0].standby && routes[1].standby && routes[2].standby);
	/* Without c the longer one goes first. */
	num_said['c'] = 0;
	report("c");
	find();
	assert_int_equal(num_routes, 2);
	leads(0, "dez");
	leads(1, "bz");
	assert_true(!routes[0].standby && routes[1].standby);
}

/* Both have RDMA, and are as long: then the widest first, and they are used together. */
TEST(alike)
{
	rdma('a', 'b', 10000);
	rdma('b', 'z', 10000);
	rdma('a', 'c', 40000);
	rdma('c', 'z', 40000);
	report("abcz");
	find();
	leads(0, "cz");
	leads(1, "bz");
	assert_false(routes[0].standby || routes[1].standby);
}

/* A hop has RDMA if one of its cables has it at both ends: that cable is the one that is taken. */
TEST(hops)
{
	cable_of('a', 'b', 100000, true, false);
	rdma('b', 'z', 100000);
	cable_of('a', 'c', 100000, false, true);
	rdma('c', 'z', 100000);
	cable('a', 'd', 100000);
	rdma('a', 'd', 1000);
	rdma('d', 'e', 10000);
	rdma('e', 'z', 10000);
	report("abcdez");
	assert_int_equal(mesh_graph_rdma_width(&graph, 0, mesh_graph_find(&graph, 'b')), 0);
	assert_int_equal(mesh_graph_rdma_width(&graph, 0, mesh_graph_find(&graph, 'c')), 0);
	assert_int_equal(mesh_graph_rdma_width(&graph, 0, mesh_graph_find(&graph, 'd')), 1000);
	assert_int_equal(mesh_graph_width(&graph, 0, mesh_graph_find(&graph, 'd')), 101000);
	find();
	assert_int_equal(num_routes, 3);
	leads(0, "dez");
	assert_true(routes[0].rdma);
	assert_int_equal(routes[0].width_mbps, 1000);
	assert_false(routes[1].rdma || routes[2].rdma);
	assert_int_equal(routes[1].width_mbps, 100000);
}

/* Inside the site first; among those over another one, RDMA counts again. */
TEST(sites)
{
	cable('a', 'b', 1000);
	cable('b', 'z', 1000);
	cable('a', 'x', 100000);
	cable('x', 'z', 100000);
	rdma('a', 'y', 1000);
	rdma('y', 'w', 1000);
	rdma('w', 'z', 1000);
	report("abwxyz");
	site_set("abz", 1);
	site_set("wxy", 2);
	find();
	assert_int_equal(num_routes, 3);
	leads(0, "bz");
	leads(1, "ywz");
	leads(2, "xz");
	assert_true(routes[1].leaves && routes[1].rdma && routes[1].standby);
	assert_true(routes[2].leaves && !routes[2].rdma && routes[2].standby);
	/* Nothing inside leads there. */
	num_said['b'] = 0;
	report("b");
	find();
	assert_int_equal(num_routes, 2);
	leads(0, "ywz");
	leads(1, "xz");
	assert_true(!routes[0].standby && routes[1].standby);
}

/* What has failed comes last, also with RDMA; among that, RDMA comes first. */
TEST(doubts)
{
	cable('a', 'b', 1000);
	cable('b', 'z', 1000);
	cable('a', 'c', 1000);
	cable('c', 'z', 1000);
	rdma('a', 'd', 1000);
	rdma('d', 'e', 1000);
	rdma('e', 'z', 1000);
	report("abcdez");
	mesh_graph_doubt(&graph, 'a', 'c', 5000);
	mesh_graph_doubt(&graph, 'e', 'z', 5000);
	find();
	assert_int_equal(num_routes, 3);
	leads(0, "bz");
	leads(1, "dez");
	leads(2, "cz");
	assert_true(routes[1].standby && routes[2].standby);
}

/* A cable between the two goes before everything, with all that it carries. */
TEST(direct)
{
	cable('a', 'z', 1000);
	rdma('a', 'b', 100000);
	rdma('b', 'z', 100000);
	report("abz");
	find();
	assert_int_equal(num_routes, 2);
	leads(0, "z");
	leads(1, "bz");
	assert_true(!routes[0].rdma && routes[1].rdma);
	assert_int_equal(routes[0].width_mbps, 1000);
	rdma('a', 'z', 500);
	report("az");
	find();
	leads(0, "z");
	assert_true(routes[0].rdma);
	assert_int_equal(routes[0].width_mbps, 1500);
}

/* For messages the shortest way counts. */
TEST(cables)
{
	cable('a', 'b', 1000);
	cable('b', 'z', 1000);
	rdma('a', 'd', 1000);
	rdma('d', 'e', 1000);
	rdma('e', 'z', 1000);
	report("abdez");
	num_routes = mesh_graph_cables(&graph, 'a', 'z', 1000, routes);
	assert_int_equal(num_routes, 1);
	leads(0, "bz");
}

/* A link that is reported twice has RDMA if one of the reports says so. */
TEST(twice)
{
	struct mesh_graph_link again;

	cable_of('a', 'z', 1000, true, false);
	report("az");
	assert_true(mesh_graph_has_rdma(&graph, 'a'));
	assert_false(mesh_graph_has_rdma(&graph, 'z'));
	assert_false(mesh_graph_has_rdma(&graph, 'b'));
	assert_int_equal(mesh_graph_rdma_width(&graph, 0, 1), 0);
	again = said['z'][0];
	again.rdma = true;
	assert_int_equal(mesh_graph_report(&graph, 'z', true, true, &again, 1), 1);
	assert_int_equal(graph.nodes[1].num_links, 1);
	assert_int_equal(mesh_graph_rdma_width(&graph, 0, 1), 1000);
	again.rdma = false;
	assert_int_equal(mesh_graph_report(&graph, 'z', true, true, &again, 1), 1);
	assert_int_equal(mesh_graph_rdma_width(&graph, 0, 1), 1000);
}

TEST(fits)
{
	const struct mesh_route first = {.num_relays = 1, .rdma = true};
	struct mesh_route route = first;

	route.width_mbps = 7;
	assert_true(mesh_route_fits(&first, &route));
	route.rdma = false;
	assert_false(mesh_route_fits(&first, &route));
	assert_false(mesh_route_fits(&route, &first));
	route = first;
	route.num_relays = 2;
	assert_false(mesh_route_fits(&first, &route));
	route = first;
	route.leaves = true;
	assert_false(mesh_route_fits(&first, &route));
	route = first;
	route.doubtful = true;
	assert_false(mesh_route_fits(&first, &route));
}

/* A shorter route shares a relay with the first one: it is only found without the other relay. */
TEST(shared_relay)
{
	const uint64_t avoided = 'b';

	rdma('a', 'b', 10000);
	rdma('b', 'c', 10000);
	rdma('c', 'z', 10000);
	cable('a', 'c', 10000);
	report("abcz");
	find();
	assert_int_equal(num_routes, 1);
	leads(0, "bcz");
	num_routes = mesh_graph_routes_beside(&graph, 'a', 'z', 15, 1000, &avoided, 1, routes,
					      MESH_ROUTES_MAX);
	assert_int_equal(num_routes, 1);
	leads(0, "cz");
}

/* Routes of the kernels without RDMA come behind those that are sound and stay inside the site. */
TEST(precedes_tcp)
{
	const struct mesh_route good = {.num_relays = 2, .rdma = true};
	struct mesh_route route = good;

	assert_true(mesh_route_precedes_tcp(&good));
	route.rdma = false;
	assert_false(mesh_route_precedes_tcp(&route));
	route = good;
	route.num_relays = 0;
	assert_false(mesh_route_precedes_tcp(&route));
	route = good;
	route.leaves = true;
	assert_false(mesh_route_precedes_tcp(&route));
	route = good;
	route.doubtful = true;
	assert_false(mesh_route_precedes_tcp(&route));
}

/* A cable that is no path is stepped over, and so is what tcp goes before. */
TEST(together)
{
	cable('a', 'z', 10000);
	rdma('a', 'b', 10000);
	rdma('b', 'z', 10000);
	rdma('a', 'c', 10000);
	rdma('c', 'z', 10000);
	cable('a', 'd', 10000);
	cable('d', 'z', 10000);
	report("abcdz");
	find();
	assert_int_equal(num_routes, 4);
	leads(0, "z");
	num_routes = mesh_routes_together(routes, num_routes, true);
	assert_int_equal(num_routes, 2);
	leads(0, "bz");
	leads(1, "cz");
}

/* Without RDMA there is nothing before routed tcp, and relays are all there is else. */
TEST(together_tcp)
{
	cable('a', 'z', 10000);
	cable('a', 'd', 10000);
	cable('d', 'z', 10000);
	report("adz");
	find();
	assert_int_equal(mesh_routes_together(routes, num_routes, true), 0);
	find();
	num_routes = mesh_routes_together(routes, num_routes, false);
	assert_int_equal(num_routes, 1);
	leads(0, "dz");
	assert_int_equal(mesh_routes_together(routes, 0, false), 0);
	assert_int_equal(mesh_routes_together(routes, -ENOMEM, false), 0);
}

static bool may_have(void)
{
	return mesh_graph_rdma_hope(&graph, 'a', 'z', 1000);
}

/* A link that only one end has reported may be confirmed later, whichever end that is. */
TEST(may_have)
{
	struct mesh_graph_link last;

	assert_false(may_have());
	rdma('a', 'b', 1000);
	rdma('b', 'c', 1000);
	rdma('c', 'z', 1000);
	report("abcz");
	assert_true(may_have());
	last = said['b'][1];
	num_said['b'] = 1; /* b has not heard c yet */
	report("b");
	find();
	assert_int_equal(num_routes, 0);
	assert_true(may_have());
	num_said['b'] = 2;
	said['b'][1] = last;
	num_said['c'] = 0; /* nor has c anybody */
	report("bc");
	find();
	assert_int_equal(num_routes, 0);
	assert_true(may_have());
	num_said['z'] = 0;
	report("z");
	assert_false(may_have());
}

/* A node that has not answered may have more links. */
TEST(may_have_unknown)
{
	rdma('a', 'b', 1000);
	rdma('b', 'c', 1000);
	report("ab");
	assert_true(may_have());
	report("c");
	assert_false(may_have());
	report("z");
	assert_false(may_have());
}

/* What is known to have no RDMA, or not to relay, stays so. */
TEST(may_not_have)
{
	cable_of('a', 'b', 1000, true, false);
	rdma('b', 'z', 1000);
	rdma('a', 'c', 1000);
	cable('c', 'z', 1000);
	rdma('a', 'd', 1000);
	rdma('d', 'z', 1000);
	silent['d'] = true;
	report("abcdz");
	assert_false(may_have());
	silent['d'] = false;
	report("d");
	assert_true(may_have());
}

/* Its route does not go before routed tcp, and time does not change that. */
static void no_route_precedes(void)
{
	int i;

	find();
	for (i = 0; i < num_routes; i++)
		assert_false(mesh_route_precedes_tcp(&routes[i]));
	assert_false(may_have());
}

/* A link that either end drains does not help; another cable beside it does. */
TEST(may_have_drained)
{
	rdma('a', 'b', 1000);
	rdma('b', 'z', 1000);
	said['b'][1].drained = true;
	report("abz");
	no_route_precedes();
	said['b'][1].drained = false;
	said['z'][0].drained = true;
	report("bz");
	no_route_precedes();
	num_said['b'] = 1; /* nor if b has not heard z yet */
	report("b");
	no_route_precedes();
	num_said['b'] = 2;
	rdma('b', 'z', 1000);
	report("bz");
	assert_true(may_have());
}

/* Nor does one that has failed a moment ago, nor a node that is stopped, though it says nothing. */
TEST(may_have_doubtful)
{
	rdma('a', 'b', 1000);
	rdma('b', 'z', 1000);
	report("abz");
	mesh_graph_doubt(&graph, 'b', 'z', 1001);
	no_route_precedes();
	mesh_graph_doubt(&graph, 'b', 'z', 1000);
	assert_true(may_have());
	rdma('a', 'c', 1000);
	num_said['b'] = 0;
	report("ab");
	assert_true(may_have());
	mesh_graph_doubt(&graph, 'c', 0, 1001);
	mesh_graph_doubt(&graph, 'a', 'b', 1001);
	assert_false(may_have());
}

/* A cable between the two: no relay comes of it, whether it is confirmed or not. */
TEST(may_have_direct)
{
	rdma('a', 'z', 1000);
	cable('a', 'b', 1000);
	cable('b', 'z', 1000);
	report("abz");
	no_route_precedes();
	num_said['z'] = 0;
	report("z");
	assert_false(may_have());
	rdma('a', 'c', 1000);
	rdma('c', 'z', 1000);
	report("acz");
	assert_true(may_have());
}

static uint64_t hope(void)
{
	return mesh_graph_rdma_hope(&graph, 'a', 'z', 1000);
}

/* The number of what may be confirmed changes with that, and with nothing else. */
TEST(hope_number)
{
	uint64_t number, other;

	rdma('a', 'b', 1000);
	rdma('b', 'z', 1000);
	cable('a', 'c', 1000);
	num_said['z'] = 0;
	report("abz");
	number = hope();
	assert_true(number);
	report("bzac");
	assert_int_equal(hope(), number);
	rdma('c', 'd', 1000); /* no RDMA leads from here to c */
	report("cd");
	assert_int_equal(hope(), number);
	rdma('a', 'e', 1000);
	report("a"); /* e has not said anything */
	other = hope();
	assert_true(other && other != number);
	report("e"); /* it confirms that, and no more */
	assert_int_equal(hope(), number);
	rdma('e', 'z', 1000);
	num_said['z'] = 0;
	report("e");
	assert_true(hope() != number && hope() != other);
	mesh_graph_doubt(&graph, 'e', 'z', 1001);
	assert_int_equal(hope(), number);
}
