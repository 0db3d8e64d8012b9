/* SPDX-License-Identifier: Apache-2.0 */
/* test_netlink.c - links, addresses and routes, in network namespaces made for it. */
#include <net/if_arp.h>

#include "system/node.h"

#include "namespace.h"
#include "nic_named.h"
#include "unit.h"

/* The kernel ends duplicate address detection after a second or two; this is never reached. */
#define DAD_DEADLINE_S 30

static struct mesh_nic *nics;
static int num_nics;

static void load(void)
{
	free(nics);
	nics = NULL;
	num_nics = -1;
	assert_int_equal(mesh_netlink_load(&nics, &num_nics), 0);
}

static const struct mesh_nic *find(const char *netdev)
{
	return nic_named(nics, num_nics, netdev);
}

static void assert_addr(const struct mesh_nic *nic, int index, const char *text)
{
	char got[MESH_ADDR_TEXT_MAX];

	assert_true(index < nic->num_addrs);
	assert_string_equal(mesh_addr_text_prefix(&nic->addrs[index], got), text);
}

/* Loads, and fails the test unless these NICs have a default route. */
static void leave_by(const char *wanted)
{
	char got[256] = "";

	load();
	for (int i = 0; i < num_nics; i++)
		if (nics[i].management == MESH_NIC_DEFAULT_ROUTE)
			strcat(strcat(got, *got ? " " : ""), nics[i].netdev);
	assert_string_equal(got, wanted);
}

static void namespace_setup(void)
{
	assert_true(namespace_enter());
}

static void namespace_teardown(void)
{
	free(nics);
	nics = NULL;
}

TESTS_USE(namespace_setup, namespace_teardown);

/* A pair of which both ends are here, up, without IPv6. */
static void pair_make(const char *a, const char *b)
{
	namespace_ip("link add %s type veth peer name %s", a, b);
	namespace_ip("link set %s addrgenmode none up", a);
	namespace_ip("link set %s addrgenmode none up", b);
}

TEST(empty_namespace)
{
	const struct mesh_nic *lo;

	load();
	lo = find("lo");
	assert_int_equal(lo->ifindex, 1);
	assert_int_equal(lo->link_type, ARPHRD_LOOPBACK);
	assert_int_equal(lo->state, MESH_NIC_DOWN);
	assert_int_equal(lo->num_addrs, 0);
	assert_int_equal(lo->management, MESH_NIC_NO_MANAGEMENT);
}

TEST(veth)
{
	static const uint8_t mac[8] = {2, 0, 0, 0xaa, 0xbb, 1, 0, 0};
	const struct mesh_nic *nic;

	namespace_ip("link add n0p0 address 02:00:00:aa:bb:01 mtu 4200 type veth peer name n1p0");
	namespace_ip("addr add 10.1.0.1/30 dev n0p0");
	load();
	nic = find("n0p0");
	assert_string_equal(nic->link_kind, "veth");
	assert_int_equal(nic->link_type, ARPHRD_ETHER);
	assert_memory_equal(nic->mac, mac, 8);
	assert_int_equal(nic->mtu, 4200);
	assert_int_equal(nic->master, 0);
	assert_int_equal(nic->state, MESH_NIC_DOWN);
	assert_addr(nic, 0, "10.1.0.1/30");
	assert_int_equal(nic->num_addrs, 1);
}

TEST(carrier)
{
	pair_make("n0p0", "n1p0");
	load();
	assert_true(mesh_nic_has_carrier(find("n0p0")));
	namespace_ip("link set n1p0 down"); /* the peer goes: a pulled cable */
	load();
	assert_int_equal(find("n0p0")->state, MESH_NIC_NO_CARRIER);
}

TEST(master)
{
	namespace_ip("link add br0 type bridge");
	pair_make("n0p0", "n1p0");
	namespace_ip("link set n0p0 master br0");
	load();
	assert_string_equal(find("br0")->link_kind, "bridge");
	assert_int_equal(find("n0p0")->master, find("br0")->ifindex);
	assert_int_equal(find("n1p0")->master, 0);
}

/* What a macvlan stands on, and not the other end of a pair. */
TEST(lower)
{
	pair_make("n0p0", "n1p0");
	namespace_ip("link add mv0 link n0p0 type macvlan");
	load();
	assert_int_equal(find("mv0")->lower, find("n0p0")->ifindex);
	assert_int_equal(find("n0p0")->lower, 0);
	assert_int_equal(find("lo")->lower, 0);
}

TEST(addresses)
{
	static const uint8_t peer[16] = {10, 3, 0, 2};
	const struct mesh_nic *nic;

	pair_make("n0p0", "n1p0");
	namespace_ip("addr add 10.1.0.1/24 dev n0p0");
	namespace_ip("addr add 10.1.0.2/24 dev n0p0"); /* secondary */
	namespace_ip("addr add 10.2.0.1/16 dev n0p0");
	namespace_ip("addr add 10.3.0.1 peer 10.3.0.2/31 dev n0p0");
	namespace_ip("addr add fd00::1/64 nodad dev n0p0");
	namespace_ip("addr add fe80::1/64 nodad dev n0p0");
	load();
	nic = find("n0p0");
	assert_int_equal(nic->num_addrs, 6);
	assert_addr(nic, 0, "10.1.0.1/24");
	assert_addr(nic, 1, "10.2.0.1/16");
	assert_addr(nic, 2, "10.3.0.1/31"); /* ours, not the peer's */
	assert_false(nic->addrs[0].has_peer);
	assert_true(nic->addrs[2].has_peer);
	assert_memory_equal(nic->addrs[2].peer, peer, sizeof(peer));
	assert_addr(nic, 5, "10.1.0.2/24"); /* a secondary one comes last */
	assert_int_equal(nic->num_unready, 0);
	{
		const struct mesh_addr *local =
			mesh_addr_is_link_local(&nic->addrs[3]) ? &nic->addrs[3] : &nic->addrs[4];

		assert_true(mesh_addr_is_link_local(local));
		assert_int_equal(local->scope_id, nic->ifindex);
		assert_int_equal(local->prefix_len, 64);
	}
	assert_int_equal(find("n1p0")->num_addrs, 0);
}

/* The kernel reports IPv6 addresses with IFA_LOCAL only if there is a peer. */
TEST(ipv6_peer)
{
	static const uint8_t peer[16] = {0xfd, [15] = 2};
	const struct mesh_nic *nic;

	pair_make("n0p0", "n1p0");
	namespace_ip("addr add fd00::1 peer fd00::2/128 nodad dev n0p0");
	namespace_ip("addr add fd00::3/64 nodad dev n1p0");
	load();
	nic = find("n0p0");
	assert_addr(nic, 0, "fd00::1/128");
	assert_true(nic->addrs[0].has_peer);
	assert_memory_equal(nic->addrs[0].peer, peer, sizeof(peer));
	assert_false(find("n1p0")->addrs[0].has_peer);
}

/* An address whose duplicate detection is not over cannot be bound; later it can. */
TEST(tentative)
{
	const struct mesh_nic *nic;

	namespace_ip("link add n0p0 type veth peer name n1p0");
	namespace_ip("link set n0p0 addrgenmode none up"); /* no carrier: detection cannot end */
	namespace_ip("addr add fd00::1/64 dev n0p0");
	load();
	nic = find("n0p0");
	assert_int_equal(nic->num_addrs, 0);
	assert_int_equal(nic->num_unready, 1);
	namespace_ip("link set n1p0 addrgenmode none up");
	for (int i = 0; i < DAD_DEADLINE_S * 20; i++) {
		load();
		nic = find("n0p0");
		if (nic->num_addrs)
			break;
		usleep(50000); /* between two looks at the condition */
	}
	assert_int_equal(nic->num_unready, 0);
	assert_addr(nic, 0, "fd00::1/64");
}

TEST(many_addresses)
{
	const struct mesh_nic *nic;

	pair_make("n0p0", "n1p0");
	/* Deprecated: the kernel lists it first, we last, so that a better one displaces it. */
	namespace_ip("addr add 10.99.0.2/24 dev n0p0 valid_lft 9999 preferred_lft 0");
	for (int i = 0; i < MESH_NIC_ADDRS_MAX + 4; i++)
		namespace_ip("addr add 10.%d.0.1/24 dev n0p0", i);
	load();
	nic = find("n0p0");
	assert_int_equal(nic->num_addrs, MESH_NIC_ADDRS_MAX);
	for (int i = 0; i < nic->num_addrs; i++)
		assert_int_equal(nic->addrs[i].bytes[3], 1);
	assert_addr(nic, MESH_NIC_ADDRS_MAX - 1, "10.15.0.1/24");
}

TEST(default_route)
{
	pair_make("n0p0", "n1p0");
	pair_make("n0p1", "n1p1");
	namespace_ip("addr add 10.1.0.1/24 dev n0p0");
	namespace_ip("addr add 10.2.0.1/24 dev n0p1");
	namespace_ip("route add 10.9.0.0/16 via 10.1.0.2");
	namespace_ip("route add default via 10.1.0.2 table 100"); /* not the main table */
	namespace_ip("route add unreachable default metric 4000");
	leave_by("");
	namespace_ip("route add default via 10.2.0.2");
	leave_by("n0p1");
}

TEST(default_route_multipath)
{
	pair_make("n0p0", "n1p0");
	pair_make("n0p1", "n1p1");
	pair_make("n0p2", "n1p2");
	namespace_ip("addr add 10.1.0.1/24 dev n0p0");
	namespace_ip("addr add 10.2.0.1/24 dev n0p1");
	namespace_ip("route add default nexthop via 10.1.0.2 nexthop via 10.2.0.2");
	leave_by("n0p0 n0p1");
}

TEST(default_route_ipv6)
{
	pair_make("n0p0", "n1p0");
	namespace_ip("addr add fd00::1/64 nodad dev n0p0");
	namespace_ip("-6 route add default via fd00::2");
	namespace_ip("-6 route add unreachable default metric 4000"); /* leads to lo */
	leave_by("n0p0");
}

/* More than one message and more than the first array hold. */
TEST(many_links)
{
	char name[IF_NAMESIZE];

	for (int i = 0; i < 40; i++)
		namespace_ip("link add p%d address 02:00:00:00:00:%02x type veth peer name q%d", i,
			     i, i);
	load();
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		assert_int_equal(find(name)->mac[5], i);
	}
}

void tests_begin(void)
{
	if (!namespace_enter())
		exit(77);
}
