/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - NCCL's listen and accept, and the comms made in between. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer_send.h"
#include "nic/nic.h"
#include "setup/listener.h"
#include "setup/openings.h"
#include "setup/start.h"
#include "transport/attach.h"
#include "transport/comm_end.h"
#include "transport/comm_open.h"
#include "transport/path_relayed.h"
#include "transport/path_state.h"
#include "transport/receive.h"
#include "wire/handle.h"
#include "wire/stats.h"

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
		mesh_accept_wait_heard(&listener->wait, peer);
}

void mesh_listener_foreign(struct mesh_peer *peer, const struct mesh_frame_hello *hello,
			   const char *reason)
{
	struct mesh_listener *listener;

	listener = listener_find(peer->process, hello->listen_id, hello->cookie);
	if (listener)
		mesh_accept_wait_refused(&listener->wait, peer, reason);
}

void mesh_listener_peer_lost(struct mesh_peer *peer, bool missed)
{
	struct mesh_listener *listener;

	mesh_process_assert_locked(peer->process);
	LIST_FOREACH(listener, &mesh_setup_of(peer->process)->listeners, entry)
		mesh_accept_wait_peer_lost(&listener->wait, peer, missed);
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

static bool is_whole(const struct mesh_comm *comm)
{
	return comm->num_paths == comm->wanted_paths;
}

/* The connector may try again on another path: this comm gets no further path. */
MESH_HOLDS(process)
static bool is_broken(struct mesh_comm *comm)
{
	bool broken = mesh_comm_has_lost_path(comm);

	mesh_comm_lock(comm);
	broken |= mesh_comm_peer_is_over(comm);
	mesh_comm_unlock(comm);
	return broken;
}

MESH_HOLDS(process)
static void waiting_drop(struct mesh_listener *listener, int i)
{
	listener->num_left++;
	mesh_comm_free(listener->waiting[i]);
	waiting_remove(listener, i);
}

/*
 * True for a complete comm that has lost a path, if it is unknown whether the connector received
 * the last ACCEPT: the connector may connect again.
 */
MESH_HOLDS(process)
static bool is_doubtful(struct mesh_comm *comm)
{
	bool known;

	mesh_comm_lock(comm);
	known = comm->peer_said || comm->rerouted || mesh_receive_has_early(comm);
	mesh_comm_unlock(comm);
	return mesh_comm_has_lost_path(comm) && !known;
}

/* True if no connector has the comm. */
MESH_HOLDS(process)
static bool is_left(struct mesh_comm *comm)
{
	return is_whole(comm) ? comm->use == MESH_COMM_ABANDONED && is_doubtful(comm)
			      : is_broken(comm);
}

/* Drops the comms that failed before all of their paths were there. */
MESH_HOLDS(process)
static void left_drop(struct mesh_listener *listener)
{
	int i;

	for (i = listener->num_waiting - 1; i >= 0; i--) {
		if (is_left(listener->waiting[i]))
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

	mesh_accept_wait_heard(&listener->wait, peer);
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

/*
 * True if this very CONNECT has made a comm, which may have ended since: the frame is a repetition,
 * which no connector sends. A comm of its own would have a connector that knows nothing of it.
 */
MESH_HOLDS(process)
static bool is_replayed(struct mesh_process *process, const struct mesh_frame_connect *request)
{
	const struct mesh_taken_connects *taken = &mesh_setup_of(process)->taken_connects;
	int i;

	for (i = 0; i < MESH_TAKEN_CONNECTS_MAX; i++) {
		if (taken->connects[i].comm_key == request->comm_key &&
		    taken->connects[i].comm == request->comm &&
		    taken->connects[i].token == request->token)
			return true;
	}
	return false;
}

MESH_HOLDS(process)
static void connect_remember(struct mesh_process *process, const struct mesh_frame_connect *request)
{
	struct mesh_taken_connects *taken = &mesh_setup_of(process)->taken_connects;

	taken->connects[taken->next].comm_key = request->comm_key;
	taken->connects[taken->next].comm = request->comm;
	taken->connects[taken->next].token = request->token;
	taken->next = (taken->next + 1) % MESH_TAKEN_CONNECTS_MAX;
}

void mesh_listener_connect(struct mesh_peer *peer, const struct mesh_frame_connect *request)
{
	const struct mesh_frame_accept other = {.comm = request->comm, .token = request->token};
	enum mesh_refusal refusal = MESH_REFUSAL_COOKIE;
	struct mesh_listener *listener;
	struct mesh_comm *comm = NULL;
	struct mesh_path *path;

	if (!request->path && is_replayed(peer->process, request)) {
		mesh_count_event(&peer->process->counters->refused);
		return; /* without an answer, which the comm's connector would take as its own */
	}
	listener = listener_find(peer->process, request->listen_id, request->cookie);
	if (listener)
		refusal = path_take(listener, peer, request, &comm);
	if (refusal) {
		mesh_peer_refuse(peer, refusal, request->comm);
		return;
	}
	if (!request->path)
		connect_remember(peer->process, request);
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

void mesh_listener_withdrawn(struct mesh_peer *peer, const struct mesh_frame_withdraw *withdraw)
{
	const struct mesh_frame_closed nothing = {0};
	struct mesh_listener *listener;
	struct mesh_comm *comm;

	listener = listener_find(peer->process, withdraw->listen_id, withdraw->cookie);
	if (listener && withdraw->final)
		mesh_accept_wait_given_up(&listener->wait, peer);
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
	handle.near =
		(uint16_t)mesh_nics_near(process->nics, process->num_nics, listener->dev, NULL);
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

/* A link that is still being greeted is none that was lost. */
MESH_HOLDS(process)
static bool has_lost_all_paths(const struct mesh_comm *comm)
{
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		if (!comm->paths[i].broken && comm->paths[i].peer->state != MESH_PEER_LOST)
			return false;
	}
	return true;
}

/*
 * True if there has been time enough to connect again, for a connector that was lost, or whose
 * circuit broke, so that it is unknown whether it got the comm. A comm without any path waits for
 * one: it gets it, or learns that the connector has ended it; or it fails.
 */
MESH_HOLDS(process)
static bool is_doubted_for_long(struct mesh_listener *listener, struct mesh_comm *comm,
				uint64_t now_ms)
{
	bool waits;

	mesh_comm_lock(comm);
	waits = !comm->error && has_lost_all_paths(comm);
	mesh_comm_unlock(comm);
	if (waits)
		mesh_accept_wait_hold(&listener->wait, now_ms);
	if (!comm->doubted_ms)
		comm->doubted_ms = now_ms;
	return !waits && mesh_clock_elapsed_ms(comm->doubted_ms, now_ms) >= MESH_DIAL_MS;
}

/*
 * Takes the first complete comm, even if it has ended: NCCL then gets what was sent on it, and
 * after that the error. NULL if there is none.
 */
MESH_HOLDS(process)
static struct mesh_comm *whole_take(struct mesh_listener *listener, uint64_t now_ms)
{
	struct mesh_comm *comm;
	int i, k = -1;

	for (i = 0; i < listener->num_waiting; i++) {
		comm = listener->waiting[i];
		if (!is_whole(comm))
			continue;
		if (!is_doubtful(comm)) {
			k = i;
			break;
		}
		if (k < 0 && is_doubted_for_long(listener, comm, now_ms))
			k = i;
	}
	if (k < 0)
		return NULL;
	comm = listener->waiting[k];
	comm->use = MESH_COMM_USED;
	waiting_remove(listener, k);
	mesh_accept_wait_end(&listener->wait);
	return comm;
}

MESH_HOLDS(process)
static int accept_whole(struct mesh_listener *listener, struct mesh_comm **comm)
{
	uint64_t now = mesh_clock_ms();

	left_drop(listener);
	*comm = whole_take(listener, now);
	if (*comm)
		return 0;
	if (mesh_openings_failed(listener->net->process))
		return -ENODEV;
	return mesh_accept_wait_check(&listener->wait, listener->num_left, now);
}

int mesh_listener_accept(struct mesh_listener *listener, struct mesh_comm **comm)
{
	struct mesh_process *process = listener->net->process;
	int ret;

	*comm = NULL;
	mesh_process_poll(process);
	mesh_process_lock(process);
	ret = accept_whole(listener, comm);
	mesh_process_unlock(process);
	if (*comm)
		mesh_comm_paths_log(*comm);
	return ret;
}

/* Notifies the connector that its comm is refused. */
MESH_HOLDS(process)
static void waiting_refuse(struct mesh_comm *comm)
{
	mesh_comm_refuse(comm);
	mesh_comm_free(comm);
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
	for (i = 0; i < listener->num_waiting; i++)
		waiting_refuse(listener->waiting[i]);
	mesh_process_unlock(process);
	free(listener);
}
