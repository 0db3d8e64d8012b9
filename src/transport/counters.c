/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c - where a path and the process count. */
#include "base/clock.h"
#include "transport/comm.h"
#include "transport/counters.h"
#include "transport/node.h"

void mesh_counters_open(struct mesh_node *node)
{
	mesh_lock_assert_held(&node->lock);
	/* Without a page everything works; it was said why there is none. */
	mesh_stats_file_open(node->config.stats_dir, node->node_id, node->name, &node->stats);
	node->counters = node->stats.page ? &node->stats.page->header.counters
					  : &node->own_counters;
}

void mesh_counters_close(struct mesh_node *node)
{
	mesh_lock_assert_held(&node->lock);
	node->counters = &node->own_counters;
	mesh_stats_file_close(&node->stats);
}

void mesh_path_counters_open(struct mesh_path *path)
{
	struct mesh_node *node = path->comm->node;
	const struct mesh_stats_link link = {
		.local = path->domain->nic->source,
		.remote = path->peer->address.addr,
		.nic = path->domain->nic->netdev,
		.peer = path->comm->peer_name,
		.sending = path->comm->sending,
		.provider = path->domain->provider,
	};

	mesh_lock_assert_held(&node->lock);
	path->counters = NULL;
	if (node->stats.page)
		path->counters = mesh_stats_open(node->stats.page, &link, mesh_clock_wall_ms());
	if (!path->counters)
		path->counters = &path->own_counters;
}

void mesh_path_counters_close(struct mesh_path *path)
{
	struct mesh_node *node = path->comm->node;
	struct mesh_counters *counters;

	mesh_lock_assert_held(&node->lock);
	/* An operation that never ended may still complete: it counts at home then. */
	mesh_lock_take(&path->comm->lock);
	counters = path->counters;
	path->counters = &path->own_counters;
	mesh_lock_release(&path->comm->lock);
	if (counters != &path->own_counters)
		mesh_stats_close(node->stats.page, counters);
}

void mesh_comm_count_error(struct mesh_comm *comm, const struct mesh_remote *remote)
{
	int i;

	mesh_lock_assert_held(&comm->lock);
	for (i = 0; i < comm->num_paths; i++)
		if (comm->paths[i].remote == remote)
			mesh_count(&comm->paths[i].counters->errors, 1);
}
