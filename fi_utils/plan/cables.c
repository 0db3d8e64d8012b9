/* SPDX-License-Identifier: Apache-2.0 */
/* cables.c - assigns the cables of a plan to ports. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "plan/cable_list.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "plan/shape.h"
#include "plan/topology.h"

/* ---- regular shapes --------------------------------------------------------------------- */

/* Ports that @node may use; -1: as many as it needs. */
static int ports_allowed(const struct mesh_plan_request *request, int node)
{
	if (request->nodes[node].ports_named)
		return request->nodes[node].num_ports;
	return request->num_ports ? request->num_ports : -1;
}

static int fewest_ports(const struct mesh_plan_request *request)
{
	int node, allowed, fewest = -1;

	for (node = 0; node < request->num_nodes; node++) {
		allowed = ports_allowed(request, node);
		if (allowed >= 0 && (fewest < 0 || allowed < fewest))
			fewest = allowed;
	}
	return fewest;
}

static int ports_refuse(const struct mesh_plan_request *request, int node, int needed)
{
	char shape[MESH_SHAPE_TEXT_MAX], fitting[400];
	int have = ports_allowed(request, node), parallel = request->shape.parallel;

	if (request->shape.kind == MESH_SHAPE_CABLES) {
		mesh_warn("the list gives %s %d cables, and it has %d port%s",
			  request->nodes[node].name, needed, have, have == 1 ? "" : "s");
		return -ENOSPC;
	}
	mesh_warn("%s of %d nodes%s needs %d ports on %s, which has %d; these shapes fit %d nodes "
		  "with %d port%s: %s",
		  mesh_shape_text(&request->shape, shape), request->num_nodes,
		  parallel > 1 ? " with parallel cables" : "", needed, request->nodes[node].name,
		  have, request->num_nodes, fewest_ports(request),
		  fewest_ports(request) == 1 ? "" : "s",
		  mesh_shapes_fitting(request->num_nodes, fewest_ports(request), parallel, fitting,
				      sizeof(fitting)));
	return -ENOSPC;
}

/* Names the ports that have no names: mesh0, mesh1, ... up to @needed. */
static int ports_name(struct mesh_plan_node *node, int needed)
{
	char name[IF_NAMESIZE];
	int number, ret = 0;

	if (needed > MESH_PLAN_PORTS_MAX) {
		node->ports = calloc((size_t)needed, sizeof(*node->ports));
		if (!node->ports)
			return -ENOMEM;
		for (number = 0; number < needed; number++)
			snprintf(node->ports[number], IF_NAMESIZE, "mesh%d", number);
		node->num_ports = needed;
		return 0;
	}
	for (number = node->num_ports; number < needed && !ret; number++) {
		snprintf(name, sizeof(name), "mesh%d", number);
		ret = mesh_plan_port_add(node, name);
	}
	return ret;
}

/* Checks that each node has the ports that its cables need; names those without a name. */
static int ports_check(struct mesh_plan_request *request, const struct mesh_topology *topology)
{
	int *degrees = calloc((size_t)request->num_nodes, sizeof(*degrees));
	int i, allowed, ret = degrees ? 0 : -ENOMEM;

	for (i = 0; !ret && i < 2 * topology->num_cables; i++)
		degrees[topology->cables[i / 2].ends[i % 2].node]++;
	for (i = 0; !ret && i < request->num_nodes; i++) {
		allowed = ports_allowed(request, i);
		if (allowed >= 0 && degrees[i] > allowed)
			ret = ports_refuse(request, i, degrees[i]);
		else if (!request->nodes[i].ports_named)
			ret = ports_name(&request->nodes[i], degrees[i]);
	}
	free(degrees);
	return ret;
}

/* ---- lists of cables -------------------------------------------------------------------- */

static int listed_node(const struct mesh_plan_request *request, const char *name)
{
	int i;

	for (i = 0; i < request->num_nodes; i++)
		if (!strcmp(request->nodes[i].name, name))
			return i;
	mesh_warn("the list has a cable to %s, which is not among the nodes", name);
	return -1;
}

/* The port of that name; it is added if the node's ports come from the list of cables. */
static int listed_port(struct mesh_plan_node *node, const char *name)
{
	int port, ret;

	for (port = 0; port < node->num_ports; port++)
		if (!strcmp(node->ports[port], name))
			return port;
	if (node->ports_named) {
		mesh_warn("%s has no port %s", node->name, name);
		return -EINVAL;
	}
	ret = mesh_plan_port_add(node, name);
	return ret ? ret : node->num_ports - 1;
}

/* Adds the cables; ends whose line names no port get -1. */
static int listed_add(struct mesh_plan_request *request, struct mesh_topology *topology)
{
	const struct mesh_cable_list *list = request->cables;
	struct mesh_cable_end ends[2];
	int i, k, ret = 0;

	for (i = 0; i < list->num_cables && !ret; i++) {
		for (k = 0; k < 2; k++) {
			const struct mesh_listed_end *end = &list->cables[i].ends[k];

			ends[k].port = -1;
			ends[k].node = listed_node(request, end->node);
			if (ends[k].node < 0)
				return -EINVAL;
			if (*end->port)
				ends[k].port =
					listed_port(&request->nodes[ends[k].node], end->port);
			if (*end->port && ends[k].port < 0)
				return ends[k].port;
		}
		ret = mesh_topology_add(topology, ends[0], ends[1]);
	}
	return ret;
}

/* Marks the ports that lines name; refuses a port that two lines name. */
static int listed_mark(const struct mesh_plan_request *request,
		       const struct mesh_topology *topology, bool (*used)[MESH_PLAN_PORTS_MAX])
{
	int i;

	for (i = 0; i < 2 * topology->num_cables; i++) {
		const struct mesh_cable_end *end = &topology->cables[i / 2].ends[i % 2];

		if (end->port < 0)
			continue;
		if (used[end->node][end->port]) {
			mesh_warn("two cables end at port %s of %s",
				  request->nodes[end->node].ports[end->port],
				  request->nodes[end->node].name);
			return -EINVAL;
		}
		used[end->node][end->port] = true;
	}
	return 0;
}

/* Gives each end without a port the first free one of its node. */
static int listed_fill(struct mesh_plan_request *request, struct mesh_topology *topology)
{
	bool(*used)[MESH_PLAN_PORTS_MAX] = calloc((size_t)request->num_nodes, sizeof(*used));
	int i, port, ret;

	if (!used)
		return -ENOMEM;
	ret = listed_mark(request, topology, used);
	for (i = 0; !ret && i < 2 * topology->num_cables; i++) {
		struct mesh_cable_end *end = &topology->cables[i / 2].ends[i % 2];

		if (end->port >= 0)
			continue;
		for (port = 0; port < MESH_PLAN_PORTS_MAX && used[end->node][port]; port++)
			;
		if (port == MESH_PLAN_PORTS_MAX) {
			mesh_warn("%s: more than %d ports", request->nodes[end->node].name,
				  MESH_PLAN_PORTS_MAX);
			ret = -EINVAL;
			break;
		}
		used[end->node][port] = true;
		end->port = port;
		if (port >= request->nodes[end->node].num_ports &&
		    !request->nodes[end->node].ports_named)
			ret = ports_name(&request->nodes[end->node], port + 1);
	}
	free(used);
	return ret;
}

/* True if the user has named every port. */
static void listed_named(struct mesh_plan_request *request)
{
	bool named = true;
	int i;

	for (i = 0; i < request->cables->num_cables; i++)
		named = named && *request->cables->cables[i].ends[0].port &&
			*request->cables->cables[i].ends[1].port;
	for (i = 0; named && i < request->num_nodes; i++)
		request->nodes[i].ports_named = true;
}

static int listed_make(struct mesh_plan_request *request, struct mesh_topology *topology)
{
	int ret = mesh_topology_init(topology, request->num_nodes);

	if (!ret)
		ret = listed_add(request, topology);
	if (!ret)
		ret = listed_fill(request, topology);
	if (!ret)
		ret = ports_check(request, topology);
	if (!ret)
		listed_named(request);
	return ret;
}

/* ---- both ------------------------------------------------------------------------------- */

int mesh_plan_cables_make(struct mesh_plan_request *request, struct mesh_plan *plan)
{
	int ret;

	if (request->shape.kind == MESH_SHAPE_CABLES)
		return listed_make(request, &plan->topology);
	ret = mesh_shape_build(&request->shape, request->num_nodes, &plan->topology);
	return ret ? ret : ports_check(request, &plan->topology);
}
