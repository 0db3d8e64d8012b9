/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_sockets.c - NCCL_SOCKET_IFNAME: its grammar, and what it means for the selection. */
#include "nic/user_lists.h"

#include "nics_fixture.h"

/* --- the grammar */

/* Asserts which of eth0, eth1, eth10 and eno1 the list names: '1' or '0' for each. */
static void assert_named(const char *list, const char *expected)
{
	static const char *const names[] = {"eth0", "eth1", "eth10", "eno1"};
	struct mesh_nic four[4];
	char got[5] = "";

	memset(four, 0, sizeof(four));
	for (int i = 0; i < 4; i++) {
		snprintf(four[i].netdev, sizeof(four[i].netdev), "%s", names[i]);
		four[i].management = MESH_NIC_SOCKETS;
	}
	mesh_nic_sockets_mark(list, four, 4);
	for (int i = 0; i < 4; i++)
		got[i] = four[i].management == MESH_NIC_SOCKETS ? '1' : '0';
	assert_string_equal(got, expected);
}

TEST_BARE(grammar)
{
	assert_named("", "0000");
	assert_named("eth", "1110");
	assert_named("eth1", "0110");
	assert_named("eno,eth0", "1001");
	assert_named("=eth1", "0100");
	assert_named("=eth1,eno1", "0101");
	assert_named("=eth", "0000");
	assert_named("eno1:1", "0001");
	assert_named("eth0,", "1000");
	assert_named(",,eno1", "0001");
	assert_named("=", "0000");
	assert_named("wlan0", "0000");
}

/* A list of NICs that are not to be used names none that are. */
TEST_BARE(exclusion)
{
	assert_named("^docker,lo", "0000");
	assert_named("^eth0", "0000");
	assert_named("^=eth0", "0000");
	assert_named("^", "0000");
}

/* --- the selection */

TESTS_USE(nics_setup, nics_teardown);

/* Marks, selects, and asserts the taken NICs in their order. */
static void marked(const char *sockets, const char *setting, const char *taken)
{
	mesh_nic_sockets_mark(sockets, nics, table.num_nics);
	selects(setting, taken);
}

/* A management network as fast as the cables, without a default route. */
TEST(named)
{
	add("mgmt", 10000, "192.168.99.1/24");
	add("n0p0", 10000, "10.1.0.1/24");
	add("n0p1", 0, "10.2.0.1/24");
	marked("=mgmt", "", "n0p0 n0p1");
	assert_reason("mgmt",
		      "skipped: NCCL_SOCKET_IFNAME names it, and there are other NICs: looks like "
		      "the management network; name it in NCCL_MESH_NICS to use it");
	/* It could still carry data. The mesh NICs have no second source. */
	assert_int_equal(find("mgmt")->spare_source.bytes[0], 192);
	assert_int_equal(table.nics[0].spare_source.family, MESH_FAMILY_NONE);
	marked("", "", "mgmt n0p0 n0p1");
	assert_int_equal(find("mgmt")->spare_source.family, MESH_FAMILY_NONE);
}

/* Ranks that meet over a cable: nothing shows which NIC is for management, so all stay. */
TEST(named_cables)
{
	add("n0p0", 10000, "10.1.0.1/30");
	add("n0p1", 10000, "10.2.0.0/31");
	add("n0p2", 10000, "fd00::1/127");
	add("n0p3", 10000, "10.3.0.1/30");
	marked("n0p0,n0p1,n0p2", "", "n0p0 n0p1 n0p2 n0p3");
}

/* None of them can replace another. */
TEST(named_all)
{
	add("eth0", 10000, "10.1.0.1/24");
	add("eth1", 10000, "10.2.0.1/24");
	marked("eth", "", "eth0 eth1");
}

/* A slower cable cannot replace it: as with the default route, both stay. */
TEST(named_faster)
{
	add("eth0", 100000, "10.1.0.1/24");
	add("eth1", 25000, "10.2.0.1/24");
	marked("eth0", "", "eth0 eth1");
}

/* RDMA at the same speed stays, slow RDMA leaves. */
TEST(named_rdma)
{
	add_rdma("eth0", 100000, "10.1.0.1/24", "mlx5_0", 1);
	add_rdma("eth1", 100000, "10.1.1.1/24", "mlx5_1", 1);
	add_rdma("eth2", 10000, "10.1.2.1/24", "mlx5_2", 1);
	marked("=eth0,eth2", "", "eth0 eth1");
}

/* The user's list of mesh NICs overrides it. */
TEST(named_in_both)
{
	add("mgmt", 10000, "192.168.99.1/24");
	add("n0p0", 10000, "10.1.0.1/24");
	marked("mgmt", "mgmt,n0p0", "mgmt n0p0");
}
