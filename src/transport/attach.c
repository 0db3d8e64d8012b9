/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c - a path of a comm gets another life, whether other paths carry on or not.
 *
 * The comm keeps its paths. One that is down is given to a peer: over the link that it had, or over
 * another way, with relays or without. Before that its earlier life is over: the sending end begins
 * when no operation of its own is in flight, and the receiving end accepts when that life is
 * fenced. Each life has its own ids at both ends, so nothing that is late finds the comm. What
 * follows is always the same: the receiver sends its grants again, the sender its small messages,
 * and about large ones it asks.
 *
 * The sending end counts the lives that it asks for: the epoch. Another path may deliver late what
 * was said before: the receiver accepts only a life behind the path's last one, and RESUME about an
 * earlier one ends none. The receiver counts those that it has accepted: a grant with a smaller
 * count names memory and keys of the NICs that the paths had, and does not count any more once the
 * answer has come.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "transport/comm_life.h"
#include "transport/data.h"

/* Lines about comms that have another route, within MESH_LOG_LIMIT_PERIOD_MS. */
#define ROUTE_LINES 4

/* ---- both ends ----------------------------------------------------------------------------- */

static int index_of(const struct mesh_path *path)
{
	return (int)(path - path->comm->paths);
}

/* True for the one behind the comm's paths: it joins late, and has had no life. */
static bool is_new(const struct mesh_path *path)
{
	return path == path->comm->paths + path->comm->num_paths;
}

/* True if nothing of the path's earlier life is in flight at this end, or may arrive. */
MESH_HOLDS(process)
static bool path_rests(const struct mesh_path *path)
{
	bool rests;

	mesh_comm_lock(path->comm);
	rests = path->state == MESH_PATH_DOWN && !path->unfinished;
	mesh_comm_unlock(path->comm);
	return rests;
}

/* The path, which is prepared, does not get up: it is down, or was not there. */
MESH_HOLDS(process)
static void path_drop(struct mesh_path *path)
{
	if (is_new(path)) {
		mesh_path_close(path);
		memset(path, 0, sizeof(*path));
	} else {
		mesh_path_down(path, MESH_PATH_JOINING);
	}
}

/*
 * True if what was fixed when the comm was made fits the path, whose other end takes small messages
 * of @eager_limit bytes.
 */
MESH_HOLDS(process)
static bool path_suffices(const struct mesh_path *path, size_t eager_limit)
{
	const struct mesh_comm *comm = path->comm;

	if (!comm->reorders && !path->is_acknowledged)
		return false; /* what was cut for RDMA may have its flags in place (data.h) */
	if (comm->sending &&
	    (path->payload_max < comm->eager_limit || eager_limit < comm->eager_limit))
		return false;
	/* A relay cuts what is too large for it. */
	return mesh_path_has_relay(path) || path->segment_max >= comm->segment_max;
}

/*
 * Gives the path, which rests, or is new, and is prepared, to another peer: a @relay, or the
 * process at the other end. So what the path is fits its peer, also if it does not get up.
 */
MESH_HOLDS(process)
static int path_give(struct mesh_path *path, struct mesh_peer *peer, bool relay)
{
	struct mesh_comm *comm = path->comm;
	bool new = is_new(path);
	int ret;

	ret = new ? mesh_path_open(path, comm, peer, relay) : mesh_path_move(path, peer, relay);
	if (ret)
		return ret;
	path->known = false;
	path->broken = false;
	path->drained = false;
	path->drain_asked_ms = 0;
	path->question = (struct mesh_relay_question){0};
	if (!new) {
		mesh_comm_lock(comm);
		mesh_path_state_set(path, MESH_PATH_JOINING);
		mesh_comm_unlock(comm);
	}
	/* Of a relay OPENED says whether it suffices. */
	if (!(relay && comm->sending) && !path_suffices(path, peer->eager_limit))
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = mesh_registrations_check(comm, index_of(path));
	if (ret)
		path_drop(path);
	return ret;
}

MESH_HOLDS(process)
static void route_log(const struct mesh_path *path, bool alone)
{
	const struct mesh_comm *comm = path->comm;
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	if (mesh_log_limit_pass(&comm->process->limits.rerouted, ROUTE_LINES, mesh_clock_ms(),
				more))
		/* What is only better than the paths that it has is no loss. */
		mesh_log(alone ? MESH_LOG_WARN : MESH_LOG_INFO, __FILE__, __LINE__,
			 "%s node %s: another route reaches it and carries its messages%s (path "
			 "via %s)%s",
			 comm->sending ? "sending to" : "receiving from", comm->peer_name,
			 alone ? " now" : ", too", mesh_path_describe(path).via_text, more);
}

/* Relays of the shortest route of this tier. */
MESH_HOLDS(process)
static int relays_fewest(const struct mesh_comm *comm, enum mesh_path_tier tier)
{
	int i, relays, fewest = MESH_RELAYS_MAX;

	for (i = 0; i < comm->num_paths; i++) {
		relays = mesh_path_num_relays(&comm->paths[i]);
		if (relays && relays < fewest && comm->paths[i].tier == tier)
			fewest = relays;
	}
	return fewest;
}

void mesh_attach_relays_leave(struct mesh_comm *comm)
{
	enum mesh_path_tier tier = mesh_comm_tier(comm);
	struct mesh_path *path;
	int i, relays, fewest;

	mesh_process_assert_locked(comm->process);
	if (!comm->sending)
		return;
	fewest = relays_fewest(comm, tier);
	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		relays = mesh_path_num_relays(path);
		if (relays && path->tier != MESH_TIER_DRAINED &&
		    (path->tier > tier || relays > fewest))
			mesh_path_leave(path);
	}
}

/* Both ends know the new life: whatever waited goes on. */
MESH_HOLDS(process)
static void path_up(struct mesh_path *path, const struct mesh_frame_accept *accept)
{
	struct mesh_comm *comm = path->comm;
	bool alone = mesh_comm_is_cut(comm), is_first = !path->remote_id;
	bool opening = mesh_comm_is_opening(comm);

	comm->routeless_ms = 0;
	mesh_path_accepted(path, accept);
	if (opening) {
		mesh_comm_paths_learn(comm); /* of a relay it is known now */
		return;			     /* connect() goes on with the next path */
	}
	mesh_comm_lock(comm);
	if (comm->sending)
		mesh_send_push(comm);
	else
		mesh_receive_grants_resend(comm, comm->next_seq - 1);
	mesh_comm_unlock(comm);
	if (mesh_path_has_relay(path) || (is_first && alone))
		route_log(path, alone);
	if (mesh_path_has_relay(path) || is_first)
		mesh_path_log(path);
	mesh_attach_relays_leave(comm);
	mesh_comm_recover_soon(comm);
}

/* The peer has ended the comm while no path led there. */
MESH_HOLDS(process)
static void comm_abandon(struct mesh_comm *comm)
{
	struct mesh_log_limit *limit = &comm->process->limits.abandoned;
	char more[MESH_LOG_LIMIT_TEXT_MAX];
	bool used = mesh_comm_end(comm, -ECONNRESET, "the peer has ended it meanwhile");

	/* What waits for accept() may never have been complete for its connector (listener.h). */
	if (comm->use >= MESH_COMM_WAITS)
		comm->use = MESH_COMM_ABANDONED;
	else if (used && mesh_log_limit_pass(limit, 1, mesh_clock_ms(), more))
		mesh_warn("node %s is reached again, and had ended a connection meanwhile: it "
			  "failed here, too. Its log has the reason.%s",
			  comm->peer_name, more);
}

/* ---- the sending end ----------------------------------------------------------------------- */

/* CONNECT about a path, but for what tells its life. */
MESH_HOLDS(process)
static struct mesh_frame request_of(const struct mesh_path *path)
{
	const struct mesh_comm *comm = path->comm;
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.connect.comm_key = comm->key;
	frame.connect.comm = path->sink.id;
	frame.connect.path = (uint8_t)index_of(path);
	frame.connect.num_paths = (uint8_t)comm->wanted_paths;
	frame.connect.epoch = path->epoch;
	memcpy(frame.connect.origin, comm->process->name, sizeof(frame.connect.origin));
	return frame;
}

void mesh_attach_request(const struct mesh_path *path)
{
	const struct mesh_comm *comm = path->comm;
	struct mesh_frame frame = request_of(path);

	mesh_process_assert_locked(comm->process);
	frame.connect.cookie = comm->cookie;
	frame.connect.listen_id = comm->send.listen_id;
	frame.connect.token = path->sink.token;
	mesh_peer_send(path->peer, &frame, MESH_FRAME_CONNECT);
}

int mesh_attach_begin(struct mesh_path *path, struct mesh_peer *peer, bool relay)
{
	struct mesh_comm *comm = path->comm;
	int ret;

	mesh_process_assert_locked(comm->process);
	if (!is_new(path) && !path_rests(path))
		return -EAGAIN;
	ret = mesh_registrations_prepare(comm, index_of(path), peer->domain);
	if (ret)
		return ret;
	path->epoch = ++comm->epoch;
	path->refusal = 0;
	ret = path_give(path, peer, relay);
	if (ret || relay)
		return ret; /* OPEN follows */
	mesh_attach_request(path);
	return 0;
}

/* One that rests without its relay, or NULL. A link does not get the last: a relay may need it. */
MESH_HOLDS(process)
static struct mesh_path *left_path(struct mesh_comm *comm, bool relay)
{
	struct mesh_path *path, *left = NULL;
	int num = 0;

	for (path = comm->paths; path < comm->paths + comm->num_paths; path++) {
		num += mesh_path_has_relay(path);
		if (mesh_path_has_relay(path) && path_rests(path))
			left = path;
	}
	return relay || num > 1 ? left : NULL;
}

bool mesh_attach_has_room(struct mesh_comm *comm)
{
	mesh_process_assert_locked(comm->process);
	return comm->num_paths < comm->max_paths || left_path(comm, false);
}

int mesh_attach_late(struct mesh_comm *comm, struct mesh_peer *peer, bool relay,
		     struct mesh_path **late)
{
	struct mesh_path *path = &comm->paths[comm->num_paths - 1];

	mesh_process_assert_locked(comm->process);
	if (comm->num_paths == comm->wanted_paths || path->remote_id) /* else the peer lacks it */
		path = comm->num_paths < comm->max_paths ? path + 1 : left_path(comm, relay);
	*late = path;
	if (!path)
		return -ENOSPC;
	path->comm = comm;
	return mesh_attach_begin(path, peer, relay);
}

/* The path that waits for an answer under this id, or NULL. */
MESH_HOLDS(process)
static struct mesh_path *path_asked(struct mesh_peer *peer, uint32_t id)
{
	struct mesh_path *path = mesh_comm_path_find(peer, id);

	if (!path || !path->comm->sending)
		return NULL;
	if (mesh_path_has_relay(path) && path->comm->error)
		return NULL; /* its circuit is given back */
	return mesh_path_is(path, MESH_PATH_JOINING) ? path : NULL;
}

bool mesh_attach_accepted(struct mesh_peer *peer, const struct mesh_frame_accept *accept)
{
	struct mesh_path *path = path_asked(peer, accept->to_comm);

	if (!path || mesh_path_has_relay(path))
		return false; /* a relay answers with OPENED */
	path_up(path, accept);
	return true;
}

bool mesh_attach_opened(struct mesh_peer *peer, const struct mesh_frame_opened *opened)
{
	const struct mesh_frame_accept accept = mesh_frame_opened_accept(opened);
	struct mesh_path *path = path_asked(peer, opened->to_comm);

	if (!path || !mesh_path_has_relay(path))
		return false; /* it is late, and is given back */
	/* A comm that is being made fits each of its relays; later ones must fit the comm. */
	if (mesh_comm_is_opening(path->comm) && path->comm->eager_limit > opened->eager_limit)
		path->comm->eager_limit = opened->eager_limit;
	if (mesh_path_relayed_opened(path, opened) || !path_suffices(path, opened->eager_limit)) {
		path->refusal = MESH_REFUSAL_RESOURCES;
		mesh_path_down(path, MESH_PATH_JOINING);
		return false;
	}
	path_up(path, &accept);
	return true;
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
		if (comm->sending || comm->error || !mesh_comm_is_cut(comm))
			continue;
		for (i = 0; i < comm->num_paths; i++) {
			lost = comm->paths[i].peer;
			if (comm->paths[i].sink.id == id && !mesh_path_has_relay(&comm->paths[i]) &&
			    lost->process_id == peer->process_id &&
			    mesh_peer_shares_link(lost, peer))
				return &comm->paths[i];
		}
	}
	return NULL;
}

bool mesh_attach_refused(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	struct mesh_path *path = path_asked(peer, refuse->comm), *asking;
	bool ended = refuse->refusal == MESH_REFUSAL_ENDED;

	asking = !path && ended ? path_asking(peer, refuse->comm) : NULL;
	if (asking)
		comm_abandon(asking->comm);
	if (!path)
		return asking;
	path->refusal = (enum mesh_refusal)refuse->refusal;
	mesh_path_down(path, MESH_PATH_JOINING); /* the next attempt may succeed */
	ended |= refuse->refusal == MESH_REFUSAL_COOKIE;
	/* Over a path that leads there CLOSED comes, and says how it has ended. */
	if (ended && !mesh_comm_is_opening(path->comm) && mesh_comm_is_cut(path->comm))
		comm_abandon(path->comm);
	return true;
}

/* ---- the receiving end --------------------------------------------------------------------- */

void mesh_attach_ask(const struct mesh_path *path, struct mesh_peer *peer)
{
	struct mesh_frame frame = request_of(path);

	mesh_process_assert_locked(peer->process);
	frame.connect.asks = 1;
	mesh_peer_send(peer, &frame, MESH_FRAME_CONNECT);
}

bool mesh_attach_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello)
{
	if (hello->cookie == process->cookie)
		return true;
	return !hello->listen_id && hello->cookie == process->process_id &&
	       mesh_process_is_known(process, hello->process_id);
}

/* True if the frame comes from the comm's other end, or from a relay for it. */
MESH_HOLDS(process)
static bool is_of_comm(const struct mesh_peer *peer, const struct mesh_frame_connect *request,
		       const struct mesh_comm *comm)
{
	if (comm->key != request->comm_key || comm->sending != request->asks)
		return false;
	if (comm->sending)
		return mesh_process_id_of(comm->cookie) == peer->process_id;
	return comm->cookie == request->cookie && !strcmp(comm->peer_name, request->origin);
}

/*
 * Our end of the comm that the frame names, if it is whole; else NULL. One that lingers has what
 * the sending end may be in doubt about.
 */
MESH_HOLDS(process)
static struct mesh_comm *comm_named(const struct mesh_peer *peer,
				    const struct mesh_frame_connect *request)
{
	struct mesh_comm *comm;

	for (comm = mesh_comm_next(peer->process, NULL); comm;
	     comm = mesh_comm_next(peer->process, comm)) {
		if (is_of_comm(peer, request, comm) && comm->num_paths >= comm->wanted_paths &&
		    comm->wanted_paths == request->num_paths)
			return comm;
	}
	return NULL;
}

/*
 * A request that comes late must not end the life that the sending end has asked for since. The
 * last relay may repeat the first one over another link.
 */
MESH_HOLDS(process)
static bool is_latest(const struct mesh_path *path, const struct mesh_frame_connect *request)
{
	if (!request->epoch)
		return !path->epoch && path->comm->num_paths == 1;
	return mesh_seq_before(path->epoch, request->epoch);
}

/* Takes the life of a path that the comm has, or of the next one. Returns 0 or the refusal. */
MESH_HOLDS(process)
static enum mesh_refusal path_take(struct mesh_comm *comm, struct mesh_peer *peer,
				   const struct mesh_frame_connect *request)
{
	struct mesh_path *path = &comm->paths[request->path];
	bool new = request->path == comm->num_paths;

	comm->rerouted |= request->epoch; /* its NCCL has the comm: accept() need not wait */
	if (request->path > comm->num_paths || request->path >= comm->max_paths)
		return MESH_REFUSAL_RESOURCES;
	if (new ? comm->use >= MESH_COMM_WAITS || !request->epoch : !is_latest(path, request))
		return MESH_REFUSAL_RESOURCES;
	path->comm = comm;
	if (!new)
		mesh_path_given_up(path);
	if (peer->state != MESH_PEER_UP || (!new && !path_rests(path)) ||
	    mesh_registrations_prepare(comm, request->path, peer->domain) ||
	    path_give(path, peer, *request->via))
		return MESH_REFUSAL_RESOURCES;
	(void)!mesh_path_via_set(path, request->via); /* else the log has "relay" */
	return 0;
}

void mesh_attach_answer(const struct mesh_path *path, struct mesh_peer *peer,
			const struct mesh_frame_connect *request)
{
	struct mesh_frame answer;

	mesh_process_assert_locked(peer->process);
	memset(&answer, 0, sizeof(answer));
	answer.accept.to_comm = request->comm;
	answer.accept.comm = path->sink.id;
	answer.accept.token = path->sink.token;
	answer.accept.lives = path->comm->receive.lives;
	mesh_peer_send(peer, &answer, MESH_FRAME_ACCEPT);
}

/* From now on each grant has the target of the path's new life. */
MESH_HOLDS(process)
static void life_accept(struct mesh_path *path, const struct mesh_frame_connect *request)
{
	path->epoch = request->epoch;
	mesh_comm_lock(path->comm);
	path->comm->receive.lives++;
	mesh_comm_unlock(path->comm);
}

/* Returns 0 or the refusal. */
MESH_HOLDS(process)
static enum mesh_refusal comm_attach(struct mesh_comm *comm, struct mesh_peer *peer,
				     const struct mesh_frame_connect *request)
{
	const struct mesh_frame_accept other = {.comm = request->comm, .token = request->token};
	enum mesh_refusal refusal;
	struct mesh_path *path;

	if (comm->error)
		return MESH_REFUSAL_ENDED;
	refusal = path_take(comm, peer, request);
	if (refusal)
		return refusal;
	path = &comm->paths[request->path];
	life_accept(path, request);
	mesh_attach_answer(path, peer, request);
	path_up(path, &other);
	return 0;
}

bool mesh_attach_came(struct mesh_peer *peer, const struct mesh_frame_connect *request)
{
	enum mesh_refusal refusal = 0;
	struct mesh_comm *comm;

	if (!request->epoch && !request->asks && !*request->via)
		return false;
	comm = comm_named(peer, request);
	if (!comm && !request->epoch && !request->asks)
		return false;
	if (!comm || (request->asks && comm->error))
		refusal = MESH_REFUSAL_ENDED;
	else if (!request->asks) /* else our own request is on its way, or follows */
		refusal = comm_attach(comm, peer, request);
	if (refusal)
		mesh_peer_refuse(peer, refusal, request->comm);
	return true;
}
