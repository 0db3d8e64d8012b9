/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_relay.c - a connection to a node without a common link: over relays (relay_try.h), also
 * where there is a link or a route, and nothing comes through.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "nic/addr.h"
#include "setup/connect_judge.h"
#include "setup/connect_relay.h"
#include "setup/connect_try.h"
#include "setup/dead_routes.h"
#include "setup/late_nics.h"
#include "transport/comm_open.h"
#include "transport/path_state.h"
#include "transport/route_wait.h"

/* Without a neighbour of our job: those of this communicator have all started before. */
#define LONELY_MS 5000
/*
 * Candidates have this time for themselves, and more if TCP reaches the other process: then
 * a greeting may have been lost once, or one of the two nodes is busy. Where tcp follows RDMA, it
 * has as much.
 */
#define DETOUR_MS 4000
#define DETOUR_ANSWERED_MS 10000
/* The same where an earlier connection has waited in vain: enough to learn that they work again. */
#define DETOUR_AGAIN_MS 300
#define DETOUR_AGAIN_ANSWERED_MS 2000
/* An OPEN without an answer for so long may never get one. */
#define OPEN_ALONE_MS MESH_DIAL_MS

int mesh_connect_relay_begin(struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;

	if (connect->choice.provider_differs)
		return -ENETUNREACH;
	return mesh_relay_try_open(process, &connect->handle, (int)process->config.max_paths,
				   &connect->relay);
}

bool mesh_connect_relay_is_hopeless(const struct mesh_connect *connect, uint64_t now_ms)
{
	return !connect->relay->tried.num && (connect->relay->found_ms || connect->away) &&
	       mesh_clock_elapsed_ms(connect->started_ms, now_ms) >= LONELY_MS;
}

/* True if the other process has accepted a connection of this try. */
MESH_HOLDS(process)
static bool is_answered(const struct mesh_connect *connect)
{
	const struct mesh_peer *peer;
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		peer = connect->dials[i].peer;
		if (!peer)
			continue;
		if (peer->name[0] || peer->state == MESH_PEER_HELLO ||
		    peer->state == MESH_PEER_GREETING)
			return true;
	}
	return false;
}

/* How long the candidates have before relays, whatever these are, are looked for. */
MESH_HOLDS(process)
static uint64_t patience_ms(const struct mesh_connect *connect)
{
	const struct mesh_path_choice *choice = &connect->choice;
	bool answered = is_answered(connect), doubled = false;
	uint64_t wait_ms = answered ? DETOUR_ANSWERED_MS : DETOUR_MS;
	int i;

	if (mesh_dead_routes_have(connect))
		wait_ms = answered ? DETOUR_AGAIN_ANSWERED_MS : DETOUR_AGAIN_MS;
	for (i = 0; i < choice->num_candidates; i++)
		doubled |= choice->candidates[i].class == MESH_PATH_FALLBACK_ROUTED;
	return doubled ? 2 * wait_ms : wait_ms;
}

/*
 * Learns whether they had this time. Those that had stay overdue, even if the other process answers
 * then without being up: what relays have said would be lost each time.
 */
MESH_HOLDS(process)
static void overdue_learn(struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t since_ms = connect->back_ms ? connect->back_ms : connect->started_ms;
	bool opens = false;
	int i;

	for (i = 0; i < connect->num_dials; i++)
		opens |= connect->dials[i].state == MESH_DIAL_OPENING;
	/* One that is up may wait for its lanes, for which connect->up_ms begins again. */
	if (mesh_connect_is_up(connect))
		connect->overdue = false;
	else if (!opens && mesh_clock_elapsed_ms(since_ms, now_ms) >= patience_ms(connect))
		connect->overdue = true;
}

/* The candidates are not dead, and have all their time again. */
static void candidates_begin_anew(struct mesh_connect *connect)
{
	connect->back_ms = mesh_clock_ms();
	connect->overdue = false;
}

/* Returns false if no relay may be used, or without memory. */
MESH_HOLDS(process)
static bool detour_open(struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;

	return connect->detour ||
	       !mesh_relay_try_open(process, &connect->handle, (int)process->config.max_paths,
				    &connect->detour);
}

/* One WARN for a link that should work; who has read it needs no other one. */
MESH_HOLDS(process)
static void dead_log(const struct mesh_connect *connect, const char *node, uint64_t now_ms)
{
	const unsigned long long age_ms = now_ms - connect->started_ms;
	const struct mesh_dial *dial = NULL;
	int i;

	for (i = 0; i < connect->num_dials; i++) {
		if (connect->pairs[i].class == MESH_PATH_DIRECT && connect->dials[i].peer &&
		    !mesh_addr_is_link_local(&connect->dials[i].way.address.addr))
			dial = &connect->dials[i];
	}
	if (!dial)
		mesh_info("the routes to node %s have let nothing through for %llu ms: going over "
			  "relays",
			  node, age_ms);
	else if (!mesh_dead_routes_have(connect))
		mesh_warn("the links to node %s have let nothing through for %llu ms (%s): going "
			  "over relays. 'fi_mesh check --peer' on both nodes says more",
			  node, age_ms,
			  dial->peer->reason[0] ? dial->peer->reason : "TCP has no answer");
}

/* They are ready, and the candidates have let nothing through. */
MESH_HOLDS(process)
static void detour_take(struct mesh_connect *connect, uint64_t now_ms)
{
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	dead_log(connect, mesh_handle_node_text(&connect->handle, node), now_ms);
	if (mesh_connect_try_informative(connect)) /* else their NIC was not open */
		mesh_dead_routes_add(connect);
	mesh_connect_try_end(connect);
	connect->relay = connect->detour;
	connect->detour = NULL;
	connect->detoured = true;
}

void mesh_connect_detour(struct mesh_connect *connect, uint64_t now_ms)
{
	mesh_process_assert_locked(connect->net->process);
	if (connect->state != MESH_CONNECT_PEERS || connect->relay)
		return;
	overdue_learn(connect, now_ms);
	if (connect->overdue && connect->choice.num_candidates && detour_open(connect) &&
	    mesh_relay_try_is_ready(connect->detour, now_ms))
		detour_take(connect, now_ms);
}

/* Tries the candidates. Returns true if some are up, and the others had their time. */
MESH_HOLDS(process)
static bool candidates_try(struct mesh_connect *connect, uint64_t now_ms)
{
	enum mesh_verdict verdict;

	if (!connect->num_dials && mesh_connect_try_start(connect, now_ms))
		return false; /* none can begin now */
	verdict = mesh_connect_judge(connect, now_ms);
	if (verdict == MESH_VERDICT_NEXT)
		(void)!mesh_connect_try_next(connect, now_ms);
	return verdict == MESH_VERDICT_READY;
}

bool mesh_connect_detour_beside(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_relay_try *relay = connect->relay;
	bool ready;

	mesh_process_assert_locked(connect->net->process);
	if (!connect->detoured || mesh_clock_elapsed_ms(connect->open_ms, now_ms) < OPEN_ALONE_MS)
		return false;
	connect->relay = NULL; /* a try that ends would release its peers as well */
	ready = candidates_try(connect, now_ms);
	connect->relay = relay;
	return ready;
}

void mesh_connect_detour_leave(struct mesh_connect *connect)
{
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	mesh_process_assert_locked(connect->net->process);
	mesh_info("the links or routes to node %s work now, and no relay has answered: leaving the "
		  "relays",
		  mesh_handle_node_text(&connect->handle, node));
	mesh_relay_try_end(connect->relay);
	connect->detour = connect->relay;
	connect->relay = NULL;
	connect->detoured = false;
	candidates_begin_anew(connect);
}

void mesh_connect_relay_end(struct mesh_connect *connect)
{
	mesh_connect_try_end(connect);
	if (!connect->detoured)
		return;
	connect->detour = connect->relay;
	connect->relay = NULL;
	connect->detoured = false;
}

void mesh_connect_relay_close(struct mesh_connect *connect)
{
	mesh_relay_try_close(connect->relay);
	mesh_relay_try_close(connect->detour);
}

int mesh_connect_comm_open(struct mesh_connect *connect, struct mesh_peer *peer, uint64_t key)
{
	const struct mesh_process *process = connect->net->process;
	const struct mesh_handle *handle = &connect->handle;
	char node[MESH_HANDLE_NODE_TEXT_MAX];
	int ret;
	struct mesh_comm_wish wish = {
		.sending = true,
		.num_paths = connect->num_dials,
		.key = key,
		.handle = handle,
	};

	mesh_process_assert_locked(process);
	if (connect->relay) {
		wish.num_paths = connect->relay->num_dials;
		wish.relayed_to = handle->node[0] ? handle->node
						  : mesh_handle_node_text(handle, node);
	}
	ret = mesh_comm_open(connect->net, peer, &wish, &connect->comm);
	if (!ret)
		connect->comm->may_rdma =
			mesh_endpoints_have_rdma(process->endpoints, process->num_endpoints) &&
			mesh_endpoints_have_rdma(handle->endpoints, handle->num_endpoints);
	return ret;
}

void mesh_connect_relay_keep(struct mesh_connect *connect)
{
	enum mesh_path_tier tier;

	mesh_process_assert_locked(connect->net->process);
	tier = mesh_comm_tier(connect->comm);
	if (tier > MESH_TIER_ROUTED_RDMA) /* a link may let something through later */
		mesh_late_links_want(connect->net->process, connect->dev, &connect->handle, tier);
	mesh_reroute_soon(connect->comm); /* its circuit may have broken before NCCL asked for it */
}
