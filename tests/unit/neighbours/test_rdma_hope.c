/* SPDX-License-Identifier: Apache-2.0 */
/* test_rdma_hope.c - a neighbour that has not answered a search yet may lead on with RDMA. */
#include "neighbours/neighbours.h"

#include "unit.h"

#define SELF 1
#define OTHER 2
#define TARGET 9
#define BEGAN 1000 /* the search */

static struct mesh_neighbours neighbours;
static struct mesh_heard heard;

static int setup(void)
{
	struct mesh_asking *asking = &neighbours.asking;

	memset(&neighbours, 0, sizeof(neighbours));
	memset(&heard, 0, sizeof(heard));
	mesh_asking_init(asking, &neighbours.self);
	neighbours.self.node_id = SELF;
	neighbours.searching.began_ms = BEGAN;
	asking->num_links = 1;
	asking->links[0].about.providers = 1 << MESH_PROVIDER_VERBS_RXM | 1 << MESH_PROVIDER_TCP;
	asking->asked[0].heard[0] = &heard;
	asking->asked[0].num_heard = 1;
	heard.about.node_id = OTHER;
	heard.heard_ms = BEGAN - 1;
	return 0;
}

TESTS_USE(setup, NULL);

static bool may_have(void)
{
	return mesh_neighbours_rdma_hope(&neighbours, TARGET, false);
}

TEST(late)
{
	assert_true(may_have());
	heard.heard_ms = BEGAN;
	assert_false(may_have());
}

/* One that is gone had its time: not each search waits for it. One that answers has it again. */
TEST(gone)
{
	struct mesh_asking *asking = &neighbours.asking;

	heard.heard_ms = 1; /* long ago: nobody has asked since */
	neighbours.searching.began_ms = BEGAN * 100;
	mesh_asking_begin(asking, BEGAN * 100);
	assert_true(may_have());
	neighbours.searching.began_ms += 1999;
	mesh_asking_begin(asking, BEGAN * 100 + 1999);
	assert_true(may_have());
	neighbours.searching.began_ms++;
	assert_false(may_have());
	heard.heard_ms = BEGAN * 200;
	heard.missed_ms = 0;
	neighbours.searching.began_ms = BEGAN * 300;
	mesh_asking_begin(asking, BEGAN * 300);
	assert_true(may_have());
}

/* Soon after the start it may be that nobody has answered yet. */
TEST(none)
{
	neighbours.asking.asked[0].num_heard = 0;
	assert_false(may_have());
	assert_true(mesh_neighbours_rdma_hope(&neighbours, TARGET, true));
	neighbours.asking.links[0].about.providers = 1 << MESH_PROVIDER_TCP;
	assert_false(mesh_neighbours_rdma_hope(&neighbours, TARGET, true));
}

TEST(no_rdma)
{
	neighbours.asking.links[0].about.providers = 1 << MESH_PROVIDER_TCP;
	assert_false(may_have());
}

/* At another node, too. */
TEST(none_there)
{
	struct mesh_links_nic nics[2] = {
		{.nic = 0, .providers = 1 << MESH_PROVIDER_VERBS_RXM},
		{.nic = 1, .providers = 1 << MESH_PROVIDER_VERBS_RXM},
	};
	struct mesh_graph_link links[2] = {{.node_id = SELF, .nic = 0}, {.node_id = 3, .nic = 1}};
	struct mesh_explored nodes[2] = {
		{.id = SELF, .state = MESH_EXPLORED_KNOWN},
		{.id = OTHER,
		 .state = MESH_EXPLORED_KNOWN,
		 .nics = nics,
		 .num_nics = 2,
		 .links = links,
		 .num_links = 1},
	};

	heard.heard_ms = BEGAN;
	neighbours.searching.explore.nodes = nodes;
	neighbours.searching.explore.num_nodes = 2;
	assert_true(mesh_neighbours_rdma_hope(&neighbours, TARGET, true));
	assert_false(may_have());
	nics[1].flags = MESH_LINKS_NIC_DOWN;
	assert_false(mesh_neighbours_rdma_hope(&neighbours, TARGET, true));
	nics[1].flags = 0;
	nodes[1].num_links = 2;
	assert_false(mesh_neighbours_rdma_hope(&neighbours, TARGET, true));
	nodes[1].num_links = 1;
	nics[1].providers = 1 << MESH_PROVIDER_TCP;
	assert_false(mesh_neighbours_rdma_hope(&neighbours, TARGET, true));
}

static uint64_t hope(void)
{
	return mesh_neighbours_rdma_hope(&neighbours, TARGET, false);
}

/* It has a number, which is another one than that of a neighbour whose links are not known. */
TEST(number)
{
	struct mesh_graph_link link = {.node_id = OTHER, .rdma = true};
	struct mesh_graph *graph = &neighbours.searching.explore.graph;
	uint64_t late = hope();

	assert_true(late);
	assert_int_equal(hope(), late);
	heard.about.nic = 1;
	assert_true(hope() != late);
	heard.about.nic = 0;
	heard.heard_ms = BEGAN;
	assert_int_equal(hope(), 0);
	mesh_graph_report(graph, SELF, true, false, &link, 1);
	assert_true(hope() && hope() != late);
	mesh_graph_finish(graph);
}

TEST(unreadable)
{
	heard.error = -EPROTO;
	assert_false(may_have());
	heard.error = 0;
	heard.about.node_id = SELF;
	assert_false(may_have());
}
