/* SPDX-License-Identifier: Apache-2.0 */
/* path_late.c - a path that a comm did not have when NCCL got it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "control/process.h"
#include "transport/counters.h"
#include "transport/path_direct.h"
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

/* Opens the path; in the comm's eyes it is like its first one. */
MESH_HOLDS(process)
static int path_open(struct mesh_path *path, struct mesh_comm *comm, struct mesh_peer *peer)
{
	const struct mesh_path *first = &comm->paths[0];
	int ret;

	path->comm = comm;
	path->sink.message = first->sink.message;
	path->sink.written = first->sink.written;
	path->waiter.resume = first->waiter.resume;
	ret = mesh_random(&path->sink.token, sizeof(path->sink.token));
	if (ret)
		return ret;
	ret = mesh_path_direct_open(path, peer);
	if (ret)
		return ret;
	path->user.ops = first->user.ops;
	mesh_peer_user_add(peer, &path->user);
	mesh_path_counters_open(path);
	return 0;
}

MESH_HOLDS(process)
static void path_undo(struct mesh_path *path)
{
	mesh_path_close(path);
	mesh_path_counters_close(path);
	mesh_peer_user_remove(mesh_path_peer(path), &path->user);
	memset(path, 0, sizeof(*path));
}

int mesh_comm_path_add_late(struct mesh_comm *comm, struct mesh_peer *peer)
{
	struct mesh_path *path = &comm->paths[comm->num_paths];
	int ret;

	mesh_process_assert_locked(comm->process);
	if (comm->num_paths == comm->max_paths || comm->num_paths < comm->wanted_paths)
		return -ENOSPC;
	if (comm->paths[0].through_relay)
		return -EOPNOTSUPP; /* the peers of its paths are relays */
	ret = path_open(path, comm, peer);
	if (ret)
		return ret;
	if (!path->may_resume || path->segment_max < comm->segment_max ||
	    (path->immediate_bits < 64 && !comm->announces) ||
	    path->payload_max < comm->eager_limit || peer->eager_limit < comm->eager_limit)
		/* A message keeps the size of its segments, what is kept, and how it travels. */
		ret = -EOPNOTSUPP;
	else if (comm->sending)
		ret = grants_make_room(comm);
	if (!ret)
		ret = mesh_registrations_extend(comm);
	if (ret)
		path_undo(path);
	return ret;
}
