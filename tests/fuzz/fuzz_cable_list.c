/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cable_list.c - lists of cables and names of shapes; what is read makes a plan. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/cable_list.h"
#include "plan/json.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/shape.h"
#include "system/tuner_plan.h"

#include "fuzz_text.h"

/* The reasons for refusing are many, and of no use here; the sanitizers keep descriptor 2. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	stderr = fopen("/dev/null", "w");
	fuzz_check(stderr);
	return 0;
}

static void list_use(const struct mesh_cable_list *list)
{
	struct mesh_plan_request request = {.shape = {MESH_SHAPE_CABLES, {0}, 0, 1}};
	struct plan_nodes nodes = {.num_nodes = 0};
	struct mesh_plan plan;

	for (int i = 0; i < list->num_cables; i++)
		fuzz_check(mesh_node_name_valid(list->cables[i].ends[0].node) &&
			   (!*list->cables[i].ends[1].port ||
			    mesh_port_name_valid(list->cables[i].ends[1].port)));
	if (list->num_cables > 40 || plan_nodes_add_listed(&nodes, list)) {
		plan_nodes_free(&nodes);
		return;
	}
	request.cables = list;
	request.nodes = nodes.nodes;
	request.num_nodes = nodes.num_nodes;
	if (mesh_plan_make(&request, &plan))
		return;
	fuzz_check(plan.topology.num_cables == list->num_cables);
	for (int i = 0; i < list->num_cables; i++) {
		struct mesh_addr a = mesh_plan_addr(&plan, i, 0), b = mesh_plan_addr(&plan, i, 1);

		fuzz_check(mesh_addr_same_subnet(&a, &b) && !mesh_addr_equal(&a, &b));
	}
	json_decref(plan_json(&plan));
	mesh_plan_free(&plan);
}

/* The plugin reads the list as well (NCCL_MESH_PLAN): it takes what `fi_mesh plan` takes. */
static void graph_use(const char *text, const struct mesh_cable_list *list)
{
	struct mesh_plan_graph graph;
	int i, k, line, num = 0, ret = mesh_plan_graph_parse(text, &graph, &line);

	for (i = 0; i < graph.num_nodes; i++) {
		fuzz_check(memchr(graph.names[i], 0, sizeof(graph.names[i])) != NULL);
		for (k = 0; k < i; k++)
			num += graph.cables[i][k];
	}
	fuzz_check(graph.num_nodes <= MESH_PLAN_NODES_MAX && (!ret || !graph.num_nodes));
	mesh_plan_graph_is_full(&graph);
	fuzz_check(mesh_plan_graph_digest(&graph));
	if (list && list->num_cables <= UINT8_MAX)
		fuzz_check(ret == -E2BIG || (!ret && num == list->num_cables));
}

static void text_use(const char *text)
{
	char again[MESH_SHAPE_TEXT_MAX];
	struct plan_nodes nodes = {.num_nodes = 0};
	struct mesh_shape shape, same;

	fuzz_check(mesh_shape_parse(text, &shape) ||
		   (!mesh_shape_parse(mesh_shape_text(&shape, again), &same) &&
		    !memcmp(&shape, &same, sizeof(shape))));
	plan_nodes_add(&nodes, text);
	plan_nodes_ports(&nodes, text);
	plan_nodes_free(&nodes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mesh_cable_list list;
	char *text = fuzz_text(data, size);
	int ret;

	if (!text)
		return 0;
	ret = mesh_cable_list_parse((const char *)data, size, &list);
	graph_use(text, ret || memchr(data, 0, size) ? NULL : &list);
	if (!ret) {
		list_use(&list);
		mesh_cable_list_free(&list);
	}
	text_use(text);
	free(text);
	return 0;
}
