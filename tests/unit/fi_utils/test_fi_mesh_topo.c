/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_topo.c - plans and reports that `fi_mesh topo` reads, and its paths. */
#include "plan/json.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/shape.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/print.h"

#include "printed.h"
#include "unit.h"

static struct topo_map map;

void tests_setup(void)
{
	map = (struct topo_map){.planned = false};
}

void tests_teardown(void)
{
	topo_map_free(&map);
}

static int read_text(const char *text, const char *source)
{
	return topo_document_read(&map, text, strlen(text), source);
}

/*
 * A report as `fi_mesh nics --json` prints it, as far as it matters: "p0=10.0.1.1/24" is a NIC;
 * behind it stands '+' if it has RDMA, '-' if its link is down, '*' if it is the management NIC,
 * '~' if it is virtual and down. Before a '|' stand other members of the report, and the next line
 * follows it.
 */
static void report_read(const char *nics, const char *source)
{
	static const char *const kinds[128] = {
		['-'] = "\"taken\":false,\"carrier\":false,\"reason\":\"skipped: no carrier\"}",
		['~'] = "\"taken\":false,\"carrier\":false,\"reason\":\"skipped: no carrier\"}",
		['*'] = "\"taken\":false,\"carrier\":true,\"default_route\":true,"
			"\"reason\":\"skipped: slow\"}",
		['+'] = "\"taken\":true,\"carrier\":true,\"provider\":\"verbs;ofi_rxm\"}",
		[' '] = "\"taken\":true,\"carrier\":true,\"provider\":\"tcp\"}"};
	FILE *file = print_file();
	int len = (int)strcspn(nics, "|"), name;
	const char *end;

	fprintf(file, "{%.*s\"nics\":[", nics[len] ? len : 0, nics);
	for (nics += nics[len] ? len + 1 : 0; *nics && *nics != '\n';
	     nics = end + strspn(end, " ")) {
		len = (int)strcspn(nics, "+-*~ \n");
		name = (int)strcspn(nics, "=");
		fprintf(file, "{\"netdev\":\"%.*s\",\"speed_mbps\":100000,", name, nics);
		nics += name + 1;
		len -= name + 1;
		end = nics + len;
		fprintf(file, "\"addresses\":[\"%.*s\"],\"kind\":\"%s\",", len, nics,
			*end == '~' ? "virtual" : "physical");
		if (!kinds[(int)*end] || kinds[(int)*end][8] == 't')
			fprintf(file, "\"source\":\"%.*s\",", len, nics);
		else
			fputs("\"source\":null,", file);
		fputs(kinds[(int)*end] ? kinds[(int)*end] : kinds[' '], file);
		end += strspn(end, "+-*~");
		fputs(*end == ' ' ? "," : "", file);
	}
	fprintf(file, "]}%s", nics);
	assert_int_equal(read_text(printed(), source), 0);
}

/* Up to four nodes a, b, c and d; NULL: there is none. */
static void map_of(const char *a, const char *b, const char *c, const char *d)
{
	tests_teardown();
	tests_setup();
	report_read(a, "reports/a.json");
	report_read(b, "b.json");
	if (c)
		report_read(c, "/x/c.json");
	if (d)
		report_read(d, "d.json");
	assert_int_equal(topo_map_join(&map), 0);
}

static void path_is(int from, int to, const char *nics, const char *reason)
{
	struct topo_path path;
	char text[200];

	topo_path_find(&map, from, to, &path);
	assert_string_equal(topo_path_text(&map, &path, text, sizeof(text)), nics);
	assert_string_equal(path.reason, reason);
}

TEST(reports)
{
	map_of("p0=10.0.1.1/24 p1=10.0.3.1/24 eth0=10.9.0.1/24*", "p0=10.0.1.2/24 p1=10.0.2.1/24-",
	       "p0=10.0.3.2/24+ p1=10.0.2.2/24", NULL);
	assert_int_equal(map.num_nodes, 3);
	assert_string_equal(map.nodes[0].name, "a");
	assert_string_equal(map.nodes[2].name, "c");
	assert_int_equal(map.num_nics, 6); /* the management NIC is left out */
	assert_int_equal(map.num_links, 3);
	path_is(0, 1, "p0 10.0.1.1 -> p0 10.0.1.2",
		"the only one: both are on 10.0.1.0/24; tcp (no RDMA at either end)");
	path_is(1, 2, "via a", "their cable is down, 10.0.2.0/24: 1 relay");
	path_is(0, 2, "p1 10.0.3.1 -> p0 10.0.3.2",
		"the only one: both are on 10.0.3.0/24; tcp, because a has no RDMA there");
	assert_int_equal(topo_link_state(&map, 0), TOPO_UP);
	assert_int_equal(topo_link_state(&map, 1), TOPO_DOWN);
	assert_int_equal(topo_link_rate(&map, 0), 100000);
}

TEST(parallel_and_switch)
{
	map_of("p0=10.0.1.1/24 p1=10.0.2.1/24", "p0=10.0.1.2/24 p1=10.0.2.2/24",
	       "\"node\":\"third\",|p0=10.0.1.3/24", NULL);
	assert_string_equal(map.nodes[2].name, "third");
	assert_int_equal(map.num_links, 2);
	assert_int_equal(map.links[0].num, 3);
	path_is(0, 2, "p0 10.0.1.1 -> p0 10.0.1.3",
		"the only one: both are on 10.0.1.0/24; tcp (no RDMA at either end)");
	struct topo_path path;

	topo_path_find(&map, 0, 1, &path);
	assert_int_equal(path.num_cables, 2);
	assert_string_equal(path.reason, "one of 2 cables: both are on 10.0.1.0/24; each message "
					 "is spread over them; tcp (no RDMA at either end)");
	/* Link-local addresses join nothing; nor do two NICs of one node. */
	map_of("p0=fe80::1%3/64 p1=10.0.2.1/24", "p0=fe80::2/64 p1=10.0.3.1/24 p2=10.0.3.2/24",
	       NULL, NULL);
	assert_int_equal(map.num_links, 0);
	path_is(0, 1, "-",
		"not known: link-local addresses do not show which NICs share a cable; use "
		"`fi_mesh check --peer`");
}

/* A bond, a VLAN, a veth: the mesh's like any other, also while its cable is out. */
TEST(virtual_down)
{
	map_of("bond0=10.0.1.1/24", "bond0=10.0.1.2/24~", NULL, NULL);
	assert_int_equal(map.num_nics, 2);
	path_is(0, 1, "-", "none: their cable is down, 10.0.1.0/24");
}

/* @halves: NICs of a port; each has a cable of its own in the plan. */
static char *plan_text(const char *shape, const char *names, int halves)
{
	struct mesh_plan_request request = {.rate_mbps = 200000, .halves = halves};
	struct plan_nodes nodes = {.num_nodes = 0};
	struct mesh_plan plan;
	json_t *root;
	char *text;

	assert_int_equal(mesh_shape_parse(shape, &request.shape), 0);
	request.shape.parallel = halves;
	assert_int_equal(plan_nodes_add(&nodes, names), 0);
	request.nodes = nodes.nodes;
	request.num_nodes = nodes.num_nodes;
	assert_int_equal(mesh_plan_make(&request, &plan), 0);
	root = plan_json(&plan);
	mesh_plan_free(&plan);
	text = json_dumps(root, 0);
	json_decref(root);
	assert_non_null(text);
	return text;
}

TEST(plan)
{
	char *text = plan_text("torus:3x3", "n[1-9]", 1);

	assert_int_equal(read_text(text, "plan.json"), 0);
	assert_int_equal(topo_map_join(&map), 0);
	assert_true(map.planned);
	assert_int_equal(map.shape.kind, MESH_SHAPE_TORUS);
	assert_int_equal(map.num_nodes, 9);
	assert_int_equal(map.num_nics, 36);
	assert_int_equal(map.num_links, 18);
	assert_int_equal(topo_link_rate(&map, 7), 200000);
	path_is(0, 1, "mesh1 192.168.100.1 -> mesh0 192.168.100.2",
		"the only one: both are on 192.168.100.0/24");
	path_is(0, 4, "via n2 and n4",
		"no link in common: 1 relay on each of the routes, which are used together");
	/* Nothing stands beside a plan. */
	assert_int_equal(read_text(text, "plan.json"), -EINVAL);
	assert_int_equal(read_text("{\"nics\":[]}", "a.json"), -EINVAL);
	free(text);
}

/* Every drawing contains the same elements. */
#define DRAWN(print, pair, ...)                                                                    \
	do {                                                                                       \
		assert_int_equal(print(print_file(), &map, pair), 0);                              \
		PRINTED_HAS(__VA_ARGS__);                                                          \
	} while (0)

/* A line whose middle relays, until its cable is down; one end has no other link. */
TEST(relays)
{
	struct topo_path path;

	map_of("p0=10.0.1.1/24", "p0=10.0.1.2/24 p1=10.0.2.2/24", "p0=10.0.2.3/24", NULL);
	path_is(0, 2, "via b", "no link in common: 1 relay");
	topo_path_find(&map, 0, 2, &path);
	assert_int_equal(path.via.num, 1);
	assert_int_equal(path.via.num_relays, 1);
	assert_int_equal(path.via.relays[0][0], 1);
	assert_true(topo_path_has_link(&map, &path, 0));
	assert_true(topo_path_has_link(&map, &path, 1));
	DRAWN(topo_print_text, NULL, "via b");
	DRAWN(topo_print_json, NULL, "\"via\": [");
	DRAWN(topo_print_dot, &path, "a - c: via b (no link in common: 1 relay)\\l",
	      "n1:p1 -- n2:p0 [label=\"100 Gb/s\\n10.0.2.0/24\", edgetooltip=\"b p1\\nc p0\", ",
	      "penwidth=5");
	topo_path_find(&map, 0, 1, &path);
	assert_true(topo_path_has_link(&map, &path, 0));
	assert_false(topo_path_has_link(&map, &path, 1));
	map_of("p0=10.0.1.1/24", "p0=10.0.1.2/24 p1=10.0.2.2/24-", "p0=10.0.2.3/24", NULL);
	path_is(0, 2, "-", "none: no common subnet; ranks on nodes between may relay");
}

/* A ring of four, without RDMA at @far of the two nodes between: the other one's route is used. */
static void ring_is(const char *far, const char *nics, const char *reason)
{
	map_of("p0=10.0.1.1/24+ p1=10.0.3.1/24+", "p0=10.0.1.2/24+ p1=10.0.2.2/24+",
	       "p0=10.0.2.3/24+ p1=10.0.4.3/24+", far);
	path_is(0, 2, nics, reason);
}

TEST(relays_with_rdma)
{
	ring_is("p0=10.0.3.4/24+ p1=10.0.4.4/24+", "via b and d",
		"no link in common: 1 relay on each of the routes, which are used together");
	ring_is("p0=10.0.3.4/24 p1=10.0.4.4/24+", "via b", "no link in common: 1 relay");
}

/* The site of a node comes from its report, or from the plan. */
TEST(sites)
{
	map_of("\"site\":\"east\",|p0=10.0.1.1/24",
	       "\"site\":\"a-name-that-is-too-long\",|p0=10.0.1.2/24", "\"site\":null,|", NULL);
	DRAWN(topo_print_text, NULL, "a (east)             p0   10.0.1.1/24",
	      "b (a-name-that-is-)  p0   10.0.1.2/24", "\nc                    -");
	DRAWN(topo_print_json, NULL, "\"site\": \"east\"", "\"site\": null");
	tests_teardown();
	tests_setup();
	assert_int_equal(read_text("{\"plan\":1,\"shape\":\"line\",\"nodes\":[{\"name\":\"a\","
				   "\"site\":\"ea\\nst\",\"ports\":[\"p0\"]}],\"cables\":[]}",
				   "plan.json"),
			 0);
	assert_string_equal(map.nodes[0].site, "ea?st");
}

TEST(drawings)
{
	struct topo_path path;

	map_of("p<&\\\"0=10.0.1.1/24", "p0=10.0.1.2/24", NULL, NULL);
	DRAWN(topo_print_text, NULL, "mesh: 2 nodes, 1 cable\n",
	      "p0 10.0.1.2  the only one: both are on 10.0.1.0/24");
	DRAWN(topo_print_dot, NULL, "n0:p0 -- n1:p0 [label=\"100 Gb/s\\n10.0.1.0/24\"",
	      "p\\<&amp;\\\"0 10.0.1.1/24");
	DRAWN(topo_print_json, NULL, "\"kind\": \"cable\"");
	topo_path_find(&map, 0, 1, &path);
	DRAWN(topo_print_dot, &path, "penwidth=5");
	/* A node without NICs is drawn, too. */
	map_of("", "", NULL, NULL);
	DRAWN(topo_print_text, NULL, "none: no common subnet");
	DRAWN(topo_print_dot, NULL, "n1 [label=\"{b}\"]");
	DRAWN(topo_print_json, NULL, "\"local\": null");
}

/* Graphviz draws the same; without it the reason is said. */
TEST(picture)
{
	int ret;

	map_of("p<&\\\"0=10.0.1.1/24", "p0=10.0.1.2/24", NULL, NULL);
	ret = topo_print_svg(print_file(), &map, NULL);
	if (ret == -ENOENT)
		skip();
	assert_int_equal(ret, 0);
	PRINTED_HAS("p&lt;&amp;&quot;0", ">100 Gb/s<", "</svg>");
	assert_int_equal(setenv("PATH", "/nowhere", true), 0);
	assert_int_equal(topo_print_svg(print_file(), &map, NULL), -ENOENT);
}

/* Many cables between many nodes: text has no line for each cable. */
TEST(dense)
{
	char *text = plan_text("full", "n[1-64]", 1);

	assert_int_equal(read_text(text, "plan.json"), 0);
	free(text);
	assert_int_equal(topo_map_join(&map), 0);
	assert_int_equal(map.num_links, 2016);
	DRAWN(topo_print_dot, NULL, "2016 pairs of nodes: ");
	DRAWN(topo_print_text, NULL,
	      "2016 pairs of nodes: ", "\nn64   63    0             0     63\n");
	assert_true(strlen(printed()) <= 4096); /* no line for each cable */
}

/* A DGX Spark's port is two NICs: a cable counts once, however many subnets it has. */
TEST(planned_halves)
{
	char *text = plan_text("triangle", "a,b,c", 2);

	assert_int_equal(read_text(text, "plan.json"), 0);
	assert_int_equal(topo_map_join(&map), 0);
	free(text);
	assert_int_equal(map.num_links, 6);
	DRAWN(topo_print_text, NULL, "triangle: 3 nodes, 3 cables of 2 halves each, planned",
	      "one of 2 halves of the cable: both are on 192.168.10");
}

static void nic_add(const char *name, const char *addr)
{
	struct topo_nic nic = {.rate_mbps = 100000, .state = TOPO_UP};

	snprintf(nic.name, sizeof(nic.name), "%s", name);
	assert_int_equal(mesh_addr_parse(addr, &nic.addr), 0);
	assert_int_equal(topo_map_nic_add(&map, &nic), 0);
}

/* Nodes with four NICs each, as they report them; all that share a wire hear each other. */
static void asked_map(const char *const (*addrs)[4], int num_nodes)
{
	static const char *const names[] = {"p0", "P0", "p1", "P1"};
	char name[8];

	tests_teardown();
	map = (struct topo_map){.asked = true, .shape = {.kind = MESH_SHAPE_CABLES}};
	for (int i = 0; i < num_nodes; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(topo_map_node_add(&map, name), 0);
		for (int k = 0; k < 4; k++)
			nic_add(names[k], addrs[i][k]);
	}
}

static void wire(const int *nics, int num)
{
	for (int i = 1; i < num; i++)
		topo_map_wire(&map, nics[0], nics[i]);
}

TEST(asked_halves)
{
	/* The subnets of the second cable are crossed; the first has link-local addresses. */
	static const char *const addrs[3][4] = {
		{"fe80::1/64", "fe80::2/64", "10.0.1.1/24", "10.0.2.1/24"},
		{"fe80::3/64", "fe80::4/64", "10.0.3.1/24", "10.0.3.2/24"},
		{"10.0.2.2/24", "10.0.1.2/24", "fe80::5/64", "fe80::6/64"},
	};
	static const int first[] = {0, 4, 1, 5}, second[] = {2, 8, 9, 3}, odd[] = {6, 10, 11};

	asked_map(addrs, 3);
	wire(first, 4);
	wire(second, 4);
	assert_int_equal(topo_map_wires_join(&map), 0);
	assert_int_equal(map.num_links, 4);
	assert_int_equal(map.links[map.nics[0].link].num, 2);
	assert_int_equal(map.nics[0].link, map.nics[4].link);
	assert_int_equal(map.nics[1].link, map.nics[5].link);
	assert_int_equal(map.nics[2].link, map.nics[9].link);
	assert_int_equal(map.nics[3].link, map.nics[8].link);
	assert_true(topo_link_is_half_of(&map, map.nics[0].link, map.nics[1].link));
	assert_false(topo_link_is_half_of(&map, map.nics[0].link, map.nics[2].link));
	DRAWN(topo_print_text, NULL, "mesh: 3 nodes, 2 cables of 2 halves each\n",
	      "one of 2 halves of the cable; each message is spread");
	/* A half without a partner. */
	asked_map(addrs, 3);
	wire(first, 4);
	wire(odd, 3);
	assert_int_equal(topo_map_wires_join(&map), 0);
	DRAWN(topo_print_text, NULL, "mesh: 3 nodes, 2 cables (3 halves)\n",
	      "up     n1, no NIC of its own");
}

#define WATCHED(netdev, tx, rx, rdma)                                                              \
	"{\"netdev\":\"" netdev "\",\"tx_bytes_per_s\":" tx ",\"rx_bytes_per_s\":" rx              \
	",\"rdma\":" rdma "}"

/* What `fi_mesh watch` printed behind the report of a node: the cable has the rate of one end. */
TEST(rates)
{
	double bytes;

	map_of("p0=10.0.1.1/24 p1=10.0.2.1/24\n{\"seconds\":1.0,\"nics\":[" WATCHED(
		       "p0", "1e9", "5e8",
		       "{\"tx_bytes_per_s\":2e9,\"rx_bytes_per_s\":0}") "," WATCHED("p1", "null",
										    "null",
										    "null") "]}\n",
	       "p0=10.0.1.2/24 p1=10.0.2.2/24", NULL, NULL);
	assert_true(topo_link_traffic(&map, 0, &bytes));
	assert_true(bytes > 3.49e9 && bytes < 3.51e9);
	assert_false(topo_link_traffic(&map, 1, &bytes));
	DRAWN(topo_print_text, NULL,
	      "a     p0   10.0.1.1/24  100 Gb/s  up     24.00 Gb/s  4.00 Gb/s  b p0\n",
	      "up     -           -          b p1\n");
	DRAWN(topo_print_json, NULL, "\"tx_bytes_per_s\": 3000000000.0");
	DRAWN(topo_print_dot, NULL,
	      "\xe2\x86\x91"
	      "24.00 Gb/s \xe2\x86\x93"
	      "4.00 Gb/s");
}

/* A mesh of one cable has its rate on the cable, too. */
TEST(rate_of_cable)
{
	map_of("p0=10.0.1.1/24",
	       "p0=10.0.1.2/24\n{\"seconds\":1,\"nics\":[" WATCHED("p0", "1e9", "5e8", "null") "]}",
	       NULL, NULL);
	DRAWN(topo_print_dot, NULL, "now 12.00 Gb/s\\n");
}
