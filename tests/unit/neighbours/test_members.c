/* SPDX-License-Identifier: Apache-2.0 */
/* test_members.c - a report of a process of this node, which may be another user's. */
#include "neighbours/members.h"

#include "unit.h"

static struct mesh_member_report report;
static struct mesh_neighbour_link *const last = &report.links[1];
static struct mesh_neighbour *const about = &report.links[1].about;

/* Two NICs, as mesh_neighbour_link_describe() describes them. */
void tests_setup(void)
{
	struct mesh_neighbour_self self = {.node_id = 7, .node = "a", .site = "hall"};
	struct mesh_nic nic = {.netdev = "eth0", .ifindex = 3, .mtu = 9000, .num_addrs = 2};

	mesh_addr_parse("10.1.0.1/24", &nic.addrs[0]);
	mesh_addr_parse("fe80::1/64", &nic.addrs[1]);
	memset(&report, 0, sizeof(report));
	report.num_links = 2;
	for (int i = 0; i < 2; i++)
		mesh_neighbour_link_describe(&self, &nic, i, 1, &report.links[i]);
}

static bool is_valid(void)
{
	return mesh_member_report_is_valid(&report, mesh_member_report_size((int)report.num_links));
}

TEST(sizes)
{
	size_t size = mesh_member_report_size(2);

	assert_true(mesh_member_report_is_valid(&report, size));
	assert_false(mesh_member_report_is_valid(&report, size - 1));
	assert_false(mesh_member_report_is_valid(&report, size + 1));
	assert_false(mesh_member_report_is_valid(&report, 0));
	report.num_links = MESH_NICS_MAX + 1;
	assert_false(is_valid());
	report.num_links = 0;
	assert_true(is_valid());
}

/* Runs @change on a report that is valid. */
#define ASSERT_REFUSED(change)                                                                     \
	do {                                                                                       \
		tests_setup();                                                                     \
		assert_true(is_valid());                                                           \
		change;                                                                            \
		assert_false(is_valid());                                                          \
	} while (0)

/* With one of these in it, what this node answers would be refused by all other nodes. */
TEST(answers)
{
	ASSERT_REFUSED(about->num_addrs = MESH_NEIGHBOUR_ADDRS_MAX + 1);
	ASSERT_REFUSED(about->num_processes = 1);
	ASSERT_REFUSED(about->nic = MESH_NICS_MAX);
	ASSERT_REFUSED(about->providers = 0x80);
	ASSERT_REFUSED(memset(about->netdev, 'x', sizeof(about->netdev)));
	ASSERT_REFUSED(memset(about->node, 'x', sizeof(about->node)));
	ASSERT_REFUSED(memset(about->product, 'x', sizeof(about->product)));
	ASSERT_REFUSED(memset(about->site, 'x', sizeof(about->site)));
	ASSERT_REFUSED(about->addrs[1].family = 7);
	ASSERT_REFUSED(about->addrs[1].prefix_len = 129);
}

/* No question can be sent from such an address, and the questions on all NICs would end with it. */
TEST(questions)
{
	ASSERT_REFUSED(last->ask_from.family = (enum mesh_family)7);
	tests_setup();
	last->ask_from.family = MESH_FAMILY_NONE;
	assert_true(is_valid());
}
