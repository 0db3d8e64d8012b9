/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.c - fences the peer of one comm.
 *
 * The comms with one process share the provider's connection on each link. A fence drops all that
 * is queued there, also messages of other comms that count as sent already. So for these the link
 * is lost, and they go on by recovery.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/peer_end.h"
#include "control/process.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "transport/comm_end.h"
#include "transport/cut.h"
#include "transport/path_relayed.h"

/* True if @peer uses the connections that @fence has cut. */
static bool is_affected(const struct mesh_peer *peer, const struct mesh_fence *fence)
{
	return peer->remote && peer->remote->flow == fence->remote->flow;
}

static bool path_is_fenced(const struct mesh_path *path, const struct mesh_fence *fences, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		if (fences[i].result >= 0 && path->remote->flow == fences[i].remote->flow)
			return true;
	}
	return false;
}

bool mesh_path_is_at_rest(const struct mesh_path *path)
{
	mesh_process_assert_locked(path->comm->process);
	if (path->comm->sending)
		return !path->unfinished;
	return path->drained || path->state == MESH_PATH_DOWN;
}

/* True if nothing arrives on any of the comm's paths: a fence has ended the others. */
MESH_HOLDS(process)
MESH_HOLDS(comm)
static bool is_fenced(const struct mesh_comm *comm, const struct mesh_fence *fences, int count)
{
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		if (!mesh_path_is_at_rest(&comm->paths[i]) &&
		    !path_is_fenced(&comm->paths[i], fences, count))
			return false;
	}
	return true;
}

MESH_HOLDS(process)
static void fenced_learn(struct mesh_process *process, const struct mesh_comm *own,
			 const struct mesh_fence *fences, int count)
{
	struct mesh_comm *comm;

	LIST_FOREACH(comm, &process->comms, entry) {
		mesh_comm_lock(comm);
		/* Of the other comms, only those that have ended count: the rest goes on. */
		if ((comm == own || comm->peer_end == MESH_END_UNCLEAN) &&
		    is_fenced(comm, fences, count))
			mesh_comm_peer_end_learn(comm, MESH_END_CUT);
		mesh_comm_unlock(comm);
	}
}

/* ---- here ---------------------------------------------------------------------------------- */

static const char *const reasons[] = {
	[MESH_CUT_SILENT] = ("the end of a connection with it was not answered in time, and is cut "
			     "off here: is its process stopped?"),
	[MESH_CUT_BROKEN] = "a connection with it that has failed is cut off here",
	[MESH_CUT_STUCK] = "nothing moved on a connection with it that ends, and is cut off here",
};

/* A peer that is up and uses the connections that @fence is to cut; NULL: there is none. */
MESH_HOLDS(process)
static struct mesh_peer *affected_find(const struct mesh_process *process,
				       const struct mesh_fence *fence)
{
	struct mesh_peer *peer;

	LIST_FOREACH(peer, &process->peers, entry) {
		if (peer->state == MESH_PEER_UP && is_affected(peer, fence))
			return peer;
	}
	return NULL;
}

/*
 * The fence cuts what other comms with that process use: for them the link is lost, and they go on
 * as after any loss. First, so that none of them posts anything there. On verbs a write cuts the
 * connection, as at the end that has not noticed a loss: our endpoint serves other peers, too.
 */
MESH_HOLDS(process)
static void link_lose(const struct mesh_process *process, const struct mesh_fence *fence,
		      enum mesh_cut_reason reason)
{
	struct mesh_peer *peer;

	while ((peer = affected_find(process, fence))) {
		peer->cut = MESH_PEER_CUT_WRITE; /* also where memory was short for a link */
		mesh_link_lose(peer, reasons[reason], 0);
		mesh_peer_bury(peer);
	}
}

/*
 * Where no NIC has refused the write, nothing arrives once our endpoint is closed. The links of
 * other peers are lost with it: the engine finds that (mesh_endpoints_check()).
 */
static void endpoints_close(const struct mesh_comm *comm, struct mesh_fence *fences, int count)
{
	struct mesh_process *process = comm->process;
	int i;

	for (i = 0; i < count; i++) {
		if (fences[i].domain->provider != MESH_PROVIDER_VERBS_RXM || fences[i].result >= 0)
			continue;
		mesh_process_lock(process);
		if (!mesh_remote_is_outdated(fences[i].domain, fences[i].remote))
			mesh_endpoint_close(fences[i].domain);
		mesh_engine_wake(&process->engine);
		mesh_process_unlock(process);
		mesh_endpoint_close_await(fences[i].domain);
		fences[i].result = 1;
	}
}

/* What a relay has, and the receiver perhaps not, ends here as well. */
static void paths_abandon(struct mesh_comm *comm)
{
	struct mesh_domain *domain;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		domain = comm->paths[i].domain;
		mesh_domain_lock(domain);
		mesh_path_abandon(&comm->paths[i]);
		mesh_domain_unlock(domain);
	}
}

/* The provider may still write what it had read from the sockets before they were cut. */
static void fences_drain(const struct mesh_comm *comm, const struct mesh_fence *fences, int count)
{
	char who[MESH_NODE_NAME_MAX + sizeof("node ")];
	int i;

	snprintf(who, sizeof(who), "node %s", comm->peer_name);
	for (i = 0; i < count; i++) {
		if (fences[i].result >= 0 && fences[i].domain->provider != MESH_PROVIDER_VERBS_RXM)
			mesh_fence_drain(&fences[i], who);
	}
}

/*
 * The fences of the paths on which something may arrive, or is in flight; returns how many. They
 * use the remotes of these paths without a lock. A comm with an error keeps them: no path of it
 * gets another peer, with which the one before would be freed.
 */
static int fences_prepare(struct mesh_comm *comm, struct mesh_fence *fences,
			  enum mesh_cut_reason reason)
{
	int i, count = 0;
	bool rests;

	mesh_process_lock(comm->process);
	mesh_comm_lock(comm);
	mesh_comm_fail(comm, -ECANCELED, true, NULL); /* unless it has failed */
	mesh_comm_unlock(comm);
	for (i = 0; i < comm->num_paths; i++) {
		mesh_comm_lock(comm);
		rests = mesh_path_is_at_rest(&comm->paths[i]);
		mesh_comm_unlock(comm);
		if (rests)
			continue;
		fences[count].domain = comm->paths[i].domain;
		fences[count].remote = comm->paths[i].remote;
		link_lose(comm->process, &fences[count++], reason);
	}
	mesh_process_unlock(comm->process);
	return count;
}

void mesh_comm_cut_off(struct mesh_comm *comm, enum mesh_cut_reason reason)
{
	struct mesh_fence fences[MESH_PATHS_MAX] = {0};
	int count = fences_prepare(comm, fences, reason);

	mesh_remotes_fence(fences, count);
	endpoints_close(comm, fences, count);
	paths_abandon(comm);
	fences_drain(comm, fences, count);
	mesh_process_lock(comm->process);
	fenced_learn(comm->process, comm, fences, count);
	mesh_process_unlock(comm->process);
}

/* ---- over relays ---------------------------------------------------------------------------- */

/* Ends the comm's use of one circuit; its operations that fail by that are no fault of the link. */
MESH_HOLDS(process)
static void circuit_leave(struct mesh_path *path)
{
	struct mesh_domain *domain = path->peer->domain;

	path->broken = true;
	if (path->comm->sending) {
		mesh_domain_lock(domain);
		mesh_path_abandon(path);
		mesh_domain_unlock(domain);
	} else if (!path->drained && !path->drain_asked_ms) {
		mesh_path_drain_ask(path);
	}
}

bool mesh_comm_circuits_leave(struct mesh_comm *comm)
{
	struct mesh_path *path;
	struct mesh_peer *relay;
	bool any = false;
	int i;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	mesh_comm_fail(comm, -ECANCELED, true, NULL); /* unless it has failed */
	mesh_comm_unlock(comm);
	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		relay = path->peer;
		if (!mesh_path_has_relay(path) || relay->state != MESH_PEER_UP ||
		    mesh_relay_is_silent(&path->question, comm->process, mesh_clock_ms()))
			continue;
		circuit_leave(path);
		any = true;
	}
	return any;
}
