/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_topo.c - plans and reports that `fi_mesh topo` reads, and its paths. */
#include <jansson.h>

#include "plan/json.h"
#include "plan/make.h"
#include "plan/nodes.h"
#include "plan/plan.h"
#include "plan/shape.h"
#include "topo/dot.h"
#include "topo/json.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/read.h"
#include "topo/summary.h"
#include "topo/svg.h"
#include "topo/text.h"

#include "unit.h"

static int read_text(struct topo_map *map, const char *text, const char *source)
{
	return topo_document_read(map, text, strlen(text), source);
}

/* A report as `fi_mesh nics --json` prints it, as far as it matters here. */
#define NIC(netdev, addr, provider)                                                                \
	"{\"netdev\":\"" netdev "\",\"taken\":true,\"source\":\"" addr                             \
	"\",\"provider\":\"" provider                                                              \
	"\",\"speed_mbps\":100000,\"kind\":\"physical\",\"carrier\":true}"
#define DOWN(netdev, addr)                                                                         \
	"{\"netdev\":\"" netdev "\",\"taken\":false,\"source\":null,\"addresses\":[\"" addr        \
	"\"],\"reason\":\"skipped: no carrier\",\"kind\":\"physical\",\"carrier\":false}"
#define OTHER                                                                                      \
	"{\"netdev\":\"eth0\",\"taken\":false,\"addresses\":[\"10.9.0.1/24\"],\"kind\":"           \
	"\"physical\",\"carrier\":true,\"default_route\":true,\"reason\":\"skipped: slow\"}"

static void map_of(struct topo_map *map, const char *a, const char *b, const char *c)
{
	*map = (struct topo_map){.planned = false};
	assert_int_equal(read_text(map, a, "reports/a.json"), 0);
	assert_int_equal(read_text(map, b, "b.json"), 0);
	if (c)
		assert_int_equal(read_text(map, c, "/x/c.json"), 0);
	assert_int_equal(topo_map_join(map), 0);
}

static void path_is(const struct topo_map *map, int from, int to, const char *nics,
		    const char *reason)
{
	struct topo_path path;
	char text[200];

	topo_path_find(map, from, to, &path);
	assert_string_equal(topo_path_text(map, &path, text, sizeof(text)), nics);
	assert_string_equal(path.reason, reason);
}

TEST(reports)
{
	struct topo_map map;

	map_of(&map,
	       "{\"nics\":[" NIC("p0", "10.0.1.1/24", "tcp") "," NIC("p1", "10.0.3.1/24",
								     "tcp") "," OTHER "]}",
	       "{\"nics\":[" NIC("p0", "10.0.1.2/24", "tcp") "," DOWN("p1", "10.0.2.1/24") "]}",
	       "{\"nics\":[" NIC("p0", "10.0.3.2/24", "verbs;ofi_rxm") "," NIC("p1", "10.0.2.2/24",
									       "tcp") "]}");
	assert_int_equal(map.num_nodes, 3);
	assert_string_equal(map.nodes[0].name, "a");
	assert_string_equal(map.nodes[2].name, "c");
	assert_int_equal(map.num_nics, 6); /* the management NIC is left out */
	assert_int_equal(map.num_links, 3);
	path_is(&map, 0, 1, "p0 10.0.1.1 -> p0 10.0.1.2",
		"the only one: both are on 10.0.1.0/24; tcp (no RDMA at either end)");
	path_is(&map, 1, 2, "via a", "their cable is down, 10.0.2.0/24: 1 relay");
	path_is(&map, 0, 2, "p1 10.0.3.1 -> p0 10.0.3.2",
		"the only one: both are on 10.0.3.0/24; tcp, because a has no RDMA there");
	assert_int_equal(topo_link_state(&map, 0), TOPO_UP);
	assert_int_equal(topo_link_state(&map, 1), TOPO_DOWN);
	assert_int_equal(topo_link_rate(&map, 0), 100000);
	topo_map_free(&map);
}

TEST(parallel_and_switch)
{
	struct topo_map map;

	map_of(&map,
	       "{\"nics\":[" NIC("p0", "10.0.1.1/24", "tcp") "," NIC("p1", "10.0.2.1/24",
								     "tcp") "]}",
	       "{\"nics\":[" NIC("p0", "10.0.1.2/24", "tcp") "," NIC("p1", "10.0.2.2/24",
								     "tcp") "]}",
	       "{\"node\":\"third\",\"nics\":[" NIC("p0", "10.0.1.3/24", "tcp") "]}");
	assert_string_equal(map.nodes[2].name, "third");
	assert_int_equal(map.num_links, 2);
	assert_int_equal(map.links[0].num, 3);
	path_is(&map, 0, 2, "p0 10.0.1.1 -> p0 10.0.1.3",
		"the only one: both are on 10.0.1.0/24; tcp (no RDMA at either end)");
	struct topo_path path;

	topo_path_find(&map, 0, 1, &path);
	assert_int_equal(path.num_cables, 2);
	assert_string_equal(path.reason, "one of 2 cables: both are on 10.0.1.0/24; each message "
					 "is spread over them; tcp (no RDMA at either end)");
	topo_map_free(&map);
	/* Link-local addresses join nothing; nor do two NICs of one node. */
	map_of(&map,
	       "{\"nics\":[" NIC("p0", "fe80::1%3/64", "tcp") "," NIC("p1", "10.0.2.1/24",
								      "tcp") "]}",
	       "{\"nics\":[" NIC("p0", "fe80::2/64", "tcp") "," NIC(
		       "p1", "10.0.3.1/24", "tcp") "," NIC("p2", "10.0.3.2/24", "tcp") "]}",
	       NULL);
	assert_int_equal(map.num_links, 0);
	path_is(&map, 0, 1, "-",
		"not known: link-local addresses do not tell which NICs share a cable; `fi_mesh "
		"check --peer` finds it");
	topo_map_free(&map);
}

/* A bond, a VLAN, a veth: the mesh's like any other, also while its cable is out. */
TEST(virtual_down)
{
	struct topo_map map;

	map_of(&map, "{\"nics\":[" NIC("bond0", "10.0.1.1/24", "tcp") "]}",
	       "{\"nics\":[{\"netdev\":\"bond0\",\"taken\":false,\"source\":null,"
	       "\"addresses\":[\"10.0.1.2/24\"],\"reason\":\"skipped: no carrier\","
	       "\"kind\":\"virtual\",\"carrier\":false}]}",
	       NULL);
	assert_int_equal(map.num_nics, 2);
	path_is(&map, 0, 1, "-", "none: their cable is down, 10.0.1.0/24");
	topo_map_free(&map);
}

static char *plan_text(const char *shape, const char *names)
{
	struct mesh_plan_request request = {.rate_mbps = 200000};
	struct plan_nodes nodes = {.num_nodes = 0};
	struct mesh_plan plan;
	json_t *root;
	char *text;

	assert_int_equal(mesh_shape_parse(shape, &request.shape), 0);
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
	struct topo_map map = {.planned = false};
	char *text = plan_text("torus:3x3", "n[1-9]");

	assert_int_equal(read_text(&map, text, "plan.json"), 0);
	assert_int_equal(topo_map_join(&map), 0);
	assert_true(map.planned);
	assert_int_equal(map.shape.kind, MESH_SHAPE_TORUS);
	assert_int_equal(map.num_nodes, 9);
	assert_int_equal(map.num_nics, 36);
	assert_int_equal(map.num_links, 18);
	assert_int_equal(topo_link_rate(&map, 7), 200000);
	path_is(&map, 0, 1, "mesh1 192.168.100.1 -> mesh0 192.168.100.2",
		"the only one: both are on 192.168.100.0/24");
	path_is(&map, 0, 4, "via n2 and n4",
		"no link in common: 1 relay on each of the routes, which are used together");
	/* Nothing stands beside a plan. */
	assert_int_equal(read_text(&map, text, "plan.json"), -EINVAL);
	assert_int_equal(read_text(&map, "{\"nics\":[]}", "a.json"), -EINVAL);
	topo_map_free(&map);
	free(text);
}

/* Every drawing contains the same elements. */
static void drawn(int (*print)(FILE *, const struct topo_map *, const struct topo_path *),
		  const struct topo_map *map, const struct topo_path *pair, const char *part)
{
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	assert_int_equal(print(file, map, pair), 0);
	assert_int_equal(fclose(file), 0);
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
	free(text);
}

/* A line whose middle relays, until its cable is down; one end has no other link. */
TEST(relays)
{
	struct topo_map map;
	struct topo_path path;

	map_of(&map, "{\"nics\":[" NIC("p0", "10.0.1.1/24", "tcp") "]}",
	       "{\"nics\":[" NIC("p0", "10.0.1.2/24", "tcp") "," NIC("p1", "10.0.2.2/24",
								     "tcp") "]}",
	       "{\"nics\":[" NIC("p0", "10.0.2.3/24", "tcp") "]}");
	path_is(&map, 0, 2, "via b", "no link in common: 1 relay");
	topo_path_find(&map, 0, 2, &path);
	assert_int_equal(path.via.num, 1);
	assert_int_equal(path.via.num_relays, 1);
	assert_int_equal(path.via.relays[0][0], 1);
	assert_true(topo_path_has_link(&map, &path, 0));
	assert_true(topo_path_has_link(&map, &path, 1));
	drawn(topo_print_text, &map, NULL, "via b");
	drawn(topo_print_json, &map, NULL, "\"via\": [");
	drawn(topo_print_svg, &map, &path, "via b   (no link in common: 1 relay)");
	drawn(topo_print_svg, &map, &path, "class=\"chosen\"");
	drawn(topo_print_dot, &map, &path, "n1:p1 -- n2:p0 [label=\"100 Gb/s\\n10.0.2.0/24\"");
	topo_path_find(&map, 0, 1, &path);
	assert_true(topo_path_has_link(&map, &path, 0));
	assert_false(topo_path_has_link(&map, &path, 1));
	topo_map_free(&map);
	map_of(&map, "{\"nics\":[" NIC("p0", "10.0.1.1/24", "tcp") "]}",
	       "{\"nics\":[" NIC("p0", "10.0.1.2/24", "tcp") "," DOWN("p1", "10.0.2.2/24") "]}",
	       "{\"nics\":[" NIC("p0", "10.0.2.3/24", "tcp") "]}");
	path_is(&map, 0, 2, "-", "none: no common subnet; ranks on nodes between may relay");
	topo_map_free(&map);
}

/* A ring of four, without RDMA at @far of the two nodes between: the other one's route is used. */
static void ring_is(const char *far, const char *nics, const char *reason)
{
	struct topo_map map = {.planned = false};
	char text[1000];

	assert_int_equal(read_text(&map,
				   "{\"nics\":[" NIC("p0", "10.0.1.1/24", "verbs;ofi_rxm") "," NIC(
					   "p1", "10.0.3.1/24", "verbs;ofi_rxm") "]}",
				   "a.json"),
			 0);
	assert_int_equal(read_text(&map,
				   "{\"nics\":[" NIC("p0", "10.0.1.2/24", "verbs;ofi_rxm") "," NIC(
					   "p1", "10.0.2.2/24", "verbs;ofi_rxm") "]}",
				   "b.json"),
			 0);
	assert_int_equal(read_text(&map,
				   "{\"nics\":[" NIC("p0", "10.0.2.3/24", "verbs;ofi_rxm") "," NIC(
					   "p1", "10.0.4.3/24", "verbs;ofi_rxm") "]}",
				   "c.json"),
			 0);
	snprintf(text, sizeof(text),
		 "{\"nics\":[" NIC("p0", "10.0.3.4/24", "%s") "," NIC("p1", "10.0.4.4/24",
								      "verbs;ofi_rxm") "]}",
		 far);
	assert_int_equal(read_text(&map, text, "d.json"), 0);
	assert_int_equal(topo_map_join(&map), 0);
	path_is(&map, 0, 2, nics, reason);
	topo_map_free(&map);
}

TEST(relays_with_rdma)
{
	ring_is("verbs;ofi_rxm", "via b and d",
		"no link in common: 1 relay on each of the routes, which are used together");
	ring_is("tcp", "via b", "no link in common: 1 relay");
}

/* The site of a node comes from its report, or from the plan. */
TEST(sites)
{
	struct topo_map map;

	map_of(&map, "{\"site\":\"east\",\"nics\":[" NIC("p0", "10.0.1.1/24", "tcp") "]}",
	       "{\"site\":\"a-name-that-is-too-long\",\"nics\":[" NIC("p0", "10.0.1.2/24",
								      "tcp") "]}",
	       "{\"site\":null,\"nics\":[]}");
	drawn(topo_print_text, &map, NULL, "a (east)             p0   10.0.1.1/24");
	drawn(topo_print_text, &map, NULL, "b (a-name-that-is-)  p0   10.0.1.2/24");
	drawn(topo_print_text, &map, NULL, "\nc                    -");
	drawn(topo_print_json, &map, NULL, "\"site\": \"east\"");
	drawn(topo_print_json, &map, NULL, "\"site\": null");
	topo_map_free(&map);
	map = (struct topo_map){.planned = false};
	assert_int_equal(read_text(&map,
				   "{\"plan\":1,\"shape\":\"line\",\"nodes\":[{\"name\":\"a\","
				   "\"site\":\"ea\\nst\",\"ports\":[\"p0\"]}],\"cables\":[]}",
				   "plan.json"),
			 0);
	assert_string_equal(map.nodes[0].site, "ea?st");
	topo_map_free(&map);
}

TEST(drawings)
{
	struct topo_map map;
	struct topo_path path;

	map_of(&map, "{\"nics\":[" NIC("p<&\\\"0", "10.0.1.1/24", "tcp") "]}",
	       "{\"nics\":[" NIC("p0", "10.0.1.2/24", "tcp") "]}", NULL);
	drawn(topo_print_text, &map, NULL, "mesh: 2 nodes, 1 cable\n");
	drawn(topo_print_text, &map, NULL, "p0 10.0.1.2  the only one: both are on 10.0.1.0/24");
	drawn(topo_print_dot, &map, NULL, "n0:p0 -- n1:p0 [label=\"100 Gb/s\\n10.0.1.0/24\"");
	drawn(topo_print_dot, &map, NULL, "p\\<&\\\"0 10.0.1.1/24");
	drawn(topo_print_json, &map, NULL, "\"kind\": \"cable\"");
	drawn(topo_print_svg, &map, NULL, "p&lt;&amp;&quot;0");
	drawn(topo_print_svg, &map, NULL, ">100 Gb/s<");
	topo_path_find(&map, 0, 1, &path);
	drawn(topo_print_svg, &map, &path, "class=\"chosen\"");
	drawn(topo_print_dot, &map, &path, "penwidth=4");
	topo_map_free(&map);
	/* A node without NICs is drawn, too. */
	map_of(&map, "{\"nics\":[]}", "{\"nics\":[]}", NULL);
	drawn(topo_print_text, &map, NULL, "none: no common subnet");
	drawn(topo_print_svg, &map, NULL, "</svg>");
	drawn(topo_print_dot, &map, NULL, "n1 [label=\"{b}\"]");
	drawn(topo_print_json, &map, NULL, "\"local\": null");
	topo_map_free(&map);
}

/* Many cables between many nodes: a cell for each pair, and no line for each cable. */
TEST(dense)
{
	struct topo_map map = {.planned = false};
	char *text = plan_text("full", "n[1-64]"), *svg;
	double width, height;
	size_t size;
	FILE *file;

	assert_int_equal(read_text(&map, text, "plan.json"), 0);
	assert_int_equal(topo_map_join(&map), 0);
	assert_int_equal(map.num_links, 2016);
	file = open_memstream(&svg, &size);
	assert_int_equal(topo_print_svg(file, &map, NULL), 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(
		sscanf(strstr(svg, "width="), "width=\"%lf\" height=\"%lf\"", &width, &height), 2);
	assert_true(width < 1200 && height < 1200);
	assert_non_null(strstr(svg, "class=\"cell fplanned\""));
	assert_non_null(strstr(svg, "2016 pairs of nodes: "));
	free(svg);
	drawn(topo_print_text, &map, NULL, "2016 pairs of nodes: ");
	file = open_memstream(&svg, &size);
	assert_int_equal(topo_print_text(file, &map, NULL), 0);
	assert_int_equal(fclose(file), 0);
	if (!strstr(svg, "\nn64   63    0             0     63\n") || size > 4096)
		fail_msg("no line for each node in:\n%s", svg);
	free(svg);
	topo_map_free(&map);
	free(text);
}

/* A DGX Spark's port is two NICs: a cable counts once, however many subnets it has. */
TEST(planned_halves)
{
	struct mesh_plan_request request = {.shape = {.kind = MESH_SHAPE_TRIANGLE, .parallel = 2},
					    .halves = 2,
					    .rate_mbps = 100000};
	struct plan_nodes nodes = {.num_nodes = 0};
	struct topo_map map = {.planned = false};
	struct mesh_plan plan;
	char *text;
	json_t *root;

	assert_int_equal(plan_nodes_add(&nodes, "a,b,c"), 0);
	request.nodes = nodes.nodes;
	request.num_nodes = nodes.num_nodes;
	assert_int_equal(mesh_plan_make(&request, &plan), 0);
	root = plan_json(&plan);
	text = json_dumps(root, 0);
	json_decref(root);
	mesh_plan_free(&plan);
	assert_non_null(text);
	assert_int_equal(read_text(&map, text, "plan.json"), 0);
	assert_int_equal(topo_map_join(&map), 0);
	free(text);
	assert_int_equal(map.num_links, 6);
	drawn(topo_print_text, &map, NULL, "triangle: 3 nodes, 3 cables of 2 halves each, planned");
	drawn(topo_print_text, &map, NULL, "one of 2 halves of the cable: both are on 192.168.10");
	drawn(topo_print_svg, &map, NULL, ">2 halves of 100 Gb/s<");
	topo_map_free(&map);
}

static void nic_add(struct topo_map *map, const char *name, const char *addr)
{
	struct topo_nic nic = {.rate_mbps = 100000, .state = TOPO_UP};

	snprintf(nic.name, sizeof(nic.name), "%s", name);
	assert_int_equal(mesh_addr_parse(addr, &nic.addr), 0);
	assert_int_equal(topo_map_nic_add(map, &nic), 0);
}

/* Nodes with four NICs each, as they report them; all that share a wire hear each other. */
static void asked_map(struct topo_map *map, const char *const (*addrs)[4], int num_nodes)
{
	static const char *const names[] = {"p0", "P0", "p1", "P1"};
	char name[8];
	int i, k;

	*map = (struct topo_map){.asked = true, .shape = {.kind = MESH_SHAPE_CABLES}};
	for (i = 0; i < num_nodes; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(topo_map_node_add(map, name), 0);
		for (k = 0; k < 4; k++)
			nic_add(map, names[k], addrs[i][k]);
	}
}

static void wire(struct topo_map *map, const int *nics, int num)
{
	int i;

	for (i = 1; i < num; i++)
		topo_map_wire(map, nics[0], nics[i]);
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
	struct topo_map map;

	asked_map(&map, addrs, 3);
	wire(&map, first, 4);
	wire(&map, second, 4);
	assert_int_equal(topo_map_wires_join(&map), 0);
	assert_int_equal(map.num_links, 4);
	assert_int_equal(map.links[map.nics[0].link].num, 2);
	assert_int_equal(map.nics[0].link, map.nics[4].link);
	assert_int_equal(map.nics[1].link, map.nics[5].link);
	assert_int_equal(map.nics[2].link, map.nics[9].link);
	assert_int_equal(map.nics[3].link, map.nics[8].link);
	assert_true(topo_link_is_half_of(&map, map.nics[0].link, map.nics[1].link));
	assert_false(topo_link_is_half_of(&map, map.nics[0].link, map.nics[2].link));
	drawn(topo_print_text, &map, NULL, "mesh: 3 nodes, 2 cables of 2 halves each\n");
	drawn(topo_print_text, &map, NULL, "one of 2 halves of the cable; each message is spread");
	topo_map_free(&map);
	/* One NIC of one node and two of another are no cable. */
	asked_map(&map, addrs, 3);
	wire(&map, first, 4);
	wire(&map, odd, 3);
	assert_int_equal(topo_map_wires_join(&map), 0);
	drawn(topo_print_text, &map, NULL, "1 cable of 2 halves each, 1 switched subnet\n");
	topo_map_free(&map);
}

#define WATCHED(netdev, tx, rx, rdma)                                                              \
	"{\"netdev\":\"" netdev "\",\"tx_bytes_per_s\":" tx ",\"rx_bytes_per_s\":" rx              \
	",\"rdma\":" rdma "}"

#define RATES_P0 WATCHED("p0", "1e9", "5e8", "{\"tx_bytes_per_s\":2e9,\"rx_bytes_per_s\":0}")
#define RATES_P1 WATCHED("p1", "null", "null", "null")
#define REPORT_P0_P1(p0, p1) "{\"nics\":[" NIC("p0", p0, "tcp") "," NIC("p1", p1, "tcp") "]}"

/* What `fi_mesh watch` printed behind the report of a node: the cable has the rate of one end. */
TEST(rates)
{
	struct topo_map map;
	double bytes;

	map_of(&map,
	       REPORT_P0_P1("10.0.1.1/24", "10.0.2.1/24") "\n{\"seconds\":1.0,\"nics\":[" RATES_P0
							  "," RATES_P1 "]}\n",
	       REPORT_P0_P1("10.0.1.2/24", "10.0.2.2/24"), NULL);
	assert_true(topo_link_traffic(&map, 0, &bytes));
	assert_true(bytes > 3.49e9 && bytes < 3.51e9);
	assert_false(topo_link_traffic(&map, 1, &bytes));
	drawn(topo_print_text, &map, NULL,
	      "a     p0   10.0.1.1/24  100 Gb/s  up     24.00 Gb/s  4.00 Gb/s  b p0\n");
	drawn(topo_print_text, &map, NULL, "up     -           -          b p1\n");
	drawn(topo_print_json, &map, NULL, "\"tx_bytes_per_s\": 3000000000.0");
	drawn(topo_print_svg, &map, NULL,
	      "\xe2\x86\x91"
	      "24.00 Gb/s \xe2\x86\x93"
	      "4.00 Gb/s<");
	topo_map_free(&map);
}

/* A mesh of one cable has its rate on the cable, too. */
TEST(rate_of_cable)
{
	struct topo_map map;

	map_of(&map, "{\"nics\":[" NIC("p0", "10.0.1.1/24", "tcp") "]}",
	       "{\"nics\":[" NIC("p0", "10.0.1.2/24", "tcp") "]}{\"seconds\":1,\"nics\":[" WATCHED(
		       "p0", "1e9", "5e8", "null") "]}",
	       NULL);
	drawn(topo_print_svg, &map, NULL, ">now 12.00 Gb/s<");
	topo_map_free(&map);
}
