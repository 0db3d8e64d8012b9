/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - NCCL's listen and accept, and the comms made in between. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "nic/nic.h"
#include "setup/connecting.h"
#include "setup/listener.h"
#include "setup/setup.h"
#include "transport/comm_life.h"
#include "transport/data.h"
#include "wire/handle.h"

/* If accept() waits for this long, one WARN reports it. */
#define SLOW_MS 10000

#define ADDRESSES_TEXT_MAX 384
#define SUSPECT_TEXT_MAX (MESH_PEER_TEXT_MAX + MESH_PEER_REASON_MAX + 64)

/* ---- how long accept() waits, and the messages about it ----------------------------------- */

/* True if another peer has a connection with the process of @peer. */
MESH_HOLDS(process)
static bool process_is_here(const struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (other != peer &&
		    (other->state == MESH_PEER_GREETING || other->state == MESH_PEER_UP))
			return true;
	}
	return false;
}

static void wait_state_set(struct mesh_accept_wait *wait, enum mesh_accept_peer state)
{
	if (wait->state == MESH_ACCEPT_REFUSED)
		return;
	wait->state = state;
	wait->gone_ms = mesh_clock_ms();
}

/* @peer has sent the listener's cookie. */
MESH_HOLDS(process)
static void wait_heard(struct mesh_accept_wait *wait, const struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	wait->process_id = peer->process_id;
	mesh_peer_text(peer, wait->name);
	wait_state_set(wait, MESH_ACCEPT_HERE);
}

/* @peer, which has sent the listener's cookie, runs another protocol version: see @reason. */
MESH_HOLDS(process)
static void wait_refused(struct mesh_accept_wait *wait, const struct mesh_peer *peer,
			 const char *reason)
{
	mesh_process_assert_locked(peer->process);
	mesh_peer_text(peer, wait->name);
	snprintf(wait->reason, sizeof(wait->reason), "%s", reason);
	wait_state_set(wait, MESH_ACCEPT_REFUSED);
}

/* @peer is about to be lost, for peer->reason. */
MESH_HOLDS(process)
static void wait_peer_lost(struct mesh_accept_wait *wait, const struct mesh_peer *peer)
{
	if (!peer->process_id || wait->process_id != peer->process_id ||
	    wait->state >= MESH_ACCEPT_GAVE_UP || process_is_here(peer))
		return;
	wait_state_set(wait, peer->state == MESH_PEER_UP ? MESH_ACCEPT_LOST_UP : MESH_ACCEPT_LOST);
	snprintf(wait->reason, sizeof(wait->reason), "%s", peer->reason);
}

MESH_HOLDS(process)
static const char *addresses_text(const struct mesh_accept_wait *wait, char *text)
{
	const struct mesh_process *process = wait->process;

	return mesh_endpoints_text(process->endpoints, process->num_endpoints, process, text,
				   ADDRESSES_TEXT_MAX);
}

/*
 * True if the peer is gone, and during this accept() for longer than another attempt takes. A peer
 * whose connection was never complete may retry until its own NCCL_MESH_CONNECT_TIMEOUT, which we
 * assume to equal ours.
 */
static bool is_gone(const struct mesh_accept_wait *wait, uint64_t now_ms)
{
	uint64_t since_ms = wait->gone_ms > wait->since_ms ? wait->gone_ms : wait->since_ms;
	uint64_t limit_ms = wait->process->config.connect_timeout_s * 1000;

	if (wait->state != MESH_ACCEPT_LOST)
		limit_ms = MESH_CONNECT_SLOW_MS;
	return wait->state != MESH_ACCEPT_HERE &&
	       mesh_clock_elapsed_ms(since_ms, now_ms) >= limit_ms;
}

MESH_HOLDS(process)
static void gone_log(const struct mesh_accept_wait *wait)
{
	bool gave_up = wait->state == MESH_ACCEPT_GAVE_UP;
	char local[ADDRESSES_TEXT_MAX];

	mesh_warn("node %s: %s was connecting to the listener on %s, and %s%s. Its log has the "
		  "reason.",
		  wait->process->name, wait->name, addresses_text(wait, local),
		  gave_up ? "reports that it has given up" : "is gone: ",
		  gave_up ? "" : wait->reason);
}

/* Another attempt would fail as well. */
MESH_HOLDS(process)
static void refused_log(const struct mesh_accept_wait *wait)
{
	char local[ADDRESSES_TEXT_MAX];

	mesh_warn("node %s refused %s, which connected to the listener on %s: %s",
		  wait->process->name, wait->name, addresses_text(wait, local), wait->reason);
}

/* What is known of the rank that does not connect, as a sentence, or "". */
static const char *suspect_text(const struct mesh_accept_wait *wait, char *text, size_t size)
{
	text[0] = '\0';
	if (wait->process_id && wait->state != MESH_ACCEPT_HERE)
		snprintf(text, size, " %s began to connect, and its connection ended: %s.",
			 wait->name, wait->reason);
	else if (wait->process_id)
		snprintf(text, size, " %s has begun to connect and has not finished.", wait->name);
	return text;
}

MESH_HOLDS(process)
static void timeout_log(const struct mesh_accept_wait *wait)
{
	const struct mesh_process *process = wait->process;
	char local[ADDRESSES_TEXT_MAX], suspect[SUSPECT_TEXT_MAX];

	mesh_warn("node %s: no rank connected within %llu s to the listener on %s.%s The other "
		  "rank's log has the reason; NCCL_MESH_ACCEPT_TIMEOUT changes the time.",
		  process->name, (unsigned long long)process->config.accept_timeout_s,
		  addresses_text(wait, local), suspect_text(wait, suspect, sizeof(suspect)));
}

/* Ranks may start minutes apart: this is not an error yet, and must not read like one. */
MESH_HOLDS(process)
static void slow_log(struct mesh_accept_wait *wait, uint64_t now_ms)
{
	const struct mesh_process *process = wait->process;
	char local[ADDRESSES_TEXT_MAX], suspect[SUSPECT_TEXT_MAX];

	if (wait->warned || mesh_clock_elapsed_ms(wait->since_ms, now_ms) < SLOW_MS)
		return;
	wait->warned = true;
	mesh_warn("node %s has waited %llu s for another rank to connect to the listener on %s. "
		  "If that rank starts later, this is normal. If it has started, its log has the "
		  "reason. accept fails in %llu s (NCCL_MESH_ACCEPT_TIMEOUT).%s",
		  process->name, (unsigned long long)(now_ms - wait->since_ms) / 1000,
		  addresses_text(wait, local),
		  (unsigned long long)(wait->deadline_ms - now_ms) / 1000,
		  suspect_text(wait, suspect, sizeof(suspect)));
}

/* A comm waits for its path to come back: the peer's process is not gone as long as that lasts. */
MESH_HOLDS(process)
static void wait_hold(struct mesh_accept_wait *wait, uint64_t now_ms)
{
	mesh_process_assert_locked(wait->process);
	if (wait->state == MESH_ACCEPT_LOST || wait->state == MESH_ACCEPT_LOST_UP)
		wait->gone_ms = now_ms;
}

/*
 * Called by each accept() that finds no comm. Returns 0 while it is worth waiting; after a WARN
 * -EPROTONOSUPPORT if the process that is to connect runs another protocol version, -ECONNRESET if
 * it is gone or has given up, -ETIMEDOUT after NCCL_MESH_ACCEPT_TIMEOUT.
 */
MESH_HOLDS(process)
static int wait_check(struct mesh_accept_wait *wait, uint64_t now_ms)
{
	uint64_t timeout_s = wait->process->config.accept_timeout_s;

	mesh_process_assert_locked(wait->process);
	if (!wait->since_ms) {
		wait->since_ms = now_ms;
		wait->deadline_ms = now_ms + timeout_s * 1000;
	}
	if (wait->state == MESH_ACCEPT_REFUSED) {
		refused_log(wait);
		return -EPROTONOSUPPORT;
	}
	if (is_gone(wait, now_ms)) {
		gone_log(wait);
		return -ECONNRESET;
	}
	if (now_ms >= wait->deadline_ms) {
		timeout_log(wait);
		return -ETIMEDOUT;
	}
	slow_log(wait, now_ms);
	return 0;
}

/* ---- the engine's side ----------------------------------------------------------------- */

/* The listener with this id and cookie, or NULL. */
MESH_HOLDS(process)
static struct mesh_listener *listener_find(struct mesh_process *process, uint32_t id,
					   uint64_t cookie)
{
	struct mesh_listener *listener;

	mesh_process_assert_locked(process);
	LIST_FOREACH(listener, &mesh_setup_of(process)->listeners, entry) {
		if (listener->id == id && cookie == process->cookie)
			return listener;
	}
	return NULL;
}

void mesh_listener_introduced(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	struct mesh_listener *listener;

	listener = listener_find(peer->process, hello->listen_id, hello->cookie);
	if (listener)
		wait_heard(&listener->wait, peer);
}

void mesh_listener_foreign(struct mesh_peer *peer, const struct mesh_frame_hello *hello,
			   const char *reason)
{
	struct mesh_listener *listener;

	listener = listener_find(peer->process, hello->listen_id, hello->cookie);
	if (listener)
		wait_refused(&listener->wait, peer, reason);
}

void mesh_listener_peer_lost(struct mesh_peer *peer)
{
	struct mesh_listener *listener;

	mesh_process_assert_locked(peer->process);
	LIST_FOREACH(listener, &mesh_setup_of(peer->process)->listeners, entry)
		wait_peer_lost(&listener->wait, peer);
}

/* The comm that this path belongs to, or NULL. */
static struct mesh_comm *comm_growing(const struct mesh_listener *listener,
				      const struct mesh_frame_connect *request)
{
	struct mesh_comm *comm;
	int i;

	for (i = 0; i < listener->num_waiting; i++) {
		comm = listener->waiting[i];
		if (comm->key == request->comm_key && comm->num_paths == request->path &&
		    comm->wanted_paths == request->num_paths)
			return comm;
	}
	return NULL;
}

static void waiting_remove(struct mesh_listener *listener, int i)
{
	listener->num_waiting--;
	memmove(&listener->waiting[i], &listener->waiting[i + 1],
		(size_t)(listener->num_waiting - i) * sizeof(listener->waiting[0]));
}

MESH_HOLDS(process)
static void waiting_drop(struct mesh_listener *listener, int i)
{
	mesh_comm_free(listener->waiting[i]);
	waiting_remove(listener, i);
}

/* What a comm is for accept(). */
enum standing {
	STANDING_GROWS,	  /* it lacks a path */
	STANDING_READY,	  /* its connector has it, for all that is known */
	STANDING_DOUBTED, /* it has lost a path, and perhaps the connector did not get the answer */
	STANDING_AWAY,	  /* the same, without a path: it gets one back, or fails */
	STANDING_LEFT,	  /* no connector has it: the next attempt makes another */
};

MESH_HOLDS(process)
static enum standing standing_of(struct mesh_comm *comm)
{
	bool lost = mesh_comm_has_lost_path(comm), known, over;

	mesh_comm_lock(comm);
	known = comm->peer_said || comm->rerouted || mesh_receive_has_early(comm);
	over = comm->error || mesh_comm_peer_is_over(comm);
	mesh_comm_unlock(comm);
	if (comm->num_paths < comm->wanted_paths)
		return lost || over ? STANDING_LEFT : STANDING_GROWS;
	if (!lost || known)
		return STANDING_READY;
	if (comm->use == MESH_COMM_ABANDONED)
		return STANDING_LEFT;
	return mesh_comm_is_cut(comm) && !over ? STANDING_AWAY : STANDING_DOUBTED;
}

MESH_HOLDS(process)
static void left_drop(struct mesh_listener *listener)
{
	int i;

	for (i = listener->num_waiting - 1; i >= 0; i--) {
		if (standing_of(listener->waiting[i]) == STANDING_LEFT)
			waiting_drop(listener, i);
	}
}

/* Makes a comm, or adds a path to one. Returns 0 or the refusal. */
MESH_HOLDS(process)
static enum mesh_refusal path_take(struct mesh_listener *listener, struct mesh_peer *peer,
				   const struct mesh_frame_connect *request,
				   struct mesh_comm **comm)
{
	const struct mesh_comm_wish wish = {
		.num_paths = request->num_paths,
		.key = request->comm_key,
		.relayed_to = *request->via ? request->origin : NULL,
	};

	wait_heard(&listener->wait, peer);
	if (!request->path) {
		if (listener->num_waiting == MESH_LISTENER_QUEUE)
			left_drop(listener);
		if (listener->num_waiting == MESH_LISTENER_QUEUE)
			return MESH_REFUSAL_RESOURCES;
		if (mesh_comm_open(listener->net, peer, &wish, comm))
			return MESH_REFUSAL_RESOURCES;
		(*comm)->use = MESH_COMM_WAITS;
		listener->waiting[listener->num_waiting++] = *comm;
		return 0;
	}
	*comm = comm_growing(listener, request);
	if (!*comm)
		return MESH_REFUSAL_COOKIE;
	return mesh_comm_path_add(*comm, peer, *request->via) ? MESH_REFUSAL_RESOURCES : 0;
}

void mesh_listener_connect(struct mesh_peer *peer, const struct mesh_frame_connect *request)
{
	const struct mesh_frame_accept other = {.comm = request->comm, .token = request->token};
	enum mesh_refusal refusal = MESH_REFUSAL_COOKIE;
	struct mesh_listener *listener;
	struct mesh_comm *comm = NULL;
	struct mesh_path *path;

	listener = listener_find(peer->process, request->listen_id, request->cookie);
	if (listener)
		refusal = path_take(listener, peer, request, &comm);
	if (refusal) {
		mesh_peer_refuse(peer, refusal, request->comm);
		return;
	}
	path = &comm->paths[comm->num_paths - 1];
	(void)!mesh_path_via_set(path, request->via); /* else the log has "relay" */
	comm->cookie = request->cookie;
	mesh_path_accepted(path, &other);
	mesh_attach_answer(path, peer, request);
}

static struct mesh_comm *comm_of_key(const struct mesh_peer *peer, uint64_t key)
{
	struct mesh_peer_user *user;
	struct mesh_path *path;

	LIST_FOREACH(user, &peer->user_list, entry) {
		path = mesh_path_if_user(user);
		if (path && !path->comm->sending && path->comm->key == key)
			return path->comm;
	}
	return NULL;
}

/* Drops the comm if it waits for accept() here. */
MESH_HOLDS(process)
static bool waiting_find_drop(struct mesh_listener *listener, const struct mesh_comm *comm)
{
	int i;

	for (i = 0; i < listener->num_waiting; i++) {
		if (listener->waiting[i] != comm)
			continue;
		waiting_drop(listener, i);
		return true;
	}
	return false;
}

void mesh_listener_withdrawn(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	const struct mesh_frame_withdraw *withdraw = &frame->withdraw;
	const struct mesh_frame_close nothing = {.closed = 1};
	struct mesh_listener *listener;
	struct mesh_comm *comm;

	listener = listener_find(peer->process, withdraw->listen_id, withdraw->cookie);
	if (listener && withdraw->final) {
		wait_heard(&listener->wait, peer);
		wait_state_set(&listener->wait, MESH_ACCEPT_GAVE_UP);
	}
	comm = comm_of_key(peer, withdraw->comm_key);
	/* NCCL has the sending end of one that had another circuit: its relay reports this end. */
	if (!comm || comm->rerouted)
		return;
	LIST_FOREACH(listener, &mesh_setup_of(peer->process)->listeners, entry) {
		if (waiting_find_drop(listener, comm))
			return;
	}
	mesh_comm_close_came(comm, &nothing); /* NCCL has it already */
}

/* ---- NCCL's side ----------------------------------------------------------------------- */

/* A smaller number comes first in the handle, into which not all may fit. */
static int offer_rank(const struct mesh_process *process, const struct mesh_endpoint_addr *offer,
		      int dev)
{
	if (process->dev_reserves[offer->nic])
		return 2;
	return offer->nic != dev; /* NCCL asked for this NIC */
}

static void endpoints_order(const struct mesh_process *process, int dev, struct mesh_handle *handle)
{
	struct mesh_endpoint_addr offers[MESH_NICS_MAX];
	int count = mesh_process_offers(process, offers), i, rank, n = 0;

	for (rank = 0; rank <= 2; rank++) {
		for (i = 0; i < count; i++) {
			if (offer_rank(process, &offers[i], dev) == rank)
				handle->endpoints[n++] = offers[i];
		}
	}
	handle->num_endpoints = n;
}

MESH_HOLDS(process)
static void handle_write(const struct mesh_listener *listener, void *bytes)
{
	const struct mesh_process *process = listener->net->process;
	struct mesh_handle handle;
	int fitted;

	memset(&handle, 0, sizeof(handle));
	handle.node_id = process->node_id;
	handle.cookie = process->cookie;
	handle.listen_id = listener->id;
	handle.control_port = process->control_port;
	handle.dev = (uint8_t)listener->dev;
	endpoints_order(process, listener->dev, &handle);
	handle.total_nics = (uint8_t)handle.num_endpoints;
	handle.near = (uint16_t)mesh_nics_near(process->nics, process->num_nics, listener->dev);
	snprintf(handle.node, sizeof(handle.node), "%s", process->name);
	fitted = mesh_handle_encode(&handle, bytes);
	if (fitted < handle.num_endpoints)
		mesh_info("%d of %d NICs fit into the handle: a node that shares none of them "
			  "learns of the others as a neighbour, and each node by HELLO",
			  fitted, handle.num_endpoints);
}

int mesh_net_listen(struct mesh_net *net, int dev, void *handle, struct mesh_listener **listener)
{
	struct mesh_process *process = net->process;
	struct mesh_listener *opened;
	int ret;

	if (dev < 0 || dev >= process->num_nics) {
		mesh_warn("NCCL listens on NIC %d, but there are %d: please report this", dev,
			  process->num_nics);
		return -EINVAL;
	}
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->net = net;
	opened->wait.process = process;
	opened->dev = dev;
	mesh_process_lock(process);
	ret = mesh_setup_start(process);
	if (ret) {
		mesh_process_unlock(process);
		free(opened);
		return ret;
	}
	opened->id = ++mesh_setup_of(process)->next_listen_id;
	LIST_INSERT_HEAD(&mesh_setup_of(process)->listeners, opened, entry);
	handle_write(opened, handle);
	mesh_process_unlock(process);
	*listener = opened;
	return 0;
}

/*
 * The first comm that its connector has, even if it has ended: NCCL then gets what was sent on it,
 * and after that the error. Else the first one that is in doubt for so long that the connector
 * would have connected again. -1: none.
 */
MESH_HOLDS(process)
static int ready_find(struct mesh_listener *listener, uint64_t now_ms)
{
	enum standing standing;
	struct mesh_comm *comm;
	int i, k = -1;

	for (i = 0; i < listener->num_waiting; i++) {
		comm = listener->waiting[i];
		standing = standing_of(comm);
		if (standing == STANDING_READY)
			return i;
		if (standing == STANDING_AWAY)
			wait_hold(&listener->wait, now_ms);
		if (!comm->doubted_ms && standing != STANDING_GROWS)
			comm->doubted_ms = now_ms;
		if (k < 0 && standing == STANDING_DOUBTED &&
		    mesh_clock_elapsed_ms(comm->doubted_ms, now_ms) >= MESH_DIAL_MS)
			k = i;
	}
	return k;
}

MESH_HOLDS(process)
static int accept_ready(struct mesh_listener *listener, struct mesh_comm **comm)
{
	uint64_t now_ms = mesh_clock_ms();
	int k;

	left_drop(listener);
	k = ready_find(listener, now_ms);
	if (k < 0)
		return wait_check(&listener->wait, now_ms);
	*comm = listener->waiting[k];
	(*comm)->use = MESH_COMM_USED;
	waiting_remove(listener, k);
	listener->wait = (struct mesh_accept_wait){.process = listener->net->process};
	return 0;
}

int mesh_listener_accept(struct mesh_listener *listener, struct mesh_comm **comm)
{
	struct mesh_process *process = listener->net->process;
	int ret;

	*comm = NULL;
	mesh_process_poll(process);
	mesh_process_lock(process);
	ret = accept_ready(listener, comm);
	mesh_process_unlock(process);
	if (*comm)
		mesh_comm_paths_log(*comm);
	return ret;
}

void mesh_listener_close(struct mesh_listener *listener)
{
	struct mesh_process *process;
	int i;

	if (!listener)
		return;
	process = listener->net->process;
	mesh_process_lock(process);
	LIST_REMOVE(listener, entry);
	for (i = 0; i < listener->num_waiting; i++) {
		mesh_comm_refuse(listener->waiting[i]);
		mesh_comm_free(listener->waiting[i]);
	}
	mesh_process_unlock(process);
	free(listener);
}
