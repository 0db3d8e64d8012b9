/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c - what sending and receiving have in common. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "nic/addr.h"
#include "transport/comm.h"
#include "wire/stats.h"

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

bool mesh_peer_comms_go_on(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;
	const struct mesh_path *path;

	mesh_process_assert_locked(peer->process);
	LIST_FOREACH(user, &peer->user_list, entry) {
		path = mesh_path_if_user(user);
		if (path && !mesh_path_has_relay(path) && !path->comm->error &&
		    !mesh_comm_is_cut(path->comm))
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

bool mesh_comm_is_acknowledged(const struct mesh_comm *comm, uint64_t since_ms, uint64_t now_ms)
{
	bool drained = true;
	int i;

	mesh_process_assert_locked(comm->process);
	for (i = 0; i < comm->num_paths; i++)
		drained &= mesh_link_is_drained(comm->paths[i].peer, since_ms, now_ms);
	return drained;
}

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
