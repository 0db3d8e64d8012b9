/* SPDX-License-Identifier: Apache-2.0 */
/* test_own_nics.c - which NICs of its own node a process answers for as they come and go. */
#include "neighbours/neighbours.h"

#include "unit.h"

static struct mesh_lock lock;
static struct mesh_engine engine;
static struct mesh_neighbours *neighbours;

static int timeout_never(void *owner)
{
	return -1;
}

static void tick_nothing(void *owner)
{
}

static const struct mesh_engine_work no_work = {.timeout = timeout_never, .tick = tick_nothing};

MESH_NOT_ANALYSED
void tests_setup(void)
{
	struct mesh_neighbour_self self = {.node_id = 1, .node = "a"};

	mesh_lock_init(&lock);
	assert_int_equal(mesh_engine_open(&engine, &lock, &no_work, NULL), 0);
	mesh_lock_take(&lock);
	neighbours = mesh_neighbours_open(&engine, &self);
	assert_non_null(neighbours);
}

MESH_NOT_ANALYSED
void tests_teardown(void)
{
	mesh_neighbours_close(neighbours);
	mesh_lock_release(&lock);
	mesh_engine_close(&engine);
	mesh_lock_destroy(&lock);
}

/* Sets the NICs with these indices, without asking. */
MESH_NOT_ANALYSED
static void nics_set(const unsigned int *ifindexes, int num)
{
	struct mesh_neighbour_link links[4];
	struct mesh_nic nic = {.num_addrs = 0};

	for (int i = 0; i < num; i++) {
		nic.ifindex = ifindexes[i];
		snprintf(nic.netdev, sizeof(nic.netdev), "nic%u", ifindexes[i]);
		mesh_neighbour_link_describe(&neighbours->self, &nic, i, 0, &links[i]);
	}
	mesh_neighbours_links_set(neighbours, links, num, false);
}

MESH_NOT_ANALYSED
static void assert_nics(const unsigned int *ifindexes, int num)
{
	struct mesh_neighbour_link links[4];

	assert_int_equal(mesh_members_links(&neighbours->members, links, 4), num);
	for (int i = 0; i < num; i++)
		assert_int_equal(links[i].ifindex, ifindexes[i]);
}

/* One that is gone is not answered for any longer, wherever in the list it was. */
TEST(gone)
{
	static const unsigned int all[] = {1, 2, 3}, first_two[] = {1, 2}, second[] = {2};

	nics_set(all, 3);
	assert_nics(all, 3);
	nics_set(first_two, 2);
	assert_nics(first_two, 2);
	nics_set(second, 1);
	assert_nics(second, 1);
	nics_set(NULL, 0);
	assert_nics(NULL, 0);
	nics_set(all, 3);
	assert_nics(all, 3);
}

/* `fi_mesh serve` speaks for the node, and does not know what a user of a rank drains. */
MESH_NOT_ANALYSED
TEST(drained_by_a_member)
{
	static const unsigned int ours[] = {1, 2};
	struct mesh_member *member = calloc(1, sizeof(*member));
	struct mesh_neighbour_link links[4];

	assert_non_null(member);
	nics_set(ours, 2);
	member->watch.fd = -1;
	member->num_links = 2;
	member->links[0].ifindex = 2;
	member->links[1].ifindex = 3;
	member->links[0].about.flags = member->links[1].about.flags = MESH_NEIGHBOUR_DRAINED;
	neighbours->members.all[0] = member; /* which frees it */
	assert_int_equal(mesh_members_links(&neighbours->members, links, 4), 3);
	assert_int_equal(links[0].about.flags, 0);
	assert_int_equal(links[1].about.flags, MESH_NEIGHBOUR_DRAINED);
	assert_int_equal(links[2].about.flags, MESH_NEIGHBOUR_DRAINED);
	assert_string_equal(links[1].about.netdev, "nic2"); /* the rest is ours */
}
