/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c - where a path counts. */
#include "base/clock.h"
#include "control/process.h"
#include "transport/comm.h"
#include "transport/counters.h"

void mesh_path_counters_open(struct mesh_path *path)
{
	struct mesh_process *process = path->comm->process;
	const struct mesh_path_ends ends = mesh_path_describe(path);
	const struct mesh_stats_link link = {
		.local = *ends.local,
		.remote = *ends.remote,
		.nic = ends.nic,
		.peer = path->comm->peer_name,
		.sending = path->comm->sending,
		.provider = ends.provider,
		.via = ends.via,
	};
	struct mesh_counters *counters = NULL;

	mesh_process_assert_locked(process);
	if (process->stats.page)
		counters = mesh_stats_open(process->stats.page, &link, mesh_clock_wall_ms());
	mesh_comm_lock(path->comm);
	path->counters = counters ? counters : &path->comm->unlisted;
	mesh_comm_unlock(path->comm);
}

void mesh_path_counters_close(struct mesh_path *path)
{
	struct mesh_process *process = path->comm->process;
	struct mesh_counters *counters;

	mesh_process_assert_locked(process);
	/* An operation that never ended may still complete: then it counts as unlisted. */
	mesh_comm_lock(path->comm);
	counters = path->counters;
	path->counters = &path->comm->unlisted;
	mesh_comm_unlock(path->comm);
	if (counters != &path->comm->unlisted)
		mesh_stats_close(process->stats.page, counters);
}

void mesh_path_counters_state(struct mesh_path *path)
{
	mesh_comm_assert_locked(path->comm);
	if (path->state == MESH_PATH_SUSPECT)
		mesh_count(&path->counters->losses, 1);
	if (path->counters != &path->comm->unlisted)
		mesh_stats_down_set(path->counters, path->state != MESH_PATH_UP);
}

void mesh_path_counters_parked(struct mesh_path *path)
{
	mesh_comm_assert_locked(path->comm);
	if (path->counters && path->counters != &path->comm->unlisted)
		mesh_stats_parked_set(path->counters,
				      path->tier == MESH_TIER_DRAINED && !path->carries
					      ? MESH_STATS_DRAINED
					      : MESH_STATS_IN_USE);
}
