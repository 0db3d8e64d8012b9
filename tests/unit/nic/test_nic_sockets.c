/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_sockets.c - NCCL_SOCKET_IFNAME: its grammar, and what it means for the selection. */
#include "nic/nic_select.h"
#include "nic/nic_sockets.h"

#include "nic_named.h"
#include "unit.h"

#define NICS_MAX 4

/* --- the grammar */

/* Asserts which of eth0, eth1, eth10 and eno1 the list names: '1' or '0' for each. */
static void assert_named(const char *list, const char *expected)
{
	static const char *const names[] = {"eth0", "eth1", "eth10", "eno1"};
	struct mesh_nic nics[4];
	char got[5] = "";
	int i;

	memset(nics, 0, sizeof(nics));
	for (i = 0; i < 4; i++) {
		snprintf(nics[i].netdev, sizeof(nics[i].netdev), "%s", names[i]);
		nics[i].socket_named = true;
	}
	mesh_nic_sockets_mark(list, nics, 4);
	for (i = 0; i < 4; i++)
		got[i] = nics[i].socket_named ? '1' : '0';
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

static struct mesh_nic_table table;

static int setup(void)
{
	table = (struct mesh_nic_table){.nics = calloc(NICS_MAX, sizeof(*table.nics))};
	return table.nics ? 0 : -1;
}

static int teardown(void)
{
	free(table.nics);
	return 0;
}

TESTS_USE(setup, teardown);

static struct mesh_nic *add(const char *netdev, int speed_mbps, const char *addr)
{
	struct mesh_nic *nic = nic_add(&table, netdev, addr);

	nic->speed_mbps = speed_mbps;
	return nic;
}

static void add_rdma(const char *netdev, int speed_mbps, const char *addr, const char *device)
{
	struct mesh_nic *nic = add(netdev, speed_mbps, addr);

	snprintf(nic->rdma.device, sizeof(nic->rdma.device), "%s", device);
	nic->rdma.port = 1;
	nic->rdma.link_layer = MESH_LINK_LAYER_ETHERNET;
	nic->rdma.active = true;
}

/* Marks, selects, and asserts the taken NICs in their order, "a b ". */
static void assert_taken(const char *sockets, const char *setting, const char *expected)
{
	char got[128] = "";
	int i;

	mesh_nic_sockets_mark(sockets, table.nics, table.num_nics);
	assert_int_equal(mesh_nic_select(setting, "", &table), 0);
	for (i = 0; i < table.num_taken; i++) {
		strcat(got, table.nics[i].netdev);
		strcat(got, " ");
	}
	assert_string_equal(got, expected);
}

/* A management network as fast as the cables, without a default route. */
TEST(named)
{
	add("mgmt", 10000, "192.168.99.1/24");
	add("n0p0", 10000, "10.1.0.1/24");
	add("n0p1", 0, "10.2.0.1/24");
	assert_taken("=mgmt", "", "n0p0 n0p1 ");
	assert_string_equal(
		nic_named(table.nics, table.num_nics, "mgmt")->reason,
		"skipped: NCCL_SOCKET_IFNAME names it, and there are other NICs: looks like "
		"the management network; name it in NCCL_MESH_NICS to use it");
	/* It could still carry data. The mesh NICs have no second source. */
	assert_int_equal(nic_named(table.nics, table.num_nics, "mgmt")->spare_source.bytes[0], 192);
	assert_int_equal(table.nics[0].spare_source.family, MESH_FAMILY_NONE);
	assert_taken("", "", "mgmt n0p0 n0p1 ");
	assert_int_equal(nic_named(table.nics, table.num_nics, "mgmt")->spare_source.family,
			 MESH_FAMILY_NONE);
}

/* Ranks that meet over a cable: nothing shows which NIC is for management, so all stay. */
TEST(named_cables)
{
	add("n0p0", 10000, "10.1.0.1/30");
	add("n0p1", 10000, "10.2.0.0/31");
	add("n0p2", 10000, "fd00::1/127");
	add("n0p3", 10000, "10.3.0.1/30");
	assert_taken("n0p0,n0p1,n0p2", "", "n0p0 n0p1 n0p2 n0p3 ");
}

/* None of them can replace another. */
TEST(named_all)
{
	add("eth0", 10000, "10.1.0.1/24");
	add("eth1", 10000, "10.2.0.1/24");
	assert_taken("eth", "", "eth0 eth1 ");
}

/* A slower cable cannot replace it: as with the default route, both stay. */
TEST(named_faster)
{
	add("eth0", 100000, "10.1.0.1/24");
	add("eth1", 25000, "10.2.0.1/24");
	assert_taken("eth0", "", "eth0 eth1 ");
}

/* RDMA at the same speed stays, slow RDMA leaves. */
TEST(named_rdma)
{
	add_rdma("eth0", 100000, "10.1.0.1/24", "mlx5_0");
	add_rdma("eth1", 100000, "10.1.1.1/24", "mlx5_1");
	add_rdma("eth2", 10000, "10.1.2.1/24", "mlx5_2");
	assert_taken("=eth0,eth2", "", "eth0 eth1 ");
}

/* The user's list of mesh NICs overrides it. */
TEST(named_in_both)
{
	add("mgmt", 10000, "192.168.99.1/24");
	add("n0p0", 10000, "10.1.0.1/24");
	assert_taken("mgmt", "mgmt,n0p0", "mgmt n0p0 ");
}
