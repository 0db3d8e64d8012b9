/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - asks the neighbours, and judges the links as `fi_mesh neighbours` does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check/checks.h"
#include "check/context.h"
#include "common/finding.h"
#include "neighbours/show.h"
#include "peer/search.h"
#include "peer/self.h"

/*
 * Most nodes are checked before anything runs at the other ends: silence is no fault here. But a
 * NIC that cannot ask has one.
 */
static void link_judge(const struct mesh_asking *asking, int index, struct check_result *result)
{
	const struct mesh_asked *asked = &asking->asked[index];
	const char *netdev = asking->links[index].about.netdev;
	struct mesh_asked_cable cable;

	mesh_cable_find(asking, index, &cable);
	if (asked->error || cable.far >= MESH_CABLE_LOOP) {
		neighbours_judge(asking, index, result);
		return;
	}
	check_say(result, CHECK_UNKNOWN, "no node answers on %s: its other end is not checked",
		  netdev);
	check_fix(result, "run `fi_mesh serve` (or a job) on the node at its other end");
}

static void links_judge(const struct peer_self *node, struct check_result *result)
{
	struct mesh_asking *asking = calloc(1, sizeof(*asking));
	struct mesh_neighbour_self self;
	int i, ret = asking ? peer_neighbours_ask(node, &self, asking) : -ENOMEM;

	if (ret)
		check_say(result, CHECK_UNKNOWN, "the neighbours cannot be asked: %s",
			  strerror(-ret));
	for (i = 0; !ret && i < asking->num_links; i++)
		link_judge(asking, i, result);
	if (asking)
		mesh_asking_finish(asking);
	free(asking);
}

void check_neighbours(const struct check_context *context, struct check_result *result)
{
	struct peer_self node;
	int ret;

	if (!context->config.neighbours) {
		check_say(result, CHECK_PASS, "not asked: NCCL_MESH_NEIGHBOURS=off");
		return;
	}
	if (strcmp(context->files.root, "/")) {
		check_say(result, CHECK_UNKNOWN, "a recorded tree has no neighbours");
		return;
	}
	ret = peer_self_open(&node);
	if (ret) {
		check_say(result, CHECK_UNKNOWN, "the NICs cannot be read: %s", strerror(-ret));
		return;
	}
	links_judge(&node, result);
	peer_self_close(&node);
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "no NIC carries the mesh");
}
