/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a plan as JSON, also for `fi_mesh topo`; docs/fi_mesh-json.md describes it. */
#include <errno.h>

#include "common/json.h"
#include "plan/json.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/rank_order.h"
#include "plan/shape.h"

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
		list = output_json_append(list,
					  json_pack("{s:s, s:o, s:o}", "name", plan->nodes[i].name,
						    "site", output_json_text(plan->nodes[i].site),
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
		cable = json_pack("{s:i, s:i, s:o, s:[o, o]}", "cable", i + 1, "physical",
				  i / plan->halves + 1, "subnet", output_json_addr(&subnet), "ends",
				  end_json(plan, i, 0), end_json(plan, i, 1));
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

/* The nodes of one route. */
static json_t *route_json(const struct mesh_plan *plan, const struct plan_pair *pair, int route)
{
	json_t *list = json_array();
	int i;

	for (i = 0; list && i < pair->routes.num_relays; i++)
		list = output_json_append(
			list, json_string(plan->nodes[pair->routes.relays[route][i]].name));
	return list;
}

static json_t *pair_json(const struct mesh_plan *plan, const struct plan_pair *pair)
{
	json_t *via = json_array();
	int i;

	for (i = 0; via && pair->routes.num_relays && i < pair->routes.num; i++)
		via = output_json_append(via, route_json(plan, pair, i));
	return json_pack("{s:s, s:s, s:o, s:o, s:f, s:o}", "from", plan->nodes[pair->from].name,
			 "to", plan->nodes[pair->to].name, "relays",
			 pair->routes.num ? json_integer(pair->routes.num_relays) : json_null(),
			 "via", via, "cables_left", pair->share, "gbps_left",
			 plan->rate_mbps
				 ? json_real(pair->share * plan->rate_mbps * plan->halves / 1000)
				 : json_null());
}

/* null for a mesh that is too large. */
static json_t *pairs_json(const struct mesh_plan *plan)
{
	struct plan_relays relays;
	int i, ret = plan_relays_find(plan, &relays);
	json_t *list;

	if (ret)
		return ret == -E2BIG ? json_null() : NULL;
	list = json_array();
	for (i = 0; list && i < relays.num_pairs; i++)
		list = output_json_append(list, pair_json(plan, &relays.pairs[i]));
	plan_relays_free(&relays);
	return list;
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
		"{s:i, s:s, s:s, s:i, s:i, s:i, s:o, s:i, s:o, s:o, s:o, s:s, s:b, s:i, s:i, s:I,"
		" s:o, s:o}",
		"plan", PLAN_VERSION, "shape", mesh_shape_text(&plan->shape, shape), "link_layer",
		plan->infiniband ? "InfiniBand" : "Ethernet", "mtu", plan->mtu, "rate_mbps",
		plan->rate_mbps, "halves", plan->halves, "range",
		output_json_addr(&plan->subnets.first), "subnet_prefix",
		(int)plan->subnets.prefix_len, "nodes", nodes_json(plan), "cables",
		cables_json(plan), "ranks", ranks_json(plan), "rank_order",
		orders[plan->order.kind], "rank_order_proven", plan->order.proven, "rank_gaps",
		plan->order.num_gaps, "site_crossings", mesh_plan_site_crossings(plan),
		"pairs_apart", (json_int_t)mesh_plan_pairs_apart(plan), "pairs", pairs_json(plan),
		"environment", environment_json(plan));
}
