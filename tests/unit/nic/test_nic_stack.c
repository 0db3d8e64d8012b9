/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_stack.c - interfaces that stand on others: VLANs and macvlans, ports of bridges. */
#include "nics_fixture.h"

TESTS_USE(nics_setup, nics_teardown);

/* The kernel gives every interface a link-local address; a VLAN's cable is not two cables. */
TEST(vlan)
{
	add("eth0", 10000, "fe80::1/64");
	add("eth1", 10000, "fe80::2/64");
	add("eth1.7", 10000, "10.1.0.1/24")->lower = 2;
	selects("", "eth0 eth1.7");
	assert_reason("eth1", "skipped: link-local address only, and eth1.7 on the same cable has "
			      "another; name it in NCCL_MESH_NICS to use it");
}

TEST(vlan_named)
{
	add("eth1", 10000, "fe80::2/64");
	add("eth1.7", 10000, "10.1.0.1/24")->lower = 1;
	selects("=eth1", "eth1");
}

/* A port has a link-local address, too, and whatever arrives there is the bridge's. */
TEST(port)
{
	static const char *const kinds[] = {"bridge", "openvswitch", "bond", "team"};

	add("eth0", 100000, "10.1.0.1/24")->master = 2; /* a VRF leaves it its own */
	strcpy(add("red", 0, "")->link_kind, "vrf");
	selects("", "eth0");
	FOR_EACH(i, kinds) {
		table.num_nics = 0;
		memset(nics, 0, NICS_MAX * sizeof(*nics));
		add("eth0", 100000, "fe80::1/64")->master = 2;
		strcpy(add("x", 100000, "10.1.0.1/24")->link_kind, kinds[i]);
		selects("", "x");
		assert_reason("eth0", "skipped: it is part of x, which receives its packets");
	}
}
