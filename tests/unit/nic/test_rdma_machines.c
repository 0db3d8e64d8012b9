/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rdma_machines.c - from the /sys of machines that we know to what the user reads: which
 * NICs, called what, on which RDMA port, by which protocol, and why not the others.
 */
#include <net/if_arp.h>

#include "nic/nic.h"
#include "nic/nic_select.h"
#include "nic/rdma_port.h"
#include "system/sysfs.h"

#include "log_capture.h"
#include "nic_named.h"
#include "sysfs_fixture.h"
#include "unit.h"

#define NICS_MAX 8
#define IB0_MAC "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:ef:12:35"
#define IB1_MAC "80:00:02:09:fe:80:00:00:00:00:00:00:00:02:c9:03:00:ef:12:36"

static struct sysfs_fixture fixture;
static struct mesh_sysfs sysfs;
static struct mesh_nic nics[NICS_MAX];
static struct mesh_nic_table table;

void tests_setup(void)
{
	memset(nics, 0, sizeof(nics));
	table = (struct mesh_nic_table){.nics = nics};
	sysfs_fixture_make(&fixture);
	assert_int_equal(mesh_sysfs_open(fixture.root, &sysfs), 0);
	log_capture_start();
}

void tests_teardown(void)
{
	mesh_sysfs_close(&sysfs);
	sysfs_fixture_remove(&fixture);
}

/* An interface as netlink reports it. */
static struct mesh_nic *add(const char *netdev, const char *mac, const char *addr, bool carrier)
{
	struct mesh_nic *nic = nic_add(&table, netdev, addr ? addr : "");

	assert_true(table.num_nics <= NICS_MAX);
	nic->link_type = strlen(mac) > 30 ? ARPHRD_INFINIBAND : ARPHRD_ETHER;
	nic->state = carrier ? MESH_NIC_RUNS : MESH_NIC_NO_CARRIER;
	assert_int_equal(mesh_sysfs_mac_parse(mac, nic->mac), 0);
	return nic;
}

/* As mesh_nic_table_load(), from here on. */
static void load(void)
{
	for (int i = 0; i < table.num_nics; i++)
		mesh_sysfs_netdev_load(&sysfs, &nics[i]);
	assert_int_equal(mesh_sysfs_rdma_load(&sysfs, nics, table.num_nics), 0);
	mesh_nic_classify(nics, table.num_nics);
	assert_int_equal(mesh_nic_select("", "", &table), 0);
}

static const struct mesh_nic *find(const char *netdev)
{
	return nic_named(nics, table.num_nics, netdev);
}

static void assert_protocol(const char *netdev, const char *wanted)
{
	char text[MESH_RDMA_PORT_TEXT_MAX];

	assert_string_equal(mesh_rdma_protocol_text(find(netdev), text), wanted);
}

/* NCCL merges what has one name, and takes one (guid, port) for one physical port. */
static void assert_all_distinct(void)
{
	for (int i = 0; i < table.num_taken; i++) {
		assert_true(nics[i].guid != 0);
		assert_string_not_equal(nics[i].name, nics[i].rdma.device);
		for (int k = 0; k < i; k++) {
			assert_string_not_equal(nics[i].name, nics[k].name);
			assert_true(nics[i].guid != nics[k].guid || nics[i].port != nics[k].port);
		}
	}
}

/* Second-hand cards, one cable each, a subnet manager on both. */
TEST(infiniband)
{
	sysfs_fixture_connectx3_infiniband(&fixture);
	sysfs_fixture_file(&fixture, "4: ACTIVE", "class/infiniband/mlx4_0/ports/2/state");
	sysfs_fixture_file(&fixture, "56 Gb/sec (4X FDR)", "class/infiniband/mlx4_0/ports/2/rate");
	add("ib0", IB0_MAC, "10.1.0.1/24", true);
	add("ib1", IB1_MAC, "10.2.0.1/24", true);
	load();
	assert_int_equal(table.num_taken, 2);
	assert_all_distinct();
	assert_string_equal(find("ib0")->reason, "taken: 56 Gb/s, mlx4_0 port 1, 10.1.0.1/24");
	assert_string_equal(find("ib1")->reason, "taken: 56 Gb/s, mlx4_0 port 2, 10.2.0.1/24");
	assert_true(find("ib0")->guid == find("ib1")->guid); /* one card */
	assert_string_equal(find("ib0")->pci_path, find("ib1")->pci_path);
	assert_string_equal(find("ib1")->name, "mesh-ib1");
	assert_string_equal(find("ib1")->rdma.uverbs, "uverbs1");
	assert_protocol("ib0", "InfiniBand");
}

/* The usual fault: no subnet manager runs on the second cable; the message names the port. */
TEST(no_subnet_manager)
{
	sysfs_fixture_connectx3_infiniband(&fixture);
	add("ib0", IB0_MAC, "10.1.0.1/24", true);
	add("ib1", IB1_MAC, "10.2.0.1/24", false);
	load();
	assert_int_equal(table.num_taken, 1);
	assert_string_equal(
		find("ib1")->reason,
		"skipped: mlx4_0 port 2: no subnet manager on this link (2: INIT); start "
		"one on one end: opensm -g 0x0002c90300ef1236");
}

/* rdma_cm needs IPoIB: an interface without an address, and a port without an interface. */
TEST(no_ipoib)
{
	sysfs_fixture_connectx3_infiniband(&fixture);
	add("ib0", IB0_MAC, NULL, true);
	load();
	assert_int_equal(table.num_taken, 0);
	assert_string_equal(
		find("ib0")->reason,
		"skipped: no address, and RDMA needs an IPoIB address to find its peers: add one "
		"(ip addr add 10.1.0.1/24 dev ib0)");
	assert_int_equal(log_captured_lines(MESH_LOG_INFO), 1);
	assert_true(log_captured(MESH_LOG_INFO,
				 "mlx4_0 port 2 (InfiniBand, 2: INIT) has no network "
				 "interface here"));
	assert_true(log_captured(MESH_LOG_INFO, "load ib_ipoib"));
}

/* One card, InfiniBand on one port and Ethernet on the other. */
TEST(mixed_card)
{
	sysfs_fixture_connectx3(&fixture);
	add("ib0", IB0_MAC, "10.2.0.1/24", true);
	add("enp1s0d1", "00:02:c9:ef:12:36", "10.3.0.1/24", true);
	load();
	assert_int_equal(table.num_taken, 2);
	assert_all_distinct();
	assert_string_equal(find("ib0")->reason, "taken: 56 Gb/s, mlx4_0 port 1, 10.2.0.1/24");
	assert_string_equal(find("enp1s0d1")->reason, "taken: 40 Gb/s, mlx4_0 port 2, 10.3.0.1/24");
	assert_protocol("ib0", "InfiniBand");
	assert_protocol("enp1s0d1", "RoCE v2, GID 3");
	assert_true(find("ib0")->rdma.node_guid == 0x0002c90300ef1234u);
	assert_int_equal(find("ib0")->rdma.gids[0].type, MESH_GID_IB);
	assert_int_equal(find("enp1s0d1")->rdma.num_gids, 4);
	assert_int_equal(log_captured_lines(MESH_LOG_INFO), 0);
}

/* Four functions, two for each cable, in two PCI domains; every one is a NIC of its own. */
TEST(dgx_spark)
{
	static const struct {
		const char *netdev, *mac, *addr, *function, *reason;
	} ports[] = {
		{"enp1s0f0np0", "4c:bb:47:00:00:01", "10.1.0.1/24", "0000:01:00.0",
		 "taken: 200 Gb/s, rocep1s0f0 port 1, 10.1.0.1/24"},
		{"enp1s0f1np1", "4c:bb:47:00:00:02", "10.2.0.1/24", "0000:01:00.1",
		 "taken: 200 Gb/s, rocep1s0f1 port 1, 10.2.0.1/24"},
		{"enP2p1s0f0np0", "4c:bb:47:00:00:05", "10.3.0.1/24", "0002:01:00.0",
		 "taken: 200 Gb/s, roceP2p1s0f0 port 1, 10.3.0.1/24"},
		{"enP2p1s0f1np1", "4c:bb:47:00:00:06", "10.4.0.1/24", "0002:01:00.1",
		 "taken: 200 Gb/s, roceP2p1s0f1 port 1, 10.4.0.1/24"},
	};

	sysfs_fixture_dgx_spark(&fixture);
	for (int i = 3; i >= 0; i--)
		add(ports[i].netdev, ports[i].mac, ports[i].addr, true);
	load();
	assert_int_equal(table.num_taken, 4);
	assert_all_distinct();
	for (int i = 0; i < 4; i++) {
		assert_string_equal(nics[i].netdev, ports[i].netdev); /* in PCI's order */
		assert_string_equal(nics[i].reason, ports[i].reason);
		assert_string_equal(strrchr(nics[i].pci_path, '/') + 1, ports[i].function);
		assert_protocol(ports[i].netdev, "RoCE v2, GID 3");
		assert_int_equal(nics[i].rdma.num_gids, 4);
	}
}

TEST(e810)
{
	sysfs_fixture_e810(&fixture);
	add("ens1f0", "b4:96:91:00:00:10", "10.4.0.1/24", true);
	add("ens1f1", "b4:96:91:00:00:11", "10.5.0.1/24", true);
	load();
	assert_int_equal(table.num_taken, 2);
	assert_all_distinct();
	assert_protocol("ens1f0", "RoCE v2, GID 1");
	assert_protocol("ens1f1", "iWARP");
	assert_string_equal(find("ens1f0")->reason, "taken: 100 Gb/s, irdma0 port 1, 10.4.0.1/24");
	assert_string_equal(find("ens1f1")->reason, "taken: 100 Gb/s, irdma1 port 1, 10.5.0.1/24");
}

/* In a pod the GIDs start anywhere, with others' between them: the user need not look them up. */
TEST(pod)
{
	sysfs_fixture_bond_pod(&fixture);
	add("net1", "9a:01:02:03:04:05", "10.20.0.5/24", true);
	add("eth0", "0a:58:0a:f4:01:07", "10.244.1.7/24", true)->management =
		MESH_NIC_DEFAULT_ROUTE;
	load();
	assert_int_equal(table.num_taken, 1);
	assert_string_equal(find("net1")->reason,
			    "taken: 400 Gb/s, mlx5_bond_0 port 1, 10.20.0.5/24");
	assert_protocol("net1", "RoCE v2, GID 9");
	assert_int_equal(find("net1")->rdma.num_gids, 2); /* another's is left out */
	assert_string_equal(strrchr(find("net1")->pci_path, '/'), "/0000:81:00.0");
	assert_string_equal(find("eth0")->rdma.device, "");
}

/* A port that has RoCE v1 only, as ConnectX-3 (not Pro); and one whose GID is not there yet. */
TEST(roce_v1)
{
	sysfs_fixture_soft_roce(&fixture);
	sysfs_fixture_file(&fixture, "IB/RoCE v1",
			   "class/infiniband/rxe_n0p0/ports/1/gid_attrs/types/1");
	add("n0p0", "02:00:00:00:00:01", "10.1.0.1/24", true);
	add("n1p1", "02:00:00:00:00:02", "10.9.0.2/24", true);
	load();
	assert_protocol("n0p0", "RoCE v1, GID 1 (no RoCE v2: the peer must have v1, too)");
	assert_protocol("n1p1", "RoCE, no GID of 10.9.0.2");
}

TEST(states)
{
	static const struct {
		enum mesh_link_layer link_layer;
		const char *state, *text;
	} states[] = {
		{MESH_LINK_LAYER_INFINIBAND, "2: INIT",
		 "no subnet manager on this link (2: INIT); start one on one end: opensm"},
		{MESH_LINK_LAYER_INFINIBAND, "3: ARMED",
		 "the subnet manager has not activated this link yet (3: ARMED)"},
		{MESH_LINK_LAYER_INFINIBAND, "1: DOWN", "no link (1: DOWN): cable or peer down"},
		{MESH_LINK_LAYER_ETHERNET, "1: DOWN", "no link (1: DOWN): cable or peer down"},
		{MESH_LINK_LAYER_ETHERNET, "2: INIT", "the port is in state \"2: INIT\""},
		{MESH_LINK_LAYER_ETHERNET, "", "the port is in state \"\""},
	};
	char text[MESH_RDMA_PORT_TEXT_MAX];
	struct mesh_rdma_port port;

	FOR_EACH(i, states) {
		memset(&port, 0, sizeof(port));
		port.link_layer = states[i].link_layer;
		strcpy(port.state, states[i].state);
		assert_string_equal(mesh_rdma_state_explain(&port, text), states[i].text);
	}
}
