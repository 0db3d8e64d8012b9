/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reroute.c - a comm whose last circuit is broken gets another one.
 *
 * The comm keeps its paths. The first one gets a new circuit, with new ids at each end, perhaps
 * over other NICs. Before that its earlier one carries nothing any longer: the sending end begins
 * when no operation of its own is in flight, and the receiving end accepts when that circuit is
 * fenced. So what follows is what follows the return of a link: the receiver sends its grants
 * again, the sender its small messages, and about large ones it asks.
 *
 * No grant of the time before counts: it names memory and keys of the NIC that the path had. None
 * can be on its way, because no path has led to the peer since.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/peer_send.h"
#include "control/process.h"
#include "transport/comm_end.h"
#include "transport/counters.h"
#include "transport/path_find.h"
#include "transport/path_relayed.h"
#include "transport/path_state.h"
#include "transport/receive.h"
#include "transport/recovery.h"
#include "transport/registration.h"
#include "transport/reroute.h"
#include "transport/route_wait.h"
#include "transport/send.h"

/* Lines about comms that have another route, within MESH_LOG_LIMIT_PERIOD_MS. */
#define ROUTE_LINES 4

/* ---- both ends ----------------------------------------------------------------------------- */

/* True if nothing of the path's earlier circuit is in flight at this end, or may arrive. */
MESH_HOLDS(process)
static bool path_rests(const struct mesh_path *path)
{
	bool rests;

	mesh_comm_lock(path->comm);
	rests = path->state == MESH_PATH_DOWN && !path->unfinished;
	mesh_comm_unlock(path->comm);
	return rests;
}

/* Gives the path, which rests, to another peer. */
MESH_HOLDS(process)
static int path_give(struct mesh_path *path, struct mesh_peer *peer)
{
	struct mesh_peer *before = mesh_path_peer(path);
	struct mesh_comm *comm = path->comm;
	int ret;

	ret = mesh_random(&path->sink.token, sizeof(path->sink.token));
	if (!ret)
		ret = mesh_path_move(path, peer);
	if (ret)
		return ret;
	path->known = false;
	path->broken = false;
	path->drained = false;
	path->drain_asked_ms = 0;
	mesh_silence_clear(&path->silence);
	mesh_peer_user_remove(before, &path->user);
	mesh_peer_user_add(peer, &path->user);
	mesh_comm_lock(comm);
	mesh_path_state_set(path, MESH_PATH_JOINING);
	mesh_comm_unlock(comm);
	ret = mesh_registrations_move(comm, (int)(path - comm->paths));
	if (ret)
		mesh_reroute_end(path);
	return ret;
}

/* What was fixed with the comm's first circuit fits this one. */
static bool path_suffices(const struct mesh_path *path, size_t eager_limit)
{
	const struct mesh_comm *comm = path->comm;

	return path->segment_max >= comm->segment_max &&
	       (path->immediate_bits >= 64 || comm->announces) &&
	       path->payload_max >= comm->eager_limit && eager_limit >= comm->eager_limit;
}

/* Both ends know the new circuit: whatever waited goes on. */
MESH_HOLDS(process)
static void path_up(struct mesh_path *path, uint32_t remote_id, uint32_t remote_token)
{
	struct mesh_comm *comm = path->comm;
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	comm->rerouted = true;
	comm->routeless_ms = 0;
	mesh_comm_lock(comm);
	if (comm->segment_bytes > path->segment_bytes)
		comm->segment_bytes = path->segment_bytes;
	mesh_comm_unlock(comm);
	mesh_path_accepted(path, remote_id, remote_token);
	mesh_comm_lock(comm);
	if (comm->sending)
		mesh_send_push(comm);
	else
		mesh_receive_grants_resend(comm, comm->next_seq - 1);
	mesh_comm_unlock(comm);
	if (mesh_log_limit_pass(&comm->process->limits.rerouted, ROUTE_LINES, mesh_clock_ms(),
				more))
		mesh_warn(
			"%s node %s: another route leads there: its messages go over it now (path "
			"via %s)%s",
			comm->sending ? "sending to" : "receiving from", comm->peer_name, path->via,
			more);
	mesh_path_log(path);
	mesh_comm_recover_soon(comm);
}

/* ---- the sending end ----------------------------------------------------------------------- */

/* Each grant is sent again over the new circuit. */
static void grants_forget(struct mesh_comm *comm)
{
	uint32_t i;

	mesh_comm_lock(comm);
	for (i = 0; i < MESH_COMM_REQUESTS; i++)
		mesh_comm_held_grant(comm, i)->valid = false;
	mesh_comm_unlock(comm);
}

int mesh_reroute_begin(struct mesh_comm *comm, struct mesh_peer *relay)
{
	struct mesh_path *path = &comm->paths[0];

	mesh_process_assert_locked(comm->process);
	if (!path_rests(path))
		return -EAGAIN;
	grants_forget(comm);
	return path_give(path, relay);
}

bool mesh_reroute_is_asked(const struct mesh_path *path)
{
	bool asked;

	mesh_comm_lock(path->comm);
	asked = path->state == MESH_PATH_JOINING;
	mesh_comm_unlock(path->comm);
	return asked && !path->known;
}

struct mesh_path *mesh_reroute_find(struct mesh_peer *peer, uint32_t id)
{
	struct mesh_path *path = mesh_comm_path_find(peer, id);

	if (!path || !path->relayed || !mesh_comm_lacks_route(path->comm))
		return NULL;
	return mesh_reroute_is_asked(path) ? path : NULL;
}

void mesh_reroute_end(struct mesh_path *path)
{
	struct mesh_domain *domain = mesh_path_peer(path)->domain;

	mesh_domain_lock(domain);
	mesh_path_sink_remove(path);
	mesh_comm_lock(path->comm);
	if (path->state == MESH_PATH_JOINING)
		mesh_path_state_set(path, MESH_PATH_DOWN);
	mesh_comm_unlock(path->comm);
	mesh_domain_unlock(domain);
}

bool mesh_reroute_opened(struct mesh_path *path, const struct mesh_frame_opened *opened)
{
	if (mesh_path_relayed_opened(path, opened) || !path_suffices(path, opened->eager_limit)) {
		mesh_reroute_end(path);
		return false;
	}
	mesh_path_counters_close(path); /* it may lead over other NICs */
	mesh_path_counters_open(path);
	path_up(path, opened->comm, opened->token);
	return true;
}

void mesh_reroute_refused(struct mesh_path *path, enum mesh_refusal refusal)
{
	struct mesh_comm *comm = path->comm;
	char why[96 + MESH_LOG_LIMIT_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	mesh_reroute_end(path);
	if (refusal != MESH_REFUSAL_ENDED && refusal != MESH_REFUSAL_COOKIE)
		return; /* the next attempt may succeed */
	if (mesh_log_limit_pass(&comm->process->limits.abandoned, ROUTE_LINES, mesh_clock_ms(),
				more)) {
		snprintf(why, sizeof(why),
			 "a route leads there, but the peer has ended this connection meanwhile: "
			 "see its log%s",
			 more);
		mesh_comm_lock(comm);
		mesh_comm_fail(comm, -ECONNRESET, comm->closing, why);
		mesh_comm_unlock(comm);
	}
	mesh_comm_end(comm, -ECONNRESET, "the peer has ended it meanwhile");
}

/* ---- the receiving end --------------------------------------------------------------------- */

bool mesh_reroute_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello)
{
	const struct mesh_comm *comm;

	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		if (comm->cookie && comm->cookie == hello->cookie)
			return true;
	}
	return false;
}

/*
 * The comm for which a relay has sent CONNECT, if it is whole; else NULL. One that lingers has what
 * the sending end may be in doubt about.
 */
MESH_HOLDS(process)
static struct mesh_comm *comm_named(const struct mesh_process *process,
				    const struct mesh_frame_connect *request)
{
	struct mesh_comm *comm;

	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		if (!comm->sending && comm->cookie && comm->cookie == request->cookie &&
		    comm->key == request->comm_key && comm->paths[0].through_relay &&
		    comm->num_paths == comm->wanted_paths &&
		    comm->wanted_paths == request->num_paths &&
		    !strcmp(comm->peer_name, request->origin))
			return comm;
	}
	return NULL;
}

/* The sending end has no path left: what goes over one that still seems to be up is lost. */
MESH_HOLDS(process)
static void others_give_up(struct mesh_comm *comm)
{
	bool up;
	int i;

	for (i = 1; i < comm->num_paths; i++) {
		mesh_comm_lock(comm);
		up = comm->paths[i].state == MESH_PATH_UP;
		mesh_comm_unlock(comm);
		if (up)
			mesh_path_given_up(&comm->paths[i]);
	}
}

/* Takes the new circuit for the comm's first path. Returns 0 or the refusal. */
MESH_HOLDS(process)
static enum mesh_refusal path_take(struct mesh_path *path, struct mesh_peer *peer,
				   const struct mesh_frame_connect *request)
{
	if (path->comm->error)
		return MESH_REFUSAL_ENDED;
	if (!path->comm->resumes)
		return MESH_REFUSAL_RESOURCES;
	mesh_path_given_up(path);
	others_give_up(path->comm);
	if (!path_rests(path) || peer->state != MESH_PEER_UP || path_give(path, peer))
		return MESH_REFUSAL_RESOURCES;
	if (!path_suffices(path, peer->eager_limit) || mesh_path_received_via(path, request)) {
		mesh_reroute_end(path);
		return MESH_REFUSAL_RESOURCES;
	}
	return 0;
}

bool mesh_reroute_came(struct mesh_peer *peer, const struct mesh_frame_connect *request)
{
	struct mesh_comm *comm = comm_named(peer->process, request);
	enum mesh_refusal refusal;
	struct mesh_frame answer;
	struct mesh_path *path;

	if (!comm || request->path)
		return false;
	path = &comm->paths[0];
	refusal = path_take(path, peer, request);
	if (refusal) {
		mesh_peer_refuse(peer, refusal, request->comm);
		return true;
	}
	memset(&answer, 0, sizeof(answer));
	answer.accept.to_comm = request->comm;
	answer.accept.comm = path->sink.id;
	answer.accept.token = path->sink.token;
	mesh_peer_send(peer, &answer, MESH_FRAME_ACCEPT);
	path_up(path, request->comm, request->token);
	return true;
}
