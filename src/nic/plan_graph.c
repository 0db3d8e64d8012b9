/* SPDX-License-Identifier: Apache-2.0 */
/* plan_graph.c - the cables of a whole mesh, as the user has written them down. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "nic/plan_graph.h"

static const char blanks[] = " \t\r";

/* The number of the node whose name is @len bytes at @name, a new one if need be, or an error. */
static int node_number(struct mesh_plan_graph *graph, const char *name, size_t len)
{
	int i;

	if (!len || len >= MESH_PLAN_NODE_NAME_MAX)
		return -EINVAL;
	for (i = 0; i < graph->num_nodes; i++)
		if (strlen(graph->names[i]) == len && !memcmp(graph->names[i], name, len))
			return i;
	if (i == MESH_PLAN_NODES_MAX)
		return -E2BIG;
	memcpy(graph->names[i], name, len);
	graph->num_nodes++;
	return i;
}

/* One line, which ends at @end. */
static int line_parse(struct mesh_plan_graph *graph, const char *at, const char *end)
{
	int nodes[2], num = 0;
	size_t len;

	for (;;) {
		at += strspn(at, blanks);
		if (at >= end)
			break;
		len = strcspn(at, " \t\r\n#");
		if (num == 2)
			return -EINVAL;
		/* A port behind the colon does not matter here. */
		nodes[num] = node_number(graph, at, strcspn(at, ": \t\r\n#"));
		if (nodes[num] < 0)
			return nodes[num];
		num++;
		at += len;
	}
	if (num < 2)
		return 0;
	if (nodes[0] == nodes[1] || graph->cables[nodes[0]][nodes[1]] == UINT8_MAX)
		return -EINVAL;
	graph->cables[nodes[0]][nodes[1]]++;
	graph->cables[nodes[1]][nodes[0]]++;
	return 0;
}

int mesh_plan_graph_parse(const char *text, struct mesh_plan_graph *graph, int *line)
{
	const char *newline;
	int ret = 0;

	memset(graph, 0, sizeof(*graph));
	for (*line = 1; *text && !ret; ++*line, text = newline + (*newline == '\n')) {
		newline = text + strcspn(text, "\n");
		ret = line_parse(graph, text, text + strcspn(text, "\n#"));
	}
	--*line;
	if (ret)
		memset(graph, 0, sizeof(*graph));
	return ret;
}

bool mesh_plan_graph_is_full(const struct mesh_plan_graph *graph)
{
	int i, j;

	for (i = 0; i < graph->num_nodes; i++)
		for (j = 0; j < i; j++)
			if (!graph->cables[i][j])
				return false;
	return true;
}

uint64_t mesh_plan_graph_digest(const struct mesh_plan_graph *graph)
{
	uint64_t digest = MESH_HASH_START ^ (uint64_t)graph->num_nodes;
	int i, j;

	for (i = 0; i < graph->num_nodes; i++)
		for (j = 0; j < i; j++)
			digest = mesh_hash_add(digest, &graph->cables[i][j], 1);
	return digest ? digest : 1;
}
