/* SPDX-License-Identifier: Apache-2.0 */
/* test_addr.c - addresses: reading, writing, subnets by real prefix lengths. */
#include "nic/addr.h"

#include "unit.h"

static struct mesh_addr addr(const char *text)
{
	struct mesh_addr result;

	if (mesh_addr_parse(text, &result))
		fail_msg("%s is not read", text);
	return result;
}

static bool same_subnet(const char *a, const char *b)
{
	const struct mesh_addr left = addr(a), right = addr(b);

	assert_int_equal(mesh_addr_same_subnet(&left, &right),
			 mesh_addr_same_subnet(&right, &left));
	return mesh_addr_same_subnet(&left, &right);
}

TEST(parse)
{
	static const uint8_t ip4[16] = {10, 1, 0, 200};
	static const uint8_t ip6[16] = {0xfd, [15] = 1};
	struct mesh_addr got = addr("10.1.0.200/30");

	assert_int_equal(got.family, MESH_FAMILY_IPV4);
	assert_int_equal(got.prefix_len, 30);
	assert_int_equal(got.scope_id, 0);
	assert_memory_equal(got.bytes, ip4, 16); /* the rest is zero: addresses are compared */
	assert_int_equal(addr("10.1.0.200").prefix_len, 32);
	assert_int_equal(addr("0.0.0.0/0").prefix_len, 0);
	got = addr("fd00::1/64");
	assert_int_equal(got.family, MESH_FAMILY_IPV6);
	assert_int_equal(got.prefix_len, 64);
	assert_memory_equal(got.bytes, ip6, 16);
	assert_int_equal(addr("fd00::1").prefix_len, 128);
	assert_int_equal(addr("::/0").prefix_len, 0);
}

TEST(parse_refuses)
{
	static const char *const bad[] = {
		"",
		"/",
		"/24",
		"10.1.0",
		"10.1.0.0/",
		"10.1.0.0/33",
		"10.1.0.0/-1",
		"10.1.0.0/ 8",
		"10.1.0.0/8 ",
		"10.1.0.0/8/8",
		"10.1.0.0/+8",
		"10.1.0.0/0x8",
		"10.1.0.0/99999999999999999999999",
		"10.1.0.256",
		" 10.1.0.1",
		"10.1.0.1 ",
		"fd00::/129",
		"fd00:::1",
		"fe80::1%eth0",
		"eth0",
		"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc",
	};
	struct mesh_addr got = {.family = MESH_FAMILY_IPV6, .prefix_len = 77};

	FOR_EACH(i, bad)
		if (mesh_addr_parse(bad[i], &got) != -EINVAL)
			fail_msg("\"%s\" is read as an address", bad[i]);
	assert_int_equal(got.prefix_len, 77);
}

TEST(text)
{
	struct mesh_addr link_local = addr("fe80::1/64");
	const struct mesh_addr none = {.family = MESH_FAMILY_NONE};
	struct mesh_addr longest = addr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr ip4 = addr("10.1.0.1/24");

	assert_string_equal(mesh_addr_text(&ip4, text), "10.1.0.1");
	assert_string_equal(mesh_addr_text_prefix(&ip4, text), "10.1.0.1/24");
	link_local.scope_id = 3;
	assert_string_equal(mesh_addr_text(&link_local, text), "fe80::1%3");
	assert_string_equal(mesh_addr_text_prefix(&link_local, text), "fe80::1%3/64");
	longest.scope_id = UINT32_MAX;
	assert_string_equal(mesh_addr_text_prefix(&longest, text),
			    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295/128");
	assert_string_equal(mesh_addr_text(&none, text), "no address");
	assert_string_equal(mesh_addr_text_prefix(&none, text), "no address");
}

TEST(same_subnet)
{
	assert_true(same_subnet("10.1.0.1/24", "10.1.0.2/24"));
	assert_false(same_subnet("10.1.0.1/24", "10.1.1.2/24"));
	/* Several /30 and /31 links inside one /24 are different links. */
	assert_true(same_subnet("10.1.0.1/30", "10.1.0.2/30"));
	assert_false(same_subnet("10.1.0.1/30", "10.1.0.5/30"));
	assert_true(same_subnet("10.1.0.0/31", "10.1.0.1/31"));
	assert_false(same_subnet("10.1.0.1/31", "10.1.0.2/31"));
	/* Both hosts must believe it. */
	assert_false(same_subnet("10.1.0.1/24", "10.1.0.5/30"));
	assert_true(same_subnet("10.1.0.1/24", "10.1.0.2/30"));
	/* Prefixes that end inside a byte. */
	assert_true(same_subnet("10.1.16.1/20", "10.1.31.254/20"));
	assert_false(same_subnet("10.1.16.1/20", "10.1.32.1/20"));
	assert_false(same_subnet("10.1.0.1/32", "10.1.0.2/32"));
	assert_true(same_subnet("10.1.0.1/32", "10.1.0.1/32"));
	assert_true(same_subnet("1.2.3.4/0", "200.2.3.4/0"));
	assert_true(same_subnet("fd00::1/64", "fd00::ffff:1/64"));
	assert_false(same_subnet("fd00:0:0:1::1/64", "fd00:0:0:2::1/64"));
	assert_true(same_subnet("fd00::1/127", "fd00::0/127"));
	assert_false(same_subnet("fd00::1/128", "fd00::2/128"));
	assert_true(same_subnet("fe80::1/64", "fe80::2/64"));
	/* ::ffff:10.1.0.1 is not the IPv4 address. */
	assert_false(same_subnet("10.1.0.1/24", "fd00::1/64"));
	assert_false(same_subnet("0.0.0.0/0", "::/0"));
}

/* "ip address add A peer B/N" */
static struct mesh_addr peered(const char *own, const char *peer)
{
	struct mesh_addr result = addr(own), other = addr(peer);

	result.prefix_len = other.prefix_len;
	result.has_peer = true;
	memcpy(result.peer, other.bytes, sizeof(result.peer));
	return result;
}

static bool both_ways(struct mesh_addr a, struct mesh_addr b)
{
	assert_int_equal(mesh_addr_same_subnet(&a, &b), mesh_addr_same_subnet(&b, &a));
	return mesh_addr_same_subnet(&a, &b);
}

TEST(peers)
{
	struct mesh_addr own = peered("10.3.0.1", "10.3.0.2/32"), other = addr("10.3.0.2/32");

	/* From another node the address comes without its peer. */
	assert_true(both_ways(own, other));
	assert_true(both_ways(own, peered("10.3.0.2", "10.3.0.1/32")));
	assert_false(both_ways(own, peered("10.3.0.2", "10.3.0.9/32")));
	assert_false(both_ways(own, addr("10.3.0.3/32")));
	/* A listener whose subnet contains our address need not have a peer address. */
	assert_true(both_ways(own, addr("10.3.0.2/24")));
	assert_false(both_ways(own, addr("10.3.0.3/24")));
	assert_false(both_ways(own, addr("10.3.0.2/31"))); /* .2 and .3 */
	/* The NIC's own address, of another process here. */
	assert_true(both_ways(own, addr("10.3.0.1/32")));
	assert_true(mesh_addr_in_subnet(&other, &own));
	/* The subnet is the peer's, not ours. */
	own = peered("10.3.0.1", "10.4.0.2/24");
	assert_true(both_ways(own, addr("10.4.0.7/8")));
	assert_false(both_ways(own, addr("10.3.0.7/8")));
	own = peered("fd00::1", "fd00::2/128");
	assert_true(both_ways(own, addr("fd00::2/128")));
	assert_false(both_ways(own, addr("fd00::3/128")));
	assert_false(both_ways(own, addr("10.3.0.1/32")));
}

TEST(no_family)
{
	const struct mesh_addr none = {.family = MESH_FAMILY_NONE};
	const struct mesh_addr ip4 = addr("10.1.0.1/0");

	assert_false(mesh_addr_same_subnet(&none, &none));
	assert_false(mesh_addr_same_subnet(&none, &ip4));
	assert_int_equal(mesh_addr_size(MESH_FAMILY_NONE), 0);
	assert_int_equal(mesh_addr_size(MESH_FAMILY_IPV4), 4);
	assert_int_equal(mesh_addr_size(MESH_FAMILY_IPV6), 16);
}

/* A prefix length that is too long may come off the wire. */
TEST(long_prefix)
{
	struct mesh_addr ip4 = addr("10.1.0.1/24"), foreign = addr("10.1.0.2/24");

	foreign.prefix_len = 33;
	assert_false(mesh_addr_in_subnet(&ip4, &foreign));
	assert_false(mesh_addr_same_subnet(&ip4, &foreign));
	assert_false(mesh_addr_in_subnet(&foreign, &foreign));
	foreign.prefix_len = 255;
	assert_false(mesh_addr_same_subnet(&foreign, &ip4));
	foreign = addr("fd00::1/64");
	foreign.prefix_len = 129;
	assert_false(mesh_addr_in_subnet(&foreign, &foreign));
}

TEST(in_subnet)
{
	const struct mesh_addr host = addr("10.1.2.3/32"), wide = addr("10.0.0.0/8");

	assert_true(mesh_addr_in_subnet(&host, &wide));
	assert_false(mesh_addr_in_subnet(&wide, &host));
}

TEST(kinds)
{
	static const struct {
		const char *text;
		bool link_local, loopback;
	} cases[] = {
		{"169.254.0.1", true, false},  {"169.253.0.1", false, false},
		{"127.0.0.1", false, true},    {"127.255.0.1", false, true},
		{"128.0.0.1", false, false},   {"fe80::1", true, false},
		{"febf::1", true, false},      {"fec0::1", false, false},
		{"::1", false, true},	       {"::2", false, false},
		{"fd00::1", false, false},     {"10.0.0.1", false, false},
		{"a9fe:0001::", false, false}, {"7f00::1", false, false},
	};

	FOR_EACH(i, cases) {
		const struct mesh_addr got = addr(cases[i].text);

		if (mesh_addr_is_link_local(&got) != cases[i].link_local ||
		    mesh_addr_is_loopback(&got) != cases[i].loopback)
			fail_msg("%s is taken for something else", cases[i].text);
	}
}

TEST(equal)
{
	struct mesh_addr a = addr("fe80::1/64"), b = addr("fe80::1/10");

	assert_true(mesh_addr_equal(&a, &b));
	b.scope_id = 2;
	assert_false(mesh_addr_equal(&a, &b)); /* the same address on another cable */
	b = addr("fe80::2/64");
	assert_false(mesh_addr_equal(&a, &b));
	a = addr("10.0.0.1");
	b = addr("a00:1::");
	assert_false(mesh_addr_equal(&a, &b));
}

TEST(sockaddr)
{
	static const char *const texts[] = {"10.1.0.1", "fd00::1", "fe80::9"};
	struct sockaddr_storage storage;
	struct mesh_addr in, out;
	uint16_t port;
	socklen_t len;

	FOR_EACH(i, texts) {
		in = addr(texts[i]);
		in.scope_id = i == 2 ? 7 : 0;
		port = 0;
		len = mesh_addr_to_sockaddr(&in, 0xabcd, &storage);
		assert_int_equal(len, i ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		assert_int_equal(
			mesh_addr_from_sockaddr((struct sockaddr *)&storage, len, &out, &port), 0);
		assert_true(mesh_addr_equal(&in, &out));
		assert_int_equal(out.prefix_len, i ? 128 : 32);
		assert_int_equal(port, 0xabcd);
		assert_int_equal(
			mesh_addr_from_sockaddr((struct sockaddr *)&storage, len, &out, NULL), 0);
	}
}

TEST(sockaddr_order)
{
	const struct mesh_addr in = addr("10.1.0.1");
	struct sockaddr_storage storage;
	struct sockaddr_in in4;

	mesh_addr_to_sockaddr(&in, 4791, &storage);
	memcpy(&in4, &storage, sizeof(in4));
	assert_int_equal(in4.sin_port, htons(4791));
	assert_int_equal(in4.sin_addr.s_addr, htonl(0x0a010001));
}

TEST(sockaddr_refuses)
{
	const struct mesh_addr none = {.family = MESH_FAMILY_NONE};
	struct mesh_addr in = addr("fd00::1"), out = addr("10.9.9.9");
	struct sockaddr_storage storage;
	uint16_t port = 5;
	socklen_t len;

	len = mesh_addr_to_sockaddr(&in, 1, &storage);
	assert_int_equal(mesh_addr_from_sockaddr((struct sockaddr *)&storage, len - 1, &out, &port),
			 -EINVAL);
	assert_int_equal(mesh_addr_from_sockaddr((struct sockaddr *)&storage, 0, &out, &port),
			 -EINVAL);
	storage.ss_family = AF_INET;
	assert_int_equal(mesh_addr_from_sockaddr((struct sockaddr *)&storage,
						 sizeof(struct sockaddr_in) - 1, &out, &port),
			 -EINVAL);
	storage.ss_family = AF_UNIX;
	assert_int_equal(
		mesh_addr_from_sockaddr((struct sockaddr *)&storage, sizeof(storage), &out, &port),
		-EINVAL);
	in = addr("10.9.9.9");
	assert_true(mesh_addr_equal(&out, &in));
	assert_int_equal(port, 5);
	assert_int_equal(mesh_addr_to_sockaddr(&none, 1, &storage), 0);
}
