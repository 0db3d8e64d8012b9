/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan.c - subnets, addresses, ports and cable lists of plans, and what is refused. */
#include "base/log.h"
#include "common/subnet.h"
#include "plan/cable_list.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/rank_order.h"
#include "plan/shape.h"

#include "log_capture.h"
#include "unit.h"

/* ---- subnets ---------------------------------------------------------------------------- */

static struct mesh_subnets subnets_of(const char *range, int prefix_len)
{
	struct mesh_subnets subnets = {.prefix_len = (uint8_t)prefix_len};

	if (mesh_addr_parse(range, &subnets.first))
		fail_msg("%s is not read", range);
	return subnets;
}

static void subnet_is(const struct mesh_subnets *subnets, uint64_t index, const char *subnet,
		      const char *first, const char *second)
{
	struct mesh_addr addr = mesh_subnets_get(subnets, index), host;
	char text[MESH_ADDR_TEXT_MAX];

	assert_string_equal(mesh_addr_text_prefix(&addr, text), subnet);
	host = mesh_subnet_host(&addr, 0);
	assert_string_equal(mesh_addr_text_prefix(&host, text), first);
	host = mesh_subnet_host(&addr, 1);
	assert_string_equal(mesh_addr_text_prefix(&host, text), second);
	host = mesh_subnet_of(&host);
	assert_true(mesh_addr_equal(&host, &addr));
}

TEST(subnets)
{
	struct mesh_subnets subnets = subnets_of("192.168.100.0/16", 24);

	assert_int_equal(mesh_subnets_count(&subnets), 156);
	subnet_is(&subnets, 0, "192.168.100.0/24", "192.168.100.1/24", "192.168.100.2/24");
	subnet_is(&subnets, 155, "192.168.255.0/24", "192.168.255.1/24", "192.168.255.2/24");
	subnets = subnets_of("10.0.0.0/8", 30);
	assert_int_equal(mesh_subnets_count(&subnets), 1 << 22);
	subnet_is(&subnets, 65, "10.0.1.4/30", "10.0.1.5/30", "10.0.1.6/30");
	subnets = subnets_of("10.0.0.0/31", 31);
	assert_int_equal(mesh_subnets_count(&subnets), 1);
	subnet_is(&subnets, 0, "10.0.0.0/31", "10.0.0.0/31", "10.0.0.1/31");
	subnets = subnets_of("0.0.0.0/0", 31);
	assert_int_equal(mesh_subnets_count(&subnets), (uint64_t)1 << 31);
	subnets = subnets_of("fd00::/48", 64);
	assert_int_equal(mesh_subnets_count(&subnets), 65536);
	subnet_is(&subnets, 65535, "fd00:0:0:ffff::/64", "fd00:0:0:ffff::1/64",
		  "fd00:0:0:ffff::2/64");
	subnets = subnets_of("fd00::/8", 127);
	assert_true(mesh_subnets_count(&subnets) == UINT64_MAX);
	subnet_is(&subnets, UINT64_MAX, "fd00::1:ffff:ffff:ffff:fffe/127",
		  "fd00::1:ffff:ffff:ffff:fffe/127", "fd00::1:ffff:ffff:ffff:ffff/127");
}

static void subnets_refused(const char *range, int prefix_len, const char *words)
{
	struct mesh_subnets subnets = subnets_of(range, prefix_len);

	log_capture_start();
	assert_int_equal(mesh_subnets_check(&subnets), -EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, words));
}

TEST(subnets_refused)
{
	subnets_refused("10.0.0.0/24", 16, "/24 to /31 fit");
	subnets_refused("10.0.0.0/24", 32, "/24 to /31 fit");
	subnets_refused("fd00::/48", 128, "/48 to /127 fit");
	subnets_refused("0.0.0.0/0", 0, "/1 to /31 fit");
	subnets_refused("10.0.0.1/24", 30, "not the start of a subnet of /30");
	subnets_refused("127.0.0.0/8", 30, "not for hosts");
	subnets_refused("169.254.0.0/16", 30, "not for hosts");
	subnets_refused("224.0.0.0/8", 30, "not for hosts");
	subnets_refused("0.0.0.0/8", 30, "not for hosts");
	subnets_refused("fe80::/16", 64, "not for hosts");
	subnets_refused("ff00::/16", 64, "not for hosts");
	subnets_refused("::/16", 64, "not for hosts");
}

TEST(ula)
{
	struct mesh_addr a = mesh_subnet_ula("a b c "), again = mesh_subnet_ula("a b c ");
	struct mesh_addr other = mesh_subnet_ula("a b d ");

	assert_int_equal(a.bytes[0], 0xfd);
	assert_int_equal(a.prefix_len, 48);
	assert_true(mesh_addr_equal(&a, &again));
	assert_false(mesh_addr_equal(&a, &other));
}

/* ---- lists of cables -------------------------------------------------------------------- */

TEST(cable_list)
{
	static const char text[] = "# two cables\n\n  a b\r\nspark-1:enp1s0f0np0\tb.c:ib0# far\n";
	struct mesh_cable_list list;

	assert_int_equal(mesh_cable_list_parse(text, strlen(text), &list), 0);
	assert_int_equal(list.num_cables, 2);
	assert_string_equal(list.cables[0].ends[0].node, "a");
	assert_string_equal(list.cables[0].ends[0].port, "");
	assert_string_equal(list.cables[0].ends[1].node, "b");
	assert_string_equal(list.cables[1].ends[0].node, "spark-1");
	assert_string_equal(list.cables[1].ends[0].port, "enp1s0f0np0");
	assert_string_equal(list.cables[1].ends[1].node, "b.c");
	assert_string_equal(list.cables[1].ends[1].port, "ib0");
	mesh_cable_list_free(&list);
}

static void list_refused(const char *text, size_t size, const char *words)
{
	struct mesh_cable_list list;

	log_capture_start();
	assert_int_equal(mesh_cable_list_parse(text, size, &list), -EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, words));
}

TEST(cable_list_refused)
{
	list_refused("", 0, "names no cable");
	list_refused("# a b\n", 6, "names no cable");
	list_refused("a\n", 2, "line 1");
	list_refused("a b\na b c", 9, "line 2: a cable has two ends");
	list_refused("a a", 3, "both ends are on a");
	list_refused("a b:", 4, "line 1");
	list_refused("a:p:q b", 7, "line 1");
	list_refused("a b/c", 5, "line 1");
	list_refused("a:$(reboot) b", 13, "line 1");
	list_refused("a:0123456789abcdef b", 20, "line 1");
	list_refused("a\0x b", 5, "line 1");
	list_refused("-a b", 4, "line 1");
	list_refused("a:p=10.0.0.1 b:p=10.0.0.2", 25, "line 1: write the two ends");
	list_refused("a=10.0.0.1/24 b=10.0.0.2/24", 27, "line 1: write the two ends");
	list_refused("a:p=10.0.0.1/24 b:p", 19, "line 1: the two addresses");
	list_refused("a:p=10.0.0.1/24 b:p=10.0.1.1/24", 31, "line 1: the two addresses");
	list_refused("a:p=10.0.0.1/24 b:p=10.0.0.1/24", 31, "line 1: the two addresses");
	list_refused("a:p=10.0.0.1/24 b:p=10.0.0.2/16", 31, "line 1: the two addresses");
}

/* ---- plans ------------------------------------------------------------------------------ */

static struct mesh_plan plan;
static struct mesh_cable_list list; /* that a request is made of */

static void all_free(void)
{
	mesh_plan_free(&plan);
	mesh_cable_list_free(&list);
}

TESTS_USE(NULL, all_free);

static struct mesh_plan_request request_of(const char *shape, int num_nodes)
{
	struct mesh_plan_request request = {.num_nodes = num_nodes};

	request.shape = (struct mesh_shape){.kind = MESH_SHAPE_CABLES, .parallel = 1};
	if (strcmp(shape, "cables") && mesh_shape_parse(shape, &request.shape))
		fail_msg("%s is not read", shape);
	request.nodes = calloc((size_t)num_nodes, sizeof(*request.nodes));
	assert_non_null(request.nodes);
	for (int i = 0; i < num_nodes; i++)
		snprintf(request.nodes[i].name, MESH_PLAN_NAME_MAX, "n%d", i);
	return request;
}

static void plan_made(struct mesh_plan_request *request)
{
	mesh_plan_free(&plan);
	assert_int_equal(mesh_plan_make(request, &plan), 0);
	assert_null(request->nodes);
}

static void addr_is(int cable, int end, const char *node, const char *port, const char *addr)
{
	struct mesh_addr found = mesh_plan_addr(&plan, cable, end);
	char text[MESH_ADDR_TEXT_MAX];

	assert_string_equal(mesh_plan_node_name(&plan, cable, end), node);
	assert_string_equal(mesh_plan_port_name(&plan, cable, end), port);
	assert_string_equal(mesh_addr_text_prefix(&found, text), addr);
}

TEST(names_repeated)
{
	static const char names[][3] = {"b", "c", "a", "aa", "b1"},
			  twice[][3] = {"x", "b", "a", "b"};

	assert_null(mesh_name_repeated(names, sizeof(names[0]), 5));
	assert_string_equal(mesh_name_repeated(twice, sizeof(twice[0]), 4), "b");
	assert_null(mesh_name_repeated(twice, sizeof(twice[0]), 1));
	assert_null(mesh_name_repeated(twice, sizeof(twice[0]), 0));
}

/* The reference triangle: A-B .101, A-C .100, B-C .102, without any option. */
TEST(triangle)
{
	struct mesh_plan_request request = request_of("triangle", 3);

	plan_made(&request);
	addr_is(0, 0, "n0", "mesh0", "192.168.100.1/24");
	addr_is(0, 1, "n2", "mesh1", "192.168.100.2/24");
	addr_is(1, 0, "n0", "mesh1", "192.168.101.1/24");
	addr_is(1, 1, "n1", "mesh0", "192.168.101.2/24");
	addr_is(2, 0, "n1", "mesh1", "192.168.102.1/24");
	addr_is(2, 1, "n2", "mesh0", "192.168.102.2/24");
	assert_int_equal(plan.mtu, 9000);
	assert_int_equal(plan.order.kind, MESH_ORDER_RING);
	assert_int_equal(mesh_plan_pairs_apart(&plan), 0);
	assert_false(plan.ports_named);
}

/* All addresses of a plan are different, and each subnet holds its two only. */
static void addresses_distinct(void)
{
	struct mesh_addr last = {.family = MESH_FAMILY_NONE}, a, b;

	for (int i = 0; i < plan.topology.num_cables; i++) {
		a = mesh_plan_addr(&plan, i, 0);
		b = mesh_plan_addr(&plan, i, 1);
		assert_true(mesh_addr_same_subnet(&a, &b));
		assert_false(mesh_addr_equal(&a, &b));
		if (i) /* they ascend: the one before is enough */
			assert_false(mesh_addr_same_subnet(&a, &last));
		last = a;
	}
}

/* The range and the prefix follow the number of cables. */
TEST(ranges)
{
	struct {
		const char *shape;
		int num_nodes, prefix_len;
		bool ipv6;
		const char *first;
	} cases[] = {
		{"ring", 156, 24, false, "192.168.100.0/16"},
		{"ring", 157, 30, false, "192.168.100.0/16"},
		{"full", 141, 30, false, "192.168.100.0/16"},
		{"full", 142, 24, false, "10.0.0.0/8"},
		{"full", 1000, 30, false, "10.0.0.0/8"},
		{"ring", 1000, 64, true, NULL},
		{"full", 1000, 127, true, NULL},
	};
	struct mesh_plan_request request;
	char text[MESH_ADDR_TEXT_MAX];

	FOR_EACH(i, cases) {
		request = request_of(cases[i].shape, cases[i].num_nodes);
		request.ipv6 = cases[i].ipv6;
		plan_made(&request);
		assert_int_equal(plan.subnets.prefix_len, cases[i].prefix_len);
		if (cases[i].first)
			assert_string_equal(mesh_addr_text_prefix(&plan.subnets.first, text),
					    cases[i].first);
		addresses_distinct();
	}
}

static void refused(struct mesh_plan_request *request, int error, const char *words)
{
	struct mesh_plan none;

	log_capture_start();
	assert_int_equal(mesh_plan_make(request, &none), error);
	if (!log_captured(MESH_LOG_WARN, words))
		fail_msg("the log has no \"%s\"", words);
	assert_null(request->nodes);
}

TEST(too_few_addresses)
{
	struct mesh_plan_request request = request_of("ring", 200);

	mesh_addr_parse("10.1.0.0/24", &request.range);
	refused(&request, -ENOSPC, "10.1.0.0/24 has 64 of /30: try a larger --range");
	request = request_of("ring", 200);
	mesh_addr_parse("10.1.0.0/20", &request.range);
	request.prefix_len = 24;
	refused(&request, -ENOSPC, "10.1.0.0/20 has 16 of /24: try --prefix 30");
	request = request_of("ring", 200);
	request.prefix_len = 128;
	request.ipv6 = true;
	refused(&request, -EINVAL, "/48 to /127 fit");
	request = request_of("ring", 200);
	request.prefix_len = 8;
	mesh_addr_parse("10.0.0.0/16", &request.range);
	refused(&request, -EINVAL, "no subnets of /8");
	request = request_of("ring", 3);
	request.mtu = 100;
	refused(&request, -EINVAL, "an MTU is");
}

static void ports_add(struct mesh_plan_node *node, const char *a, const char *b)
{
	assert_int_equal(mesh_plan_port_add(node, a), 0);
	if (b)
		assert_int_equal(mesh_plan_port_add(node, b), 0);
	node->ports_named = true;
}

TEST(ports)
{
	struct mesh_plan_request request = request_of("full", 4);

	request.num_ports = 2;
	refused(&request, -ENOSPC,
		"full of 4 nodes needs 3 ports on n0, which has 2; these shapes fit 4 nodes with "
		"2 ports: ring (2 ports), line (2 ports)");
	request = request_of("ring", 3);
	ports_add(&request.nodes[1], "p0", NULL);
	refused(&request, -ENOSPC, "needs 2 ports on n1, which has 1");
	request = request_of("ring", 3);
	for (int i = 0; i < 3; i++)
		ports_add(&request.nodes[i], "left", "right");
	plan_made(&request);
	assert_true(plan.ports_named);
	addr_is(1, 0, "n0", "right", "192.168.101.1/24");
	addr_is(1, 1, "n1", "left", "192.168.101.2/24");
	/* The ends of a line need one port less. */
	request = request_of("line", 3);
	ports_add(&request.nodes[0], "p0", NULL);
	ports_add(&request.nodes[1], "p0", "p1");
	ports_add(&request.nodes[2], "p0", NULL);
	plan_made(&request);
	assert_int_equal(plan.order.kind, MESH_ORDER_LINE);
}

TEST(port_names)
{
	struct mesh_plan_node node = {.name = "a"};

	log_capture_start();
	assert_int_equal(mesh_plan_port_add(&node, ""), -EINVAL);
	assert_int_equal(mesh_plan_port_add(&node, "a b"), -EINVAL);
	assert_int_equal(mesh_plan_port_add(&node, "a;reboot"), -EINVAL);
	assert_int_equal(mesh_plan_port_add(&node, "0123456789abcdef"), -EINVAL);
	assert_int_equal(mesh_plan_port_add(&node, "eth0.7"), 0);
	assert_int_equal(mesh_plan_port_add(&node, "eth0.7"), -EINVAL);
	assert_true(log_captured(MESH_LOG_WARN, "a: port eth0.7 is named twice"));
	assert_int_equal(node.num_ports, 1);
	free(node.ports);
}

static struct mesh_plan_request request_listed(const char *text, int num_nodes)
{
	struct mesh_plan_request request = request_of("cables", num_nodes);

	mesh_cable_list_free(&list);
	assert_int_equal(mesh_cable_list_parse(text, strlen(text), &list), 0);
	request.cables = &list;
	return request;
}

static void list_plan_refused(const char *text, int num_nodes, int error, const char *words)
{
	struct mesh_plan_request request = request_listed(text, num_nodes);

	refused(&request, error, words);
}

TEST(listed)
{
	struct mesh_plan_request request;

	/* Ends without a port take the first free one, also when a later line names ports. */
	request = request_listed("n1 n0:x\nn2 n0\nn0:y n1:z\n", 3);
	plan_made(&request);
	addr_is(0, 0, "n0", "x", "192.168.100.1/24");
	addr_is(0, 1, "n1", "mesh1", "192.168.100.2/24");
	addr_is(1, 0, "n0", "mesh2", "192.168.101.1/24");
	addr_is(2, 0, "n0", "y", "192.168.102.1/24");
	addr_is(2, 1, "n1", "z", "192.168.102.2/24");
	assert_false(plan.ports_named);
	assert_int_equal(plan.order.kind, MESH_ORDER_LINE);
	request = request_listed("n1:p n0:p\n", 2);
	plan_made(&request);
	assert_true(plan.ports_named);

	list_plan_refused("n0 n7\n", 2, -EINVAL, "a cable to n7");
	list_plan_refused("n0:p n1\nn0:p n1\n", 2, -EINVAL, "two cables end at port p of n0");
	list_plan_refused("n0 n1\nn2 n3\n", 4, -EINVAL, "form 2 separate parts");
	request = request_listed("n0 n1\nn1 n2\n", 3);
	request.num_ports = 1;
	refused(&request, -ENOSPC, "the list gives n1 2 cables, and it has 1 port");
	request = request_of("cables", 2);
	mesh_cable_list_free(&list);
	request.cables = &list;
	assert_int_equal(mesh_cable_list_parse("n0:q n1", 7, &list), 0);
	ports_add(&request.nodes[0], "p", NULL);
	refused(&request, -EINVAL, "n0 has no port q");
}

/* Cables with addresses keep them, in either order of the ends; the others pass them by. */
TEST(kept)
{
	struct mesh_plan_request request;
	struct mesh_addr subnet;
	char text[MESH_ADDR_TEXT_MAX];

	request = request_listed("n1:p=192.168.100.5/30 n0:q=192.168.100.6/30\n"
				 "n0:r n2:s\nn1:t=fd77::1/64 n2:u=fd77::2/64\n",
				 3);
	plan_made(&request);
	addr_is(0, 0, "n0", "q", "192.168.100.6/30");
	addr_is(0, 1, "n1", "p", "192.168.100.5/30");
	addr_is(1, 0, "n0", "r", "192.168.101.1/24");
	addr_is(1, 1, "n2", "s", "192.168.101.2/24");
	addr_is(2, 1, "n2", "u", "fd77::2/64");
	subnet = mesh_plan_subnet(&plan, 0);
	assert_string_equal(mesh_addr_text_prefix(&subnet, text), "192.168.100.4/30");
	subnet = mesh_plan_subnet(&plan, 1);
	assert_string_equal(mesh_addr_text_prefix(&subnet, text), "192.168.101.0/24");

	list_plan_refused("n0:p=10.1.0.1/16 n1:p=10.1.0.2/16\nn0:q=10.1.9.1/24 n1:q=10.1.9.2/24\n",
			  2, -EINVAL, "two cables have addresses of one subnet: 10.1.0.1/16 and");
	request = request_listed("n0:p=10.1.0.1/24 n1:p=10.1.0.2/24\nn0:q n1:q\nn0:r n1:r\n", 2);
	mesh_addr_parse("10.1.0.0/22", &request.range);
	request.prefix_len = 24;
	plan_made(&request);
	addr_is(2, 0, "n0", "r", "10.1.2.1/24");
	request = request_of("cables", 2);
	request.cables = &list;
	mesh_addr_parse("10.1.0.0/23", &request.range);
	request.prefix_len = 24;
	refused(&request, -ENOSPC, "10.1.0.0/23 has ");
}
