/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_explore.c - meshes of up to 512 nodes find out what they look like: large ones, random ones,
 * with losses, links that flap, and nodes that lie.
 */
#include "nic/graph.h"

#include "mesh_simulation.h"
#include "unit.h"

#define LONG_US 60000000u

static struct simulation mesh;
static struct mesh_route routes[MESH_ROUTES_MAX];

void tests_teardown(void)
{
	simulation_close(&mesh);
}

static uint64_t id_of(int node)
{
	return SIMULATION_ID + (uint64_t)node;
}

static int find(const struct simulated_search *search, int to)
{
	return mesh_graph_routes(&search->explore.graph, id_of(search->node), id_of(to),
				 MESH_ROUTE_RELAYS_MAX, NULL, 0, routes, MESH_ROUTES_MAX);
}

/* Hops to all nodes over links that are up and nodes that pass questions on. */
static void distances(int from, int *hops)
{
	int queue[1024], head = 0, tail = 0, i, at;
	const struct simulated_link *link;

	for (i = 0; i < mesh.num_nodes; i++)
		hops[i] = -1;
	hops[from] = 0;
	queue[tail++] = from;
	while (head < tail) {
		at = queue[head++];
		if (at != from && mesh.nodes[at].lie != SIMULATION_HONEST)
			continue;
		for (i = 0; i < mesh.nodes[at].num_links; i++) {
			link = &mesh.nodes[at].links[i];
			if (link->down || hops[link->node] >= 0)
				continue;
			hops[link->node] = hops[at] + 1;
			queue[tail++] = link->node;
		}
	}
}

/* All honest nodes are known, and the shortest routes to them are as short as they can be. */
static void all_found(const struct simulated_search *search)
{
	int hops[1024], i, num;

	distances(search->node, hops);
	for (i = 0; i < mesh.num_nodes; i++) {
		if (i == search->node || mesh.nodes[i].lie != SIMULATION_HONEST || hops[i] < 0 ||
		    hops[i] > MESH_LINKS_HOPS_MAX)
			continue;
		num = find(search, i);
		if (num < 1)
			fail_msg("node %d, %d hops from %d, is not found", i, hops[i],
				 search->node);
		assert_true(routes[0].num_relays + 1 <= hops[i]);
	}
}

/* ---- large meshes -------------------------------------------------------------------------- */

TEST(torus)
{
	const struct mesh_graph *graph;
	uint64_t bytes;
	int i;

	simulation_open(&mesh, 512, 1, 1);
	simulation_torus(&mesh, 8, 8, 8);
	simulation_search(&mesh, 0, 0);
	simulation_run(&mesh, LONG_US);
	assert_true(mesh.searches[0].done_us);
	graph = &mesh.searches[0].explore.graph;
	assert_int_equal(graph->num_nodes, 512);
	for (i = 0, bytes = sizeof(mesh.searches[0].explore); i < 512; i++)
		bytes += sizeof(*mesh.searches[0].explore.nodes) + sizeof(*graph->nodes) +
			 sizeof(struct mesh_graph_link) * (size_t)graph->nodes[i].num_links;
	/* One answer for each node and hop, 6 hops on average; a question or two for each cable. */
	assert_true(mesh.datagrams >= 511 * 6 + 1536 && mesh.datagrams <= 511 * 6 + 2 * 1536);
	assert_true(bytes < 1u << 20);
	all_found(&mesh.searches[0]);
	/* The farthest: 11 relays, and 6 routes that share none of them. */
	assert_int_equal(find(&mesh.searches[0], (4 * 8 + 4) * 8 + 4), 6);
	assert_int_equal(routes[5].num_relays, 11);
}

/* Many nodes ask for all others at once; all of them with MESH_SIMULATE=all, which takes longer. */
TEST(torus_all)
{
	const char *simulate = getenv("MESH_SIMULATE");
	int i, searches = simulate && !strcmp(simulate, "all") ? 512 : 32;

	simulation_open(&mesh, 512, searches, 2);
	simulation_torus(&mesh, 8, 8, 8);
	for (i = 0; i < searches; i++)
		simulation_search(&mesh, i, i * (512 / searches));
	simulation_run(&mesh, LONG_US);
	for (i = 0; i < searches; i++) {
		assert_int_equal(mesh.searches[i].explore.graph.num_nodes, 512);
		assert_true(mesh.nodes[i].received < 7000);
	}
}

/* 8 processes on each of the 64 nodes find all of them, and no node gets many questions. */
static void all_processes_search(void)
{
	for (int i = 0; i < 512; i++)
		simulation_search(&mesh, i, i / 8);
	simulation_run(&mesh, LONG_US);
	for (int i = 0; i < 512; i++)
		assert_int_equal(mesh.searches[i].explore.graph.num_nodes, 64);
	for (int i = 0; i < 64; i++)
		assert_true(mesh.nodes[i].received < 4000);
}

TEST(many_processes)
{
	simulation_open(&mesh, 64, 512, 3);
	simulation_torus(&mesh, 4, 4, 4);
	all_processes_search();
}

/* They share two switches: nobody repeats a question. */
TEST(switches)
{
	simulation_open(&mesh, 64, 512, 3);
	simulation_switches(&mesh, 2);
	all_processes_search();
}

/* A line is asked to its 16th hop, and no farther. */
TEST(line)
{
	simulation_open(&mesh, 20, 1, 5);
	for (int i = 1; i < 20; i++)
		simulation_cable(&mesh, i - 1, i);
	simulation_search(&mesh, 0, 0);
	simulation_run(&mesh, LONG_US);
	assert_int_equal(mesh.searches[0].explore.num_known, 17);
	assert_int_equal(find(&mesh.searches[0], 16), 1);
	assert_int_equal(routes[0].num_relays, 15);
	assert_int_equal(find(&mesh.searches[0], 17), 0);
}

/* ---- random meshes ------------------------------------------------------------------------- */

/* Links flap while the search goes on; it ends, and the next one finds all that there is. */
TEST(flaps)
{
	int trial, i, a, b, step;

	for (trial = 0; trial < 60; trial++) {
		simulation_open(&mesh, 5 + trial % 40, 1, 100 + (uint32_t)trial);
		simulation_random_graph(&mesh, mesh.num_nodes + trial % 30);
		mesh.loss_percent = 5;
		simulation_search(&mesh, 0, trial % mesh.num_nodes);
		for (step = 0; step < 40; step++) {
			a = (int)simulation_draw(&mesh, (uint32_t)mesh.num_nodes);
			i = (int)simulation_draw(&mesh, (uint32_t)mesh.nodes[a].num_links);
			b = mesh.nodes[a].links[i].node;
			simulation_cable_set(&mesh, a, b, !mesh.nodes[a].links[i].down);
			simulation_run(&mesh, simulation_draw(&mesh, 4000));
		}
		simulation_run(&mesh, LONG_US);
		assert_true(mesh.searches[0].done_us);
		mesh.loss_percent = 0;
		mesh.now_us += MESH_LINKS_KEEP_MS * 1000 + 1000;
		simulation_search(&mesh, 0, trial % mesh.num_nodes);
		simulation_run(&mesh, LONG_US);
		all_found(&mesh.searches[0]);
		if (trial < 59)
			simulation_close(&mesh);
	}
}

/* ---- nodes that lie ------------------------------------------------------------------------ */

/* A node that invents others cannot keep the search from those that there are. */
TEST(inventor)
{
	simulation_open(&mesh, 512, 1, 200);
	simulation_torus(&mesh, 8, 8, 8);
	mesh.nodes[74].lie = SIMULATION_INVENTS;
	simulation_search(&mesh, 0, 0);
	simulation_run(&mesh, LONG_US);
	assert_false(mesh_explore_is_complete(&mesh.searches[0].explore));
	all_found(&mesh.searches[0]);
}

/* What is behind a node that answers nothing is found the other way round. */
TEST(silent)
{
	simulation_open(&mesh, 8, 1, 400);
	for (int i = 0; i < 8; i++)
		simulation_cable(&mesh, i, (i + 1) % 8);
	mesh.nodes[1].lie = SIMULATION_SILENT;
	simulation_search(&mesh, 0, 0);
	simulation_run(&mesh, LONG_US);
	assert_int_equal(find(&mesh.searches[0], 2), 1);
	assert_int_equal(routes[0].num_relays, 5);
	assert_int_equal(find(&mesh.searches[0], 1), 0);
}

/* Questions of strangers, as many as can come in a second, take no place from one that is kept. */
static int num_back;

static void back_count(void *owner, const struct mesh_forwarding_asker *to,
		       const struct mesh_links_answer *answer)
{
	(void)owner;
	(void)to;
	(void)answer;
	num_back++;
}

static bool own_answer(void *owner, const struct mesh_forwarding_slot *slot)
{
	(void)owner;
	(void)slot;
	return true;
}

TEST_BARE(flood)
{
	static struct mesh_forwarding forwarding;
	const struct mesh_forwarding_asker from = {.port = 7};
	struct mesh_links_question question = {.token = 5, .node_id = 2, .hops = 3};
	struct mesh_links_answer answer = {.token = 5};
	int i;

	forwarding.node_id = 1;
	forwarding.answer = back_count;
	forwarding.own = own_answer;
	mesh_forwarding_question(&forwarding, 0, &from, &question, 1000);
	for (i = 0; i < 100000; i++) {
		question.token = (uint64_t)i * 7919 + 6;
		mesh_forwarding_question(&forwarding, 0, &from, &question, 1001);
	}
	mesh_forwarding_answer(&forwarding, &answer, 1002);
	assert_int_equal(num_back, 1);
	/* A second later there is room again. */
	answer.token = question.token;
	mesh_forwarding_question(&forwarding, 0, &from, &question, 2002);
	mesh_forwarding_answer(&forwarding, &answer, 2003);
	assert_int_equal(num_back, 2);
}

/* ---- RDMA ---------------------------------------------------------------------------------- */

/* @node answers with these NICs, each of which leads to @to. */
static void node_answers(struct mesh_explore *explore, int node, const struct mesh_links_nic *nics,
			 int num_nics, int to)
{
	struct mesh_links_answer answer = {
		.node_id = id_of(node), .token = explore->token, .flags = MESH_LINKS_SAME_JOB};
	struct mesh_links_link links[2];

	for (int i = 0; i < 2; i++)
		links[i] = (struct mesh_links_link){
			.node_id = id_of(to), .nic = (uint8_t)i, .peer_nic = (uint8_t)i};
	assert_false(mesh_explore_is_complete(explore));
	mesh_links_answer_fill(&answer, 0, nics, num_nics, links, 2);
	mesh_explore_answer(explore, &answer);
	assert_true(mesh_explore_is_complete(explore));
}

/* What the NICs of the other node have goes by their index. One that is down has the index 0. */
TEST_BARE(rdma)
{
	const struct mesh_graph_link own[2] = {{.node_id = id_of(1), .rdma = true},
					       {.node_id = id_of(1), .nic = 1, .peer_nic = 1}};
	struct mesh_links_nic nics[3] = {
		{.netdev = "b0", .nic = 0, .providers = 1 << MESH_PROVIDER_TCP},
		{.netdev = "b1", .nic = 1, .providers = 1 << MESH_PROVIDER_VERBS_RXM},
		{.netdev = "b2", .flags = MESH_LINKS_NIC_DOWN},
	};
	static struct mesh_explore explore;
	const struct mesh_graph *graph = &explore.graph;

	nics[2].providers = 1 << MESH_PROVIDER_VERBS_RXM;
	assert_int_equal(mesh_explore_begin(&explore, id_of(0), 7), 0);
	assert_int_equal(mesh_explore_links_set(&explore, own, 2), 0);
	node_answers(&explore, 1, nics, 3, 0);
	assert_int_equal(graph->num_nodes, 2);
	assert_true(graph->nodes[0].links[0].rdma && !graph->nodes[0].links[1].rdma);
	assert_true(!graph->nodes[1].links[0].rdma && graph->nodes[1].links[1].rdma);
	assert_true(mesh_graph_hop(graph, 0, 1).mbps > 0);
	assert_int_equal(mesh_graph_hop(graph, 0, 1).rdma_mbps, 0);
	mesh_explore_finish(&explore);
	nics[0].providers |= 1 << MESH_PROVIDER_VERBS_RXM;
	assert_int_equal(mesh_explore_begin(&explore, id_of(0), 7), 0);
	assert_int_equal(mesh_explore_links_set(&explore, own, 2), 0);
	node_answers(&explore, 1, nics, 3, 0);
	assert_true(graph->nodes[1].links[0].rdma && graph->nodes[1].links[1].rdma);
	assert_true(mesh_graph_hop(graph, 0, 1).rdma_mbps > 0);
	mesh_explore_finish(&explore);
}
