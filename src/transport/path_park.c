/* SPDX-License-Identifier: Apache-2.0 */
/* path_park.c - a comm leaves a path whose link is taken out of use, if it has another one. */
#include "transport/path_park.h"
#include "transport/path_state.h"
#include "transport/send.h"

void mesh_path_park(struct mesh_path *path, bool parked)
{
	struct mesh_comm *comm = path->comm;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	path->parked = parked;
	mesh_comm_up_learn(comm);
	if (comm->sending && !comm->opener)
		mesh_send_push(comm); /* it may have waited for room on this path alone */
	mesh_comm_unlock(comm);
}

bool mesh_path_is_idle(const struct mesh_path *path)
{
	bool idle;

	mesh_process_assert_locked(path->comm->process);
	mesh_comm_lock(path->comm);
	idle = !path->carries && !path->unfinished;
	mesh_comm_unlock(path->comm);
	return idle;
}
