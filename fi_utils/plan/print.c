/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - a plan as text: the wiring table, the ranks, the environment. */
#include <inttypes.h>
#include <string.h>

#include "nic/nic_select.h"

#include "common/output.h"
#include "common/table.h"
#include "plan/environment.h"
#include "plan/formats.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "plan/rank_order.h"
#include "plan/shape.h"
#include "plan/topology.h"

/* Longer lines of names are broken here. */
#define LINE_COLUMNS 100

static void heading_print(FILE *file, const struct mesh_plan *plan)
{
	char shape[MESH_SHAPE_TEXT_MAX], first[MESH_ADDR_TEXT_MAX], rate[MESH_NIC_SPEED_TEXT_MAX];
	int num_ports = mesh_topology_max_degree(&plan->topology);

	mesh_addr_text(&plan->subnets.first, first);
	fprintf(file, "%s%s%s: %d nodes, %d %scable%s, %s%d port%s on each node%s%s\n",
		output_style(file, OUTPUT_STRONG), mesh_shape_text(&plan->shape, shape),
		output_style(file, OUTPUT_PLAIN), plan->topology.num_nodes,
		plan->topology.num_cables, plan->infiniband ? "InfiniBand " : "",
		plan->topology.num_cables == 1 ? "" : "s",
		plan->topology.num_cables * 2 == num_ports * plan->topology.num_nodes ? ""
										      : "up to ",
		num_ports, num_ports == 1 ? "" : "s", plan->rate_mbps ? ", " : "",
		plan->rate_mbps ? mesh_nic_speed_text(plan->rate_mbps, rate) : "");
	fprintf(file, "One subnet of /%d for each cable, from %s on; MTU %d\n\n",
		plan->subnets.prefix_len, first, plan->mtu);
}

/* Which port of which node goes to which. */
static void wiring_print(FILE *file, const struct mesh_plan *plan)
{
	static const char *const titles[] = {"CABLE", "FROM", "PORT",	"ADDRESS",
					     "TO",    "PORT", "ADDRESS"};
	struct output_table *table = output_table_new(7);
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr addr;
	int i, end;

	output_table_titles(table, titles);
	for (i = 0; i < plan->topology.num_cables; i++) {
		output_table_cell(table, OUTPUT_PLAIN, "%d", i + 1);
		for (end = 0; end < 2; end++) {
			addr = mesh_plan_addr(plan, i, end);
			output_table_cell(table, OUTPUT_PLAIN, "%s",
					  mesh_plan_node_name(plan, i, end));
			output_table_cell(table, OUTPUT_PLAIN, "%s",
					  mesh_plan_port_name(plan, i, end));
			output_table_cell(table, OUTPUT_PLAIN, "%s",
					  mesh_addr_text_prefix(&addr, text));
		}
	}
	output_table_print(table, file, 0);
	output_table_free(table);
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
}

/* What the cables do not give. */
static void pairs_print(FILE *file, const struct mesh_plan *plan)
{
	int64_t num = plan->topology.num_nodes, apart = mesh_plan_pairs_apart(plan);

	if (apart <= 0)
		return;
	fprintf(file,
		"%" PRId64 " of %" PRId64
		" pairs of nodes have no cable of their own: the plugin does not connect them yet "
		"(no relay).\n",
		apart, num * (num - 1) / 2);
	if (plan->order.kind != MESH_ORDER_RING)
		fprintf(file, "NCCL's rings pass through such a pair here: collectives over all "
			      "nodes fail until there is a cable or a relay.\n");
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
