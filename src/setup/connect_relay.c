/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_relay.c - a connection to a node without a common link: over relays (relay_try.h), also
 * where there is a link or a route, and nothing comes through.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer.h"
#include "nic/addr.h"
#include "setup/connect_judge.h"
#include "setup/connect_relay.h"
#include "setup/connect_try.h"
#include "setup/late_nics.h"
#include "transport/comm_open.h"
#include "transport/path_state.h"
#include "transport/route_wait.h"

/* Without a neighbour of our job: those of this communicator have all started before. */
#define LONELY_MS 5000
/*
 * Candidates have this time for themselves, and more if TCP reaches the other process: then a
 * greeting may have been lost once, or one of the two nodes is busy.
 */
#define ALONE_MS 4000
#define ALONE_ANSWERED_MS 10000
/* The same where an earlier connection has waited in vain: enough to learn that they work again. */
#define ALONE_AGAIN_MS 300

int mesh_connect_relay_begin(struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;

	if (connect->relay)
		return 0;
	if (!connect->choice.num_candidates && connect->choice.differing.provider)
		return -ENETUNREACH;
	return mesh_relay_try_open(process, &connect->handle, (int)process->config.max_paths,
				   &connect->relay);
}

bool mesh_connect_relay_is_hopeless(const struct mesh_connect *connect, uint64_t now_ms)
{
	return !connect->relay->tried.num &&
	       (connect->relay->found_ms || connect->choice.num_candidates) &&
	       mesh_clock_elapsed_ms(connect->started_ms, now_ms) >= LONELY_MS;
}

/* True if the other process has accepted a connection of this dial. */
MESH_HOLDS(process)
static bool is_answered(const struct mesh_dial *dial)
{
	const struct mesh_peer *peer = dial->peer;

	return peer && (peer->name[0] || peer->state == MESH_PEER_HELLO ||
			peer->state == MESH_PEER_GREETING);
}

/* True if the dial had its time, for this connection or for earlier ones. */
MESH_HOLDS(process)
static bool is_overdue(const struct mesh_process *process, const struct mesh_dial *dial,
		       uint64_t now_ms)
{
	uint64_t tried_ms = mesh_way_tried_ms(process, &dial->way);

	return tried_ms && mesh_clock_elapsed_ms(tried_ms, now_ms) >=
				   (is_answered(dial) ? ALONE_ANSWERED_MS : ALONE_MS);
}

bool mesh_connect_relay_is_due(const struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t age_ms = mesh_clock_elapsed_ms(connect->started_ms, now_ms), alone_ms = ALONE_MS;
	const struct mesh_process *process = connect->net->process;
	const struct mesh_dial *dial;
	bool overdue = connect->num_dials;

	mesh_process_assert_locked(process);
	if (age_ms < ALONE_AGAIN_MS)
		return false;
	for (dial = connect->dials; dial < connect->dials + connect->num_dials; dial++) {
		if (dial->state == MESH_DIAL_UP || dial->state == MESH_DIAL_OPENING)
			return false;
		if (is_answered(dial))
			alone_ms = ALONE_ANSWERED_MS;
	}
	if (age_ms >= alone_ms)
		return true;
	for (dial = connect->dials; overdue && dial < connect->dials + connect->num_dials; dial++)
		overdue = is_overdue(process, dial, now_ms);
	return overdue;
}

void mesh_connect_relay_log(const struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_process *process = connect->net->process;
	const unsigned long long age_ms = now_ms - connect->started_ms;
	char node[MESH_HANDLE_NODE_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];
	const struct mesh_dial *dial = NULL;
	int i;

	mesh_process_assert_locked(process);
	mesh_handle_node_text(&connect->handle, node);
	for (i = 0; i < connect->num_dials; i++) {
		if (connect->pairs[i].class == MESH_PATH_DIRECT && connect->dials[i].peer &&
		    !mesh_addr_is_link_local(&connect->dials[i].way.address.addr))
			dial = &connect->dials[i];
	}
	if (!dial)
		mesh_info("the routes to node %s have let nothing through for %llu ms: going over "
			  "relays",
			  node, age_ms);
	else if (mesh_log_limit_pass(&process->limits.dead_links, 1, now_ms, more))
		mesh_warn("the links to node %s have let nothing through for %llu ms (%s): going "
			  "over relays. 'fi_mesh check --peer' on both nodes says more%s",
			  node, age_ms,
			  dial->peer->reason[0] ? dial->peer->reason : "TCP has no answer", more);
}

int mesh_connect_comm_open(struct mesh_connect *connect, struct mesh_peer *peer, uint64_t key)
{
	const struct mesh_process *process = connect->net->process;
	const struct mesh_handle *handle = &connect->handle;
	char node[MESH_HANDLE_NODE_TEXT_MAX];
	int ret;
	struct mesh_comm_wish wish = {
		.num_paths = connect->num_dials,
		.key = key,
		.handle = handle,
	};

	mesh_process_assert_locked(process);
	if (connect->state == MESH_CONNECT_OPEN_SENT) {
		wish.num_paths = connect->relay->num_dials;
		wish.relayed_to = handle->node[0] ? handle->node
						  : mesh_handle_node_text(handle, node);
	}
	ret = mesh_comm_open(connect->net, peer, &wish, &connect->comm);
	if (ret)
		return ret;
	connect->comm->use = MESH_COMM_OPENING;
	connect->comm->may_rdma =
		mesh_endpoints_have_rdma(process->endpoints, process->num_endpoints) &&
		mesh_endpoints_have_rdma(handle->endpoints, handle->num_endpoints);
	return 0;
}
