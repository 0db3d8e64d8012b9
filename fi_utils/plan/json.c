/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a plan as JSON, also for `fi_mesh topo`; docs/fi_mesh-json.md describes it. */
#include "common/json.h"
#include "plan/environment.h"
#include "plan/json.h"
#include "plan/plan.h"
#include "plan/rank_order.h"
#include "plan/shape.h"
#include "plan/subnet_range.h"

/* Version of the document; a reader refuses a higher one. */
#define PLAN_VERSION 1

static json_t *ports_json(const struct mesh_plan_node *node)
{
	json_t *list = json_array();
	int i;

	for (i = 0; list && i < node->num_ports; i++)
		list = output_json_append(list, json_string(node->ports[i]));
	return list;
}

static json_t *nodes_json(const struct mesh_plan *plan)
{
	json_t *list = json_array();
	int i;

	for (i = 0; list && i < plan->topology.num_nodes; i++)
		list = output_json_append(list, json_pack("{s:s, s:o}", "name", plan->nodes[i].name,
							  "ports", ports_json(&plan->nodes[i])));
	return list;
}

static json_t *end_json(const struct mesh_plan *plan, int cable, int end)
{
	struct mesh_addr addr = mesh_plan_addr(plan, cable, end);

	return json_pack("{s:s, s:s, s:o}", "node", mesh_plan_node_name(plan, cable, end), "port",
			 mesh_plan_port_name(plan, cable, end), "address", output_json_addr(&addr));
}

static json_t *cables_json(const struct mesh_plan *plan)
{
	json_t *list = json_array(), *cable;
	struct mesh_addr subnet;
	int i;

	for (i = 0; list && i < plan->topology.num_cables; i++) {
		subnet = mesh_plan_subnet(plan, i);
		cable = json_pack("{s:i, s:o, s:[o, o]}", "cable", i + 1, "subnet",
				  output_json_addr(&subnet), "ends", end_json(plan, i, 0),
				  end_json(plan, i, 1));
		list = output_json_append(list, cable);
	}
	return list;
}

static json_t *ranks_json(const struct mesh_plan *plan)
{
	json_t *list = json_array();
	int i;

	for (i = 0; list && i < plan->topology.num_nodes; i++)
		list = output_json_append(list,
					  json_string(plan->nodes[plan->order.nodes[i]].name));
	return list;
}

static json_t *environment_json(const struct mesh_plan *plan)
{
	struct plan_variable variables[PLAN_VARIABLES_MAX];
	int i, num = plan_environment(plan, variables);
	json_t *object = num < 0 ? NULL : json_object();

	for (i = 0; object && i < num; i++)
		json_object_set_new(object, variables[i].name, json_string(variables[i].value));
	if (num > 0)
		plan_environment_free(variables, num);
	return object;
}

json_t *plan_json(const struct mesh_plan *plan)
{
	static const char *const orders[] = {
		[MESH_ORDER_RING] = "ring",
		[MESH_ORDER_LINE] = "line",
		[MESH_ORDER_GAPS] = "gaps",
	};
	char shape[MESH_SHAPE_TEXT_MAX];

	return json_pack(
		"{s:i, s:s, s:s, s:i, s:i, s:o, s:i, s:o, s:o, s:o, s:s, s:b, s:i, s:I,"
		" s:o}",
		"plan", PLAN_VERSION, "shape", mesh_shape_text(&plan->shape, shape), "link_layer",
		plan->infiniband ? "InfiniBand" : "Ethernet", "mtu", plan->mtu, "rate_mbps",
		plan->rate_mbps, "range", output_json_addr(&plan->subnets.first), "subnet_prefix",
		(int)plan->subnets.prefix_len, "nodes", nodes_json(plan), "cables",
		cables_json(plan), "ranks", ranks_json(plan), "rank_order",
		orders[plan->order.kind], "rank_order_proven", plan->order.proven, "rank_gaps",
		plan->order.num_gaps, "pairs_apart", (json_int_t)mesh_plan_pairs_apart(plan),
		"environment", environment_json(plan));
}
