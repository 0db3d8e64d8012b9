/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_plan.c - what the tuner goes by: NCCL_MESH_TUNER, and the plan in NCCL_MESH_PLAN. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "system/sysfs.h"
#include "system/tuner_plan.h"

/* Bytes; 64 nodes, fully meshed, with long names, are a tenth of it. */
#define PLAN_FILE_MAX ((size_t)4 << 20)
/* Of two plans that have no cables in common: rings only. */
#define DIGEST_RING UINT64_C(0x676e6972)

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
