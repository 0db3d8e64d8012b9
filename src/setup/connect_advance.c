/* SPDX-License-Identifier: Apache-2.0 */
/* connect_advance.c - makes a sending comm: finds candidates, dials them, asks for paths. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "relay/relay.h"
#include "setup/candidates.h"
#include "setup/connecting.h"
#include "setup/relay_try.h"
#include "transport/comm_life.h"

static const uint8_t connect_may_follow[MESH_CONNECT_STATES] = {
	[MESH_CONNECT_ASKING] = 1 << MESH_CONNECT_NEW,
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

/* Withdraws @comm; NULL: gives the whole connection up. */
MESH_HOLDS(process)
static void connect_withdraw(const struct mesh_connect *connect, struct mesh_peer *peer,
			     const struct mesh_comm *comm)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.withdraw.cookie = connect->handle.cookie;
	frame.withdraw.listen_id = connect->handle.listen_id;
	frame.withdraw.comm_key = comm ? comm->key : 0;
	frame.withdraw.final = !comm;
	mesh_peer_send(peer, &frame, MESH_FRAME_WITHDRAW);
}

MESH_HOLDS(process)
static void peer_give_up(const struct mesh_connect *connect, struct mesh_peer *peer)
{
	if (peer && (peer->state == MESH_PEER_GREETING || peer->state == MESH_PEER_UP))
		connect_withdraw(connect, peer, NULL);
}

/* Notifies the accept() on the other node over each connection that exists. */
MESH_HOLDS(process)
static void connect_give_up(const struct mesh_connect *connect)
{
	int i;

	for (i = 0; i < connect->num_dials; i++)
		peer_give_up(connect, connect->dials[i].peer);
	if (connect->relay)
		peer_give_up(connect, connect->relay->dial.peer);
}

MESH_HOLDS(process)
static void comm_drop(struct mesh_connect *connect)
{
	struct mesh_comm *comm = connect->comm;
	int i;

	if (!comm)
		return;
	/* The listener may have its end already, and an ACCEPT may be in flight. */
	for (i = 0; i < comm->num_paths; i++) {
		connect_withdraw(connect, comm->paths[i].peer, comm);
		if (connect->state == MESH_CONNECT_DONE) /* no dial is left */
			connect_withdraw(connect, comm->paths[i].peer, NULL);
	}
	comm->use = MESH_COMM_OPENING; /* NCCL does not get it */
	mesh_comm_free(comm);
	connect->comm = NULL;
}

MESH_HOLDS(process)
static void dials_end(struct mesh_connect *connect)
{
	mesh_connect_try_end(connect);
	mesh_relay_try_close(connect->relay);
	connect->relay = NULL;
}

MESH_HOLDS(process)
static void connect_fail(struct mesh_connect *connect, int error)
{
	mesh_connect_end(connect);
	connect_state_set(connect, MESH_CONNECT_FAILED);
	connect->error = connect->handle.foreign ? -EPROTONOSUPPORT : error;
}

/*
 * Makes connect->relay, if relays may be used, and it does not exist. Returns 0; -ENETUNREACH if
 * there are none for this job; -ENOMEM.
 */
MESH_HOLDS(process)
static int relay_begin(struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;

	if (connect->relay)
		return 0;
	if (connect->handle.foreign ||
	    (!connect->choice.num_candidates && connect->choice.differing.provider))
		return -ENETUNREACH;
	return mesh_relay_try_open(process, &connect->handle, &connect->relay);
}

/*
 * @ret: of the beginning of a try. While no NIC of ours can begin, relays may help.
 * Where no candidate is left, no_path() follows.
 */
MESH_HOLDS(process)
static void try_begun(struct mesh_connect *connect, int ret, uint64_t now_ms)
{
	if (ret == -ENOLINK && relay_begin(connect))
		mesh_connect_log_slow(connect, now_ms);
	else if (ret && ret != -ENOLINK && ret != -ENODEV && ret != -EAGAIN && !connect->relay)
		connect_fail(connect, ret);
}

/* ---- one path after the other ----------------------------------------------------------- */

/* Makes the comm with its first path: to @peer, or through it, if it is a relay. */
MESH_HOLDS(process)
static int comm_open(struct mesh_connect *connect, struct mesh_peer *peer)
{
	const struct mesh_process *process = connect->net->process;
	const struct mesh_handle *handle = &connect->handle;
	char node[MESH_HANDLE_NODE_TEXT_MAX];
	struct mesh_comm_wish wish = {.num_paths = connect->num_dials, .handle = handle};
	int ret = mesh_random(&wish.key, sizeof(wish.key));

	if (ret)
		return ret;
	if (connect->state == MESH_CONNECT_OPEN_SENT) {
		wish.num_paths = 1; /* others that are as good follow (seeker.c) */
		wish.relayed_to = *handle->node ? handle->node
						: mesh_handle_node_text(handle, node);
	}
	ret = mesh_comm_open(connect->net, peer, &wish, &connect->comm);
	if (ret)
		return ret;
	connect->comm->opener = connect;
	connect->comm->use = MESH_COMM_OPENING;
	connect->comm->may_rdma =
		mesh_endpoints_have_rdma(process->endpoints, process->num_endpoints) &&
		mesh_endpoints_have_rdma(handle->endpoints, handle->num_endpoints);
	return 0;
}

/* The place of the latest path of the comm, and of its dial. */
MESH_HOLDS(process)
static int latest(const struct mesh_connect *connect)
{
	return connect->comm->num_paths - 1;
}

/* Asks for the latest path of the comm. */
MESH_HOLDS(process)
static void connect_request(struct mesh_connect *connect)
{
	struct mesh_path *path = &connect->comm->paths[latest(connect)];

	if (connect->state == MESH_CONNECT_OPEN_SENT)
		mesh_relay_try_request(connect->relay, path, mesh_clock_ms());
	else
		mesh_attach_request(path);
}

/* Adds the next path to the comm, or makes the comm with its first, and asks for it. */
MESH_HOLDS(process)
static void path_request(struct mesh_connect *connect)
{
	int ret;

	if (connect->comm)
		ret = mesh_comm_path_add(connect->comm,
					 connect->dials[connect->comm->num_paths].peer, false);
	else if (connect->state == MESH_CONNECT_OPEN_SENT)
		ret = comm_open(connect, connect->relay->dial.peer);
	else
		ret = comm_open(connect, connect->dials[0].peer);
	if (ret) {
		mesh_connect_log_full(connect, ret);
		connect_fail(connect, ret);
		return;
	}
	connect_request(connect);
}

/* Finds the candidates among all NICs that are known now, also from neighbours. */
MESH_HOLDS(process)
static void candidates_renew(struct mesh_connect *connect)
{
	mesh_candidates_find(connect->net->process, connect->dev, &connect->handle,
			     &connect->choice);
}

MESH_HOLDS(process)
static void connect_done(struct mesh_connect *connect)
{
	/* Some of what the attempt left out, or did not know, may work later. */
	if (mesh_comm_tier(connect->comm) > MESH_TIER_ROUTED_RDMA)
		candidates_renew(connect);
	connect_state_set(connect, MESH_CONNECT_DONE);
	dials_end(connect); /* the comm's paths keep what they use */
}

MESH_HOLDS(process)
static void connect_accepted(struct mesh_connect *connect)
{
	int i = latest(connect);

	if (connect->state == MESH_CONNECT_SENT)
		connect->comm->paths[i].reason = connect->pairs[i].reason;
	if (connect->comm->num_paths == connect->comm->wanted_paths)
		connect_done(connect);
	else
		path_request(connect);
}

MESH_HOLDS(process)
static void connect_refused(struct mesh_connect *connect, enum mesh_refusal refusal)
{
	mesh_connect_log_refused(connect->dials[latest(connect)].peer, refusal);
	connect_fail(connect, -ECONNREFUSED);
}

/* Another relay may have a way. */
MESH_HOLDS(process)
static void relay_refused(struct mesh_connect *connect, enum mesh_refusal refusal)
{
	mesh_relay_try_refused(connect->relay, refusal);
	comm_drop(connect);
	mesh_dial_end(&connect->relay->dial);
	connect_state_set(connect, MESH_CONNECT_PEERS);
}

/*
 * Looks for the answer about the latest path (transport/comm_life.h). If it was the last, was
 * accepted and is lost since, the comm recovers: NCCL at the other end may have it.
 */
MESH_HOLDS(process)
static void answer_look(struct mesh_connect *connect)
{
	const struct mesh_path *path = &connect->comm->paths[latest(connect)];

	if (connect->comm->error)
		return; /* it is dropped next: NCCL gets no comm that has failed */
	if (path->known || connect->comm->use == MESH_COMM_ACCEPTED)
		connect_accepted(connect);
	else if (path->refusal && connect->state == MESH_CONNECT_OPEN_SENT)
		relay_refused(connect, path->refusal);
	else if (path->refusal)
		connect_refused(connect, path->refusal);
}

/* ---- advancing -------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void no_path_fail(struct mesh_connect *connect)
{
	mesh_connect_log_no_path(connect);
	connect_fail(connect, -ENETUNREACH);
}

/*
 * There is no candidate, unless a neighbour has answered since: the handle may have had no room for
 * its NIC.
 */
MESH_HOLDS(process)
static void no_path(struct mesh_connect *connect, uint64_t now_ms)
{
	if (mesh_candidates_learn(connect->net->process, &connect->handle))
		candidates_renew(connect);
	/* By then neighbours have said what the error repeats. */
	if (!connect->choice.num_candidates && relay_begin(connect) &&
	    mesh_clock_elapsed_ms(connect->started_ms, now_ms) >= MESH_SETTLE_MS)
		no_path_fail(connect);
}

/* Finds the candidates, which are tried at once unless neighbours are asked first. */
MESH_HOLDS(process)
static void candidates_begin(struct mesh_connect *connect, uint64_t now_ms)
{
	bool begins = connect->state == MESH_CONNECT_NEW;

	if (begins) {
		connect_state_set(connect, MESH_CONNECT_ASKING);
		candidates_renew(connect);
	}
	/* HELLO tells the listener why, and it may also be out of reach. */
	if (connect->handle.foreign && connect->deadline_ms > now_ms + MESH_CONNECT_SLOW_MS)
		connect->deadline_ms = now_ms + MESH_CONNECT_SLOW_MS;
	else if (mesh_candidates_wait(connect->net->process, &connect->handle, &connect->choice,
				      begins, connect->started_ms, now_ms))
		return;
	if (!begins)
		candidates_renew(connect);
	connect_state_set(connect, MESH_CONNECT_PEERS);
}

/*
 * The handle had no room for all NICs of its node, and a HELLO has them: begins again with the best
 * candidates of all. Returns true if so.
 */
MESH_HOLDS(process)
static bool hello_learn(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_dial before[MESH_PATHS_MAX];
	const struct mesh_peer *peer;
	int i, k, num = connect->num_dials;
	bool any = false;

	for (i = 0; mesh_handle_lacks_nics(&connect->handle) && i < connect->num_dials; i++) {
		peer = connect->dials[i].peer;
		for (k = 0; peer && peer->state == MESH_PEER_UP && k < peer->num_nics; k++)
			any |= mesh_handle_nic_add(&connect->handle, &peer->nics[k]);
	}
	if (!any)
		return false;
	candidates_renew(connect);
	/* Their peers stay until the new dials have them. */
	memcpy(before, connect->dials, sizeof(before));
	memset(connect->dials, 0, sizeof(connect->dials));
	try_begun(connect, mesh_connect_try_start(connect, now_ms), now_ms);
	for (i = 0; i < num; i++)
		mesh_dial_end(&before[i]);
	return true;
}

/* There is no candidate, and no neighbour runs a process of this job: it had time to start. */
MESH_HOLDS(process)
static bool is_lonely(const struct mesh_connect *connect, uint64_t now_ms)
{
	return !connect->choice.num_candidates && !connect->relay->tried.num &&
	       connect->relay->found_ms &&
	       mesh_clock_elapsed_ms(connect->started_ms, now_ms) >= MESH_CONNECT_SLOW_MS;
}

/* Relays, once they are looked for, lead there unless a candidate is up. */
MESH_HOLDS(process)
static void relays_try(struct mesh_connect *connect, uint64_t now_ms)
{
	bool due = mesh_connect_relays_are_due(connect, now_ms);

	if (due)
		(void)!relay_begin(connect); /* else the candidates go on alone */
	if (!connect->relay)
		return;
	if (is_lonely(connect, now_ms)) {
		no_path_fail(connect);
		return;
	}
	if (!connect->num_dials)
		mesh_connect_log_slow(connect, now_ms);
	if (connect->num_dials && !due)
		return; /* one is up, or they were begun while none had a carrier */
	if (!mesh_relay_try_is_ready(connect->relay, now_ms))
		return;
	if (connect->num_dials && !connect->relay->open_ms)
		mesh_connect_log_relays(connect, now_ms);
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
		mesh_dial_end(&connect->relay->dial);
	connect_state_set(connect, MESH_CONNECT_SENT);
	path_request(connect);
}

MESH_HOLDS(process)
static void candidates_try(struct mesh_connect *connect, uint64_t now_ms)
{
	enum mesh_verdict verdict;

	if (!connect->num_dials) {
		try_begun(connect, mesh_connect_try_start(connect, now_ms), now_ms);
		return;
	}
	if (hello_learn(connect, now_ms))
		return;
	verdict = mesh_connect_judge(connect, now_ms);
	if (verdict == MESH_VERDICT_READY && connect->handle.foreign) {
		connect_fail(connect, -EPROTONOSUPPORT); /* the other end has its HELLO */
	} else if (verdict == MESH_VERDICT_READY) {
		candidates_take(connect);
	} else if (verdict == MESH_VERDICT_REFUSED && connect->state == MESH_CONNECT_PEERS) {
		mesh_connect_log_timeout(connect, now_ms);
		connect_fail(connect, mesh_connect_try_informative(connect)->refusal
					      ? -EPROTO
					      : -ECONNREFUSED);
	} else {
		mesh_connect_log_slow(connect, now_ms);
		if (verdict == MESH_VERDICT_NEXT)
			try_begun(connect, mesh_connect_try_next(connect, now_ms), now_ms);
	}
}

/* ---- the engine ------------------------------------------------------------------------ */

void mesh_connect_advance(struct mesh_connect *connect, uint64_t now_ms)
{
	mesh_process_assert_locked(connect->net->process);
	if (connect->state >= MESH_CONNECT_DONE)
		return;
	if (connect->state <= MESH_CONNECT_ASKING)
		candidates_begin(connect, now_ms);
	if (connect->comm)
		answer_look(connect);
	if (connect->state >= MESH_CONNECT_DONE)
		return;
	if (now_ms >= connect->deadline_ms) {
		mesh_connect_log_timeout(connect, now_ms);
		connect_fail(connect, -ETIMEDOUT);
		return;
	}
	if (connect->state == MESH_CONNECT_ASKING)
		return;
	if (connect->comm && (connect->comm->error || mesh_comm_has_lost_path(connect->comm))) {
		if (connect->state == MESH_CONNECT_OPEN_SENT) {
			relay_refused(connect, MESH_REFUSAL_BROKEN);
		} else {
			comm_drop(connect);
			connect_state_set(connect, MESH_CONNECT_PEERS);
			try_begun(connect, mesh_connect_try_next(connect, now_ms), now_ms);
		}
	}
	/* A relay waits as long for one of two ways on. */
	if (connect->state == MESH_CONNECT_OPEN_SENT &&
	    mesh_clock_elapsed_ms(connect->relay->open_ms, now_ms) >= 2 * MESH_OPEN_ANSWER_MS)
		relay_refused(connect, MESH_REFUSAL_NO_ANSWER); /* others have their turn */
	/* Not while an OPEN may be answered soon: the listener's NCCL may have the comm already. */
	if (connect->choice.num_candidates &&
	    (connect->state == MESH_CONNECT_PEERS ||
	     (connect->state == MESH_CONNECT_OPEN_SENT &&
	      mesh_clock_elapsed_ms(connect->relay->open_ms, now_ms) >= MESH_DIAL_MS)))
		candidates_try(connect, now_ms);
	if (connect->state == MESH_CONNECT_PEERS && !connect->choice.num_candidates)
		no_path(connect, now_ms);
	if (connect->state == MESH_CONNECT_PEERS)
		relays_try(connect, now_ms);
}

void mesh_connect_end(struct mesh_connect *connect)
{
	bool gives_up = connect->comm || connect->state < MESH_CONNECT_DONE;

	mesh_process_assert_locked(connect->net->process);
	comm_drop(connect);
	if (gives_up)
		connect_give_up(connect);
	dials_end(connect);
}
