/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reroute.c - a path whose circuit is broken gets another one, whether other paths of the comm
 * carry on or not.
 *
 * The comm keeps its paths. A lost one gets a new circuit, with new ids at each end, perhaps over
 * other NICs. Before that its earlier one carries nothing any longer: the sending end begins when
 * no operation of its own is in flight, and the receiving end accepts when that circuit is fenced.
 * So what follows is what follows the return of a link: the receiver sends its grants again, the
 * sender its small messages, and about large ones it asks.
 *
 * A comm asks for one circuit at a time, and counts them: the epoch. Another path may deliver late
 * what was said before. No grant of an earlier epoch counts once the circuit is open: it names
 * memory and keys of the NIC that the path had. The receiver accepts a circuit only if its epoch is
 * behind that of each one that it has accepted, and RESUME or LEFT about an earlier one ends none.
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
#include "transport/question_wait.h"
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

/* Returns 0 if the comm's memory is ready for the path to be given to the peer. */
MESH_HOLDS(process)
static int path_prepare(struct mesh_path *path, const struct mesh_peer *peer)
{
	return mesh_registrations_prepare(path->comm, (int)(path - path->comm->paths),
					  peer->domain);
}

/*
 * Gives the path, which rests and is prepared, to another peer: a relay, or, if @straight, the
 * process at the other end. So what the path is fits its peer, also if it does not get up.
 */
MESH_HOLDS(process)
static int path_give(struct mesh_path *path, struct mesh_peer *peer, bool straight)
{
	struct mesh_peer *before = mesh_path_peer(path);
	struct mesh_comm *comm = path->comm;
	bool was_straight = path->straight;
	int ret;

	if (path->relayed)
		mesh_path_straight_set(path, straight);
	else
		path->straight = straight;
	ret = mesh_random(&path->sink.token, sizeof(path->sink.token));
	if (!ret)
		ret = mesh_path_move(path, peer);
	if (ret) {
		path->straight = was_straight;
		return ret;
	}
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

/* Grants of before do not count: the receiver sends each of them again. */
MESH_HOLDS(comm)
static void grants_renew(struct mesh_comm *comm)
{
	struct mesh_held_grant *held;
	uint32_t i;

	mesh_comm_assert_locked(comm);
	comm->send.grant_epoch = comm->epoch;
	for (i = 0; i < MESH_COMM_REQUESTS; i++) {
		held = mesh_comm_held_grant(comm, i);
		held->valid &= held->renewed;
	}
}

/* Both ends know the new circuit: whatever waited goes on. */
MESH_HOLDS(process)
static void path_up(struct mesh_path *path, uint32_t remote_id, uint32_t remote_token)
{
	struct mesh_comm *comm = path->comm;
	bool alone = mesh_comm_is_cut(comm);
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	comm->rerouted = true;
	comm->routeless_ms = 0;
	path->epoch = comm->epoch;
	/* First: once the path is up, NCCL's thread may send over it. */
	mesh_comm_lock(comm);
	if (comm->sending)
		grants_renew(comm);
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
		mesh_warn("%s node %s: another route leads there: its messages go over it%s (path "
			  "via %s)%s",
			  comm->sending ? "sending to" : "receiving from", comm->peer_name,
			  alone ? " now" : ", too", mesh_path_describe(path).via_text, more);
	mesh_path_log(path);
	mesh_comm_recover_soon(comm);
}

/* ---- the sending end ----------------------------------------------------------------------- */

/* Once the new circuit is accepted, each grant is sent again. */
static void epoch_begin(struct mesh_comm *comm)
{
	uint32_t i;

	mesh_comm_lock(comm);
	comm->epoch++;
	for (i = 0; i < MESH_COMM_REQUESTS; i++)
		mesh_comm_held_grant(comm, i)->renewed = false;
	mesh_comm_unlock(comm);
}

int mesh_reroute_begin(struct mesh_path *path, struct mesh_peer *relay)
{
	int ret;

	mesh_process_assert_locked(path->comm->process);
	if (!path_rests(path))
		return -EAGAIN;
	ret = path_prepare(path, relay);
	if (ret)
		return ret;
	epoch_begin(path->comm);
	return path_give(path, relay, false);
}

int mesh_reroute_begin_straight(struct mesh_path *path, struct mesh_peer *peer)
{
	int ret;

	mesh_process_assert_locked(path->comm->process);
	if (!path_rests(path))
		return -EAGAIN;
	ret = path_prepare(path, peer);
	if (ret)
		return ret;
	epoch_begin(path->comm);
	ret = path_give(path, peer, true);
	if (!ret && !path_suffices(path, peer->eager_limit)) {
		mesh_reroute_end(path);
		ret = -EOPNOTSUPP;
	}
	return ret;
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

	if (!path || !path->relayed || path->comm->opener || path->comm->error)
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
	if (!mesh_path_has_relay(path))
		return false; /* it is late: its relay was given up for the peer itself */
	if (mesh_path_relayed_opened(path, opened) || !path_suffices(path, opened->eager_limit)) {
		mesh_reroute_end(path);
		return false;
	}
	mesh_path_counters_close(path); /* it may lead over other NICs */
	mesh_path_counters_open(path);
	path_up(path, opened->comm, opened->token);
	return true;
}

bool mesh_reroute_accepted(struct mesh_path *path, const struct mesh_frame_accept *accept)
{
	mesh_process_assert_locked(path->comm->process);
	if (mesh_path_has_relay(path))
		return false;		/* that answers with OPENED */
	mesh_path_counters_close(path); /* it may lead over another NIC */
	mesh_path_counters_open(path);
	path_up(path, accept->comm, accept->token);
	return true;
}

void mesh_reroute_refused(struct mesh_path *path, enum mesh_refusal refusal)
{
	struct mesh_comm *comm = path->comm;
	char why[96 + MESH_LOG_LIMIT_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	mesh_reroute_end(path);
	if (refusal != MESH_REFUSAL_ENDED && refusal != MESH_REFUSAL_COOKIE)
		return; /* the next attempt may succeed */
	if (!mesh_comm_lacks_route(comm))
		return; /* over the path that leads there CLOSED comes, and says how it has ended */
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

/* The sending end has no other path: what goes over one that still seems to be up is lost. */
MESH_HOLDS(process)
static void others_give_up(const struct mesh_path *path)
{
	struct mesh_comm *comm = path->comm;
	bool up;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		mesh_comm_lock(comm);
		up = comm->paths[i].state == MESH_PATH_UP;
		mesh_comm_unlock(comm);
		if (up && &comm->paths[i] != path)
			mesh_path_given_up(&comm->paths[i]);
	}
}

/* From now on each grant has the target of the path's new circuit. */
MESH_HOLDS(process)
static void epoch_accept(const struct mesh_path *path, uint32_t epoch)
{
	mesh_comm_lock(path->comm);
	path->comm->epoch = epoch;
	mesh_comm_unlock(path->comm);
	mesh_questions_path_renewed(path);
}

/*
 * A request that comes late must not end the circuit that the sending end has asked for since. The
 * last relay may repeat the first one over another link.
 */
MESH_HOLDS(process)
static bool is_latest(const struct mesh_comm *comm, const struct mesh_frame_connect *request)
{
	if (!request->epoch)
		return !comm->epoch && comm->num_paths == 1;
	return mesh_seq_before(comm->epoch, request->epoch);
}

/* Takes the new circuit for the path. Returns 0 or the refusal. */
MESH_HOLDS(process)
static enum mesh_refusal path_take(struct mesh_path *path, struct mesh_peer *peer,
				   const struct mesh_frame_connect *request)
{
	if (path->comm->error)
		return MESH_REFUSAL_ENDED;
	if (!path->comm->resumes || !is_latest(path->comm, request))
		return MESH_REFUSAL_RESOURCES;
	path->comm->rerouted |= request->epoch != 0; /* its NCCL has the comm */
	mesh_path_given_up(path);
	if (request->alone)
		others_give_up(path);
	/* First: what pins memory, while the earlier circuit is being fenced. */
	if (peer->state != MESH_PEER_UP || path_prepare(path, peer) || !path_rests(path) ||
	    path_give(path, peer, !*request->via))
		return MESH_REFUSAL_RESOURCES;
	if (!path_suffices(path, peer->eager_limit) || mesh_path_received_via(path, request)) {
		mesh_reroute_end(path);
		return MESH_REFUSAL_RESOURCES;
	}
	epoch_accept(path, request->epoch);
	return 0;
}

bool mesh_reroute_came(struct mesh_peer *peer, const struct mesh_frame_connect *request)
{
	struct mesh_comm *comm = comm_named(peer->process, request);
	enum mesh_refusal refusal;
	struct mesh_frame answer;
	struct mesh_path *path;

	if (!comm || request->path >= comm->num_paths || (request->path && !request->epoch))
		return false;
	path = &comm->paths[request->path];
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
