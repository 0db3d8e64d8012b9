/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_stack.c - interfaces that stand on others: VLANs and macvlans, ports of bridges. */
#include "nic/nic_select.h"

#include "nic_named.h"
#include "unit.h"

#define NICS_MAX 6

static struct mesh_nic nics[NICS_MAX];
static struct mesh_nic_table table;

static int setup(void)
{
	memset(nics, 0, sizeof(nics));
	table = (struct mesh_nic_table){.nics = nics};
	return 0;
}

TESTS_USE(setup, NULL);

/* A NIC that is up. Its ifindex is its number, from 1. */
static struct mesh_nic *add(const char *netdev, int speed_mbps, const char *addr)
{
	struct mesh_nic *nic = nic_add(&table, netdev, addr);

	nic->speed_mbps = speed_mbps;
	return nic;
}

static void select_nics(const char *setting)
{
	assert_int_equal(mesh_nic_select(setting, "", &table), 0);
}

/* The taken NICs, in their order, as "a b c". */
static void assert_taken(const char *wanted)
{
	char got[NICS_MAX * (IF_NAMESIZE + 1)] = "";
	int i;

	for (i = 0; i < table.num_taken; i++) {
		if (*got)
			strcat(got, " ");
		strcat(got, nics[i].netdev);
	}
	assert_string_equal(got, wanted);
}

static void assert_reason(const char *netdev, const char *reason)
{
	assert_string_equal(nic_named(nics, table.num_nics, netdev)->reason, reason);
}

/* The kernel gives every interface a link-local address; a VLAN's cable is not two cables. */
TEST(vlan)
{
	struct mesh_nic *vlan;

	add("eth0", 10000, "fe80::1/64");
	add("eth1", 10000, "fe80::2/64");
	vlan = add("eth1.7", 10000, "10.1.0.1/24");
	vlan->lower = 2;
	select_nics("");
	assert_taken("eth0 eth1.7");
	assert_reason("eth1", "skipped: link-local address only, and eth1.7 on the same cable has "
			      "another; name it in NCCL_MESH_NICS to use it");
}

/* What does not make the NIC below it useless. */
TEST(vlan_beside)
{
	struct mesh_nic *vlan;

	add("eth0", 10000, "10.2.0.1/24"); /* an address of its own */
	vlan = add("eth0.7", 10000, "10.1.0.1/24");
	vlan->lower = 1;
	add("eth1", 10000, "fe80::1/64"); /* the VLAN has no better one */
	vlan = add("eth1.7", 10000, "fe80::1/64");
	vlan->lower = 3;
	add("eth2", 10000, "fe80::1/64"); /* the VLAN is the management network */
	vlan = add("eth2.7", 10000, "10.9.0.1/24");
	vlan->lower = 5;
	vlan->default_route = true;
	select_nics("");
	assert_taken("eth0 eth0.7 eth1 eth1.7 eth2");
}

TEST(vlan_rdma)
{
	struct mesh_nic *nic = add("eth0", 100000, "fe80::1/64"), *vlan;

	strcpy(nic->rdma.device, "mlx5_0");
	nic->rdma.port = 1;
	nic->rdma.active = true;
	vlan = add("mv0", 100000, "10.1.0.1/24"); /* a macvlan without a GID of its own */
	vlan->lower = 1;
	select_nics("");
	assert_taken("eth0");
}

TEST(vlan_named)
{
	struct mesh_nic *vlan;

	add("eth1", 10000, "fe80::2/64");
	vlan = add("eth1.7", 10000, "10.1.0.1/24");
	vlan->lower = 1;
	select_nics("=eth1");
	assert_taken("eth1");
}

/* A port has a link-local address, too, and whatever arrives there is the bridge's. */
TEST(port)
{
	static const char *const kinds[] = {"bridge", "openvswitch", "bond", "team"};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		setup();
		add("eth0", 100000, "fe80::1/64")->master = 2;
		strcpy(add("x", 100000, "10.1.0.1/24")->link_kind, kinds[i]);
		select_nics("");
		assert_taken("x");
		assert_reason("eth0", "skipped: it is part of x, which receives its packets");
	}
	setup();
	add("eth0", 100000, "10.1.0.1/24")->master = 2; /* a VRF leaves it its own */
	strcpy(add("red", 0, "")->link_kind, "vrf");
	select_nics("");
	assert_taken("eth0");
}
