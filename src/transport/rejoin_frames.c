/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rejoin_frames.c - JOIN and its answers: both ends of a comm give a path that was lost a new life.
 *
 * A comm may have ended at one end while no path led to the other one. So a receiving end that
 * waits asks over a new link whether the comm lives; REFUSE (ended) ends the waiting at both ends.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/peer_index.h"
#include "control/peer_send.h"
#include "control/process.h"
#include "transport/comm_end.h"
#include "transport/grants.h"
#include "transport/path_find.h"
#include "transport/path_late.h"
#include "transport/path_state.h"
#include "transport/receive.h"
#include "transport/rejoin_frames.h"
#include "transport/send.h"

/* What JOIN has as num_paths: one that joins late is behind those that CONNECT has named. */
static int paths_named(const struct mesh_comm *comm, const struct mesh_path *path)
{
	int index = (int)(path - comm->paths);

	return index < comm->wanted_paths ? comm->wanted_paths : index + 1;
}

MESH_HOLDS(process)
static void join_frame_send(const struct mesh_path *path, struct mesh_peer *peer)
{
	const struct mesh_comm *comm = path->comm;
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.connect.cookie = peer->process_id;
	frame.connect.comm_key = comm->key;
	frame.connect.comm = path->sink.id;
	frame.connect.path = (uint8_t)(path - comm->paths);
	frame.connect.num_paths = (uint8_t)paths_named(comm, path);
	frame.connect.asks = !comm->sending;
	if (comm->sending)
		frame.connect.token = path->sink.token;
	mesh_peer_send(peer, &frame, MESH_FRAME_JOIN);
}

void mesh_join_send(struct mesh_path *path, struct mesh_peer *peer)
{
	struct mesh_comm *comm = path->comm;
	struct mesh_peer *before = mesh_path_peer(path);
	bool ready;

	mesh_process_assert_locked(comm->process);
	if (!comm->sending) {
		join_frame_send(path, peer);
		return;
	}
	mesh_comm_lock(comm);
	ready = path->state == MESH_PATH_DOWN && !path->unfinished;
	mesh_comm_unlock(comm);
	if (!ready || mesh_random(&path->sink.token, sizeof(path->sink.token)) ||
	    mesh_path_move(path, peer))
		return;
	path->known = false;
	mesh_peer_user_remove(before, &path->user);
	mesh_peer_user_add(peer, &path->user);
	mesh_comm_lock(comm);
	mesh_path_state_set(path, MESH_PATH_JOINING);
	mesh_comm_unlock(comm);
	join_frame_send(path, peer);
}

void mesh_join_late(struct mesh_comm *comm, struct mesh_peer *peer)
{
	struct mesh_path *path = &comm->paths[comm->num_paths];

	mesh_process_assert_locked(comm->process);
	if (!mesh_comm_path_add_late(comm, peer))
		join_frame_send(path, peer);
}

/* Grants without a target for a new path do not count: the receiver sends each of them again. */
MESH_HOLDS(comm)
static void grants_renew(struct mesh_comm *comm, int num_paths)
{
	struct mesh_held_grant *held;
	uint32_t i;

	mesh_comm_assert_locked(comm);
	if (num_paths <= comm->send.grant_paths)
		return;
	comm->send.grant_paths = num_paths;
	for (i = 0; i < MESH_COMM_REQUESTS; i++) {
		held = mesh_comm_held_grant(comm, i);
		if (held->paths < num_paths)
			held->valid = false;
	}
}

/* Both ends know the path: whatever waited for one goes on. @late: it has never been up. */
MESH_HOLDS(process)
static void path_joined(struct mesh_path *path, uint32_t remote_id, uint32_t remote_token,
			bool late)
{
	struct mesh_comm *comm = path->comm;

	/* First: once the path is up, NCCL's thread may send over it. */
	mesh_comm_lock(comm);
	if (comm->sending)
		grants_renew(comm, (int)(path - comm->paths) + 1);
	mesh_comm_unlock(comm);
	mesh_path_accepted(path, remote_id, remote_token);
	mesh_comm_lock(comm);
	if (comm->sending) {
		mesh_send_push(comm);
	} else if (late) {
		mesh_receive_grants_resend(comm, comm->next_seq - 1);
	} else {
		mesh_grants_update(comm);
	}
	mesh_comm_unlock(comm);
	if (late)
		mesh_path_log(path);
	mesh_comm_recover_soon(comm);
}

/* The path that waits for the answer to a JOIN, or NULL. */
MESH_HOLDS(process)
static struct mesh_path *path_asked(struct mesh_peer *peer, uint32_t id)
{
	struct mesh_path *path = mesh_comm_path_find(peer, id);
	bool joining;

	if (!path || path->through_relay || !path->comm->sending ||
	    mesh_comm_is_opening(path->comm))
		return NULL; /* a relay is asked by OPEN, and its ACCEPT means nothing */
	mesh_comm_lock(path->comm);
	joining = path->state == MESH_PATH_JOINING;
	mesh_comm_unlock(path->comm);
	return joining ? path : NULL;
}

bool mesh_rejoin_accepted(struct mesh_peer *peer, const struct mesh_frame_accept *accept)
{
	struct mesh_path *path = path_asked(peer, accept->to_comm);

	if (path)
		path_joined(path, accept->comm, accept->token, !path->remote_id);
	return path;
}

/*
 * The path of a receiving comm that asked over this link whether its comm lives, or NULL. Ids are
 * those of a domain: on another link the same one may be another comm's.
 */
MESH_HOLDS(process)
static struct mesh_path *path_asking(const struct mesh_peer *peer, uint32_t id)
{
	const struct mesh_process *process = peer->process;
	const struct mesh_peer *lost;
	struct mesh_comm *comm;
	int i;

	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		if (comm->sending || comm->error || !comm->resumes || !mesh_comm_is_cut(comm))
			continue;
		for (i = 0; i < comm->num_paths; i++) {
			lost = mesh_path_peer(&comm->paths[i]);
			if (comm->paths[i].sink.id == id && !comm->paths[i].through_relay &&
			    lost->process_id == peer->process_id &&
			    mesh_peer_shares_link(lost, peer))
				return &comm->paths[i];
		}
	}
	return NULL;
}

/* The peer has ended the comm while no path led there. */
MESH_HOLDS(process)
static void comm_abandon(struct mesh_comm *comm, const struct mesh_peer *peer)
{
	struct mesh_log_limit *limit = &peer->process->limits.abandoned;
	char text[MESH_PEER_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];
	bool used = mesh_comm_end(comm, -ECONNRESET, "the peer has ended it meanwhile");

	comm->abandoned = true;
	/* What waits for accept() may never have been complete for its connector (listener.h). */
	if (used && !comm->waits && mesh_log_limit_pass(limit, 1, mesh_clock_ms(), more))
		mesh_warn("%s is reached again, and had ended a connection meanwhile: it failed "
			  "here, too. Its log has the reason.%s",
			  mesh_peer_text(peer, text), more);
}

bool mesh_rejoin_refused(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	struct mesh_path *path = path_asked(peer, refuse->comm), *asking;
	bool ended = refuse->refusal == MESH_REFUSAL_ENDED;

	asking = !path && ended ? path_asking(peer, refuse->comm) : NULL;
	if (asking)
		comm_abandon(asking->comm, peer);
	if (!path)
		return asking;
	mesh_domain_lock(peer->domain);
	mesh_path_sink_remove(path);
	mesh_comm_lock(path->comm);
	mesh_path_state_set(path, MESH_PATH_DOWN); /* the next look asks again */
	mesh_comm_unlock(path->comm);
	mesh_domain_unlock(peer->domain);
	if (ended)
		comm_abandon(path->comm, peer);
	return true;
}

/* ---- the receiving end --------------------------------------------------------------------- */

/* The path of ours that JOIN names, if it was lost on the link of @peer; else NULL. */
MESH_HOLDS(process)
static struct mesh_path *path_named(const struct mesh_peer *peer,
				    const struct mesh_frame_connect *join)
{
	struct mesh_peer_user *user;
	struct mesh_peer *other = NULL;
	struct mesh_path *path;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (!other->incoming || !mesh_peer_shares_link(other, peer))
			continue;
		LIST_FOREACH(user, &other->user_list, entry) {
			path = mesh_path_if_user(user);
			if (path && path->comm->key == join->comm_key && !path->comm->sending &&
			    !path->through_relay && path - path->comm->paths == join->path)
				return path;
		}
	}
	return NULL;
}

/* Returns false if it may not. */
MESH_HOLDS(process)
static bool path_take(struct mesh_peer *peer, const struct mesh_frame_connect *join,
		      struct mesh_path *path)
{
	struct mesh_comm *comm = path->comm;
	struct mesh_peer *before = mesh_path_peer(path);
	bool ready;

	mesh_comm_lock(comm);
	ready = comm->resumes && !comm->error && paths_named(comm, path) == join->num_paths &&
		path->state == MESH_PATH_DOWN && !path->unfinished;
	mesh_comm_unlock(comm);
	if (!ready || mesh_random(&path->sink.token, sizeof(path->sink.token)) ||
	    mesh_path_move(path, peer))
		return false;
	mesh_peer_user_remove(before, &path->user);
	mesh_peer_user_add(peer, &path->user);
	mesh_comm_lock(comm);
	mesh_path_state_set(path, MESH_PATH_JOINING);
	mesh_comm_unlock(comm);
	return true;
}

/* Our end of the comm that JOIN names, if it has not failed; else NULL. */
MESH_HOLDS(process)
static struct mesh_comm *comm_named(const struct mesh_peer *peer,
				    const struct mesh_frame_connect *join)
{
	const struct mesh_process *process = peer->process;
	struct mesh_comm *comm;

	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		if (comm->key == join->comm_key && comm->sending == join->asks && !comm->error &&
		    mesh_path_peer(&comm->paths[0])->process_id == peer->process_id)
			return comm;
	}
	return NULL;
}

/* A path that the comm did not have. Returns false if it may not have it, or not yet. */
MESH_HOLDS(process)
static bool path_take_new(struct mesh_peer *peer, const struct mesh_frame_connect *join,
			  struct mesh_comm *comm)
{
	return comm->resumes && !comm->waits && join->path == comm->num_paths &&
	       join->path >= comm->wanted_paths && join->num_paths == join->path + 1 &&
	       !mesh_comm_path_add_late(comm, peer);
}

void mesh_rejoin_asked(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	const struct mesh_frame_connect *join = &frame->connect;
	struct mesh_process *process = peer->process;
	struct mesh_frame answer;
	struct mesh_comm *comm;
	struct mesh_path *path;
	bool late, taken;

	if (!peer->incoming || peer->state != MESH_PEER_UP || join->cookie != process->process_id) {
		mesh_peer_refuse(peer, MESH_REFUSAL_RESOURCES, join->comm);
		return;
	}
	comm = comm_named(peer, join);
	if (!comm) {
		mesh_peer_refuse(peer, MESH_REFUSAL_ENDED, join->comm);
		return;
	}
	if (join->asks)
		return; /* our own JOIN is on its way, or follows */
	path = path_named(peer, join);
	late = !path;
	taken = late ? path_take_new(peer, join, comm) : path_take(peer, join, path);
	if (!taken) {
		mesh_peer_refuse(peer, MESH_REFUSAL_RESOURCES, join->comm);
		return;
	}
	path = &comm->paths[join->path];
	memset(&answer, 0, sizeof(answer));
	answer.accept.to_comm = join->comm;
	answer.accept.comm = path->sink.id;
	answer.accept.token = path->sink.token;
	mesh_peer_send(peer, &answer, MESH_FRAME_ACCEPT);
	path_joined(path, join->comm, join->token, late);
}
