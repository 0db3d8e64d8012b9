/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_select.c - which NICs carry the mesh, in the situations that users are in. */
#include "nic/user_lists.h"

#include "nics_fixture.h"

TESTS_USE(nics_setup, nics_teardown);

static void assert_source(const char *netdev, const char *addr)
{
	char text[MESH_ADDR_TEXT_MAX];

	assert_string_equal(mesh_addr_text_prefix(&find(netdev)->source, text), addr);
}

/* --- what every NIC needs */

TEST(reasons)
{
	struct mesh_nic *nic;

	add_rdma("eth0", 100000, "10.1.0.1/24", "mlx5_0", 1);
	add_rdma("eth1", 100000, "10.2.0.1/24", "mlx5_1", 1)->state = MESH_NIC_DOWN;
	add_rdma("eth2", 100000, "10.3.0.1/24", "mlx5_2", 1)->state = MESH_NIC_NO_CARRIER;
	add_rdma("eth3", 100000, "", "mlx5_3", 1);
	add_rdma("eth4", 100000, "", "mlx5_4", 1)->num_unready = 1;
	nic = add("br0", 0, "192.168.0.1/24");
	nic->kind = MESH_NIC_BRIDGE;
	strcpy(nic->link_kind, "bridge");
	add_rdma("eth5", 100000, "", "mlx5_5", 1)->master = nic->ifindex;
	add("lo", 0, "127.0.0.1/8")->kind = MESH_NIC_LOOPBACK;
	add("eth6", 1000, "10.4.0.1/24");
	add_rdma("eth7", 100000, "10.7.0.1/24", "mlx5_7", 1)->state = MESH_NIC_STARTING;
	nic = add_rdma("ib0", 56000, "10.5.0.1/24", "mlx4_0", 1);
	nic->kind = MESH_NIC_INFINIBAND;
	nic->state = MESH_NIC_NO_CARRIER;
	nic->rdma.link_layer = MESH_LINK_LAYER_INFINIBAND;
	strcpy(nic->rdma.state, "2: INIT");
	add_rdma("ib1", 56000, "", "mlx4_0", 2)->kind = MESH_NIC_INFINIBAND;
	selects("", "eth0");
	assert_reason("eth0", "taken: 100 Gb/s, mlx5_0 port 1, 10.1.0.1/24");
	assert_reason("eth1", "skipped: link is down (ip link set eth1 up)");
	assert_reason("eth2", "skipped: no carrier (cable or peer down)");
	assert_reason("eth3", "skipped: no address");
	assert_reason("eth7", "skipped: its link has just come up, and the kernel does not report "
			      "it as running yet");
	assert_reason("eth4", "skipped: no address yet (IPv6 duplicate address detection runs or "
			      "has failed)");
	assert_reason("eth5", "skipped: no address of its own: it is part of br0");
	assert_reason("br0", "skipped: bridge; name it in NCCL_MESH_NICS to use it");
	assert_reason("lo", "skipped: loopback");
	assert_reason("eth6", "skipped: no RDMA, while other NICs have it; name it in "
			      "NCCL_MESH_NICS to use it");
	assert_reason("ib0", "skipped: mlx4_0 port 1: no subnet manager on this link (2: INIT); "
			     "start one on one end: opensm");
	assert_reason(
		"ib1",
		"skipped: no address, and RDMA needs an IPoIB address to find its peers: add one "
		"(ip addr add 10.1.0.1/24 dev ib1)");
}

/* Naming a NIC does not give it an address or a cable. */
TEST(named_but_unusable)
{
	add("eth0", 1000, "10.1.0.1/24")->state = MESH_NIC_NO_CARRIER;
	add("br0", 0, "")->kind = MESH_NIC_BRIDGE;
	add("eth1", 1000, "10.2.0.1/24");
	selects("eth0,br0", "");
	assert_reason("eth0", "skipped: no carrier (cable or peer down)");
	assert_reason("br0", "skipped: no address");
	assert_reason("eth1", "skipped: not named in NCCL_MESH_NICS");
}

/* --- the management network */

/* On-board RDMA at 25G that leads to the world, beside 400G. */
TEST(slow_rdma_with_default_route)
{
	add_rdma("eth0", 25000, "10.1.0.1/24", "bnxt_re0", 1)->management = MESH_NIC_DEFAULT_ROUTE;
	add_rdma("eth1", 400000, "10.1.1.1/24", "mlx5_1", 1);
	add_rdma("eth2", 25000, "10.1.2.1/24", "mlx5_2", 1); /* slow, but a cable */
	selects("", "eth1 eth2");
	assert_reason("eth0", "skipped: 25 Gb/s, while other NICs have 400 Gb/s: looks like the "
			      "management network; name it in NCCL_MESH_NICS to use it");
}

/* An RDMA device whose port is down does not count as RDMA. */
TEST(rdma_port_down)
{
	struct mesh_nic *nic;

	nic = add_rdma("eth0", 10000, "10.1.0.1/24", "mlx5_0", 1);
	strcpy(nic->rdma.state, "1: DOWN");
	add("eth1", 10000, "10.2.0.1/24");
	selects("", "eth0 eth1");
	assert_reason("eth0", "taken: 10 Gb/s, mlx5_0 port 1 without RDMA: 1: DOWN, 10.1.0.1/24");
	assert_reason("eth1", "taken: 10 Gb/s, 10.2.0.1/24");
}

/* InfiniBand cables and a slow Ethernet LAN. */
TEST(infiniband)
{
	struct mesh_nic *nic;

	nic = add_rdma("ib0", 56000, "10.1.0.1/24", "mlx4_0", 1);
	nic->kind = MESH_NIC_INFINIBAND;
	nic->rdma.link_layer = MESH_LINK_LAYER_INFINIBAND;
	nic = add_rdma("ib1", 56000, "10.2.0.1/24", "mlx4_0", 2);
	nic->kind = MESH_NIC_INFINIBAND;
	nic->rdma.node_guid = find("ib0")->rdma.node_guid;
	add("eno1", 2500, "192.168.1.5/24")->management = MESH_NIC_DEFAULT_ROUTE;
	selects("", "ib0 ib1");
	assert_true(table.nics[0].guid == table.nics[1].guid);
	assert_int_equal(table.nics[0].port, 1);
	assert_int_equal(table.nics[1].port, 2);
}

/* A container of our functional tests: veth cables, and a veth to the management bridge. */
TEST(veth_mesh)
{
	add("mgmt", 10000, "192.168.99.1/24")->management = MESH_NIC_DEFAULT_ROUTE;
	add("n0p0", 10000, "10.1.0.1/24");
	add("n0p1", 10000, "10.2.0.1/24");
	nics[0].kind = nics[1].kind = nics[2].kind = MESH_NIC_VIRTUAL;
	selects("", "n0p0 n0p1");
	assert_reason("mgmt",
		      "skipped: has the default route, and there are other NICs: looks like "
		      "the management network; name it in NCCL_MESH_NICS to use it");
}

/* TCP only: slow is below an eighth. */
TEST(slow)
{
	add("eth0", 100000, "10.1.0.1/24");
	add("eth1", 12500, "10.2.0.1/24");
	add("eth2", 12499, "10.3.0.1/24");
	add("eth3", 0, "10.4.0.1/24");
	selects("", "eth0 eth1 eth3");
	assert_reason("eth2", "skipped: 12.4 Gb/s, while other NICs have 100 Gb/s: looks like the "
			      "management network; name it in NCCL_MESH_NICS to use it");
}

/* --- when no better NIC was found */

TEST(fallbacks)
{
	static const char *const groups[] = {"wlan0", "br0", "tap0", "lo"};

	add("lo", 0, "127.0.0.1/8")->kind = MESH_NIC_LOOPBACK;
	add("tap0", 0, "10.9.0.1/24")->kind = MESH_NIC_CONTAINER;
	add("br0", 0, "10.8.0.1/24")->kind = MESH_NIC_BRIDGE;
	add("wlan0", 0, "10.7.0.1/24")->kind = MESH_NIC_WIRELESS;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(mesh_nic_select("", "", &table), 0);
		assert_taken(groups[i]);
		assert_non_null(strstr(find(groups[i])->reason, "no better NIC was found"));
		nics[0].state = MESH_NIC_DOWN; /* the taken one is first */
	}
	selects("", "");
}

/* --- lists */

TEST(named)
{
	add_rdma("eth0", 100000, "10.1.0.1/24", "mlx5_0", 1);
	add_rdma("eth1", 100000, "10.2.0.1/24", "mlx5_1", 1);
	add("mgmt", 1000, "10.3.0.1/24")->management = MESH_NIC_DEFAULT_ROUTE;
	add("br0", 0, "10.4.0.1/24")->kind = MESH_NIC_BRIDGE;
	selects("mlx5_1,mgmt,br0", "br0 eth1 mgmt");
	assert_reason("eth0", "skipped: not named in NCCL_MESH_NICS");
	assert_reason("mgmt", "taken: 1 Gb/s, 10.3.0.1/24");
	/* Selecting again starts afresh. */
	selects("=mesh-eth0", "eth0");
	selects("", "eth0 eth1");
}

TEST(excluded)
{
	add_rdma("eth0", 1000000, "10.1.0.1/24", "mlx5_0", 1);
	add_rdma("eth1", 1000000, "10.2.0.1/24", "mlx5_1", 1);
	add("eth2", 100000, "10.3.0.1/24");
	add("br0", 0, "10.4.0.1/24")->kind = MESH_NIC_BRIDGE;
	selects("^mlx5_1", "eth0");
	assert_reason("eth1", "skipped: excluded by NCCL_MESH_NICS");
	/* Without the RDMA NICs, which are excluded, the others are judged among themselves. */
	selects("^=mlx5_1,mlx5_0", "eth2");
	assert_reason("eth2", "taken: 100 Gb/s, 10.3.0.1/24");
}

TEST(bad_settings)
{
	add("eth0", 1000, "10.1.0.1/24");
	assert_int_equal(mesh_nic_select("^", "", &table), -EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, "NCCL_MESH_NICS"));
	assert_int_equal(mesh_nic_select("", "10.1.0.0/33", &table), -EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, "NCCL_MESH_ADDRESSES: \"10.1.0.0/33\""));
	assert_int_equal(mesh_nic_select("", "fd00::/8,eth0", &table), -EINVAL);
	assert_int_equal(
		mesh_nic_select("",
				"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd:"
				"1111:2222:3333:4444:5555:6666:7777:8888:9999",
				&table),
		-EINVAL);
	assert_false(mesh_nic_is_taken(&nics[0]));
	assert_string_equal(nics[0].reason, "");
}

TEST(too_many_subnets)
{
	char text[1024] = "";

	for (int i = 0; i < MESH_RAIL_SUBNETS_MAX; i++)
		strcat(text, "10.0.0.0/8,");
	assert_int_equal(mesh_nic_select("", text, &table), 0);
	strcat(text, "10.0.0.0/8");
	assert_int_equal(mesh_nic_select("", text, &table), -EINVAL);
}

/* --- addresses */

TEST(source_order)
{
	add("a", 1000, "fe80::1/64 169.254.0.1/16 fd00::1/64 10.1.0.1/24 10.2.0.1/24");
	add("b", 1000, "fe80::1/64 169.254.0.1/16 fd00::1/64");
	add("c", 1000, "fe80::1/64 169.254.0.1/16");
	add("d", 1000, "fe80::1/64");
	add("e", 1000, "127.0.0.2/8 ::1/128 10.3.0.1/24");
	add("f", 1000, "127.0.0.2/8");
	assert_int_equal(mesh_nic_select("", "", &table), 0);
	assert_source("a", "10.1.0.1/24");
	assert_source("b", "fd00::1/64");
	assert_source("c", "fe80::1/64");
	assert_source("d", "fe80::1/64");
	assert_source("e", "10.3.0.1/24");
	assert_reason("f", "skipped: no address");
}

TEST(addresses_setting)
{
	add("a", 1000, "10.1.0.1/24 10.2.0.1/24 fd00::1/64");
	add("b", 1000, "127.0.0.2/8 10.1.0.2/24 172.16.0.1/24");
	assert_int_equal(mesh_nic_select("", " fd00::/8 , 10.2.0.0/16,,10.0.0.0/8", &table), 0);
	assert_source("a", "fd00::1/64");
	assert_source("b", "10.1.0.2/24");
	assert_int_equal(mesh_nic_select("", "127.0.0.0/8,172.16.0.0/12,10.2.0.0/16", &table), 0);
	assert_source("a", "10.2.0.1/24");
	assert_source("b", "172.16.0.1/24");
	/* A subnet is a wish, not a filter. */
	assert_int_equal(mesh_nic_select("", "192.168.0.0/16", &table), 0);
	assert_source("a", "10.1.0.1/24");
	assert_int_equal(table.num_taken, 2);
}

TEST(names)
{
	add("enp1s0f0np0abcd", 1000, "10.1.0.1/24");
	assert_int_equal(mesh_nic_select("", "", &table), 0);
	assert_string_equal(nics[0].name, "mesh-enp1s0f0np0abcd");
}

TEST(empty_table)
{
	struct mesh_nic_table empty = {0};

	assert_int_equal(mesh_nic_select("eth0", "", &empty), 0);
	assert_int_equal(empty.num_taken, 0);
}

TEST(speed_text)
{
	static const struct {
		int mbps;
		const char *text;
	} cases[] = {{0, "speed unknown"}, {-1, "speed unknown"},	 {100, "100 Mb/s"},
		     {1000, "1 Gb/s"},	   {2500, "2.5 Gb/s"},		 {56250, "56.2 Gb/s"},
		     {400000, "400 Gb/s"}, {INT32_MAX, "2147483.6 Gb/s"}};
	char text[MESH_NIC_SPEED_TEXT_MAX];

	FOR_EACH(i, cases)
		assert_string_equal(mesh_nic_speed_text(cases[i].mbps, text), cases[i].text);
}

/* The longest reason fits or is cut, and is terminated. */
TEST(long_reason)
{
	struct mesh_nic *nic;

	nic = add_rdma("enp1s0f0np0abcd", INT32_MAX, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
		       "", 255);
	memset(nic->rdma.device, 'x', sizeof(nic->rdma.device) - 1);
	memset(nic->rdma.state, 'y', sizeof(nic->rdma.state) - 1);
	assert_int_equal(mesh_nic_select("", "", &table), 0);
	assert_true(mesh_nic_is_taken(&nics[0]));
	assert_true(strlen(nics[0].reason) < MESH_NIC_REASON_MAX);
	assert_non_null(strstr(nics[0].reason, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"));
}
