/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_ops.c - what is the same for all paths: each leads over one of our NICs to one of a peer's,
 * the process at the other end or a relay. Here it is opened, moved to another peer, and closed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "control/process.h"
#include "system/tcp_look.h"
#include "transport/comm.h"
#include "transport/grants.h"
#include "transport/path_relayed.h"
#include "transport/receive.h"
#include "transport/send.h"

struct mesh_path_ends mesh_path_describe(const struct mesh_path *path)
{
	const struct mesh_domain *domain = path->domain;
	struct mesh_path_ends ends = {
		.local = &domain->nic->source,
		.remote = &path->peer->address.addr,
		.nic = domain->nic->netdev,
		.provider = domain->provider,
		.via = path->peer->routed ? MESH_STATS_ROUTED : MESH_STATS_DIRECT,
	};

	if (path->has_relay)
		ends.via = MESH_STATS_RELAY;
	/* Names are stable: users' scripts read them. */
	ends.via_text = path->via ? path->via : mesh_stats_via_text(ends.via);
	return ends;
}

/* ---- counting ----------------------------------------------------------------------------- */

/*
 * What it counts `fi_mesh watch` shows (wire/stats.h has the page). Counting is an addition in
 * memory, under a lock that is held anyway. It never fails: a path for which the page has no room
 * counts in memory that no tool reads.
 */
MESH_HOLDS(process)
static void counters_open(struct mesh_path *path)
{
	struct mesh_process *process = path->comm->process;
	const struct mesh_path_ends ends = mesh_path_describe(path);
	const struct mesh_stats_link link = {
		.local = *ends.local,
		.remote = *ends.remote,
		.nic = ends.nic,
		.peer = path->comm->peer_name,
		.sending = path->comm->sending,
		.provider = ends.provider,
		.via = ends.via,
	};
	struct mesh_counters *counters = NULL;

	if (process->stats.page)
		counters = mesh_stats_open(process->stats.page, &link, mesh_clock_wall_ms());
	mesh_comm_lock(path->comm);
	path->counters = counters ? counters : &path->comm->unlisted;
	mesh_comm_unlock(path->comm);
}

MESH_HOLDS(process)
static void counters_close(struct mesh_path *path)
{
	struct mesh_process *process = path->comm->process;
	struct mesh_counters *counters;

	/* An operation that never ended may still complete: then it counts as unlisted. */
	mesh_comm_lock(path->comm);
	counters = path->counters;
	path->counters = &path->comm->unlisted;
	mesh_comm_unlock(path->comm);
	if (counters != &path->comm->unlisted)
		mesh_stats_close(process->stats.page, counters);
}

/* It has other ends, or other relays: it counts apart from what it was. */
MESH_HOLDS(process)
static void counters_renew(struct mesh_path *path)
{
	counters_close(path);
	counters_open(path);
}

/* ---- opening, moving, closing -------------------------------------------------------------- */

MESH_HOLDS(domain)
void mesh_path_wait_cancel(struct mesh_path *path)
{
	mesh_domain_wait_cancel(path->domain, &path->waiter);
	if (path->relayed)
		mesh_path_relayed_wait_cancel(path);
}

MESH_HOLDS(domain)
void mesh_path_sink_remove(struct mesh_path *path)
{
	mesh_sink_remove(path->domain, &path->sink);
}

/* Gives the sink an id and a token of its own. @relay: as in mesh_path_move(). */
MESH_HOLDS(process)
static int sink_begin(struct mesh_path *path, struct mesh_peer *peer, bool relay)
{
	struct mesh_sink *sink = &path->sink;
	int ret;

	sink->message = mesh_receive_message;
	sink->written = mesh_receive_written;
	if (path->comm->sending) {
		sink->message = relay ? mesh_path_relayed_message : mesh_credit_message;
		sink->written = NULL;
	}
	ret = mesh_random(&sink->token, sizeof(sink->token));
	if (!ret && relay && path->comm->sending && !path->relayed)
		ret = mesh_path_relayed_make(path);
	return ret ? ret : mesh_sink_add(peer->domain, sink);
}

/* What the domain determines. */
MESH_HOLDS(comm)
static void domain_learn(struct mesh_path *path, struct mesh_domain *domain)
{
	path->polls = &domain->polls;
	path->inject_max = domain->inject_max;
	if (path->inject_max > MESH_PATH_INJECT_MAX)
		path->inject_max = MESH_PATH_INJECT_MAX;
	path->payload_max = domain->payload_max;
	path->segment_max = domain->segment_max;
	path->segment_bytes = domain->segment_bytes ? domain->segment_bytes : SIZE_MAX;
	path->immediate_bits = domain->immediate_bits;
	path->is_acknowledged = !domain->delivery_flag;
	path->domain = domain;
}

int mesh_path_via_set(struct mesh_path *path, const char *via)
{
	char *named;

	mesh_process_assert_locked(path->comm->process);
	if (!strcmp(via, path->via ? path->via : ""))
		return 0;
	named = *via ? strdup(via) : NULL;
	if (!named && *via)
		return -ENOMEM;
	mesh_comm_lock(path->comm);
	free(path->via);
	path->via = named;
	mesh_comm_unlock(path->comm);
	counters_renew(path);
	return 0;
}

/* The path leads to this peer from now on. */
MESH_HOLDS(process)
static void peer_begin(struct mesh_path *path, struct mesh_peer *peer, bool relay)
{
	struct mesh_comm *comm = path->comm;
	bool moves;

	mesh_comm_lock(comm);
	moves = path->domain && path->domain != peer->domain;
	domain_learn(path, peer->domain);
	comm->moves += moves; /* behind the domain: see mesh_registration_open() */
	free(path->via);
	path->via = NULL;
	mesh_path_relayed_rest(path);
	path->peer = peer;
	path->remote = peer->remote;
	path->flow = peer->remote->flow;
	path->has_relay = relay;
	path->pace = &path->flow->pace;
	if (relay && comm->sending)
		mesh_path_relayed_begin(path);
	mesh_comm_unlock(comm);
	mesh_pace_latency_set(&path->flow->pace, mesh_socket_round_trip_ns(peer->watch.fd));
	mesh_peer_user_add(peer, &path->user);
}

int mesh_path_open(struct mesh_path *path, struct mesh_comm *comm, struct mesh_peer *peer,
		   bool relay)
{
	int ret;

	mesh_process_assert_locked(comm->process);
	path->comm = comm;
	path->waiter.resume = comm->sending ? mesh_send_resume : mesh_receive_resume;
	path->user.ops = &mesh_path_user_ops;
	ret = sink_begin(path, peer, relay);
	if (ret) {
		free(path->relayed);
		path->relayed = NULL;
		return ret;
	}
	peer_begin(path, peer, relay);
	counters_open(path);
	return 0;
}

/* Other threads poll the path meanwhile, and nothing else: it is down. */
int mesh_path_move(struct mesh_path *path, struct mesh_peer *peer, bool relay)
{
	struct mesh_domain *before = path->domain;
	int ret, moved;

	mesh_process_assert_locked(path->comm->process);
	mesh_path_relayed_shut(path);
	mesh_domain_lock(before);
	mesh_path_wait_cancel(path);
	mesh_domain_unlock(before);
	ret = sink_begin(path, peer, relay);
	if (ret)
		return ret;
	moved = path->domain != peer->domain || mesh_path_has_relay(path) != relay ||
		!mesh_addr_equal(&path->peer->address.addr, &peer->address.addr);
	mesh_peer_user_remove(path->peer, &path->user);
	peer_begin(path, peer, relay);
	if (moved)
		counters_renew(path);
	return 0;
}

bool mesh_path_suffices(const struct mesh_path *path, size_t eager_limit)
{
	const struct mesh_comm *comm = path->comm;

	if (!comm->reorders && !path->is_acknowledged)
		return false; /* what was cut for RDMA may have its flags in place (place.h) */
	if (comm->sending &&
	    (path->payload_max < comm->eager_limit || eager_limit < comm->eager_limit))
		return false;
	/* A relay cuts what is too large for it. */
	return mesh_path_has_relay(path) || path->segment_max >= comm->segment_max;
}

void mesh_path_close(struct mesh_path *path)
{
	struct mesh_domain *domain = path->domain;

	mesh_process_assert_locked(path->comm->process);
	mesh_path_relayed_shut(path);
	mesh_domain_lock(domain);
	mesh_path_sink_remove(path);
	mesh_path_wait_cancel(path);
	mesh_domain_unlock(domain);
	mesh_path_relayed_free(path);
	counters_close(path);
	free(path->via);
	mesh_peer_user_remove(path->peer, &path->user);
}

struct mesh_path *mesh_comm_path_find(struct mesh_peer *peer, uint32_t id)
{
	struct mesh_sink *sink;
	struct mesh_path *path;

	mesh_process_assert_locked(peer->process);
	mesh_domain_lock(peer->domain);
	sink = mesh_sink_find(peer->domain, id);
	mesh_domain_unlock(peer->domain);
	if (!sink ||
	    (sink->message != mesh_credit_message && sink->message != mesh_receive_message &&
	     sink->message != mesh_path_relayed_message))
		return NULL;
	path = mesh_path_of_sink(sink); /* it is removed with process->lock held */
	return path->peer == peer ? path : NULL;
}
