/* SPDX-License-Identifier: Apache-2.0 */
/* graph_fixture.h - a mesh by what its nodes say of their cables, for tests of its routes. */
#ifndef MESH_TESTS_GRAPH_FIXTURE_H
#define MESH_TESTS_GRAPH_FIXTURE_H

#include <string.h>

#include "nic/graph_routes.h"

#include "unit.h"

static struct mesh_graph graph;
static struct mesh_route routes[MESH_ROUTES_MAX];
static int num_routes;

/* What the nodes have said so far. Ids are letters. */
static struct mesh_graph_link said[128][MESH_GRAPH_LINKS_MAX];
static int num_said[128];
static bool silent[128];

static inline int setup(void)
{
	memset(num_said, 0, sizeof(num_said));
	memset(silent, 0, sizeof(silent));
	mesh_graph_init(&graph);
	return 0;
}

static inline int teardown(void)
{
	mesh_graph_finish(&graph);
	return 0;
}

/* One end's word. */
static inline void say(char from, char to, int nic, int peer_nic, uint32_t speed)
{
	int at = from;

	said[at][num_said[at]++] = (struct mesh_graph_link){
		.node_id = (uint64_t)to,
		.speed_mbps = speed,
		.nic = (uint8_t)nic,
		.peer_nic = (uint8_t)peer_nic,
	};
}

/* A cable between the next NICs of both. */
static inline void cable(char a, char b, uint32_t speed)
{
	int nic = num_said[(int)a], peer = num_said[(int)b];

	say(a, b, nic % 16, peer % 16, speed);
	say(b, a, peer % 16, nic % 16, speed);
}

static inline void report(const char *nodes)
{
	for (; *nodes; nodes++)
		assert_true(mesh_graph_report(&graph, (uint64_t)*nodes, !silent[(int)*nodes], false,
					      said[(int)*nodes], num_said[(int)*nodes]) >= 0);
}

static inline void site_set(const char *nodes, uint32_t site)
{
	for (; *nodes; nodes++)
		mesh_graph_site_set(&graph, mesh_graph_find(&graph, (uint64_t)*nodes), site);
}

#endif
