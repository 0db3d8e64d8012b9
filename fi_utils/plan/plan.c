/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - a mesh before it is built: cables, addresses, and the order of ranks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "common/subnet.h"
#include "nic/addr.h"
#include "plan/cable_list.h"
#include "plan/plan.h"
#include "plan/rank_order.h"
#include "plan/subnet_range.h"
#include "plan/topology.h"

void mesh_plan_nodes_free(struct mesh_plan_node *nodes, int num_nodes)
{
	int i;

	for (i = 0; nodes && i < num_nodes; i++)
		free(nodes[i].ports);
	free(nodes);
}

void mesh_plan_free(struct mesh_plan *plan)
{
	mesh_plan_nodes_free(plan->nodes, plan->topology.num_nodes);
	mesh_topology_free(&plan->topology);
	mesh_rank_order_free(&plan->order);
	free(plan->addresses);
	free(plan->sites);
	memset(plan, 0, sizeof(*plan));
}

int mesh_plan_port_add(struct mesh_plan_node *node, const char *name)
{
	char(*ports)[IF_NAMESIZE];
	int i;

	if (!mesh_port_name_valid(name)) {
		mesh_warn("%s: \"%.40s\" is not a valid interface name", node->name, name);
		return -EINVAL;
	}
	for (i = 0; i < node->num_ports; i++) {
		if (strcmp(node->ports[i], name))
			continue;
		mesh_warn("%s: port %s is named twice", node->name, name);
		return -EINVAL;
	}
	if (node->num_ports == MESH_PLAN_PORTS_MAX) {
		mesh_warn("%s: more than %d ports", node->name, MESH_PLAN_PORTS_MAX);
		return -EINVAL;
	}
	ports = realloc(node->ports, ((size_t)node->num_ports + 1) * sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	snprintf(ports[node->num_ports++], IF_NAMESIZE, "%s", name);
	node->ports = ports;
	return 0;
}

struct mesh_addr mesh_plan_addr(const struct mesh_plan *plan, int cable, int end)
{
	struct mesh_addr subnet;

	if (plan->addresses)
		return plan->addresses[cable][end];
	subnet = mesh_subnets_get(&plan->subnets, (uint64_t)cable);
	return mesh_subnet_host(&subnet, end);
}

struct mesh_addr mesh_plan_subnet(const struct mesh_plan *plan, int cable)
{
	if (plan->addresses)
		return mesh_subnet_of(&plan->addresses[cable][0]);
	return mesh_subnets_get(&plan->subnets, (uint64_t)cable);
}

const char *mesh_plan_node_name(const struct mesh_plan *plan, int cable, int end)
{
	return plan->nodes[plan->topology.cables[cable].ends[end].node].name;
}

const char *mesh_plan_port_name(const struct mesh_plan *plan, int cable, int end)
{
	const struct mesh_cable_end *at = &plan->topology.cables[cable].ends[end];

	return plan->nodes[at->node].ports[at->port];
}

const char *mesh_plan_cable_text(const struct mesh_plan *plan, int cable, char *text)
{
	if (plan->halves > 1)
		snprintf(text, MESH_PLAN_CABLE_TEXT_MAX, "%d.%d", cable / plan->halves + 1,
			 cable % plan->halves + 1);
	else
		snprintf(text, MESH_PLAN_CABLE_TEXT_MAX, "%d", cable + 1);
	return text;
}

int mesh_plan_site_crossings(const struct mesh_plan *plan)
{
	int num = plan->topology.num_nodes, rank, crossings = 0;

	for (rank = 0; rank < num; rank++)
		crossings += plan->sites[plan->order.nodes[rank]] !=
			     plan->sites[plan->order.nodes[(rank + 1) % num]];
	return crossings;
}

int64_t mesh_plan_pairs_apart(const struct mesh_plan *plan)
{
	int64_t num = plan->topology.num_nodes, apart = num * (num - 1) / 2;
	struct mesh_neighbours neighbours;
	int node, i, k;

	if (mesh_neighbours_load(&plan->topology, &neighbours))
		return -1;
	for (node = 0; node < num; node++) {
		for (i = neighbours.first[node]; i < neighbours.first[node + 1]; i++) {
			for (k = neighbours.first[node]; k < i; k++)
				if (neighbours.nodes[k] == neighbours.nodes[i])
					break;
			/* Each joined pair once, however many cables join it. */
			apart -= k == i && neighbours.nodes[i] > node;
		}
	}
	mesh_neighbours_free(&neighbours);
	return apart;
}
