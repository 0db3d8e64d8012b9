/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - a plan as text: the wiring table, the ranks, the environment. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic_select.h"

#include "common/output.h"
#include "common/table.h"
#include "plan/formats.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "plan/rank_order.h"
#include "plan/shape.h"
#include "plan/topology.h"

/* Longer lines of names are broken here. */
#define LINE_COLUMNS 100
/* Of a larger mesh each pair would be a line too many. */
#define PAIRS_NODES_MAX 8
#define VIA_TEXT_MAX 400

static void heading_print(FILE *file, const struct mesh_plan *plan)
{
	char shape[MESH_SHAPE_TEXT_MAX], first[MESH_ADDR_TEXT_MAX], rate[MESH_NIC_SPEED_TEXT_MAX];
	int num_ports = mesh_topology_max_degree(&plan->topology) / plan->halves;
	int num_cables = plan->topology.num_cables / plan->halves;
	const char *half = plan->halves > 1 ? "half of a " : "";

	mesh_addr_text(&plan->subnets.first, first);
	fprintf(file, "%s%s%s: %d nodes, %d %scable%s", output_style(file, OUTPUT_STRONG),
		mesh_shape_text(&plan->shape, shape), output_style(file, OUTPUT_PLAIN),
		plan->topology.num_nodes, num_cables, plan->infiniband ? "InfiniBand " : "",
		num_cables == 1 ? "" : "s");
	if (plan->halves > 1)
		fprintf(file, " of %d halves each", plan->halves);
	fprintf(file, ", %s%d port%s on each node",
		num_cables * 2 == num_ports * plan->topology.num_nodes ? "" : "up to ", num_ports,
		num_ports == 1 ? "" : "s");
	if (plan->halves > 1)
		fprintf(file, " (%d NICs)", num_ports * plan->halves);
	if (plan->rate_mbps)
		fprintf(file, ", %s%s", mesh_nic_speed_text(plan->rate_mbps, rate),
			plan->halves > 1 ? " for each half" : "");
	fprintf(file, "\nOne subnet of /%d for each %scable, from %s on; MTU %d\n\n",
		plan->subnets.prefix_len, half, first, plan->mtu);
}

/* Which port of which node is cabled to which. */
static void wiring_print(FILE *file, const struct mesh_plan *plan)
{
	static const char *const titles[] = {"CABLE", "FROM", "PORT",	"ADDRESS",
					     "TO",    "PORT", "ADDRESS"};
	struct output_table *table = output_table_new(titles, 7);
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr addr;
	int i, end;

	for (i = 0; i < plan->topology.num_cables; i++) {
		output_table_text(table, mesh_plan_cable_text(plan, i, text));
		for (end = 0; end < 2; end++) {
			addr = mesh_plan_addr(plan, i, end);
			output_table_text(table, mesh_plan_node_name(plan, i, end));
			output_table_text(table, mesh_plan_port_name(plan, i, end));
			output_table_text(table, mesh_addr_text_prefix(&addr, text));
		}
	}
	output_table_end(table, file, 0);
	if (!plan->ports_named)
		fprintf(file, "\nmesh0, mesh1 ... stand for ports that were not named: --ports "
			      "names them, `fi_mesh nics` shows them.\n");
}

static void ranks_print(FILE *file, const struct mesh_plan *plan)
{
	char text[200];
	int i, column = 2, len;

	fprintf(file, "\n%sRanks%s in the order of the cables, from rank 0:\n ",
		output_style(file, OUTPUT_STRONG), output_style(file, OUTPUT_PLAIN));
	for (i = 0; i < plan->topology.num_nodes; i++) {
		const char *name = plan->nodes[plan->order.nodes[i]].name;

		len = (int)strlen(name) + 1;
		if (column + len > LINE_COLUMNS) {
			fprintf(file, "\n ");
			column = 2;
		}
		fprintf(file, " %s", name);
		column += len;
	}
	fprintf(file, "\n%s\n", plan_order_text(plan, text, sizeof(text)));
	if (plan->num_sites > 1)
		fprintf(file,
			"The ranks of each of the %d sites follow each other: a ring crosses "
			"between sites %d times.\n",
			plan->num_sites, mesh_plan_site_crossings(plan));
}

static int pair_compare(const void *left, const void *right)
{
	const struct plan_pair *a = *(struct plan_pair *const *)left,
			       *b = *(struct plan_pair *const *)right;

	if (a->routes.num_relays != b->routes.num_relays)
		return a->routes.num_relays < b->routes.num_relays ? -1 : 1;
	return (a > b) - (a < b); /* as they are listed */
}

/* A share of the cables, as a rate if that of a cable is known. */
static void share_cell(struct output_table *table, const struct mesh_plan *plan, double share)
{
	if (plan->rate_mbps)
		output_table_cell(table, OUTPUT_PLAIN, "%.3g Gb/s",
				  share * plan->rate_mbps * plan->halves / 1000);
	else
		output_table_cell(table, OUTPUT_PLAIN, "%.0f %% of a cable", share * 100);
}

/* The names of the relays: "b,c", and a second route behind " and ". */
static const char *via_text(const struct mesh_plan *plan, const struct plan_pair *pair, char *text,
			    size_t size)
{
	int i, k;

	text[0] = '\0';
	for (i = 0; i < pair->routes.num; i++) {
		for (k = 0; k < pair->routes.num_relays; k++)
			output_add(text, size, "%s%s", k ? "," : (i ? " and " : ""),
				   plan->nodes[pair->routes.relays[i][k]].name);
	}
	return pair->routes.num_relays ? text : "-";
}

static void pair_row(struct output_table *table, const struct mesh_plan *plan,
		     const struct plan_pair *pair)
{
	char via[VIA_TEXT_MAX];

	output_table_cell(table, OUTPUT_PLAIN, "%s - %s", plan->nodes[pair->from].name,
			  plan->nodes[pair->to].name);
	if (pair->routes.num)
		output_table_cell(table, OUTPUT_PLAIN, "%d", pair->routes.num_relays);
	else if (plan->sites[pair->from] != plan->sites[pair->to])
		output_table_text(table, "routed");
	else
		output_table_cell(table, OUTPUT_BAD, "none possible");
	output_table_text(table, via_text(plan, pair, via, sizeof(via)));
	if (pair->routes.num)
		share_cell(table, plan, pair->share);
	else
		output_table_text(table, "-");
}

/* The pairs of @num neighbouring entries, which have equally many relays. */
static void pairs_row(struct output_table *table, const struct mesh_plan *plan,
		      struct plan_pair *const *pairs, int num)
{
	double least = pairs[0]->share;
	int i;

	for (i = 1; i < num; i++)
		least = pairs[i]->share < least ? pairs[i]->share : least;
	output_table_cell(table, OUTPUT_PLAIN, "%d pair%s", num, num == 1 ? "" : "s");
	output_table_cell(table, OUTPUT_PLAIN, "%d", pairs[0]->routes.num_relays);
	output_table_text(table, "-");
	share_cell(table, plan, least);
}

/* Each pair, or, of a larger mesh, those with equally many relays together. */
static void shares_print(FILE *file, const struct mesh_plan *plan, const struct plan_relays *relays)
{
	static const char *const titles[] = {"PAIR", "RELAYS", "VIA", "LEFT FOR EACH DIRECTION"};
	struct plan_pair **pairs =
		calloc((size_t)relays->num_pairs + 1, sizeof(struct plan_pair *));
	struct output_table *table = output_table_new(titles, 4);
	int i, num;

	for (i = 0; pairs && i < relays->num_pairs; i++)
		pairs[i] = &relays->pairs[i];
	if (pairs)
		qsort(pairs, (size_t)relays->num_pairs, sizeof(struct plan_pair *), pair_compare);
	for (i = 0; pairs && i < relays->num_pairs; i += num) {
		num = 1;
		if (plan->topology.num_nodes <= PAIRS_NODES_MAX || !pairs[i]->routes.num) {
			pair_row(table, plan, pairs[i]);
			continue;
		}
		while (i + num < relays->num_pairs && pairs[i + num]->routes.num &&
		       pairs[i + num]->routes.num_relays == pairs[i]->routes.num_relays)
			num++;
		pairs_row(table, plan, &pairs[i], num);
	}
	fprintf(file,
		"\nIf all pairs talk in both directions at the same time, and share fairly:\n");
	output_table_end(table, file, 2);
	free(pairs);
}

/* What the cables do not give. */
static void pairs_print(FILE *file, const struct mesh_plan *plan)
{
	int64_t num = plan->topology.num_nodes, apart = mesh_plan_pairs_apart(plan);
	struct plan_relays relays;

	if (apart <= 0)
		return;
	fprintf(file,
		"%" PRId64 " of %" PRId64
		" pairs of nodes have no cable of their own: the ranks on the nodes between them "
		"relay.\n",
		apart, num * (num - 1) / 2);
	if (plan->num_sites > 1)
		fprintf(file, "Nodes of two sites that no cable joins need routes of the kernel: "
			      "docs/guides/two-sites.md.\n");
	if (plan->order.kind != MESH_ORDER_RING && plan->num_sites == 1)
		fprintf(file,
			"NCCL's rings pass through such a pair here, and share its cables with "
			"other traffic.\n");
	if (plan_relays_find(plan, &relays))
		return; /* a large mesh */
	shares_print(file, plan, &relays);
	plan_relays_free(&relays);
}

static void environment_print(FILE *file, const struct mesh_plan *plan)
{
	struct plan_variable variables[PLAN_VARIABLES_MAX];
	int i, num = plan_environment(plan, variables);

	fprintf(file, "\n%sEnvironment%s, the same on all nodes:\n",
		output_style(file, OUTPUT_STRONG), output_style(file, OUTPUT_PLAIN));
	if (num < 0)
		fprintf(file, "out of memory\n");
	for (i = 0; i < num; i++)
		fprintf(file, "  # %s\n  export %s='%s'\n", variables[i].why, variables[i].name,
			variables[i].value);
	for (i = 0; i < plan->topology.num_nodes; i++)
		if (*plan->nodes[i].site)
			fprintf(file, "  # on %s also: export NCCL_MESH_SITE='%s'\n",
				plan->nodes[i].name, plan->nodes[i].site);
	if (!*plan->management)
		fprintf(file, "  # PyTorch also wants GLOO_SOCKET_IFNAME, the NIC of the network "
			      "that reaches all nodes:\n  # --management NIC writes it\n");
	if (num > 0)
		plan_environment_free(variables, num);
}

void plan_print(FILE *file, const struct mesh_plan *plan)
{
	int i;

	heading_print(file, plan);
	wiring_print(file, plan);
	ranks_print(file, plan);
	pairs_print(file, plan);
	environment_print(file, plan);
	fprintf(file, "\n%sConfiguration%s: add --config FORMAT --node NODE, or --write FOLDER\n",
		output_style(file, OUTPUT_STRONG), output_style(file, OUTPUT_PLAIN));
	for (i = 0; plan_formats[i]; i++)
		fprintf(file, "  %-9s %s\n", plan_formats[i]->name, plan_formats[i]->title);
}
