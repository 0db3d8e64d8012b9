/* SPDX-License-Identifier: Apache-2.0 */
/* comm_life.c - a comm: made, with its paths, failed, freed; what comes for it, and its log. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "nic/addr.h"
#include "transport/comm_life.h"
#include "transport/data.h"
#include "wire/handle.h"
#include "wire/stats.h"

/* Each part of a comm's memory begins at a multiple of so many bytes. */
#define COMM_PART_ALIGN _Alignof(max_align_t)

/* ---- opening ------------------------------------------------------------------------------- */

/* True if this node has RDMA, be it on a NIC whose link was down. */
MESH_HOLDS(process)
static bool node_has_rdma(const struct mesh_process *process)
{
	const struct mesh_nic *nics = process->table.nics;
	bool has = false;
	int i;

	for (i = 0; i < process->table.num_nics; i++)
		has |= nics[i].verdict == MESH_NIC_LINK_DOWN && *nics[i].rdma.device;
	has &= mesh_provider_id_parse(process->config.provider) != MESH_PROVIDER_TCP;
	return has || mesh_endpoints_have_rdma(process->endpoints, process->num_endpoints);
}

/* A small message may take any path, so it fits all of them, and those that may come later. */
MESH_HOLDS(process)
static void eager_limit_fit(struct mesh_comm *comm, const struct mesh_peer *peer)
{
	enum mesh_provider_id provider = node_has_rdma(comm->process) ? MESH_PROVIDER_VERBS_RXM
								      : peer->domain->provider;
	size_t limit = mesh_process_eager_limit(comm->process, provider);

	if (limit > peer->eager_limit)
		limit = peer->eager_limit;
	if (comm->eager_limit > limit)
		comm->eager_limit = limit;
}

int mesh_comm_path_add(struct mesh_comm *comm, struct mesh_peer *peer, bool relay)
{
	struct mesh_path *path = &comm->paths[comm->num_paths];
	int ret;

	mesh_process_assert_locked(comm->process);
	if (comm->num_paths == comm->wanted_paths)
		return -ENOSPC;
	ret = mesh_path_open(path, comm, peer, relay);
	if (ret)
		return ret;
	comm->reorders |= relay || !path->is_acknowledged;
	eager_limit_fit(comm, peer);
	comm->num_paths++;
	mesh_comm_paths_learn(comm);
	return 0;
}

/*
 * How many paths the comm has room for: some may join late. One over relays begins with a single
 * route.
 */
static int paths_max(const struct mesh_comm_wish *wish)
{
	int max = wish->num_paths + MESH_LATE_PATHS;

	return max < MESH_PATHS_MAX && !wish->relayed_to ? max : MESH_PATHS_MAX;
}

/* One piece: a comm that sends or one that receives, and its paths. */
static struct mesh_comm *comm_alloc(bool sending, int num_paths)
{
	size_t paths_at;
	struct mesh_comm *comm;

	paths_at = sending ? offsetof(struct mesh_comm, send) + sizeof(comm->send)
			   : offsetof(struct mesh_comm, receive) + sizeof(comm->receive);
	paths_at = (paths_at + COMM_PART_ALIGN - 1) / COMM_PART_ALIGN * COMM_PART_ALIGN;
	comm = calloc(1, paths_at + (size_t)num_paths * sizeof(struct mesh_path));
	if (comm)
		comm->paths = (struct mesh_path *)((char *)comm + paths_at);
	return comm;
}

MESH_NOT_ANALYSED
int mesh_comm_open(const void *owner, struct mesh_peer *peer, const struct mesh_comm_wish *wish,
		   struct mesh_comm **comm)
{
	struct mesh_process *process = peer->process;
	int max_paths = paths_max(wish), ret;
	struct mesh_comm *opened;

	mesh_process_assert_locked(process);
	opened = comm_alloc(wish->handle, max_paths);
	if (!opened)
		return -ENOMEM;
	mesh_lock_init(&opened->lock);
	opened->process = process;
	opened->owner = owner;
	opened->sending = wish->handle;
	opened->message_sent = mesh_message_sent;
	opened->key = wish->key;
	opened->wanted_paths = wish->num_paths;
	opened->max_paths = max_paths;
	if (wish->handle) {
		opened->send.listen_id = wish->handle->listen_id;
		mesh_handle_encode(wish->handle, opened->send.handle);
		opened->cookie = wish->handle->cookie;
	}
	snprintf(opened->peer_name, sizeof(opened->peer_name), "%s",
		 wish->relayed_to ? wish->relayed_to : peer->name);
	opened->eager_limit = SIZE_MAX;
	LIST_INIT(&opened->registrations);
	ret = mesh_comm_path_add(opened, peer, wish->relayed_to);
	if (ret) {
		mesh_comm_memory_free(opened);
		return ret;
	}
	LIST_INSERT_HEAD(&process->comms, opened, entry);
	mesh_count_event(&process->counters->comms_opened);
	*comm = opened;
	return 0;
}

/* ---- freeing --------------------------------------------------------------------------------- */

void mesh_comm_memory_free(struct mesh_comm *comm)
{
	int i;

	for (i = 0; comm->sending && i < comm->send.num_blocks; i++)
		free(comm->send.blocks[i]);
	if (comm->sending) {
		free(comm->send.copies);
		free(comm->send.far_copies);
		free(comm->send.grants);
		free(comm->send.lost);
	} else {
		free(comm->receive.marks);
		free(comm->receive.early_data);
	}
	mesh_lock_destroy(&comm->lock);
	free(comm);
}

void mesh_comm_free(struct mesh_comm *comm)
{
	uint32_t unfinished;
	int i;

	mesh_process_assert_locked(comm->process);
	/*
	 * Read before the paths close, which waits for the thread that polls. The callback of an
	 * operation that completes later may still be running, with a pointer to the comm.
	 */
	mesh_comm_lock(comm);
	unfinished = comm->unfinished;
	mesh_comm_unlock(comm);
	for (i = 0; i < comm->num_paths; i++)
		mesh_path_close(&comm->paths[i]);
	LIST_REMOVE(comm, entry);
	if (comm->seeker)
		*comm->seeker = NULL;
	mesh_engine_timer_cancel(&comm->process->engine, &comm->timer);
	if (!comm->sending)
		mesh_engine_timer_cancel(&comm->process->engine, &comm->receive.question.timer);
	if (unfinished) {
		/* The provider still holds pointers into the comm, and may never release them. */
		mesh_info("a connection with node %s keeps %u operations that never ended; its "
			  "memory stays allocated",
			  comm->peer_name, unfinished);
		return;
	}
	mesh_comm_memory_free(comm);
}

/* ---- frames --------------------------------------------------------------------------------- */

/* A frame may come over each path of the comm, and names the comm by the id that it has there. */
void mesh_comm_frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_path *over = mesh_comm_path_find(peer, frame->to_comm);

	if (!over) { /* we have freed it */
		if (frame->header.type == MESH_FRAME_RESUME ||
		    frame->header.type == MESH_FRAME_HAVE)
			mesh_count_event(&peer->process->counters->refused);
		return;
	}
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_CLOSE:
		mesh_comm_close_came(over->comm, &frame->close);
		if (frame->close.closed)
			mesh_comm_linger_check(over->comm); /* may free it */
		break;
	case MESH_FRAME_ASK:
		mesh_stall_asked(over->comm, &frame->ask);
		break;
	case MESH_FRAME_RESUME:
		if (!over->comm->sending)
			mesh_resume_came(over, &frame->resume);
		break;
	case MESH_FRAME_HAVE:
		mesh_have_came(over->comm, &frame->have);
		break;
	default:
		break;
	}
}

/* ---- its paths ------------------------------------------------------------------------------- */

bool mesh_comm_has_lost_path(const struct mesh_comm *comm)
{
	int i;

	mesh_process_assert_locked(comm->process);
	for (i = 0; i < comm->num_paths; i++) {
		if (comm->paths[i].broken || comm->paths[i].peer->state == MESH_PEER_LOST)
			return true;
	}
	return false;
}

bool mesh_path_lives(const struct mesh_path *path)
{
	mesh_process_assert_locked(path->comm->process);
	return path->known && !path->broken && path->peer->state == MESH_PEER_UP;
}

/* The first path of the lowest tier over which frames about the comm can be sent now, or NULL. */
MESH_HOLDS(process)
static const struct mesh_path *path_living(const struct mesh_comm *comm)
{
	const struct mesh_path *best = NULL, *path;

	for (path = comm->paths; path < comm->paths + comm->num_paths; path++) {
		if (mesh_path_lives(path) && (!best || path->tier < best->tier))
			best = path;
	}
	return best;
}

bool mesh_comm_is_cut(const struct mesh_comm *comm)
{
	return !path_living(comm);
}

struct mesh_comm *mesh_comm_next(const struct mesh_process *process,
				 const struct mesh_comm *previous)
{
	struct mesh_comm *next = previous ? LIST_NEXT(previous, entry)
					  : LIST_FIRST(&process->comms);

	mesh_process_assert_locked(process);
	if (!next && (!previous || !previous->closed_ms))
		next = LIST_FIRST(&process->lingering);
	return next;
}

void mesh_comm_tiers_renew(struct mesh_comm *comm)
{
	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	mesh_comm_tiers_learn(comm);
	if (comm->sending && !comm->opener)
		mesh_send_push(comm); /* it may have waited for room on one path alone */
	mesh_comm_unlock(comm);
	mesh_attach_relays_leave(comm);
	mesh_reroute_soon(comm);
}

/* ---- its failure, and its log ---------------------------------------------------------------- */

/* True for two lanes between the same NICs. */
static bool is_same_pair(const struct mesh_path *path, const struct mesh_path *other)
{
	const struct mesh_peer *peer = path->peer, *others = other->peer;

	return peer->dev == others->dev && peer->domain->lane != others->domain->lane &&
	       mesh_addr_equal(&peer->address.addr, &others->address.addr);
}

/* True unless a path before it has the same NICs. */
static bool is_first_lane(const struct mesh_path *path)
{
	const struct mesh_path *other;

	for (other = path->comm->paths; other < path; other++) {
		if (is_same_pair(path, other))
			return false;
	}
	return true;
}

/* "ab0", or "ab0 and ab1". */
static const char *netdevs_text(const struct mesh_comm *comm, char *text, size_t size)
{
	size_t used = 0;
	int i, n;

	text[0] = '\0';
	for (i = 0; i < comm->num_paths && used < size; i++) {
		if (!is_first_lane(&comm->paths[i]))
			continue;
		n = snprintf(text + used, size - used, "%s%s", i ? " and " : "",
			     mesh_path_describe(&comm->paths[i]).nic);
		used += (size_t)n;
	}
	return text;
}

static void end_log(const struct mesh_comm *comm, enum mesh_log_level level, const char *why,
		    const char *more)
{
	char netdevs[MESH_PATHS_MAX * (IF_NAMESIZE + 5)];

	mesh_log(level, __FILE__, __LINE__, "node %s, %s node %s over %s: %s%s",
		 comm->process->name, comm->sending ? "sending to" : "receiving from",
		 comm->peer_name, netdevs_text(comm, netdevs, sizeof(netdevs)), why, more);
}

void mesh_comm_fail(struct mesh_comm *comm, int error, bool quiet, const char *why)
{
	mesh_comm_assert_locked(comm);
	if (comm->error)
		return;
	if (!quiet)
		mesh_count_event(&comm->process->counters->comms_failed);
	/* The line comes first: a program may exit at the first error. */
	if (why)
		end_log(comm, quiet ? MESH_LOG_INFO : MESH_LOG_WARN, why, "");
	atomic_store_explicit(&comm->error, error, memory_order_release);
}

void mesh_comm_end_report(struct mesh_comm *comm)
{
	const struct mesh_path *first = &comm->paths[0];
	struct mesh_domain *domain = first->domain;
	char more[MESH_LOG_LIMIT_TEXT_MAX];
	const char *why;
	bool passes;

	/* A comm with an error keeps the remotes of its paths. */
	mesh_domain_lock(domain);
	mesh_comm_lock(comm);
	why = comm->unreported;
	comm->unreported = NULL;
	if (why) {
		mesh_count_event(&comm->process->counters->comms_failed);
		passes = mesh_log_limit_pass(&first->remote->flow->ends, 1, mesh_clock_ms(), more);
		end_log(comm, passes ? MESH_LOG_WARN : MESH_LOG_INFO, why, more);
	}
	mesh_comm_unlock(comm);
	mesh_domain_unlock(domain);
}

const struct mesh_path *mesh_comm_frame_path(const struct mesh_comm *comm)
{
	const struct mesh_path *path = path_living(comm);

	mesh_process_assert_locked(comm->process);
	return path ? path : &comm->paths[0];
}

void mesh_comm_frame_send(const struct mesh_comm *comm, struct mesh_frame *frame,
			  enum mesh_frame_type type)
{
	const struct mesh_path *path = mesh_comm_frame_path(comm);

	if (!path->known)
		return; /* the peer's id for the comm is that of a link that was lost */
	frame->to_comm = path->remote_id;
	mesh_peer_send(path->peer, frame, type);
}

/* " lanes=4 site=east", where a path has several of the first, or its node a site; else "". */
static const char *line_text(const struct mesh_path *path, char *text, size_t size)
{
	const struct mesh_peer *peer = path->peer;
	int i, n = 0, lanes = 1;

	*text = '\0';
	for (i = 0; i < path->comm->num_paths; i++)
		lanes += is_same_pair(path, &path->comm->paths[i]);
	if (lanes > 1)
		n = snprintf(text, size, " lanes=%d", lanes);
	if (*peer->site && !path->via && !mesh_path_has_relay(path))
		snprintf(text + n, size - (size_t)n, " site=%s", peer->site);
	return text;
}

void mesh_path_log(const struct mesh_path *path)
{
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];
	struct mesh_comm *comm = path->comm;
	struct mesh_path_ends ends;
	char line[MESH_SITE_NAME_MAX + 32];

	mesh_comm_lock(comm); /* the relays of a path may change */
	ends = mesh_path_describe(path);
	mesh_addr_text(ends.local, local);
	mesh_addr_text(ends.remote, remote);
	/* Stable: fabric_pingpong and users' scripts read it. */
	mesh_info("path: from=%s to=%s nic=%s local=%s remote=%s via=%s provider=%s%s%s%s",
		  comm->sending ? comm->process->name : comm->peer_name,
		  comm->sending ? comm->peer_name : comm->process->name, ends.nic, local, remote,
		  ends.via_text, mesh_provider_id_text(ends.provider),
		  line_text(path, line, sizeof(line)), path->reason ? " why=" : "",
		  path->reason ? mesh_path_reason_word(path->reason) : "");
	mesh_comm_unlock(comm);
}

void mesh_comm_paths_log(struct mesh_comm *comm)
{
	bool first;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		mesh_comm_lock(comm); /* a path may get another peer */
		first = is_first_lane(&comm->paths[i]);
		mesh_comm_unlock(comm);
		if (first)
			mesh_path_log(&comm->paths[i]);
	}
}
