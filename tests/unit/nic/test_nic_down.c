/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_down.c - which of the NICs whose link is down would carry the mesh otherwise. */
#include "nics_fixture.h"

TESTS_USE(nics_setup, nics_teardown);

/* A NIC without carrier, as the kernel reports it: its speed is unknown. */
static struct mesh_nic *add_down(const char *netdev, const char *addrs)
{
	struct mesh_nic *nic = nic_add(&table, netdev, addrs);

	nic->state = MESH_NIC_NO_CARRIER;
	return nic;
}

/* Selects, and asserts whether this NIC is one whose link is missed. */
static void assert_down(const char *setting, const char *netdev, bool expected)
{
	assert_int_equal(mesh_nic_select(setting, "", &table), 0);
	assert_int_equal(find(netdev)->verdict == MESH_NIC_LINK_DOWN, expected);
}

TEST(cable_down)
{
	add("ab", 10000, "10.1.0.1/24");
	add_down("ac", "10.2.0.1/24");
	add("ad", 10000, "10.3.0.1/24")->state = MESH_NIC_DOWN;
	add("ae", 10000, "10.4.0.1/24")->state = MESH_NIC_STARTING;
	assert_down("", "ab", false);
	assert_down("", "ac", true);
	assert_down("", "ad", true);
	assert_down("", "ae", true);
	assert_down("^ac", "ac", false);
	assert_down("ab", "ac", false);
	assert_down("ac", "ac", true);
	/* It is back. */
	assert_int_equal(table.nics[1].verdict, MESH_NIC_LINK_DOWN);
	table.nics[1].state = MESH_NIC_RUNS;
	assert_int_equal(mesh_nic_select("ac", "", &table), 0);
	assert_int_not_equal(find("ac")->verdict, MESH_NIC_LINK_DOWN);
}

/* A port that nobody uses has no address; one that the setting names is missed. */
TEST(without_address)
{
	add("ab", 10000, "10.1.0.1/24");
	add_down("ac", "");
	assert_down("", "ac", false);
	assert_down("ab,ac", "ac", true);
	assert_down("^ad", "ac", false);
	/* An address is missing, and not a link. */
	table.nics[1].state = MESH_NIC_RUNS;
	assert_down("ab,ac", "ac", false);
}

/* What would not carry the mesh with a link, either. */
TEST(other_kinds)
{
	struct mesh_nic *bond, *port;

	add("ab", 10000, "10.1.0.1/24");
	add_down("docker0", "172.17.0.1/16")->kind = MESH_NIC_BRIDGE;
	add_down("eno1", "192.168.1.1/24")->management = MESH_NIC_DEFAULT_ROUTE;
	bond = add("bond0", 10000, "10.5.0.1/24");
	snprintf(bond->link_kind, sizeof(bond->link_kind), "bond");
	port = add_down("p0", "10.6.0.1/24");
	port->master = bond->ifindex;
	assert_down("", "docker0", false);
	assert_down("", "eno1", false);
	assert_down("", "p0", false);
	assert_down("eno1", "eno1", true);
}

TEST(rdma)
{
	rdma_give(add("ab", 10000, "10.1.0.1/24"), "mlx5_0", 1);
	rdma_give(add_down("ac", "10.2.0.1/24"), "mlx5_1", 1);
	add_down("eno1", "10.3.0.1/24");
	assert_down("", "ac", true);
	assert_down("", "eno1", false);
}
