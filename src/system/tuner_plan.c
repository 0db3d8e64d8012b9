/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_plan.c - what the tuner goes by: NCCL_MESH_TUNER, and the plan in NCCL_MESH_PLAN. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/log.h"
#include "system/sysfs.h"
#include "system/tuner_plan.h"

/* Bytes; 64 nodes, fully meshed, with long names, are a tenth of it. */
#define PLAN_FILE_MAX ((size_t)4 << 20)
/* Of two plans that have no cables in common: rings only. */
#define DIGEST_RING UINT64_C(0x676e6972)

/* ---- the graph ------------------------------------------------------------------------------- */

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

bool mesh_plan_graph_has_ring(const struct mesh_plan_graph *graph)
{
	int i;

	for (i = 0; i < graph->num_nodes; i++)
		if (!graph->cables[i][(i + 1) % graph->num_nodes])
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

/* ---- settings -------------------------------------------------------------------------------- */

static void graph_load(const char *path, struct mesh_plan_graph *graph)
{
	const char *name = strrchr(path, '/') + 1; /* it begins with one */
	char *folder = strndup(path, (size_t)(name - path)), *text = malloc(PLAN_FILE_MAX);
	struct mesh_sysfs root = {.fd = -1};
	int ret, line = 0;

	ret = folder && text ? mesh_sysfs_open(folder, &root) : -ENOMEM;
	if (!ret)
		ret = mesh_sysfs_read(&root, text, PLAN_FILE_MAX, "%s", name);
	mesh_sysfs_close(&root);
	free(folder);
	if (ret)
		mesh_warn("NCCL_MESH_PLAN: cannot read %s: %s; going on without a plan, with which "
			  "nodes that have it refuse to connect",
			  path, strerror(-ret));
	else if (mesh_plan_graph_parse(text, graph, &line))
		mesh_warn("NCCL_MESH_PLAN: line %d of %s is not \"NODE[:PORT] NODE[:PORT]\" of at "
			  "most %d nodes; going on without a plan, with which nodes that have it "
			  "refuse to connect",
			  line, path, MESH_PLAN_NODES_MAX);
	free(text);
}

void mesh_tuner_plan_load(const struct mesh_config *config, struct mesh_tuner_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	plan->mode = !strcmp(config->tuner, "ring")  ? MESH_TUNER_RING
		     : !strcmp(config->tuner, "off") ? MESH_TUNER_OFF
						     : MESH_TUNER_AUTO;
	if (plan->mode == MESH_TUNER_RING)
		plan->digest = DIGEST_RING;
	if (plan->mode != MESH_TUNER_AUTO || *config->plan != '/')
		return;
	graph_load(config->plan, &plan->graph);
	if (plan->graph.num_nodes && !mesh_plan_graph_is_full(&plan->graph))
		plan->digest = mesh_plan_graph_digest(&plan->graph);
}
