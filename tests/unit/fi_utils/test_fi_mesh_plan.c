/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_plan.c - arguments, output and exit status of `fi_mesh plan`. */
#include <sys/stat.h>

#include "commands.h"
#include "common/output.h"
#include "plan/formats.h"
#include "plan/json.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "plan/rank_order.h"
#include "plan/shape.h"

#include "printed.h"
#include "unit.h"

TEST(exit_status)
{
	static const struct command_row rows[] = {
		{"triangle a b c", COMMAND_FINE},
		{"triangle a,b,c --json", COMMAND_FINE},
		{"--help", COMMAND_FINE},
		{"ring n[1-6] --config nm --node n3", COMMAND_FINE},
		/* It cannot be built. */
		{"full n[1-6] --ports 2", COMMAND_PROBLEM},
		{"triangle a b", COMMAND_PROBLEM},
		{"ring n[1-9] --range 10.0.0.0/29", COMMAND_PROBLEM},
		{"cables:/nowhere", COMMAND_PROBLEM},
		{"line a b --write /dev/null/x", COMMAND_PROBLEM},
		/* Usage errors. */
		{"", COMMAND_MISUSE},
		{"ring", COMMAND_MISUSE},
		{"hub a b", COMMAND_MISUSE},
		{"ring a a b", COMMAND_MISUSE},
		{"ring a\tb", COMMAND_MISUSE},
		{"ring a b --no-such", COMMAND_MISUSE},
		{"ring a b --mtu 9k", COMMAND_MISUSE},
		{"ring a b --range 10.0.0.0", COMMAND_MISUSE},
		{"ring a b --rate fast", COMMAND_MISUSE},
		{"ring a b --management a\tb", COMMAND_MISUSE},
		{"ring a b --rate nan", COMMAND_MISUSE},
		{"ring a b --config ifupdown", COMMAND_MISUSE},
		{"ring a b --config nm", COMMAND_MISUSE},
		{"ring a b --node a", COMMAND_MISUSE},
		{"ring a b --config nm --node c", COMMAND_MISUSE},
		{"ring a b --ports c=x", COMMAND_MISUSE},
		{"ring a b --ports x,x", COMMAND_MISUSE},
		/* Sites: no name, no such node, a node in two, a name that is too long. */
		{"line a b --site a", COMMAND_MISUSE},
		{"line a b --site =a", COMMAND_MISUSE},
		{"line a b --site e=c", COMMAND_MISUSE},
		{"line a b --site e=a --site w=a", COMMAND_MISUSE},
		{"line a b --site a123456789012345=a", COMMAND_MISUSE},
		{"line a b --site a12345678901234=a", COMMAND_FINE},
		{NULL, 0},
	};

	command_rows_run(command_plan, rows);
}

/* --config's choices are the formats that there are. */
TEST(config_names)
{
	char arguments[100];

	for (int i = 0; plan_formats[i]; i++) {
		snprintf(arguments, sizeof(arguments), "line a b --node a --config %s",
			 plan_formats[i]->name);
		COMMAND_ROWS(command_plan, {arguments, COMMAND_FINE});
	}
}

/* The folder has the plan and the files, nothing is mixed with older ones. */
TEST(write)
{
	char base[] = "/tmp/test_fi_mesh_plan.XXXXXX", path[200];
	struct stat info;

	assert_non_null(mkdtemp(base));
	snprintf(path, sizeof(path), "line a b --write %s/new/mesh", base);
	COMMAND_ROWS(command_plan, {path, COMMAND_FINE});
	snprintf(path, sizeof(path), "%s/new/mesh/plan.json", base);
	assert_int_equal(stat(path, &info), 0);
	snprintf(path, sizeof(path),
		 "%s/new/mesh/b/nm/etc/NetworkManager/system-connections/mesh-mesh0.nmconnection",
		 base);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	snprintf(path, sizeof(path), "line a c --write %s/new/mesh", base);
	COMMAND_ROWS(command_plan, {path, COMMAND_PROBLEM});
	snprintf(path, sizeof(path), "%s/new/mesh/c", base);
	assert_int_equal(stat(path, &info), -1);
	snprintf(path, sizeof(path), "rm -r %s", base);
	assert_int_equal(system(path), 0);
}

/* ---- names of nodes --------------------------------------------------------------------- */

static void nodes_are(const char *text, const char *first, const char *last, int num)
{
	struct plan_nodes nodes = {.num_nodes = 0};

	assert_int_equal(plan_nodes_add(&nodes, text), 0);
	assert_int_equal(nodes.num_nodes, num);
	assert_string_equal(nodes.nodes[0].name, first);
	assert_string_equal(nodes.nodes[num - 1].name, last);
	assert_int_equal(plan_nodes_check(&nodes), 0);
	plan_nodes_free(&nodes);
}

TEST(node_names)
{
	static const char *const junk[] = {"",	      ",",	 "a,",	       "n[1-",
					   "n[1]",    "n[2-1]",	 "n[-1-2]",    "n[1-2",
					   "n[ 1-2]", "n[1- 2]", "n[1-99999]", "n[1-2]x]",
					   "n[a-b]",  "$(x)",	 "n[1-2]/"};
	struct plan_nodes nodes = {.num_nodes = 0};
	char name[100];

	nodes_are("a", "a", "a", 1);
	nodes_are("a,b-c,d.e", "a", "d.e", 3);
	nodes_are("n[1-10]", "n1", "n10", 10);
	nodes_are("n[01-10]", "n01", "n10", 10);
	nodes_are("node[8-12].lan,x", "node8.lan", "x", 6);
	FOR_EACH(i, junk) {
		if (plan_nodes_add(&nodes, junk[i]) != -EINVAL)
			fail_msg("\"%s\" is taken", junk[i]);
		plan_nodes_free(&nodes);
	}
	memset(name, 'n', sizeof(name));
	name[65] = '\0';
	assert_int_equal(plan_nodes_add(&nodes, name), -EINVAL);
	name[64] = '\0';
	assert_int_equal(plan_nodes_add(&nodes, name), 0);
	plan_nodes_free(&nodes);
}

/* ---- what is printed -------------------------------------------------------------------- */

static struct mesh_plan plan;

static void plan_free(void)
{
	mesh_plan_free(&plan);
}

TESTS_USE(NULL, plan_free);

static void plan_of(const char *shape, const char *names, const char *ports, bool infiniband)
{
	struct mesh_plan_request request = {.infiniband = infiniband};
	struct plan_nodes nodes = {.num_nodes = 0};

	assert_int_equal(mesh_shape_parse(shape, &request.shape), 0);
	assert_int_equal(plan_nodes_add(&nodes, names), 0);
	if (ports)
		assert_int_equal(plan_nodes_ports(&nodes, ports), 0);
	request.nodes = nodes.nodes;
	request.num_nodes = nodes.num_nodes;
	plan_free();
	assert_int_equal(mesh_plan_make(&request, &plan), 0);
}

static void files_are(const char *format, int node, const char *wanted)
{
	struct plan_ports ports;

	assert_int_equal(plan_ports_load(&plan, &ports), 0);
	plan_files_print(print_file(), &plan, &ports, plan_format_find(format), node);
	plan_ports_free(&ports);
	assert_string_equal(printed(), wanted);
}

TEST(formats)
{
	plan_of("line", "a,b", "eth1", false);
	files_are("ip", 1,
		  "#!/bin/sh\nset -e\n# cable 1, to a eth1\nip link set dev eth1 mtu 9000 up\n"
		  "ip address replace 192.168.100.2/24 dev eth1\n");
	files_are("networkd", 0,
		  "# a: /etc/systemd/network/60-mesh-eth1.network\n# cable 1, to b eth1\n"
		  "[Match]\nName=eth1\n\n[Link]\nMTUBytes=9000\nRequiredForOnline=no\n\n"
		  "[Network]\nAddress=192.168.100.1/24\nDHCP=no\nIPv6AcceptRA=no\nLLDP=no\n");
	plan_of("line", "a,b", NULL, true);
	files_are("nm", 0,
		  "# a: /etc/NetworkManager/system-connections/mesh-mesh0.nmconnection\n"
		  "# cable 1, to b mesh0\n[connection]\nid=mesh-mesh0\ntype=infiniband\n"
		  "interface-name=mesh0\nautoconnect=true\nautoconnect-priority=1\n"
		  "autoconnect-retries=0\n\n"
		  "[infiniband]\nmtu=2044\ntransport-mode=datagram\n\n"
		  "[ipv4]\nmethod=manual\naddress1=192.168.100.1/24\nnever-default=true\n\n"
		  "[ipv6]\nmethod=link-local\n");
}

TEST(text)
{
	plan_of("triangle", "A,B,C", NULL, false);
	plan_print(print_file(), &plan);
	PRINTED_HAS("triangle: 3 nodes, 3 cables, 2 ports on each node\n",
		    "1      A     mesh0  192.168.100.1/24  C   mesh1  192.168.100.2/24\n"
		    "2      A     mesh1  192.168.101.1/24  B   mesh0  192.168.101.2/24\n"
		    "3      B     mesh1  192.168.102.1/24  C   mesh0  192.168.102.2/24\n",
		    "  A B C\nEach rank is cabled to the next one, and the last to the first.\n",
		    "export NCCL_NET_PLUGIN='/usr/local/lib/libnccl-net-mesh.so'\n",
		    "export NCCL_NET_PLUGIN_REF_COUNT='1'\n", "export NCCL_NET='Mesh'\n",
		    /* Exact names: mesh1 must not take mesh10 with it. */
		    "export NCCL_SOCKET_IFNAME='^=docker0,docker_gwbridge,lo,mesh0,mesh1'\n",
		    "# --management NIC writes it\n", "stand for ports that were not named");
	assert_lacks(printed(), "export GLOO_SOCKET_IFNAME");
	assert_lacks(printed(), "no cable of their own");
	strcpy(plan.management, "eno1");
	plan_print(print_file(), &plan);
	PRINTED_HAS("export NCCL_SOCKET_IFNAME='=eno1'\n", "export GLOO_SOCKET_IFNAME='eno1'\n");
	assert_lacks(printed(), "--management");
	/* For a line the output explains what does not work. */
	plan_of("ring", "n[1-6]", "x,y", false);
	plan_print(print_file(), &plan);
	PRINTED_HAS("9 of 15 pairs of nodes have no cable of their own",
		    "  n1 - n4  2       n2,n3 and n6,n5  ");
	assert_lacks(printed(), "stand for ports");
	plan_of("line", "n[1-5]", NULL, false);
	plan_print(print_file(), &plan);
	PRINTED_HAS("line: 5 nodes, 4 cables, up to 2 ports on each node\n",
		    "these cables hold no ring through all nodes.\n",
		    "NCCL's rings pass through such a pair here",
		    "  n1 - n5  3       n2,n3,n4  17 % of a cable\n");
}

TEST(json)
{
	json_t *root;

	plan_of("torus:3x3", "n[1-9]", NULL, false);
	root = plan_json(&plan);
	JSON_IS(root, "plan", "1", "shape", "\"torus:3x3\"", "cables", "#18", "ranks", "#9",
		"pairs_apart", "18", "pairs", "#36", "pairs[3].relays", "1", "pairs[3].via",
		"[[\"n2\"],[\"n4\"]]", "pairs[3].gbps_left", "null", "rank_order", "\"ring\"",
		"cables[17].subnet", "\"192.168.117.0/24\"", "cables[17].ends[0].node", "\"n3\"");
	json_decref(root);
}

/* A thousand nodes are planned within a second, also fully meshed. */
TEST(thousand)
{
	plan_of("full", "n[1-1000]", NULL, false);
	assert_int_equal(plan.topology.num_cables, 499500);
	assert_string_equal(mesh_plan_port_name(&plan, 499499, 0), "mesh998");
	plan_of("torus:10x10x10", "n[1-1000]", NULL, false);
	assert_int_equal(plan.order.kind, MESH_ORDER_RING);
}

/* Two sites, each node of which is cabled to each: the ranks of each follow each other. */
TEST(sites)
{
	struct mesh_plan_request request = {.num_nodes = 0};
	struct plan_nodes nodes = {.num_nodes = 0};
	json_t *root;

	assert_int_equal(mesh_shape_parse("full", &request.shape), 0);
	assert_int_equal(plan_nodes_add(&nodes, "n[1-4]"), 0);
	assert_int_equal(plan_nodes_site(&nodes, "east=n1,n3"), 0);
	assert_int_equal(plan_nodes_site(&nodes, "west=n2,n4"), 0);
	request.nodes = nodes.nodes;
	request.num_nodes = nodes.num_nodes;
	assert_int_equal(mesh_plan_make(&request, &plan), 0);
	plan_print(print_file(), &plan);
	PRINTED_HAS(
		"  n1 n3 n2 n4\nEach rank is cabled to the next one, and the last to the first.\n"
		"The ranks of each of the 2 sites follow each other: a ring crosses between "
		"sites 2 times.\n",
		"  # on n3 also: export NCCL_MESH_SITE='east'\n");
	root = plan_json(&plan);
	JSON_IS(root, "site_crossings", "2", "nodes[1].site", "\"west\"");
	json_decref(root);
}

/* Only routers join the sites; inside each of them, cables have to. */
TEST(sites_apart)
{
	static const struct {
		const char *sites;
		int status;
	} cases[] = {
		{"", COMMAND_PROBLEM},
		{" --site e=a,b", COMMAND_FINE},
		{" --site e=a,b --site w=c,d", COMMAND_FINE},
		{" --site e=a,c", COMMAND_PROBLEM},
		{" --site e=a,b,c,d", COMMAND_PROBLEM},
	};
	char cables[] = "/tmp/test_fi_mesh_plan.XXXXXX", arguments[100];
	int fd = mkstemp(cables);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a b\nc d\n", 8), 8);
	close(fd);
	FOR_EACH(i, cases) {
		snprintf(arguments, sizeof(arguments), "cables:%s%s", cables, cases[i].sites);
		COMMAND_ROWS(command_plan, {arguments, cases[i].status});
	}
	unlink(cables);
}
