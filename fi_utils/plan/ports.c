/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - the cables of a plan from each node's side. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "plan/ports.h"
#include "plan/topology.h"

static int plan_port_compare(const void *left, const void *right)
{
	const struct plan_port *a = left, *b = right;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return (a->port > b->port) - (a->port < b->port);
}

int plan_ports_load(const struct mesh_plan *plan, struct plan_ports *ports)
{
	size_t num_nodes = (size_t)plan->topology.num_nodes, i;
	size_t num_ports = 2 * (size_t)plan->topology.num_cables;
	struct plan_ports result = {
		.ports = calloc(num_ports + 1, sizeof(*result.ports)),
		.first = calloc(num_nodes + 2, sizeof(*result.first)),
	};

	if (!result.ports || !result.first) {
		plan_ports_free(&result);
		return -ENOMEM;
	}
	for (i = 0; i < num_ports; i++) {
		const struct mesh_cable_end *end = &plan->topology.cables[i / 2].ends[i % 2];

		result.ports[i] =
			(struct plan_port){end->node, end->port, (int)(i / 2), (int)(i % 2)};
		result.first[end->node + 1]++;
	}
	for (i = 0; i < num_nodes; i++)
		result.first[i + 1] += result.first[i];
	qsort(result.ports, num_ports, sizeof(*result.ports), plan_port_compare);
	*ports = result;
	return 0;
}

void plan_ports_free(struct plan_ports *ports)
{
	free(ports->ports);
	free(ports->first);
	memset(ports, 0, sizeof(*ports));
}

const char *plan_port_name(const struct mesh_plan *plan, const struct plan_port *port)
{
	return mesh_plan_port_name(plan, port->cable, port->end);
}

const char *plan_port_purpose(const struct mesh_plan *plan, const struct plan_port *port,
			      char *text, size_t size)
{
	int far = 1 - port->end;
	char cable[MESH_PLAN_CABLE_TEXT_MAX];

	snprintf(text, size, "cable %s, to %s %s", mesh_plan_cable_text(plan, port->cable, cable),
		 mesh_plan_node_name(plan, port->cable, far),
		 mesh_plan_port_name(plan, port->cable, far));
	return text;
}
