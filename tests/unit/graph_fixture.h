/* SPDX-License-Identifier: Apache-2.0 */
/* graph_fixture.h - a mesh by what its nodes say of their cables, for tests of its routes. */
#ifndef MESH_TESTS_GRAPH_FIXTURE_H
#define MESH_TESTS_GRAPH_FIXTURE_H

#include "nic/graph.h"

#include "printed.h"
#include "unit.h"

static struct mesh_graph graph;
static struct mesh_route routes[MESH_ROUTES_MAX];
static int num_routes;

/* What the nodes have said so far. Ids are letters. */
static struct mesh_graph_link said[128][MESH_GRAPH_LINKS_MAX];
static int num_said[128];
static bool silent[128];

static inline void setup(void)
{
	memset(num_said, 0, sizeof(num_said));
	memset(silent, 0, sizeof(silent));
	memset(&graph, 0, sizeof(graph));
}

static inline void teardown(void)
{
	mesh_graph_finish(&graph);
}

/* One end's word. */
static inline void say(char from, char to, int nic, int peer_nic, uint32_t speed, bool rdma)
{
	int at = from;

	said[at][num_said[at]++] = (struct mesh_graph_link){
		.node_id = (uint64_t)to,
		.speed_mbps = speed,
		.nic = (uint8_t)nic,
		.peer_nic = (uint8_t)peer_nic,
		.rdma = rdma,
	};
}

/*
 * Cables, each between the next NICs of two nodes: "ab100 bc50" has two. '+' behind the speed: with
 * RDMA; '<', '>': only the first end has it, or only the second.
 */
static inline void cables(const char *text)
{
	uint32_t speed;
	char *end;

	for (; *text; text = end + strspn(end, "+<> ")) {
		int nic = num_said[(int)text[0]], peer = num_said[(int)text[1]];

		speed = (uint32_t)strtoul(text + 2, &end, 10);
		say(text[0], text[1], nic % 16, peer % 16, speed, *end == '+' || *end == '<');
		say(text[1], text[0], peer % 16, nic % 16, speed, *end == '+' || *end == '>');
	}
}

static inline void report(const char *nodes)
{
	for (; *nodes; nodes++)
		assert_true(mesh_graph_report(&graph, (uint64_t)*nodes, !silent[(int)*nodes], false,
					      said[(int)*nodes], num_said[(int)*nodes]) >= 0);
}

/* These have no cables any more. */
static inline void unsaid(const char *nodes)
{
	const char *node;

	for (node = nodes; *node; node++)
		num_said[(int)*node] = 0;
	report(nodes);
}

static inline void site_set(const char *nodes, uint32_t site)
{
	for (; *nodes; nodes++)
		graph.nodes[mesh_graph_find(&graph, (uint64_t)*nodes)].site = site;
}

/*
 * Fails the test unless these routes were found: "bc:100 dec:50-" has one over b to c and one over
 * d and e. Behind the width stand: '-' it does not fit the first, '+' RDMA, '^' leaves the site,
 * '?' drained.
 */
static inline void routes_are(const char *wanted)
{
	FILE *file = print_file();

	assert_true(num_routes >= 0);
	for (int i = 0; i < num_routes; i++) {
		fputs(i ? " " : "", file);
		for (int k = 0; k <= routes[i].num_relays; k++)
			fputc((int)routes[i].hops[k], file);
		fprintf(file, ":%u%s%s%s%s", routes[i].width_mbps,
			mesh_route_fits(&routes[0], &routes[i]) ? "" : "-",
			routes[i].rdma ? "+" : "", routes[i].leaves ? "^" : "",
			routes[i].drained ? "?" : "");
	}
	assert_string_equal(printed(), wanted);
}

static inline void find(char from, char to, int relays_max)
{
	num_routes = mesh_graph_routes(&graph, (uint64_t)from, (uint64_t)to, relays_max, NULL, 0,
				       routes, MESH_ROUTES_MAX);
	assert_true(num_routes >= 0);
}

static inline void finds(char from, char to, int relays_max, const char *wanted)
{
	find(from, to, relays_max);
	routes_are(wanted);
}

/* The routes that pass none of these nodes. */
static inline void finds_beside(char from, char to, const char *avoided, const char *wanted)
{
	uint64_t ids[8];
	int num;

	for (num = 0; avoided[num]; num++)
		ids[num] = (uint64_t)avoided[num];
	num_routes = mesh_graph_routes(&graph, (uint64_t)from, (uint64_t)to, 15, ids, num, routes,
				       MESH_ROUTES_MAX);
	routes_are(wanted);
}

#endif
