/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - which port of which node a cable joins. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "plan/topology.h"

int mesh_topology_init(struct mesh_topology *topology, int num_nodes)
{
	if (num_nodes < 1 || num_nodes > MESH_TOPOLOGY_NODES_MAX) {
		mesh_warn("a mesh has 1 to %d nodes, not %d", MESH_TOPOLOGY_NODES_MAX, num_nodes);
		return -EINVAL;
	}
	*topology = (struct mesh_topology){.num_nodes = num_nodes};
	return 0;
}

void mesh_topology_free(struct mesh_topology *topology)
{
	free(topology->cables);
	memset(topology, 0, sizeof(*topology));
}

int mesh_topology_add(struct mesh_topology *topology, struct mesh_cable_end a,
		      struct mesh_cable_end b)
{
	int num_nodes = topology->num_nodes;
	struct mesh_cable *cables;

	if (a.node < 0 || b.node < 0 || a.node >= num_nodes || b.node >= num_nodes ||
	    a.node == b.node) {
		mesh_warn("a cable joins two of the %d nodes, not %d and %d", num_nodes, a.node,
			  b.node);
		return -EINVAL;
	}
	if (topology->num_cables == MESH_TOPOLOGY_CABLES_MAX) {
		mesh_warn("more than %d cables", MESH_TOPOLOGY_CABLES_MAX);
		return -E2BIG;
	}
	cables = mesh_array_room(topology->cables, (size_t)topology->num_cables, sizeof(*cables));
	if (!cables)
		return -ENOMEM;
	topology->cables = cables;
	cables[topology->num_cables++] = a.node < b.node ? (struct mesh_cable){{a, b}}
							 : (struct mesh_cable){{b, a}};
	return 0;
}

/* An end with its index, so that the sort is stable. */
struct placed_end {
	struct mesh_cable_end end;
	int place; /* 2 * cable + end */
};

static int placed_end_compare(const void *left, const void *right)
{
	const struct placed_end *a = left, *b = right;

	if (a->end.node != b->end.node)
		return a->end.node < b->end.node ? -1 : 1;
	if (a->end.port != b->end.port)
		return a->end.port < b->end.port ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

int mesh_topology_number_ports(struct mesh_topology *topology)
{
	int i, port = 0, num_ends = 2 * topology->num_cables;
	struct placed_end *ends = calloc((size_t)num_ends + 1, sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	for (i = 0; i < num_ends; i++)
		ends[i] = (struct placed_end){topology->cables[i / 2].ends[i % 2], i};
	qsort(ends, (size_t)num_ends, sizeof(*ends), placed_end_compare);
	for (i = 0; i < num_ends; i++) {
		port = i && ends[i].end.node == ends[i - 1].end.node ? port + 1 : 0;
		topology->cables[ends[i].place / 2].ends[ends[i].place % 2].port = port;
	}
	free(ends);
	return 0;
}

int mesh_topology_max_degree(const struct mesh_topology *topology)
{
	int *degrees = calloc((size_t)topology->num_nodes + 1, sizeof(*degrees));
	int i, max = 0;

	for (i = 0; degrees && i < 2 * topology->num_cables; i++) {
		int node = topology->cables[i / 2].ends[i % 2].node;

		if (++degrees[node] > max)
			max = degrees[node];
	}
	free(degrees);
	return max;
}

/* Counts each node's cables in first[], as the start of the following node. */
static void neighbours_count(const struct mesh_topology *topology, int *first)
{
	int i;

	for (i = 0; i < 2 * topology->num_cables; i++)
		first[topology->cables[i / 2].ends[i % 2].node + 1]++;
	for (i = 0; i < topology->num_nodes; i++)
		first[i + 1] += first[i];
}

int mesh_neighbours_load(const struct mesh_topology *topology, struct mesh_neighbours *neighbours)
{
	size_t num_entries = 2 * (size_t)topology->num_cables;
	struct mesh_neighbours n = {
		.first = calloc((size_t)topology->num_nodes + 2, sizeof(int)),
		.nodes = calloc(num_entries + 1, sizeof(int)),
		.cables = calloc(num_entries + 1, sizeof(int)),
		.num_entries = (int)num_entries,
	};
	int *fill = calloc((size_t)topology->num_nodes + 1, sizeof(int));
	size_t i;

	if (!n.first || !n.nodes || !n.cables || !fill) {
		free(fill);
		mesh_neighbours_free(&n);
		return -ENOMEM;
	}
	neighbours_count(topology, n.first);
	for (i = 0; i < num_entries; i++) {
		const struct mesh_cable *cable = &topology->cables[i / 2];
		int node = cable->ends[i % 2].node, at = n.first[node] + fill[node]++;

		n.nodes[at] = cable->ends[1 - i % 2].node;
		n.cables[at] = (int)(i / 2);
	}
	free(fill);
	*neighbours = n;
	return 0;
}

void mesh_neighbours_free(struct mesh_neighbours *neighbours)
{
	free(neighbours->first);
	free(neighbours->nodes);
	free(neighbours->cables);
	memset(neighbours, 0, sizeof(*neighbours));
}

bool mesh_neighbours_joined(const struct mesh_neighbours *neighbours, int a, int b)
{
	int i;

	for (i = neighbours->first[a]; i < neighbours->first[a + 1]; i++)
		if (neighbours->nodes[i] == b)
			return true;
	return false;
}

/* Marks all nodes that are connected to @start, directly or not. */
static void part_mark(const struct mesh_neighbours *neighbours, int start, int *seen, int *queue)
{
	int head = 0, tail = 0, i;

	seen[start] = 1;
	queue[tail++] = start;
	while (head < tail) {
		int node = queue[head++];

		for (i = neighbours->first[node]; i < neighbours->first[node + 1]; i++) {
			if (seen[neighbours->nodes[i]])
				continue;
			seen[neighbours->nodes[i]] = 1;
			queue[tail++] = neighbours->nodes[i];
		}
	}
}

int mesh_neighbours_parts(const struct mesh_neighbours *neighbours, int num_nodes, int without,
			  int *seen, int *queue)
{
	int node, parts = 0;

	memset(seen, 0, (size_t)num_nodes * sizeof(*seen));
	if (without >= 0)
		seen[without] = 1;
	for (node = 0; node < num_nodes; node++) {
		if (seen[node])
			continue;
		parts++;
		part_mark(neighbours, node, seen, queue);
	}
	return parts;
}
