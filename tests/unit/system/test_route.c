/* SPDX-License-Identifier: Apache-2.0 */
/* test_route.c - the kernel's route, with and without a source route. */
#include <net/if.h>

#include "system/node.h"

#include "namespace.h"
#include "unit.h"

static struct mesh_routes routes; /* one socket for all questions, also after an error */

static int find(const char *source, const char *destination, const char *netdev)
{
	struct mesh_addr from, to;
	unsigned int ifindex = 0;
	int ret;

	assert_int_equal(mesh_addr_parse(source, &from), 0);
	assert_int_equal(mesh_addr_parse(destination, &to), 0);
	ret = mesh_route_find(&routes, &from, &to, &ifindex);
	if (!ret)
		assert_int_equal(ifindex, if_nametoindex(netdev));
	return ret;
}

static void pair_make(const char *name, const char *addr4, const char *addr6)
{
	namespace_ip("link add %s type veth peer name x%s", name, name);
	namespace_ip("link set %s up", name);
	namespace_ip("link set x%s up", name);
	namespace_ip("addr add %s dev %s", addr4, name);
	namespace_ip("addr add %s dev %s nodad", addr6, name);
}

TEST(source_route)
{
	pair_make("na", "10.1.0.1/24", "fd00::1/64");
	pair_make("nb", "10.1.0.2/24", "fd00::2/64");
	assert_int_equal(find("10.1.0.1", "10.1.0.9", "na"), 0);
	assert_int_equal(find("10.1.0.2", "10.1.0.9", "na"), 0);
	assert_int_equal(find("fd00::1", "fd00::9", "na"), 0);
	namespace_ip("rule add from 10.1.0.2 table 77");
	namespace_ip("route add 10.1.0.0/24 dev nb src 10.1.0.2 table 77");
	namespace_ip("-6 rule add from fd00::2 table 77");
	namespace_ip("-6 route add fd00::/64 dev nb src fd00::2 table 77");
	assert_int_equal(find("10.1.0.2", "10.1.0.9", "nb"), 0);
	assert_int_equal(find("10.1.0.1", "10.1.0.9", "na"), 0);
	assert_int_equal(find("fd00::2", "fd00::9", "nb"), 0);
}

TEST(leads)
{
	struct mesh_addr from, to;

	namespace_ip("route add 10.5.0.0/24 via 10.1.0.9 dev na");
	assert_int_equal(mesh_addr_parse("10.1.0.1", &from), 0);
	assert_int_equal(mesh_addr_parse("10.5.0.1", &to), 0);
	assert_true(mesh_route_leads(&routes, &from, if_nametoindex("na"), &to));
	assert_false(mesh_route_leads(&routes, &from, if_nametoindex("nb"), &to));
	assert_int_equal(mesh_addr_parse("10.6.0.1", &to), 0);
	assert_false(mesh_route_leads(&routes, &from, if_nametoindex("na"), &to));
	namespace_ip("route add unreachable 10.6.0.0/24");
	assert_false(mesh_route_leads(&routes, &from, if_nametoindex("na"), &to));
	assert_int_equal(mesh_addr_parse("10.1.0.2", &to), 0); /* ours */
	assert_false(mesh_route_leads(&routes, &from, if_nametoindex("na"), &to));
}

TEST(no_route)
{
	struct mesh_addr from, to;
	unsigned int ifindex = 7;

	assert_int_equal(find("10.1.0.1", "10.9.0.1", ""), -ENETUNREACH);
	assert_true(find("10.99.0.1", "10.1.0.9", "") < 0); /* not ours */
	assert_int_equal(mesh_addr_parse("10.1.0.1", &from), 0);
	assert_int_equal(mesh_addr_parse("fd00::1", &to), 0);
	assert_int_equal(mesh_route_find(NULL, &from, &to, &ifindex), -EINVAL);
	assert_int_equal(ifindex, 7);
}

void tests_begin(void)
{
	if (!namespace_enter())
		exit(77);
}
