/* SPDX-License-Identifier: Apache-2.0 */
/* test_subnet.c - subnets that overlap, and addresses that a neighbour could have. */
#include "common/subnet.h"

#include "unit.h"

static struct mesh_addr parse(const char *text)
{
	struct mesh_addr addr;

	assert_int_equal(mesh_addr_parse(text, &addr), 0);
	return addr;
}

static enum mesh_subnet_relation compare(const char *a, const char *b)
{
	struct mesh_addr x = parse(a), y = parse(b);

	assert_int_equal(mesh_subnet_compare(&x, &y), mesh_subnet_compare(&y, &x));
	return mesh_subnet_compare(&x, &y);
}

TEST(compare)
{
	assert_int_equal(compare("10.1.0.1/24", "10.2.0.1/24"), MESH_SUBNET_APART);
	assert_int_equal(compare("10.1.0.1/24", "10.1.0.2/24"), MESH_SUBNET_SAME);
	assert_int_equal(compare("10.1.0.1/24", "10.1.0.1/24"), MESH_SUBNET_SAME_ADDRESS);
	assert_int_equal(compare("10.1.0.1/24", "10.1.0.1/16"), MESH_SUBNET_SAME_ADDRESS);
	assert_int_equal(compare("10.1.0.1/24", "10.1.200.1/16"), MESH_SUBNET_OVERLAPS);
	assert_int_equal(compare("10.1.0.1/30", "10.1.0.5/30"), MESH_SUBNET_APART);
	assert_int_equal(compare("10.1.0.1/30", "10.1.0.5/24"), MESH_SUBNET_OVERLAPS);
	assert_int_equal(compare("fd00:1::1/64", "fd00:1::2/64"), MESH_SUBNET_SAME);
	assert_int_equal(compare("fd00:1::1/64", "10.1.0.2/0"), MESH_SUBNET_APART);
	/* Every NIC has these. */
	assert_int_equal(compare("fe80::1/64", "fe80::2/64"), MESH_SUBNET_APART);
	assert_int_equal(compare("169.254.1.1/16", "169.254.1.2/16"), MESH_SUBNET_APART);
	assert_int_equal(compare("127.0.0.1/8", "127.0.0.1/8"), MESH_SUBNET_APART);
}

static void assert_neighbour(const char *addr, int number, const char *wanted)
{
	struct mesh_addr own = parse(addr), other;
	char text[MESH_ADDR_TEXT_MAX];

	assert_int_equal(mesh_subnet_neighbour(&own, number, &other), 0);
	assert_string_equal(mesh_addr_text(&other, text), wanted);
	assert_int_equal(other.prefix_len, own.prefix_len);
}

TEST(neighbour)
{
	struct mesh_addr own = parse("10.1.0.1/32"), other;
	char text[MESH_ADDR_TEXT_MAX];
	int i;

	assert_neighbour("10.1.0.1/24", 0, "10.1.0.3"); /* 10.1.0.0 is the network */
	assert_neighbour("10.1.0.1/24", 1, "10.1.0.2");
	assert_neighbour("10.1.0.1/30", 0, "10.1.0.2");
	assert_neighbour("10.1.0.2/30", 0, "10.1.0.1");
	assert_neighbour("10.1.0.0/31", 0, "10.1.0.1");
	assert_neighbour("fd00::1/64", 0, "fd00::");
	assert_neighbour("fd00::/127", 0, "fd00::1");
	assert_int_equal(mesh_subnet_neighbour(&own, 0, &other), -EADDRNOTAVAIL);
	own = parse("10.1.0.1/30");
	assert_int_equal(mesh_subnet_neighbour(&own, 1, &other), -EADDRNOTAVAIL);
	own = parse("10.1.0.1/32"); /* a point-to-point link has one */
	own.has_peer = true;
	memcpy(own.peer, (const uint8_t[]){10, 9, 0, 2}, 4);
	assert_int_equal(mesh_subnet_neighbour(&own, 0, &other), 0);
	assert_string_equal(mesh_addr_text_prefix(&other, text), "10.9.0.2/32");
	assert_false(other.has_peer);
	assert_int_equal(mesh_subnet_neighbour(&own, 1, &other), -EADDRNOTAVAIL);
	other = mesh_subnet_of(&own);
	assert_string_equal(mesh_addr_text_prefix(&other, text), "10.9.0.2/32");
	assert_false(other.has_peer);
	own = parse("10.1.0.1/16");
	for (i = 0; !mesh_subnet_neighbour(&own, i, &other); i++)
		assert_int_equal(mesh_subnet_compare(&own, &other), MESH_SUBNET_SAME);
	assert_int_equal(i, 253);
}

static void assert_subnet(const char *addr, const char *wanted)
{
	struct mesh_addr own = parse(addr), subnet = mesh_subnet_of(&own);
	char text[MESH_ADDR_TEXT_MAX];

	assert_string_equal(mesh_addr_text_prefix(&subnet, text), wanted);
}

TEST(subnet_of)
{
	assert_subnet("10.1.2.3/24", "10.1.2.0/24");
	assert_subnet("10.1.2.7/30", "10.1.2.4/30");
	assert_subnet("10.1.2.3/32", "10.1.2.3/32");
	assert_subnet("10.1.2.3/0", "0.0.0.0/0");
	assert_subnet("fd00::1:2/127", "fd00::1:2/127");
	assert_subnet("fd00:1:2:3:4::1/64", "fd00:1:2:3::/64");
}
