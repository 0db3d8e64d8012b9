/* SPDX-License-Identifier: Apache-2.0 */
/* comm_open.c - makes a comm, adds paths to it, and frees it; what comes for it. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "control/link.h"
#include "control/process.h"
#include "nic/path_choice.h"
#include "transport/comm_life.h"
#include "transport/data.h"
#include "transport/path_life.h"
#include "wire/handle.h"
#include "wire/stats.h"

/* ---- a path as the user of a peer ---------------------------------------------------------- */

MESH_HOLDS(process)
static bool path_misses(struct mesh_peer_user *user)
{
	struct mesh_comm *comm = mesh_path_of_user(user)->comm;
	bool misses;

	mesh_comm_lock(comm);
	/*
	 * One that waits for accept() does not count: strangers can cause any number of these.
	 * After the peer's end, what NCCL has posted may still be missing.
	 */
	misses = comm->use < MESH_COMM_WAITS && !comm->closing &&
		 (!mesh_comm_peer_is_over(comm) ||
		  (!comm->error && mesh_requests_done(comm) != comm->next_seq));
	mesh_comm_unlock(comm);
	return misses;
}

MESH_HOLDS(process)
static bool path_resumes(struct mesh_peer_user *user)
{
	return mesh_path_is_resumed(mesh_path_of_user(user));
}

MESH_HOLDS(process)
MESH_HOLDS(domain)
static void path_lost(struct mesh_peer_user *user)
{
	struct mesh_path *path = mesh_path_of_user(user);
	bool returns = mesh_path_is_resumed(path) && !mesh_path_has_relay(path);

	mesh_path_lost(path);
	if (returns)
		mesh_rejoin_want(path);
}

MESH_HOLDS(process)
static bool path_waits(struct mesh_peer_user *user)
{
	return mesh_path_is_waited_for(mesh_path_of_user(user));
}

MESH_HOLDS(process)
static bool path_is_open(struct mesh_peer_user *user)
{
	return mesh_path_is(mesh_path_of_user(user), MESH_PATH_SUSPECT);
}

MESH_HOLDS(process)
static void path_drained(struct mesh_peer_user *user)
{
	mesh_comm_tiers_renew(mesh_path_of_user(user)->comm);
}

void mesh_comm_tiers_renew(struct mesh_comm *comm)
{
	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	mesh_comm_tiers_learn(comm);
	if (comm->sending && !comm->opener)
		mesh_send_push(comm); /* it may have waited for room on one path alone */
	mesh_comm_unlock(comm);
	mesh_attach_relays_leave(comm);
	mesh_reroute_soon(comm);
}

const struct mesh_peer_user_ops mesh_path_user_ops = {
	.answers =
		{
			[MESH_USER_MISSES] = path_misses,
			[MESH_USER_RESUMES] = path_resumes,
			[MESH_USER_WAITS] = path_waits,
			[MESH_USER_IS_QUIET] = mesh_path_is_quiet,
			[MESH_USER_IS_OPEN] = path_is_open,
		},
	.lost = path_lost,
	.fenced = mesh_path_fenced,
	.drained = path_drained,
};

/* Each part of a comm's memory begins at a multiple of so many bytes. */
#define COMM_PART_ALIGN _Alignof(max_align_t)

/* ---- opening ------------------------------------------------------------------------------- */

/* True if this node has RDMA, be it on a NIC whose link was down. */
MESH_HOLDS(process)
static bool node_has_rdma(const struct mesh_process *process)
{
	const struct mesh_nic *nics = process->table.nics;
	bool has = false;
	int i;

	for (i = 0; i < process->table.num_nics; i++)
		has |= nics[i].verdict == MESH_NIC_LINK_DOWN && *nics[i].rdma.device;
	has &= mesh_provider_id_parse(process->config.provider) != MESH_PROVIDER_TCP;
	return has || mesh_endpoints_have_rdma(process->endpoints, process->num_endpoints);
}

/* A small message may take any path, so it fits all of them, and those that may come later. */
MESH_HOLDS(process)
static void eager_limit_fit(struct mesh_comm *comm, const struct mesh_peer *peer)
{
	enum mesh_provider_id provider = node_has_rdma(comm->process) ? MESH_PROVIDER_VERBS_RXM
								      : peer->domain->provider;
	size_t limit = mesh_process_eager_limit(comm->process, provider);

	if (limit > peer->eager_limit)
		limit = peer->eager_limit;
	if (comm->eager_limit > limit)
		comm->eager_limit = limit;
}

int mesh_comm_path_add(struct mesh_comm *comm, struct mesh_peer *peer, bool relay)
{
	struct mesh_path *path = &comm->paths[comm->num_paths];
	int ret;

	mesh_process_assert_locked(comm->process);
	if (comm->num_paths == comm->wanted_paths)
		return -ENOSPC;
	ret = mesh_path_open(path, comm, peer, relay);
	if (ret)
		return ret;
	comm->reorders |= relay || !path->is_acknowledged;
	eager_limit_fit(comm, peer);
	comm->num_paths++;
	mesh_comm_paths_learn(comm);
	return 0;
}

/*
 * How many paths the comm has room for: some may join late. One over relays begins with a single
 * route.
 */
static int paths_max(const struct mesh_comm_wish *wish)
{
	int max = wish->num_paths + MESH_LATE_PATHS;

	return max < MESH_PATHS_MAX && !wish->relayed_to ? max : MESH_PATHS_MAX;
}

/* One piece: a comm that sends or one that receives, its paths, and the grants that it may hold. */
static struct mesh_comm *comm_alloc(bool sending, int num_paths, int num_grant_paths)
{
	size_t paths_at, grants_at, size;
	struct mesh_comm *comm;

	paths_at = sending ? offsetof(struct mesh_comm, send) + sizeof(comm->send)
			   : offsetof(struct mesh_comm, receive) + sizeof(comm->receive);
	paths_at = (paths_at + COMM_PART_ALIGN - 1) / COMM_PART_ALIGN * COMM_PART_ALIGN;
	grants_at = paths_at + (size_t)num_paths * sizeof(struct mesh_path);
	size = grants_at;
	if (sending)
		size += MESH_COMM_REQUESTS * mesh_held_grant_bytes(num_grant_paths);
	comm = calloc(1, size);
	if (!comm)
		return NULL;
	comm->paths = (struct mesh_path *)((char *)comm + paths_at);
	if (sending)
		comm->send.grants = (char *)comm + grants_at;
	return comm;
}

MESH_NOT_ANALYSED
int mesh_comm_open(const void *owner, struct mesh_peer *peer, const struct mesh_comm_wish *wish,
		   struct mesh_comm **comm)
{
	struct mesh_process *process = peer->process;
	int max_paths = paths_max(wish), ret;
	struct mesh_comm *opened;

	mesh_process_assert_locked(process);
	opened = comm_alloc(wish->handle, max_paths, wish->num_paths);
	if (!opened)
		return -ENOMEM;
	mesh_lock_init(&opened->lock);
	opened->process = process;
	opened->owner = owner;
	opened->sending = wish->handle;
	opened->message_sent = mesh_message_sent;
	opened->key = wish->key;
	opened->wanted_paths = wish->num_paths;
	opened->max_paths = max_paths;
	if (wish->handle) {
		opened->send.grant_room = wish->num_paths;
		opened->send.listen_id = wish->handle->listen_id;
		mesh_handle_encode(wish->handle, opened->send.handle);
		opened->cookie = wish->handle->cookie;
	}
	snprintf(opened->peer_name, sizeof(opened->peer_name), "%s",
		 wish->relayed_to ? wish->relayed_to : peer->name);
	opened->eager_limit = SIZE_MAX;
	LIST_INIT(&opened->registrations);
	ret = mesh_comm_path_add(opened, peer, wish->relayed_to);
	if (ret) {
		mesh_comm_memory_free(opened);
		return ret;
	}
	LIST_INSERT_HEAD(&process->comms, opened, entry);
	mesh_count_event(&process->counters->comms_opened);
	*comm = opened;
	return 0;
}

/* ---- freeing --------------------------------------------------------------------------------- */

void mesh_comm_memory_free(struct mesh_comm *comm)
{
	int i;

	for (i = 0; comm->sending && i < comm->send.num_blocks; i++)
		free(comm->send.blocks[i]);
	if (comm->sending) {
		free(comm->send.copies);
		free(comm->send.far_copies);
		free(comm->send.own_grants);
		free(comm->send.lost);
	} else {
		free(comm->receive.marks);
		free(comm->receive.early_data);
	}
	free(comm->loss);
	mesh_lock_destroy(&comm->lock);
	free(comm);
}

void mesh_comm_free(struct mesh_comm *comm)
{
	uint32_t unfinished;
	int i;

	mesh_process_assert_locked(comm->process);
	/*
	 * Read before the paths close, which waits for the thread that polls. The callback of an
	 * operation that completes later may still be running, with a pointer to the comm.
	 */
	mesh_comm_lock(comm);
	unfinished = comm->unfinished;
	mesh_comm_unlock(comm);
	for (i = 0; i < comm->num_paths; i++)
		mesh_path_close(&comm->paths[i]);
	LIST_REMOVE(comm, entry);
	if (comm->seeker)
		*comm->seeker = NULL;
	mesh_engine_timer_cancel(&comm->process->engine, &comm->timer);
	mesh_questions_end(comm);
	mesh_comm_asked_set(comm, false);
	if (unfinished) {
		/* The provider still holds pointers into the comm, and may never release them. */
		mesh_info("a connection with node %s keeps %u operations that never ended; its "
			  "memory stays allocated",
			  comm->peer_name, unfinished);
		return;
	}
	mesh_comm_memory_free(comm);
}

/* ---- frames --------------------------------------------------------------------------------- */

/* A frame may come over each path of the comm, and names the comm by the id that it has there. */
void mesh_comm_frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_path *over = mesh_comm_path_find(peer, frame->to_comm);

	if (!over) { /* we have freed it */
		if (frame->header.type == MESH_FRAME_RESUME ||
		    frame->header.type == MESH_FRAME_HAVE)
			mesh_count_event(&peer->process->counters->refused);
		return;
	}
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_CLOSE:
		mesh_comm_close_came(over->comm, &frame->close);
		if (frame->close.closed)
			mesh_comm_linger_check(over->comm); /* may free it */
		break;
	case MESH_FRAME_ASK:
		mesh_stall_asked(over->comm, &frame->ask);
		break;
	case MESH_FRAME_RESUME:
		if (over->comm->sending)
			mesh_paths_left(over->comm, &frame->resume);
		else
			mesh_resume_came(over, &frame->resume);
		break;
	case MESH_FRAME_HAVE:
		mesh_have_came(over->comm, &frame->have);
		break;
	default:
		break;
	}
}
