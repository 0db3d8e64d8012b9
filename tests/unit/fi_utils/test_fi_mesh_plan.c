/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_plan.c - arguments, output and exit status of `fi_mesh plan`. */
#include <fcntl.h>
#include <sys/stat.h>

#include "common/exit_status.h"
#include "plan/command.h"
#include "plan/files.h"
#include "plan/formats.h"
#include "plan/json.h"
#include "plan/make.h"
#include "plan/nodes.h"
#include "plan/plan.h"
#include "plan/ports.h"
#include "plan/print.h"
#include "plan/rank_order.h"
#include "plan/shape.h"

#include "log_capture.h"
#include "unit.h"

/* Runs the subcommand with nothing on the terminal; arguments end with NULL. */
static int run(const char *first, ...)
{
	int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO), status, argc = 1;
	int nowhere = open("/dev/null", O_WRONLY);
	char *argv[20] = {(char *)"plan"};
	va_list args;

	va_start(args, first);
	for (; first; first = va_arg(args, const char *))
		argv[argc++] = (char *)first;
	va_end(args);
	fflush(stdout);
	dup2(nowhere, STDOUT_FILENO);
	dup2(nowhere, STDERR_FILENO);
	log_capture_start();
	status = command_plan(argc, argv);
	log_capture_stop();
	fflush(stdout);
	dup2(saved_out, STDOUT_FILENO);
	dup2(saved_err, STDERR_FILENO);
	close(nowhere);
	close(saved_out);
	close(saved_err);
	return status;
}

TEST(exit_status)
{
	assert_int_equal(run("triangle", "a", "b", "c", NULL), COMMAND_FINE);
	assert_int_equal(run("triangle", "a,b,c", "--json", NULL), COMMAND_FINE);
	assert_int_equal(run("--help", NULL), COMMAND_FINE);
	assert_int_equal(run("ring", "n[1-6]", "--config", "nm", "--node", "n3", NULL),
			 COMMAND_FINE);
	/* It cannot be built. */
	assert_int_equal(run("full", "n[1-6]", "--ports", "2", NULL), COMMAND_PROBLEM);
	assert_int_equal(run("triangle", "a", "b", NULL), COMMAND_PROBLEM);
	assert_int_equal(run("ring", "n[1-9]", "--range", "10.0.0.0/29", NULL), COMMAND_PROBLEM);
	assert_int_equal(run("cables:/nowhere", NULL), COMMAND_PROBLEM);
	assert_int_equal(run("line", "a", "b", "--write", "/dev/null/x", NULL), COMMAND_PROBLEM);
	/* Usage errors. */
	assert_int_equal(run(NULL, NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", NULL), COMMAND_MISUSE);
	assert_int_equal(run("star", "a", "b", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "a", "b", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a b", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--no-such", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--mtu", "9k", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--range", "10.0.0.0", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--rate", "fast", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--management", "a b", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--rate", "nan", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--config", "ifupdown", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--config", "nm", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--node", "a", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--config", "nm", "--node", "c", NULL),
			 COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--ports", "c=x", NULL), COMMAND_MISUSE);
	assert_int_equal(run("ring", "a", "b", "--ports", "x,x", NULL), COMMAND_MISUSE);
	/* Sites: no name, no such node, a node in two, a name that is too long. */
	assert_int_equal(run("line", "a", "b", "--site", "a", NULL), COMMAND_MISUSE);
	assert_int_equal(run("line", "a", "b", "--site", "=a", NULL), COMMAND_MISUSE);
	assert_int_equal(run("line", "a", "b", "--site", "e=c", NULL), COMMAND_MISUSE);
	assert_int_equal(run("line", "a", "b", "--site", "e=a", "--site", "w=a", NULL),
			 COMMAND_MISUSE);
	assert_int_equal(run("line", "a", "b", "--site", "a123456789012345=a", NULL),
			 COMMAND_MISUSE);
	assert_int_equal(run("line", "a", "b", "--site", "a12345678901234=a", NULL), COMMAND_FINE);
}

/* --config's choices are the formats that there are. */
TEST(config_names)
{
	int i;

	for (i = 0; plan_formats[i]; i++)
		assert_int_equal(run("line", "a", "b", "--node", "a", "--config",
				     plan_formats[i]->name, NULL),
				 COMMAND_FINE);
}

/* The folder has the plan and the files, nothing is mixed with older ones. */
TEST(write)
{
	char base[] = "/tmp/test_fi_mesh_plan.XXXXXX", folder[64], path[200];
	struct stat info;

	assert_non_null(mkdtemp(base));
	snprintf(folder, sizeof(folder), "%s/new/mesh", base);
	assert_int_equal(run("line", "a", "b", "--write", folder, NULL), COMMAND_FINE);
	snprintf(path, sizeof(path), "%s/plan.json", folder);
	assert_int_equal(stat(path, &info), 0);
	snprintf(path, sizeof(path),
		 "%s/b/nm/etc/NetworkManager/system-connections/mesh-mesh0.nmconnection", folder);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_int_equal(run("line", "a", "c", "--write", folder, NULL), COMMAND_PROBLEM);
	snprintf(path, sizeof(path), "%s/c", folder);
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
	size_t i;

	nodes_are("a", "a", "a", 1);
	nodes_are("a,b-c,d.e", "a", "d.e", 3);
	nodes_are("n[1-10]", "n1", "n10", 10);
	nodes_are("n[01-10]", "n01", "n10", 10);
	nodes_are("node[8-12].lan,x", "node8.lan", "x", 6);
	for (i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
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

static void plan_of(const char *shape, const char *names, const char *ports, bool infiniband,
		    struct mesh_plan *plan)
{
	struct mesh_plan_request request = {.infiniband = infiniband};
	struct plan_nodes nodes = {.num_nodes = 0};

	assert_int_equal(mesh_shape_parse(shape, &request.shape), 0);
	assert_int_equal(plan_nodes_add(&nodes, names), 0);
	if (ports)
		assert_int_equal(plan_nodes_ports(&nodes, ports), 0);
	request.nodes = nodes.nodes;
	request.num_nodes = nodes.num_nodes;
	assert_int_equal(mesh_plan_make(&request, plan), 0);
}

static void text_is(char *text, const char *wanted)
{
	assert_string_equal(text, wanted);
	free(text);
}

static char *files_of(const struct mesh_plan *plan, const char *format, int node)
{
	struct plan_ports ports;
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	assert_int_equal(plan_ports_load(plan, &ports), 0);
	plan_files_print(file, plan, &ports, plan_format_find(format), node);
	plan_ports_free(&ports);
	assert_int_equal(fclose(file), 0);
	return text;
}

TEST(formats)
{
	struct mesh_plan plan;

	plan_of("line", "a,b", "eth1", false, &plan);
	text_is(files_of(&plan, "ip", 1),
		"#!/bin/sh\nset -e\n# cable 1, to a eth1\nip link set dev eth1 mtu 9000 up\n"
		"ip address replace 192.168.100.2/24 dev eth1\n");
	text_is(files_of(&plan, "networkd", 0),
		"# a: /etc/systemd/network/60-mesh-eth1.network\n# cable 1, to b eth1\n"
		"[Match]\nName=eth1\n\n[Link]\nMTUBytes=9000\nRequiredForOnline=no\n\n"
		"[Network]\nAddress=192.168.100.1/24\nDHCP=no\nIPv6AcceptRA=no\nLLDP=no\n");
	mesh_plan_free(&plan);
	plan_of("line", "a,b", NULL, true, &plan);
	text_is(files_of(&plan, "nm", 0),
		"# a: /etc/NetworkManager/system-connections/mesh-mesh0.nmconnection\n"
		"# cable 1, to b mesh0\n[connection]\nid=mesh-mesh0\ntype=infiniband\n"
		"interface-name=mesh0\nautoconnect=true\nautoconnect-retries=0\n\n"
		"[infiniband]\nmtu=2044\ntransport-mode=datagram\n\n"
		"[ipv4]\nmethod=manual\naddress1=192.168.100.1/24\nnever-default=true\n\n"
		"[ipv6]\nmethod=link-local\n");
	mesh_plan_free(&plan);
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static char *print(const struct mesh_plan *plan)
{
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	plan_print(file, plan);
	assert_int_equal(fclose(file), 0);
	return text;
}

TEST(text)
{
	struct mesh_plan plan;
	char *text;

	plan_of("triangle", "A,B,C", NULL, false, &plan);
	text = print(&plan);
	has(text, "triangle: 3 nodes, 3 cables, 2 ports on each node\n");
	has(text, "1      A     mesh0  192.168.100.1/24  C   mesh1  192.168.100.2/24\n"
		  "2      A     mesh1  192.168.101.1/24  B   mesh0  192.168.101.2/24\n"
		  "3      B     mesh1  192.168.102.1/24  C   mesh0  192.168.102.2/24\n");
	has(text, "  A B C\nEach rank is cabled to the next one, and the last to the first.\n");
	has(text, "export NCCL_NET_PLUGIN='/usr/local/lib/libnccl-net-mesh.so'\n");
	has(text, "export NCCL_NET='Mesh'\n");
	/* Exact names: mesh1 must not take mesh10 with it. */
	has(text, "export NCCL_SOCKET_IFNAME='^=docker0,docker_gwbridge,lo,mesh0,mesh1'\n");
	has(text, "# --management NIC writes it\n");
	assert_null(strstr(text, "export GLOO_SOCKET_IFNAME"));
	has(text, "stand for ports that were not named");
	assert_null(strstr(text, "NCCL_ALGO"));
	assert_null(strstr(text, "no cable of their own"));
	free(text);
	strcpy(plan.management, "eno1");
	text = print(&plan);
	has(text, "export NCCL_SOCKET_IFNAME='=eno1'\n");
	has(text, "export GLOO_SOCKET_IFNAME='eno1'\n");
	assert_null(strstr(text, "--management"));
	free(text);
	mesh_plan_free(&plan);
	/* A ring excludes trees; for a line the output explains what does not work. */
	plan_of("ring", "n[1-6]", "x,y", false, &plan);
	text = print(&plan);
	has(text, "9 of 15 pairs of nodes have no cable of their own");
	has(text, "  n1 - n4  2       n2,n3 and n6,n5  ");
	has(text, "export NCCL_ALGO='Ring'\n");
	assert_null(strstr(text, "stand for ports"));
	free(text);
	mesh_plan_free(&plan);
	plan_of("line", "n[1-5]", NULL, false, &plan);
	text = print(&plan);
	has(text, "line: 5 nodes, 4 cables, up to 2 ports on each node\n");
	has(text, "these cables hold no ring through all nodes.\n");
	has(text, "NCCL's rings pass through such a pair here");
	has(text, "  n1 - n5  3       n2,n3,n4  17 % of a cable\n");
	assert_null(strstr(text, "NCCL_ALGO"));
	free(text);
	mesh_plan_free(&plan);
}

TEST(json)
{
	struct mesh_plan plan;
	const char *subnet, *node;
	json_t *root;
	int relays;

	plan_of("torus:3x3", "n[1-9]", NULL, false, &plan);
	root = plan_json(&plan);
	assert_non_null(root);
	assert_int_equal(json_integer_value(json_object_get(root, "plan")), 1);
	assert_string_equal(json_string_value(json_object_get(root, "shape")), "torus:3x3");
	assert_int_equal(json_array_size(json_object_get(root, "cables")), 18);
	assert_int_equal(json_array_size(json_object_get(root, "ranks")), 9);
	assert_int_equal(json_integer_value(json_object_get(root, "pairs_apart")), 18);
	assert_int_equal(json_array_size(json_object_get(root, "pairs")), 36);
	assert_int_equal(json_unpack(json_array_get(json_object_get(root, "pairs"), 3),
				     "{s:i, s:[[s], [s]], s:n}", "relays", &relays, "via", &subnet,
				     &node, "gbps_left"),
			 0);
	assert_int_equal(relays, 1);
	assert_string_equal(subnet, "n2");
	assert_string_equal(node, "n4");
	assert_string_equal(json_string_value(json_object_get(root, "rank_order")), "ring");
	assert_int_equal(json_unpack(json_array_get(json_object_get(root, "cables"), 17),
				     "{s:s, s:[{s:s}, {}]}", "subnet", &subnet, "ends", "node",
				     &node),
			 0);
	assert_string_equal(subnet, "192.168.117.0/24");
	assert_string_equal(node, "n3");
	json_decref(root);
	mesh_plan_free(&plan);
}

/* A thousand nodes are planned within a second, also fully meshed. */
TEST(thousand)
{
	struct mesh_plan plan;

	plan_of("full", "n[1-1000]", NULL, false, &plan);
	assert_int_equal(plan.topology.num_cables, 499500);
	assert_string_equal(mesh_plan_port_name(&plan, 499499, 0), "mesh998");
	mesh_plan_free(&plan);
	plan_of("torus:10x10x10", "n[1-1000]", NULL, false, &plan);
	assert_int_equal(plan.order.kind, MESH_ORDER_RING);
	mesh_plan_free(&plan);
}

/* Two sites, each node of which is cabled to each: the ranks of each follow each other. */
TEST(sites)
{
	struct mesh_plan_request request = {.num_nodes = 0};
	struct plan_nodes nodes = {.num_nodes = 0};
	struct mesh_plan plan;
	json_t *root;
	char *text;

	assert_int_equal(mesh_shape_parse("full", &request.shape), 0);
	assert_int_equal(plan_nodes_add(&nodes, "n[1-4]"), 0);
	assert_int_equal(plan_nodes_site(&nodes, "east=n1,n3"), 0);
	assert_int_equal(plan_nodes_site(&nodes, "west=n2,n4"), 0);
	request.nodes = nodes.nodes;
	request.num_nodes = nodes.num_nodes;
	assert_int_equal(mesh_plan_make(&request, &plan), 0);
	text = print(&plan);
	has(text, "  n1 n3 n2 n4\nEach rank is cabled to the next one, and the last to the first.\n"
		  "The ranks of each of the 2 sites follow each other: a ring crosses between "
		  "sites 2 times.\n");
	has(text, "  # on n3 also: export NCCL_MESH_SITE='east'\n");
	free(text);
	root = plan_json(&plan);
	assert_int_equal(json_integer_value(json_object_get(root, "site_crossings")), 2);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(root, "nodes"), 1), "site")),
			    "west");
	json_decref(root);
	mesh_plan_free(&plan);
}

/* Only routers join the sites; inside each of them, cables have to. */
TEST(sites_apart)
{
	char cables[] = "/tmp/test_fi_mesh_plan.XXXXXX", argument[64];
	int fd = mkstemp(cables);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a b\nc d\n", 8), 8);
	close(fd);
	snprintf(argument, sizeof(argument), "cables:%s", cables);
	assert_int_equal(run(argument, NULL), COMMAND_PROBLEM);
	assert_int_equal(run(argument, "--site", "e=a,b", NULL), COMMAND_FINE);
	assert_int_equal(run(argument, "--site", "e=a,b", "--site", "w=c,d", NULL), COMMAND_FINE);
	assert_int_equal(run(argument, "--site", "e=a,c", NULL), COMMAND_PROBLEM);
	assert_int_equal(run(argument, "--site", "e=a,b,c,d", NULL), COMMAND_PROBLEM);
	unlink(cables);
}
