/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_skipped.c - which skipped NICs are named when there is no path to a peer. */
#include "nic/nic.h"

#include "nics_fixture.h"

static struct mesh_endpoint_addr remote;

static void setup(void)
{
	nics_setup();
	assert_int_equal(mesh_addr_parse("10.9.0.2/24", &remote.addr), 0);
}

TESTS_USE(setup, nics_teardown);

static struct mesh_nic *skip_nic(const char *netdev, const char *addr, const char *reason)
{
	struct mesh_nic *nic = add(netdev, 0, addr);

	mesh_nic_leave(nic, MESH_NIC_SKIPPED, "%s", reason);
	return nic;
}

static void assert_text(const char *wanted, size_t size)
{
	char text[256];

	assert_ptr_equal(mesh_nics_skipped_text(&table, &remote, 1, text, size), text);
	assert_string_equal(text, wanted);
}

/* What the link or libfabric took away is named wherever it leads. */
TEST(links_and_providers)
{
	skip_nic("eth0", "10.1.0.1/24", "link is down")->state = MESH_NIC_DOWN;
	skip_nic("eth1", "10.2.0.1/24", "no carrier")->state = MESH_NIC_NO_CARRIER;
	skip_nic("eth2", "10.3.0.1/24", "no tcp")->verdict = MESH_NIC_NO_PROVIDER;
	skip_nic("eth3", "fe80::1/64", "not running")->state = MESH_NIC_STARTING;
	skip_nic("eth4", "", "no address")->state = MESH_NIC_NO_CARRIER;
	skip_nic("lo", "127.0.0.1/8", "loopback")->state = MESH_NIC_DOWN;
	assert_text("eth0 (10.1.0.1/24): link is down; eth1 (10.2.0.1/24): no carrier; "
		    "eth2 (10.3.0.1/24): no tcp; eth3 (fe80::1/64): not running",
		    256);
}

/* Of what a rule left out, only that which might have reached the peer. */
TEST(shared_subnet)
{
	struct mesh_nic *nic;

	skip_nic("docker0", "172.17.0.1/16", "bridge");
	skip_nic("eth0", "10.9.0.1/24", "excluded");
	nic = skip_nic("eth1", "10.9.0.3/24", "");
	nic->verdict = MESH_NIC_TAKEN;
	assert_text("eth0 (10.9.0.1/24): excluded", 256);
	assert_text("eth0 (10.", 10);
}

TEST(nothing)
{
	skip_nic("eth0", "10.1.0.1/24", "default route");
	assert_text("", 256);
}
