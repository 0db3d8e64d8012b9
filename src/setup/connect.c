/* SPDX-License-Identifier: Apache-2.0 */
/* connect.c - makes a sending comm: finds candidates, tries them, asks for path after path. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "setup/candidates.h"
#include "setup/connect.h"
#include "setup/connect_handle.h"
#include "setup/connect_lanes.h"
#include "setup/connect_log.h"
#include "setup/connect_relay.h"
#include "setup/connect_try.h"
#include "setup/neighbour_hints.h"
#include "setup/start.h"
#include "transport/comm_open.h"
#include "transport/path_relayed.h"
#include "transport/path_state.h"

/*
 * NCCL's thread advances an attempt in each call. The engine does so after this time, and after a
 * 16th of the attempt's age: most attempts that NCCL no longer asks about are old.
 */
#define ADVANCE_MIN_MS 20
#define ADVANCE_MAX_MS 500
#define ADVANCE_PART 16
/*
 * NCCL may never ask for the result: its tables up to v10 forget an attempt that they gave up. The
 * result is freed after the first time, and after the second one once more: if this process was
 * stopped meanwhile, NCCL had no chance to ask.
 */
#define ABANDONED_MS 60000
#define LAST_CALL_MS 5000

static const uint8_t connect_may_follow[MESH_CONNECT_STATES] = {
	/* From the SENT ones: a path broke, or a relay has refused, before all were accepted. */
	[MESH_CONNECT_PEERS] = 1 << MESH_CONNECT_ASKING | 1 << MESH_CONNECT_SENT |
			       1 << MESH_CONNECT_OPEN_SENT,
	[MESH_CONNECT_SENT] = 1 << MESH_CONNECT_PEERS,
	[MESH_CONNECT_OPEN_SENT] = 1 << MESH_CONNECT_PEERS,
	[MESH_CONNECT_DONE] = 1 << MESH_CONNECT_SENT | 1 << MESH_CONNECT_OPEN_SENT,
	[MESH_CONNECT_FAILED] = 1 << MESH_CONNECT_ASKING | 1 << MESH_CONNECT_PEERS |
				1 << MESH_CONNECT_SENT | 1 << MESH_CONNECT_OPEN_SENT,
};

MESH_HOLDS(process)
static void connect_state_set(struct mesh_connect *connect, enum mesh_connect_state state)
{
	bool legal = connect_may_follow[state] & 1 << connect->state;

	mesh_process_assert_locked(connect->net->process);
	assert(legal);
	(void)legal;
	connect->state = state;
}

MESH_HOLDS(process)
static void comm_drop(struct mesh_connect *connect)
{
	if (!connect->comm)
		return;
	/* The listener may have its end already, and an ACCEPT may be in flight. */
	mesh_connect_withdraw(connect, connect->comm->paths[0].peer, connect->comm);
	connect->comm->use = MESH_COMM_OPENING; /* NCCL does not get it */
	mesh_comm_free(connect->comm);
	connect->comm = NULL;
	connect->num_accepted = 0;
}

MESH_HOLDS(process)
static void connect_fail(struct mesh_connect *connect, int error)
{
	comm_drop(connect);
	mesh_connect_give_up(connect);
	mesh_connect_try_end(connect);
	mesh_relay_try_close(connect->relay);
	connect->relay = NULL;
	connect_state_set(connect, MESH_CONNECT_FAILED);
	connect->error = error;
}

/* @ret: of the beginning of a try. Where no NIC of ours can be opened for it, relays may help. */
MESH_HOLDS(process)
static int try_begun(struct mesh_connect *connect, int ret, uint64_t now_ms)
{
	if (ret != -ENODEV && ret != -ENOLINK)
		return ret && connect->relay ? -EAGAIN : ret;
	if (!mesh_connect_relay_begin(connect)) {
		if (connect->state == MESH_CONNECT_ASKING)
			connect_state_set(connect, MESH_CONNECT_PEERS);
		return -EAGAIN;
	}
	if (ret == -ENOLINK)
		mesh_connect_log_away(connect, now_ms);
	return ret == -ENOLINK ? -EAGAIN : ret;
}

MESH_HOLDS(process)
static void try_go_on(struct mesh_connect *connect, int ret, uint64_t now_ms)
{
	ret = try_begun(connect, ret, now_ms);
	if (ret && ret != -EAGAIN)
		connect_fail(connect, ret);
}

/* ---- one path after the other ----------------------------------------------------------- */

/* Adds the next path to the comm, or makes the comm with its first, and asks for it. */
MESH_HOLDS(process)
static void path_request(struct mesh_connect *connect)
{
	bool relay = connect->state == MESH_CONNECT_OPEN_SENT;
	const struct mesh_dial *dials = relay ? connect->relay->dials : connect->dials;
	struct mesh_peer *peer = dials[connect->num_accepted].peer;
	uint64_t key;
	int ret;

	if (connect->comm) {
		ret = mesh_comm_path_add(connect->comm, peer, relay);
	} else {
		ret = mesh_random(&key, sizeof(key));
		if (!ret)
			ret = mesh_connect_comm_open(connect, peer, key);
		if (!ret)
			connect->comm->opener = connect;
	}
	if (ret) {
		mesh_connect_log_full(peer, ret);
		connect_fail(connect, ret);
		return;
	}
	mesh_connect_request(connect);
}

MESH_HOLDS(process)
static void connect_accepted(struct mesh_connect *connect, const struct mesh_frame_accept *accept)
{
	int i = connect->num_accepted++;

	connect->comm->paths[i].reason = mesh_connect_try_reason(connect, i);
	mesh_path_accepted(&connect->comm->paths[i], accept);
	if (connect->num_accepted == connect->comm->wanted_paths)
		connect_state_set(connect, MESH_CONNECT_DONE);
	else
		path_request(connect);
}

MESH_HOLDS(process)
static void connect_refused(struct mesh_connect *connect, enum mesh_refusal refusal)
{
	mesh_connect_log_refused(connect->dials[connect->num_accepted].peer, refusal);
	connect_fail(connect, -ECONNREFUSED);
}

/* The attempt that waits for this path to be accepted, or NULL. */
MESH_HOLDS(process)
static struct mesh_connect *connect_of_comm(struct mesh_peer *peer, uint32_t comm)
{
	const struct mesh_path *path = mesh_comm_path_find(peer, comm);
	struct mesh_connect *connect = path ? path->comm->opener : NULL;
	bool awaits = connect && (connect->state == MESH_CONNECT_SENT ||
				  connect->state == MESH_CONNECT_OPEN_SENT);

	return awaits && path == &connect->comm->paths[connect->comm->num_paths - 1] ? connect
										     : NULL;
}

/* Another relay may have a way. */
MESH_HOLDS(process)
static void relay_refused(struct mesh_connect *connect, enum mesh_refusal refusal)
{
	mesh_relay_try_refused(connect->relay, connect->num_accepted, refusal);
	comm_drop(connect);
	mesh_relay_try_end(connect->relay);
	connect_state_set(connect, MESH_CONNECT_PEERS);
}

bool mesh_connect_accept_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_connect *connect = connect_of_comm(peer, frame->to_comm);

	/*
	 * Otherwise the connection was dropped meanwhile, and WITHDRAW is in flight. A relay
	 * answers with OPENED, which says where its memory is.
	 */
	if (connect && connect->state == MESH_CONNECT_SENT)
		connect_accepted(connect, &frame->accept);
	return connect;
}

void mesh_connect_refuse_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_connect *connect = connect_of_comm(peer, frame->refuse.comm);

	if (connect && connect->state == MESH_CONNECT_OPEN_SENT)
		relay_refused(connect, (enum mesh_refusal)frame->refuse.refusal);
	else if (connect)
		connect_refused(connect, (enum mesh_refusal)frame->refuse.refusal);
}

bool mesh_connect_opened_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	const struct mesh_frame_opened *opened = &frame->opened;
	const struct mesh_frame_accept accept = mesh_frame_opened_accept(opened);
	struct mesh_connect *connect = connect_of_comm(peer, opened->to_comm);
	struct mesh_path *path;

	if (!connect || connect->state != MESH_CONNECT_OPEN_SENT)
		return false;
	path = &connect->comm->paths[connect->num_accepted];
	if (mesh_path_relayed_opened(path, opened))
		return false; /* no memory: the attempt ends at its deadline */
	if (path->comm->eager_limit > opened->eager_limit)
		path->comm->eager_limit = opened->eager_limit;
	mesh_comm_paths_learn(path->comm);
	connect_accepted(connect, &accept);
	return true;
}

/* ---- advancing -------------------------------------------------------------------------- */

/*
 * Begins to connect, the likely candidates first. Returns 0; -EAGAIN if none can begin yet; another
 * negative errno (logged).
 */
MESH_HOLDS(process)
static int peers_begin(struct mesh_connect *connect, uint64_t now_ms)
{
	int ret;

	mesh_neighbour_hints_order(connect->net->process, &connect->handle, &connect->choice);
	ret = try_begun(connect, mesh_connect_try_start(connect, now_ms), now_ms);
	if ((!ret || ret == -EAGAIN) && connect->state == MESH_CONNECT_ASKING)
		connect_state_set(connect, MESH_CONNECT_PEERS);
	return ret;
}

/* Finds the candidates among all NICs that are known now. */
MESH_HOLDS(process)
static void candidates_renew(struct mesh_connect *connect)
{
	mesh_candidates_find(connect->net->process, connect->dev, &connect->handle,
			     &connect->choice);
	connect->unopened = 0;
}

/*
 * There is no path. Relays may lead there: then returns -EAGAIN. Else looks for a route first, so
 * that the message can say over which nodes the cables lead there; returns -EAGAIN while it looks,
 * then -ENETUNREACH (logged).
 */
MESH_HOLDS(process)
static int no_path(struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;

	if (!mesh_connect_relay_begin(connect)) {
		connect_state_set(connect, MESH_CONNECT_PEERS);
		return -EAGAIN;
	}
	if (!connect->route_asked) {
		connect->route_asked = true;
		if (mesh_neighbour_hints_route_ask(process, &connect->handle))
			return -EAGAIN;
	}
	if (mesh_neighbour_hints_route_wait(process, &connect->handle))
		return -EAGAIN;
	mesh_connect_log_no_path(connect);
	return -ENETUNREACH;
}

/* No NIC of the handle shares a link: perhaps one does that has answered as a neighbour. */
MESH_HOLDS(process)
static int neighbours_renew(struct mesh_connect *connect)
{
	mesh_neighbour_hints_learn(connect->net->process, &connect->handle);
	candidates_renew(connect);
	return connect->choice.num_candidates ? 0 : no_path(connect);
}

MESH_HOLDS(process)
static void answers_wait(struct mesh_connect *connect, uint64_t now_ms)
{
	int ret = 0;

	if (mesh_neighbour_hints_wait(connect->net->process, &connect->handle, &connect->choice,
				      connect->started_ms, now_ms))
		return;
	if (!connect->choice.num_candidates)
		ret = neighbours_renew(connect);
	if (!ret)
		ret = peers_begin(connect, now_ms);
	if (ret && ret != -EAGAIN)
		connect_fail(connect, ret);
}

/*
 * The handle had no room for all NICs, and a HELLO has them: begins again with the best candidates
 * of all. Returns true if so.
 */
MESH_HOLDS(process)
static bool hello_learn(struct mesh_connect *connect, uint64_t now_ms)
{
	if (!mesh_connect_handle_learn(connect))
		return false;
	candidates_renew(connect);
	mesh_neighbour_hints_order(connect->net->process, &connect->handle, &connect->choice);
	try_go_on(connect, mesh_connect_try_again(connect, now_ms), now_ms);
	return true;
}

/* Relays, once they are looked for, lead there unless a candidate is up. */
MESH_HOLDS(process)
static void relays_try(struct mesh_connect *connect, uint64_t now_ms)
{
	if (!connect->relay && mesh_connect_relay_is_due(connect, now_ms))
		(void)!mesh_connect_relay_begin(connect); /* else the candidates go on alone */
	if (!connect->relay || mesh_connect_is_up(connect))
		return;
	if (!connect->num_dials && mesh_connect_relay_is_hopeless(connect, now_ms)) {
		if (!connect->choice.num_candidates) {
			mesh_connect_log_no_path(connect);
			connect_fail(connect, -ENETUNREACH);
			return;
		}
		mesh_connect_log_away(connect, now_ms); /* until the deadline */
	} else if (!connect->num_dials) {
		mesh_connect_relay_log_slow(connect, now_ms);
	}
	if (connect->num_dials && !mesh_connect_relay_is_due(connect, now_ms))
		return; /* they were begun while none had a carrier */
	if (!mesh_relay_try_is_ready(connect->relay, now_ms))
		return;
	if (connect->num_dials && !connect->open_ms)
		mesh_connect_relay_log(connect, now_ms);
	connect->open_ms = now_ms;
	connect_state_set(connect, MESH_CONNECT_OPEN_SENT);
	path_request(connect);
}

/* What is up becomes the paths of the comm, in place of relays that have not answered yet. */
MESH_HOLDS(process)
static void candidates_take(struct mesh_connect *connect)
{
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	if (connect->state == MESH_CONNECT_OPEN_SENT) {
		mesh_info("the links or routes to node %s work now, and no relay has answered: "
			  "leaving the relays",
			  mesh_handle_node_text(&connect->handle, node));
		comm_drop(connect);
		connect_state_set(connect, MESH_CONNECT_PEERS);
	}
	if (connect->relay)
		mesh_relay_try_end(connect->relay);
	mesh_connect_try_settle(connect);
	connect_state_set(connect, MESH_CONNECT_SENT);
	path_request(connect);
}

MESH_HOLDS(process)
static void candidates_try(struct mesh_connect *connect, uint64_t now_ms)
{
	enum mesh_verdict verdict;

	if (!connect->num_dials) {
		try_go_on(connect, mesh_connect_try_start(connect, now_ms), now_ms);
		return;
	}
	if (hello_learn(connect, now_ms))
		return;
	verdict = mesh_connect_lanes_judge(connect, now_ms);
	if (verdict == MESH_VERDICT_READY) {
		candidates_take(connect);
	} else if (verdict == MESH_VERDICT_REFUSED && connect->state == MESH_CONNECT_PEERS) {
		mesh_connect_log_timeout(connect, now_ms);
		connect_fail(connect, mesh_connect_try_informative(connect)->refusal
					      ? -EPROTO
					      : -ECONNREFUSED);
	} else {
		mesh_connect_log_slow(connect, now_ms);
		if (verdict == MESH_VERDICT_NEXT)
			try_go_on(connect, mesh_connect_try_next(connect, now_ms), now_ms);
	}
}

MESH_HOLDS(process)
static void foreign_advance(struct mesh_connect *connect, uint64_t now_ms)
{
	int ret = mesh_connect_foreign_advance(connect, now_ms);

	if (ret)
		connect_fail(connect, ret);
}

/* Advances one connection as far as possible now. */
MESH_HOLDS(process)
static void connect_advance(struct mesh_connect *connect, uint64_t now_ms)
{
	mesh_process_assert_locked(connect->net->process);
	if (connect->state >= MESH_CONNECT_DONE)
		return;
	if (connect->handle.foreign) {
		foreign_advance(connect, now_ms);
		return;
	}
	if (connect->state == MESH_CONNECT_ASKING)
		answers_wait(connect, now_ms);
	if (connect->state == MESH_CONNECT_FAILED)
		return;
	if (now_ms >= connect->deadline_ms) {
		mesh_connect_log_timeout(connect, now_ms);
		connect_fail(connect, -ETIMEDOUT);
		return;
	}
	if (connect->state == MESH_CONNECT_ASKING)
		return; /* for a tenth of a second, or while no NIC can be used */
	if (connect->comm && mesh_comm_has_lost_path(connect->comm)) {
		if (connect->state == MESH_CONNECT_OPEN_SENT) {
			relay_refused(connect, MESH_REFUSAL_BROKEN);
		} else {
			comm_drop(connect);
			connect_state_set(connect, MESH_CONNECT_PEERS);
			try_go_on(connect, mesh_connect_try_next(connect, now_ms), now_ms);
		}
	}
	/* Not while an OPEN may be answered soon: the listener's NCCL may have the comm already. */
	if (connect->choice.num_candidates &&
	    (connect->state == MESH_CONNECT_PEERS ||
	     (connect->state == MESH_CONNECT_OPEN_SENT &&
	      mesh_clock_elapsed_ms(connect->open_ms, now_ms) >= MESH_DIAL_MS)))
		candidates_try(connect, now_ms);
	if (connect->state == MESH_CONNECT_PEERS)
		relays_try(connect, now_ms);
}

void mesh_connect_free(struct mesh_connect *connect)
{
	bool gives_up = connect->comm || connect->state < MESH_CONNECT_DONE;

	mesh_process_assert_locked(connect->net->process);
	comm_drop(connect);
	if (gives_up)
		mesh_connect_give_up(connect);
	mesh_connect_try_end(connect);
	mesh_engine_timer_cancel(&connect->net->process->engine, &connect->timer);
	LIST_REMOVE(connect, entry);
	LIST_REMOVE(connect, id_entry);
	mesh_relay_try_close(connect->relay);
	free(connect);
}

/* ---- NCCL's call ----------------------------------------------------------------------- */

MESH_HOLDS(process)
static struct mesh_connect_bucket *bucket_of(struct mesh_setup *setup, uint64_t id)
{
	return &setup->connects_by_id[id % MESH_CONNECT_BUCKETS];
}

MESH_HOLDS(process)
static struct mesh_connect *connect_find(struct mesh_net *net, uint64_t id,
					 const struct mesh_handle *handle)
{
	struct mesh_connect *connect;

	LIST_FOREACH(connect, bucket_of(net->setup, id), id_entry) {
		/* The id comes from the buffer, so it is trusted only with the right listener. */
		if (connect->id == id && connect->net == net &&
		    connect->handle.cookie == handle->cookie &&
		    connect->handle.listen_id == handle->listen_id)
			return connect;
	}
	return NULL;
}

static uint64_t advance_pause_ms(const struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t pause_ms = mesh_clock_elapsed_ms(connect->started_ms, now_ms) / ADVANCE_PART;

	if (pause_ms < ADVANCE_MIN_MS)
		return ADVANCE_MIN_MS;
	return pause_ms < ADVANCE_MAX_MS ? pause_ms : ADVANCE_MAX_MS;
}

MESH_HOLDS(process)
static void connect_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_connect *connect = mesh_container_of(timer, struct mesh_connect, timer);
	struct mesh_engine *engine = &connect->net->process->engine;

	connect_advance(connect, now_ms);
	if (connect->state < MESH_CONNECT_DONE) {
		mesh_engine_timer_set(engine, timer, now_ms + advance_pause_ms(connect, now_ms));
	} else if (!connect->over_ms) {
		connect->over_ms = now_ms;
		mesh_engine_timer_set(engine, timer, now_ms + ABANDONED_MS);
	} else if (!connect->last_call) {
		connect->last_call = true;
		mesh_engine_timer_set(engine, timer, now_ms + LAST_CALL_MS);
	} else {
		mesh_connect_free(connect);
	}
}

MESH_HOLDS(process)
static int connect_start(struct mesh_net *net, int dev, const struct mesh_handle *handle,
			 struct mesh_connect **started)
{
	struct mesh_process *process = net->process;
	struct mesh_connect *connect = calloc(1, sizeof(*connect));
	int ret = 0;

	if (!connect)
		return -ENOMEM;
	connect->net = net;
	connect->dev = dev;
	connect->handle = *handle;
	mesh_neighbour_hints_learn(process, &connect->handle);
	connect->started_ms = mesh_clock_ms();
	connect->deadline_ms = connect->started_ms + process->config.connect_timeout_s * 1000;
	candidates_renew(connect);
	connect->id = ++net->setup->next_connect_id;
	if (!handle->foreign &&
	    !mesh_neighbour_hints_ask(process, &connect->handle, &connect->choice))
		ret = connect->choice.num_candidates ? peers_begin(connect, connect->started_ms)
						     : no_path(connect);
	if (ret && ret != -EAGAIN) {
		free(connect);
		return ret;
	}
	LIST_INSERT_HEAD(&net->setup->connects, connect, entry);
	LIST_INSERT_HEAD(bucket_of(net->setup, connect->id), connect, id_entry);
	connect->timer.expired = connect_expired;
	mesh_engine_timer_set(&process->engine, &connect->timer,
			      connect->started_ms + ADVANCE_MIN_MS);
	*started = connect;
	return 0;
}

/* Returns the comm, or the error, and frees the connect. */
MESH_HOLDS(process)
static int connect_finish(struct mesh_connect *connect, struct mesh_comm **comm)
{
	int ret = 0;

	if (connect->state == MESH_CONNECT_DONE) {
		*comm = connect->comm;
		(*comm)->opener = NULL;
		(*comm)->use = MESH_COMM_USED;
		mesh_connect_try_late_want(connect);
		mesh_connect_relay_keep(connect);
		connect->comm = NULL;
	} else if (connect->state == MESH_CONNECT_FAILED) {
		ret = connect->error;
	} else {
		return 0;
	}
	mesh_connect_free(connect);
	return ret;
}

int mesh_net_connect(struct mesh_net *net, int dev, void *handle_bytes, struct mesh_comm **comm)
{
	struct mesh_process *process = net->process;
	struct mesh_connect *connect;
	struct mesh_handle handle;
	int ret;

	*comm = NULL;
	ret = mesh_connect_handle_read(process, handle_bytes, &handle);
	if (ret)
		return ret;
	mesh_process_poll(process);
	mesh_process_lock(process);
	connect = connect_find(net, handle.connect_id, &handle);
	if (!connect) {
		ret = mesh_setup_start(process);
		if (!ret)
			ret = connect_start(net, dev, &handle, &connect);
		if (ret == -EAGAIN)
			ret = 0; /* not ready: NCCL calls again */
		if (!connect)
			goto unlock;
		mesh_handle_connect_id_set(handle_bytes, connect->id);
	}
	connect_advance(connect, mesh_clock_ms());
	ret = connect_finish(connect, comm);
	if (ret)
		mesh_handle_connect_id_set(handle_bytes, 0);
unlock:
	mesh_process_unlock(process);
	if (*comm)
		mesh_comm_paths_log(*comm);
	return ret;
}
