/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_order.c - the order of the NIC table, and the numbers of the NICs. */
#include "nics_fixture.h"

#define PCI "/sys/devices/pci0000:00/"

TESTS_USE(nics_setup, nics_teardown);

static struct mesh_nic *place(const char *netdev, const char *pci_path, int port)
{
	struct mesh_nic *nic = add(netdev, 0, "");

	snprintf(nic->pci_path, sizeof(nic->pci_path), "%s", pci_path);
	nic->ifindex = (unsigned int)(NICS_MAX - table.num_nics); /* the order is not this one */
	nic->mac[0] = 2;
	nic->mac[5] = (uint8_t)table.num_nics;
	nic->verdict = MESH_NIC_TAKEN;
	if (port)
		rdma_give(nic, "mlx5_0", port)->rdma.node_guid = 0x1001;
	return nic;
}

static void assert_order(const char *wanted)
{
	char got[256] = "";

	mesh_nic_table_sort(&table);
	for (int i = 0; i < table.num_nics; i++) {
		if (i)
			strcat(got, i == table.num_taken ? " | " : " ");
		strcat(got, table.nics[i].netdev);
	}
	assert_string_equal(got, wanted);
}

TEST(order)
{
	place("eth10", "", 0);
	place("eth9", "", 2); /* without PCI the port says nothing: it is another device's */
	place("z", PCI "0000:00:03.0", 0);
	place("y", PCI "0000:00:02.0", 0);
	place("x", PCI "0000:00:01.0", 0)->verdict = MESH_NIC_SKIPPED;
	place("w", PCI "0000:00:04.0", 2);
	place("x2", PCI "0000:00:04.0", 1);
	place("x10", PCI "0000:00:04.0", 1);
	place("a", "", 0)->verdict = MESH_NIC_SKIPPED;
	assert_order("y z x2 x10 w eth9 eth10 | x a");
	assert_int_equal(table.num_taken, 7);
	assert_order("y z x2 x10 w eth9 eth10 | x a");
}

TEST(guids_differ)
{
	place("eth0", PCI "0000:00:01.0", 1);
	place("eth0.7", PCI "0000:00:01.0", 1);
	place("eth0.8", PCI "0000:00:01.0", 1);
	place("eth1", PCI "0000:00:01.0", 2);
	place("rxe", "", 1)->rdma.node_guid = 0;
	place("tun0", "", 0)->mac[0] = 0;
	place("tun1", "", 0)->mac[0] = 0;
	place("ib0", "", 0)->kind = MESH_NIC_INFINIBAND;
	nics[5].mac[5] = nics[6].mac[5] = 0;
	nics[7].mac[7] = 9;
	mesh_nic_table_sort(&table);
	mesh_nic_table_identify(&table);
	for (int i = 0; i < table.num_nics; i++) {
		assert_true(nics[i].guid != 0);
		for (int k = 0; k < i; k++)
			assert_false(nics[i].guid == nics[k].guid && nics[i].port == nics[k].port);
	}
	assert_true(find("eth0")->guid == 0x1001);
	assert_true(find("eth1")->guid == 0x1001); /* one card */
	assert_int_equal(find("eth1")->port, 2);
	assert_int_equal(find("tun0")->port, 1);
	assert_true(find("rxe")->guid == 0x020000fffe000005u);
	assert_true(find("ib0")->guid == 0x0200000000080009u);
}

/* The same machine gives the same numbers again. */
TEST(guids_stay)
{
	uint64_t guids[2];

	place("eth0", PCI "0000:00:01.0", 1);
	place("eth0.7", PCI "0000:00:01.0", 1);
	mesh_nic_table_identify(&table);
	guids[0] = nics[0].guid;
	guids[1] = nics[1].guid;
	mesh_nic_table_identify(&table);
	assert_true(nics[0].guid == guids[0]);
	assert_true(nics[1].guid == guids[1]);
}

TEST(leave)
{
	place("eth0", "", 0);
	nics[0].source.family = MESH_FAMILY_IPV4;
	place("eth1", "", 0)->source.family = MESH_FAMILY_IPV4;
	place("eth2", "", 0);
	place("a", "", 0);
	place("z", "", 0);
	mesh_nic_leave(&nics[3], MESH_NIC_SKIPPED, "no %s", "carrier");
	mesh_nic_leave(&nics[4], MESH_NIC_SKIPPED, "no carrier");
	assert_order("eth0 eth1 eth2 | a z");
	mesh_nic_leave(&nics[1], MESH_NIC_NO_PROVIDER, "libfabric has no %s for it", "provider");
	mesh_nic_table_sort(&table);
	assert_order("eth0 eth2 | a eth1 z");
	assert_int_equal(table.num_taken, 2);
	assert_string_equal(find("eth1")->reason, "skipped: libfabric has no provider for it");
	assert_int_equal(find("eth1")->source.family, MESH_FAMILY_NONE);
	assert_int_equal(find("eth0")->source.family, MESH_FAMILY_IPV4);
	assert_string_equal(find("a")->reason, "skipped: no carrier");
	assert_string_equal(mesh_nic_bare_reason(find("a")), "no carrier");
	assert_string_equal(mesh_nic_bare_reason(find("eth0")), find("eth0")->reason);
}

TEST(long_reason)
{
	char why[2 * MESH_NIC_REASON_MAX];

	place("eth0", "", 0);
	memset(why, 'x', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	mesh_nic_leave(&nics[0], MESH_NIC_SKIPPED, "%s", why);
	assert_int_equal(strlen(nics[0].reason), MESH_NIC_REASON_MAX - 1);
}
