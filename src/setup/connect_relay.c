/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_relay.c - a connection to a node without a common link: over relays (relay_try.h), also
 * where there is a link or a route, and nothing comes through, or no RDMA does.
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
/* Relays that go before routed tcp have this part of the time to connect at most. */
#define RDMA_SHARE 3
/*
 * And no more than this where an earlier connection has waited for them in vain: one that works
 * answers sooner, and one that refuses is asked again only after that.
 */
#define RDMA_AGAIN_MS 300

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

	if (mesh_dead_routes_have(connect, MESH_DEAD_ROUTED))
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

/* How long relays with RDMA may keep the candidates waiting: these need time of their own. */
static uint64_t rdma_share_ms(const struct mesh_connect *connect)
{
	return (connect->deadline_ms - connect->started_ms) / RDMA_SHARE;
}

/*
 * True if relays with RDMA go before the candidates that may still be used: those of this try, and
 * the routed ones whose turn comes. Those that had it in this attempt are not among these, nor
 * those that an earlier one has found dead, nor those whose NIC is slow to open, has no carrier, or
 * is drained.
 */
MESH_HOLDS(process)
static bool candidates_yield(const struct mesh_connect *connect)
{
	const struct mesh_process *process = connect->net->process;
	const struct mesh_path_choice *choice = &connect->choice;
	const struct mesh_path_candidate *pair;
	int k;

	if (!mesh_paths_yield(connect->pairs, connect->num_dials))
		return false;
	for (k = connect->first_candidate; k < choice->num_candidates; k++) {
		pair = &choice->candidates[k];
		if (mesh_path_class_is_routed(pair->class) && !mesh_paths_yield(pair, 1) &&
		    !mesh_connect_candidate_waits(connect, k) &&
		    !mesh_process_is_drained(process, process->endpoints[pair->local].nic))
			return mesh_dead_routes_have(connect, MESH_DEAD_ROUTED);
	}
	return true;
}

/* True while they may; an earlier connection may have waited for them in vain. */
MESH_HOLDS(process)
static bool rdma_has_time(struct mesh_connect *connect, uint64_t now_ms)
{
	if (!connect->rdma_ms)
		connect->rdma_ms = now_ms;
	return mesh_clock_elapsed_ms(connect->rdma_ms, now_ms) < RDMA_AGAIN_MS ||
	       !mesh_dead_routes_have(connect, MESH_DEAD_RDMA);
}

bool mesh_connect_awaits_rdma(struct mesh_connect *connect, uint64_t now_ms)
{
	const struct mesh_process *process = connect->net->process;
	const struct mesh_handle *handle = &connect->handle;

	mesh_process_assert_locked(process);
	return connect->state == MESH_CONNECT_PEERS && !connect->relay &&
	       mesh_connect_awaits_rdma_ms(connect, now_ms) && candidates_yield(connect) &&
	       mesh_endpoints_have_rdma(process->endpoints, process->num_endpoints) &&
	       mesh_endpoints_have_rdma(handle->endpoints, handle->num_endpoints) &&
	       detour_open(connect) && !connect->detour->vain && rdma_has_time(connect, now_ms);
}

uint64_t mesh_connect_awaits_rdma_ms(const struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t age_ms = mesh_clock_elapsed_ms(connect->started_ms, now_ms);

	return age_ms < rdma_share_ms(connect) ? rdma_share_ms(connect) - age_ms : 0;
}

/*
 * True while a HELLO may name NICs for which the handle had no room: a cable between two of them
 * goes before relays. A HELLO counts once the try was judged with its peer up: connect.c reads it
 * before that. Overdue candidates are not waited for.
 */
static bool cable_may_follow(const struct mesh_connect *connect)
{
	return mesh_handle_lacks_nics(&connect->handle) && !connect->up_ms && !connect->overdue;
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
	else if (!mesh_dead_routes_have(connect, MESH_DEAD_ROUTED))
		mesh_warn("the links to node %s have let nothing through for %llu ms (%s): going "
			  "over relays. 'fi_mesh check --peer' on both nodes says more",
			  node, age_ms,
			  dial->peer->reason[0] ? dial->peer->reason : "TCP has no answer");
}

/* They are ready. @dead: the candidates have let nothing through */
MESH_HOLDS(process)
static void detour_take(struct mesh_connect *connect, bool dead, uint64_t now_ms)
{
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	mesh_handle_node_text(&connect->handle, node);
	if (dead)
		dead_log(connect, node, now_ms);
	else
		mesh_info("the routes to node %s have no RDMA: going over relays that have it on "
			  "each hop",
			  node);
	if (dead && mesh_connect_try_informative(connect)) /* else their NIC was not open */
		mesh_dead_routes_add(connect, MESH_DEAD_ROUTED);
	mesh_connect_try_end(connect);
	connect->relay = connect->detour;
	connect->detour = NULL;
	connect->detoured = true;
}

void mesh_connect_detour(struct mesh_connect *connect, uint64_t now_ms)
{
	bool dead;

	mesh_process_assert_locked(connect->net->process);
	if (connect->state != MESH_CONNECT_PEERS || connect->relay)
		return;
	overdue_learn(connect, now_ms);
	dead = connect->overdue && connect->choice.num_candidates;
	if (!dead && (!mesh_connect_awaits_rdma(connect, now_ms) || cable_may_follow(connect)))
		return;
	if (!detour_open(connect))
		return;
	if (connect->detour->before_tcp == dead) { /* what it has found is of the other kind */
		mesh_relay_try_again(connect->detour);
		connect->detour->before_tcp = !dead;
	}
	if (mesh_relay_try_is_ready(connect->detour, now_ms))
		detour_take(connect, dead, now_ms);
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

/* How long the candidates leave these relays alone after an OPEN. */
MESH_HOLDS(process)
static uint64_t alone_ms(const struct mesh_connect *connect)
{
	uint64_t share_ms = rdma_share_ms(connect);

	if (!connect->relay->before_tcp)
		return OPEN_ALONE_MS;
	if (share_ms > RDMA_AGAIN_MS && mesh_dead_routes_have(connect, MESH_DEAD_RDMA))
		return RDMA_AGAIN_MS;
	return share_ms < MESH_RELAY_RDMA_MS ? share_ms : MESH_RELAY_RDMA_MS;
}

bool mesh_connect_detour_beside(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_relay_try *relay = connect->relay;
	bool ready;

	mesh_process_assert_locked(connect->net->process);
	if (!connect->detoured ||
	    mesh_clock_elapsed_ms(connect->open_ms, now_ms) < alone_ms(connect))
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
	if (!connect->relay->before_tcp) /* else mesh_connect_log_no_rdma() says it */
		mesh_info("the links or routes to node %s work now, and no relay has answered: "
			  "leaving the relays",
			  mesh_handle_node_text(&connect->handle, node));
	mesh_relay_try_end(connect->relay);
	connect->detour = connect->relay;
	connect->detour->vain = true; /* the candidates do not wait for it again */
	connect->relay = NULL;
	connect->detoured = false;
	candidates_begin_anew(connect);
}

void mesh_connect_relay_end(struct mesh_connect *connect)
{
	mesh_connect_try_end(connect);
	if (!connect->detoured)
		return;
	if (connect->relay->before_tcp)
		candidates_begin_anew(connect);
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
	const struct mesh_handle *handle = &connect->handle;
	char node[MESH_HANDLE_NODE_TEXT_MAX];
	struct mesh_comm_wish wish = {
		.sending = true,
		.num_paths = connect->num_dials,
		.key = key,
		.handle = handle,
	};

	mesh_process_assert_locked(connect->net->process);
	if (connect->relay) {
		wish.num_paths = connect->relay->num_dials;
		wish.relayed_to = handle->node[0] ? handle->node
						  : mesh_handle_node_text(handle, node);
	}
	return mesh_comm_open(connect->net, peer, &wish, &connect->comm);
}

/* Whether later connections to the node should wait for relays with RDMA. */
MESH_HOLDS(process)
static void rdma_remember(const struct mesh_connect *connect)
{
	const struct mesh_relay_try *relay = connect->relay, *detour = connect->detour;

	if (relay && relay->before_tcp)
		mesh_dead_routes_remove(connect->net->process, connect->handle.node_id,
					MESH_DEAD_RDMA);
	else if (!relay && detour && detour->before_tcp && detour->known &&
		 mesh_paths_yield(connect->pairs, connect->num_dials))
		mesh_dead_routes_add(connect, MESH_DEAD_RDMA);
}

void mesh_connect_relay_keep(struct mesh_connect *connect)
{
	mesh_process_assert_locked(connect->net->process);
	rdma_remember(connect);
	if (connect->relay) /* a link may let something through later */
		mesh_late_links_want(connect->net->process, connect->dev, &connect->handle, false);
	mesh_reroute_soon(connect->comm); /* its circuit may have broken before NCCL asked for it */
}
