/* SPDX-License-Identifier: Apache-2.0 */
/* test_link_address.c - the kernel's table of link addresses, on a cable where nobody answers. */
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "system/route.h"

#include "namespace.h"
#include "unit.h"

static int find(const char *source, const char *destination)
{
	struct mesh_addr from, to;

	assert_int_equal(mesh_addr_parse(source, &from), 0);
	assert_int_equal(mesh_addr_parse(destination, &to), 0);
	if (from.family == MESH_FAMILY_IPV6 && mesh_addr_is_link_local(&from))
		from.scope_id = to.scope_id = if_nametoindex("n0");
	return mesh_link_address_find(&from, if_nametoindex("n0"), &to);
}

/* True if the kernel asks for this address on n0. */
static bool is_asked(const char *address)
{
	char command[128], line[256] = "";
	FILE *out;

	snprintf(command, sizeof(command), "ip neighbour show to %s dev n0", address);
	out = popen(command, "r");
	assert_non_null(out);
	assert_true(fgets(line, sizeof(line), out) || !line[0]);
	assert_int_equal(pclose(out), 0);
	return strstr(line, "INCOMPLETE");
}

static int setup(void)
{
	if (!namespace_enter())
		return -1;
	namespace_nics(1);
	namespace_ip("link set lo up");
	namespace_ip("addr add fd00::1/64 dev n0 nodad");
	return 0;
}

TESTS_USE(setup, NULL);

/* @gateway: the node that is to answer, on the way to @destination or itself. */
static void asks(const char *source, const char *destination, const char *gateway)
{
	assert_false(is_asked(gateway));
	assert_int_equal(find(source, destination), -EAGAIN);
	assert_true(is_asked(gateway));
	assert_int_equal(find(source, destination), -EAGAIN);
	namespace_ip("neighbour replace %s dev n0 lladdr 02:00:00:00:00:09 nud reachable", gateway);
	assert_int_equal(find(source, destination), 0);
	namespace_ip("neighbour replace %s dev n0 lladdr 02:00:00:00:00:09 nud stale", gateway);
	assert_int_equal(find(source, destination), 0);
	/* It has not answered: it is asked again. */
	namespace_ip("neighbour replace %s dev n0 nud failed", gateway);
	assert_int_equal(find(source, destination), -EAGAIN);
	assert_true(is_asked(gateway));
}

TEST(direct)
{
	asks("10.1.0.1", "10.1.0.2", "10.1.0.2");
	asks("fd00::1", "fd00::2", "fd00::2");
}

TEST(through_a_gateway)
{
	namespace_ip("route add 10.9.0.0/24 via 10.1.0.3");
	namespace_ip("-6 route add fd09::/64 via fd00::3");
	asks("10.1.0.1", "10.9.0.2", "10.1.0.3");
	asks("fd00::1", "fd09::2", "fd00::3");
}

/* As routers without addresses of IPv4 announce it. */
TEST(through_a_gateway_of_the_other_family)
{
	namespace_ip("route add 10.8.0.0/24 via inet6 fd00::4 dev n0");
	asks("10.1.0.1", "10.8.0.2", "fd00::4");
}

/* A second NIC has the same subnet, and the better route: the question leaves by ours. */
TEST(by_this_nic)
{
	namespace_ip("link add m0 type veth peer name y0");
	namespace_ip("link set y0 up");
	namespace_ip("link set m0 up");
	namespace_ip("addr add 10.1.0.8/24 dev m0");
	namespace_ip("route del 10.1.0.0/24 dev n0");
	namespace_ip("route append 10.1.0.0/24 dev n0 src 10.1.0.1 metric 9");
	asks("10.1.0.1", "10.1.0.2", "10.1.0.2");
	namespace_ip("addr add fe80::1/64 dev n0 nodad");
	asks("fe80::1", "fe80::2", "fe80::2");
}

/* Nothing to wait for: the provider finds the reason by itself. */
TEST(nothing_to_ask)
{
	assert_int_equal(find("10.1.0.1", "10.1.0.1"), 0);
	assert_int_equal(find("fd00::1", "fd77::1"), 0); /* no route */
	assert_int_equal(find("10.1.0.1", "fd00::2"), 0);
}

/* A firewall may not let the datagram out: then only the provider can have it asked for. */
TEST(cannot_ask)
{
	if (system("nft add table ip t && "
		   "nft 'add chain ip t out { type filter hook output priority 0; }' && "
		   "nft add rule ip t out udp dport 9 drop"))
		skip();
	assert_int_equal(find("10.1.0.1", "10.1.0.2"), 0);
	assert_false(is_asked("10.1.0.2"));
}

/* False under qemu's user emulation, which does not know this question. */
static bool table_is_told(void)
{
	const struct {
		struct nlmsghdr header;
		struct ndmsg body;
	} question = {
		.header.nlmsg_len = sizeof(question),
		.header.nlmsg_type = RTM_GETNEIGH,
		.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	bool told = send(fd, &question, sizeof(question), 0) == sizeof(question);

	close(fd);
	return told;
}

void tests_begin(void)
{
	if (!namespace_enter())
		exit(77);
	if (!table_is_told()) {
		printf("skipped: the kernel's table of link addresses is not told here\n");
		exit(77);
	}
}
