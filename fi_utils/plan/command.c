/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - `fi_mesh plan`: plans the cables of a mesh and the configuration of every node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/file.h"
#include "common/json.h"
#include "common/options.h"
#include "common/output.h"
#include "common/progress.h"
#include "plan/cable_list.h"
#include "plan/formats.h"
#include "plan/json.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "plan/shape.h"

#define WHO "fi_mesh plan"

static const char usage_text[] =
	"usage: fi_mesh plan [OPTION...] SHAPE NODE...\n"
	"       fi_mesh plan [OPTION...] cables:FILE [NODE...]\n"
	"\n"
	"Plans a mesh of directly cabled nodes: the wiring table, a subnet for each\n"
	"cable, the order of ranks that follows the cables, the environment, and the\n"
	"configuration.\n"
	"\n"
	"  SHAPE  triangle, full, ring, line, star, torus:3x4 (up to four sizes), or\n"
	"         cables:FILE with lines NODE NODE or NODE:PORT NODE:PORT\n"
	"  NODE   a name, or many: a,b,c or spark[1-4]\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Exit status: 0 planned, 1 it cannot be built or written, 2 usage error.\n";

enum {
	PORTS_OPTIONS_MAX = 1024,
	SITES_MAX = 64
};

struct options {
	struct mesh_plan_request request;
	const char *ports[PORTS_OPTIONS_MAX];
	int num_ports_options;
	const char *sites[SITES_MAX];
	int num_sites;
	const char *node;
	const char *folder;
	const char *format_name; /* NULL: none */
	const struct plan_format *format;
	bool json;
};

/* "200" or "12.5" Gb/s. */
static int rate_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;
	char *end;
	double gbit = strtod(text, &end);

	(void)row;
	if (end == text || *end || !(gbit >= 0.001) || gbit > 100000)
		return arguments_misuse(WHO, "--rate takes Gb/s, such as 100, not \"%.40s\"", text);
	options->request.rate_mbps = (int)(gbit * 1000 + 0.5);
	return -1;
}

static int ports_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;
	unsigned long number;

	(void)row;
	if (strspn(text, "0123456789") == strlen(text)) {
		if (!argument_number(text, 1, MESH_PLAN_PORTS_MAX, &number))
			return arguments_misuse(
				WHO, "--ports takes a number from 1 to %d, not \"%.40s\"",
				MESH_PLAN_PORTS_MAX, text);
		options->request.num_ports = (int)number;
		return -1;
	}
	if (options->num_ports_options == PORTS_OPTIONS_MAX)
		return arguments_misuse(WHO, "--ports may come %d times", PORTS_OPTIONS_MAX);
	options->ports[options->num_ports_options++] = text;
	return -1;
}

static int site_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	(void)row;
	if (options->num_sites == SITES_MAX)
		return arguments_misuse(WHO, "--site may come %d times", SITES_MAX);
	options->sites[options->num_sites++] = text;
	return -1;
}

static int range_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	(void)row;
	if (strchr(text, '/') && !mesh_addr_parse(text, &options->request.range))
		return -1;
	return arguments_misuse(WHO,
				"--range takes an address and a prefix length, such as 10.0.0.0/8, "
				"not \"%.80s\"",
				text);
}

static int management_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	(void)row;
	if (!mesh_port_name_valid(text))
		return arguments_misuse(WHO, "--management takes the name of a NIC, not \"%.40s\"",
					text);
	options->request.management = text;
	return -1;
}

static const char *const format_names[] = {"netplan", "nm", "networkd", "ip", NULL};

static const struct option_row option_rows[] = {
	{"ports", 0, "LIST",
	 "names of the ports, in order: enp1s0f0np0,enp1s0f1np1; for\n"
	 "one node NODE=LIST, which may come several times; or just\n"
	 "how many: 2",
	 OPTION_HANDLER(ports_take)},
	{"site", 0, "NAME=NODES",
	 "the data centre of these nodes; may come several times. The\n"
	 "ranks of a site follow each other; sites need no cable\n"
	 "between them",
	 OPTION_HANDLER(site_take)},
	{"parallel", 0, "N", "cables between each two neighbours (1)",
	 OPTION_NUMBER(struct options, request.shape.parallel, 1, MESH_PARALLEL_MAX)},
	{"halves", 0, "N",
	 "NICs that each port appears as, which follow each other\n"
	 "in LIST (1; a DGX Spark 2): a cable is so many halves, with\n"
	 "a subnet each",
	 OPTION_NUMBER(struct options, request.halves, 1, 8)},
	{"range", 0, "ADDR/N",
	 "addresses to use: subnets begin at ADDR and stay inside its\n"
	 "/N (192.168.100.0/16, for large meshes 10.0.0.0/8)",
	 OPTION_HANDLER(range_take)},
	{"prefix", 0, "N", "size of each subnet (24, for large meshes 30; IPv6 64)",
	 OPTION_NUMBER(struct options, request.prefix_len, 1, 127)},
	{"ipv6", 0, NULL, "unique local IPv6 addresses", OPTION_FLAG(struct options, request.ipv6)},
	{"infiniband", 0, NULL, "IPoIB instead of Ethernet",
	 OPTION_FLAG(struct options, request.infiniband)},
	{"mtu", 0, "BYTES", "(9000; IPoIB 2044)",
	 OPTION_NUMBER(struct options, request.mtu, 1280, 65520)},
	{"rate", 0, "GBIT", "of each cable, in Gb/s, for drawings", OPTION_HANDLER(rate_take)},
	{"management", 0, "NIC",
	 "of the network that reaches all nodes, with that name on\n"
	 "each; for the environment",
	 OPTION_HANDLER(management_take)},

	{"json", 0, NULL, "the plan as JSON; `fi_mesh topo` draws it",
	 OPTION_FLAG(struct options, json)},
	{"config", 0, "FORMAT", "configuration of one node: netplan, nm, networkd or ip",
	 OPTION_CHOICE(struct options, format_name, format_names)},
	{"node", 0, "NODE", "that node", OPTION_TEXT(struct options, node)},
	{"write", 0, "FOLDER",
	 "plan.json and all configuration files:\n"
	 "FOLDER/NODE/FORMAT/...; with --config only those of that\n"
	 "format; FOLDER must be new or empty",
	 OPTION_TEXT(struct options, folder)},
	{.name = NULL},
};

static const struct option_table option_table = {WHO, usage_text, notes_text, option_rows};

/* Returns an exit status, or -1 to go on. */
static int options_parse(int argc, char **argv, struct options *options, int *operands)
{
	int status;

	memset(options, 0, sizeof(*options));
	options->request.shape.parallel = options->request.halves = 1;
	status = option_table_parse(&option_table, argc, argv, options, operands);
	if (status >= 0)
		return status;
	if (*operands >= argc) {
		option_table_help(stderr, &option_table);
		return COMMAND_MISUSE;
	}
	if (options->format_name)
		options->format = plan_format_find(options->format_name);
	if (options->format && !options->folder && !options->node)
		return arguments_misuse(WHO, "--config needs --node NODE, or --write FOLDER");
	if (options->node && !options->format)
		return arguments_misuse(WHO, "--node needs --config FORMAT");
	return -1;
}

/* Reads "cables:FILE". Returns an exit status, or -1 to go on. */
static int cables_read(const char *path, struct plan_nodes *nodes, struct mesh_cable_list *list)
{
	size_t size;
	char *text = file_read(WHO, path, &size);
	int ret;

	if (!text)
		return COMMAND_PROBLEM;
	ret = mesh_cable_list_parse(text, size, list);
	free(text);
	if (!ret && !nodes->num_nodes)
		ret = plan_nodes_add_listed(nodes, list);
	return ret ? output_failure(WHO, ret) : -1;
}

/* Reads the names of nodes and ports. Returns an exit status, or -1 to go on. */
static int names_status(int ret)
{
	if (!ret)
		return -1;
	return ret == -ENOMEM ? output_failure(WHO, ret) : COMMAND_MISUSE;
}

/* Shape, nodes and ports, @num of them. Returns an exit status, or -1 to go on. */
static int operands_take(struct options *options, int num, char **operands,
			 struct plan_nodes *nodes, struct mesh_cable_list *list)
{
	static const char cables[] = "cables:";
	struct mesh_shape shape = {.kind = MESH_SHAPE_CABLES};
	const char *shape_text = operands[0];
	bool listed = !strncmp(shape_text, cables, strlen(cables));
	int i, status = -1;

	if (!listed && mesh_shape_parse(shape_text, &shape))
		return COMMAND_MISUSE;
	if (listed && options->request.halves > 1)
		return arguments_misuse(
			WHO,
			"--halves needs a shape; in a list of cables each half has its own line");
	shape.parallel = options->request.shape.parallel * options->request.halves;
	if (shape.parallel > MESH_PARALLEL_MAX)
		return arguments_misuse(WHO, "--parallel times --halves is %d at most",
					MESH_PARALLEL_MAX);
	options->request.shape = shape;
	for (i = 1; i < num && status < 0; i++)
		status = names_status(plan_nodes_add(nodes, operands[i]));
	if (listed && status < 0)
		status = cables_read(shape_text + strlen(cables), nodes, list);
	if (status >= 0)
		return status;
	if (listed)
		options->request.cables = list;
	if (!nodes->num_nodes) {
		fprintf(stderr, WHO ": name the nodes after the shape: %s a b c\n", shape_text);
		return COMMAND_MISUSE;
	}
	status = names_status(plan_nodes_check(nodes));
	for (i = 0; i < options->num_sites && status < 0; i++)
		status = names_status(plan_nodes_site(nodes, options->sites[i]));
	/* Lists for single nodes first: the list for all nodes does not change them. */
	for (i = 0; i < options->num_ports_options && status < 0; i++)
		if (strchr(options->ports[i], '='))
			status = names_status(plan_nodes_ports(nodes, options->ports[i]));
	for (i = 0; i < options->num_ports_options && status < 0; i++)
		if (!strchr(options->ports[i], '='))
			status = names_status(plan_nodes_ports(nodes, options->ports[i]));
	return status;
}

static int node_find(const struct mesh_plan *plan, const char *name)
{
	int i;

	for (i = 0; i < plan->topology.num_nodes; i++)
		if (!strcmp(plan->nodes[i].name, name))
			return i;
	fprintf(stderr, WHO ": there is no node %.100s in this plan\n", name);
	return -1;
}

/* Returns an exit status. */
static int config_show(const struct options *options, const struct mesh_plan *plan)
{
	struct plan_ports ports;
	int node = 0, status = COMMAND_FINE;

	if (options->node)
		node = node_find(plan, options->node);
	if (node < 0)
		return COMMAND_MISUSE;
	if (plan_ports_load(plan, &ports))
		return output_failure(WHO, -ENOMEM);
	if (!options->folder)
		plan_files_print(stdout, plan, &ports, options->format, node);
	else if (plan_files_write(options->folder, plan, &ports, options->format))
		status = COMMAND_PROBLEM;
	else if (!options->json)
		printf("%s has plan.json and the files of %d nodes.\n", options->folder,
		       plan->topology.num_nodes);
	plan_ports_free(&ports);
	return status;
}

/* Returns an exit status. */
static int plan_show(const struct options *options, const struct mesh_plan *plan)
{
	struct progress *progress;
	int status = COMMAND_FINE;
	json_t *root;

	if (options->folder || options->format)
		status = config_show(options, plan);
	if (status || (options->format && !options->json) || (options->folder && !options->json))
		return status;
	if (!options->json) {
		plan_print(stdout, plan);
		return status;
	}
	progress = progress_begin("writing the plan");
	root = plan_json(plan);
	progress_end(progress);
	return output_json_print(WHO, stdout, root) ? COMMAND_PROBLEM : status;
}

int command_plan(int argc, char **argv)
{
	struct mesh_cable_list list = {.num_cables = 0};
	struct plan_nodes nodes = {.num_nodes = 0};
	struct mesh_plan plan;
	struct options *options = malloc(sizeof(*options));
	struct progress *progress;
	int status, ret, operands;

	if (!options)
		return output_failure(WHO, -ENOMEM);
	status = options_parse(argc, argv, options, &operands);
	if (status < 0)
		status = operands_take(options, argc - operands, argv + operands, &nodes, &list);
	if (status < 0) {
		options->request.nodes = nodes.nodes;
		options->request.num_nodes = nodes.num_nodes;
		progress = progress_begin("planning %d nodes", nodes.num_nodes);
		ret = mesh_plan_make(&options->request, &plan);
		progress_end(progress);
		nodes = (struct plan_nodes){.num_nodes = 0};
		status = ret ? output_failure(WHO, ret) : plan_show(options, &plan);
		if (!ret)
			mesh_plan_free(&plan);
	}
	plan_nodes_free(&nodes);
	mesh_cable_list_free(&list);
	free(options);
	return output_finish(WHO, status);
}
