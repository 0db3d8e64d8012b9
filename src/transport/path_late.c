/* SPDX-License-Identifier: Apache-2.0 */
/* path_late.c - a path that a comm did not have when NCCL got it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/process.h"
#include "transport/path_late.h"
#include "transport/registration.h"

/* Most comms never get such a path: until then they have no room for its targets. */
static int grants_make_room(struct mesh_comm *comm)
{
	size_t before = mesh_held_grant_bytes(comm->send.grant_room);
	size_t bytes = mesh_held_grant_bytes(comm->max_paths);
	char *grants;
	int i;

	if (comm->send.grant_room == comm->max_paths)
		return 0;
	grants = calloc(MESH_COMM_REQUESTS, bytes);
	if (!grants)
		return -ENOMEM;
	mesh_comm_lock(comm);
	for (i = 0; i < MESH_COMM_REQUESTS; i++)
		memcpy(grants + (size_t)i * bytes, (char *)comm->send.grants + (size_t)i * before,
		       before);
	comm->send.grants = comm->send.own_grants = grants;
	comm->send.grant_room = comm->max_paths;
	mesh_comm_unlock(comm);
	return 0;
}

int mesh_comm_path_add_late(struct mesh_comm *comm, struct mesh_peer *peer)
{
	struct mesh_path *path = &comm->paths[comm->num_paths];
	int ret;

	mesh_process_assert_locked(comm->process);
	if (comm->num_paths == comm->max_paths || comm->num_paths < comm->wanted_paths)
		return -ENOSPC;
	if (comm->relayed)
		return -EOPNOTSUPP; /* the peers of its paths are relays */
	ret = mesh_path_open(path, comm, peer);
	if (ret)
		return ret;
	if (path->segment_max < comm->segment_max ||
	    (path->immediate_bits < 64 && !comm->announces) ||
	    path->payload_max < comm->eager_limit || peer->eager_limit < comm->eager_limit)
		/* A message keeps the size of its segments, what is kept, and how it travels. */
		ret = -EOPNOTSUPP;
	else if (comm->sending)
		ret = grants_make_room(comm);
	if (!ret)
		ret = mesh_registrations_extend(comm);
	if (ret) {
		mesh_path_close(path);
		memset(path, 0, sizeof(*path));
	}
	return ret;
}
