/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.c - fences a peer, and ends all other comms on the connections that were cut.
 *
 * The comms with one process share the provider's connection on each link. A fence drops all that
 * is queued there, also messages of other comms that count as sent already. So both ends of each of
 * these comms fail with a message: ours now, the peer's when its engine reads CUT.
 */
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "control/peer_send.h"
#include "control/process.h"
#include "fabric/fence.h"
#include "relay/circuits.h"
#include "transport/comm_end.h"
#include "transport/cut.h"

/* True if @peer uses the connections that @fence has cut. */
static bool is_affected(const struct mesh_peer *peer, const struct mesh_fence *fence)
{
	return peer->remote && peer->remote->flow == fence->remote->flow;
}

static bool path_is_fenced(const struct mesh_path *path, const struct mesh_fence *fences, int count)
{
	struct mesh_fence own;
	int i;

	mesh_path_fence_prepare(path, &own);
	for (i = 0; i < count; i++) {
		if (fences[i].result >= 0 && own.remote->flow == fences[i].remote->flow)
			return true;
	}
	return false;
}

/* True if a fence has ended all of the comm's paths. */
static bool is_fenced(const struct mesh_comm *comm, const struct mesh_fence *fences, int count)
{
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		if (!path_is_fenced(&comm->paths[i], fences, count))
			return false;
	}
	return true;
}

/*
 * Ends the comms that use @peer, except @except. Returns how many of them NCCL still used, without
 * those whose peer is lost: one line reported that loss, and they would have failed soon.
 */
MESH_HOLDS(process)
static int comms_end(struct mesh_peer *peer, const struct mesh_comm *except, const char *why)
{
	struct mesh_peer_user *user;
	struct mesh_path *path;
	struct mesh_comm *comm;
	int count = 0;
	bool used;

	mesh_circuits_cut(peer);
	LIST_FOREACH(user, &peer->user_list, entry) {
		path = mesh_path_if_user(user);
		if (!path || path->comm == except)
			continue;
		comm = path->comm;
		used = mesh_comm_end(comm, -ECONNABORTED, why);
		count += used && !mesh_comm_is_cut(comm);
	}
	return count;
}

static void fenced_learn(struct mesh_process *process, const struct mesh_comm *own,
			 const struct mesh_fence *fences, int count)
{
	struct mesh_comm *comm;

	LIST_FOREACH(comm, &process->comms, entry) {
		/* Of the other comms, only those that have ended count: see others_end(). */
		mesh_comm_lock(comm);
		if ((comm == own || comm->peer_end == MESH_END_UNCLEAN) &&
		    is_fenced(comm, fences, count) && comm->peer_end != MESH_END_CUT)
			mesh_comm_end_set(comm, &comm->peer_end, MESH_END_CUT);
		mesh_comm_unlock(comm);
	}
}

/* ---- here ---------------------------------------------------------------------------------- */

static void others_warn(const struct mesh_peer *peer, int count, enum mesh_cut_reason reason)
{
	const char *why = reason == MESH_CUT_SILENT ? "it did not stop in time"
						    : "nothing moved between the two";
	char text[MESH_PEER_TEXT_MAX], local[MESH_ADDR_TEXT_MAX];

	mesh_addr_text(&peer->domain->nic->source, local);
	mesh_warn("cut the connections with %s on %s (%s), because %s: %d more that NCCL uses "
		  "shared them and failed, because messages may be lost",
		  mesh_peer_text(peer, text), peer->domain->nic->netdev, local, why, count);
}

MESH_HOLDS(process)
static void cut_send(struct mesh_peer *peer, enum mesh_cut_reason reason)
{
	struct mesh_frame frame = {
		.cut = {.reason = reason,
			.waited_s = (uint32_t)peer->process->config.dead_peer_timeout_s},
	};

	mesh_peer_send(peer, &frame, MESH_FRAME_CUT);
}

/* Ends all other comms on the connections that @fence has cut. */
MESH_HOLDS(process)
static void others_end(struct mesh_comm *comm, const struct mesh_fence *fence,
		       enum mesh_cut_reason reason)
{
	struct mesh_process *process = comm->process;
	struct mesh_peer *peer, *informed = NULL;
	int count = 0;

	LIST_FOREACH(peer, &process->peers, entry) {
		if (!is_affected(peer, fence))
			continue;
		cut_send(peer, reason);
		count += comms_end(peer, comm,
				   "another connection cut the provider's connection with this "
				   "peer, which did not stop in time");
		informed = peer;
	}
	/* The loss of a peer was reported once, for all of its comms. */
	if (count && reason != MESH_CUT_BROKEN)
		others_warn(informed, count, reason);
}

/* What a relay has, and the receiver perhaps not, ends here as well. */
static void paths_abandon(struct mesh_comm *comm, const struct mesh_fence *fences)
{
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		mesh_domain_lock(fences[i].domain);
		mesh_path_abandon(&comm->paths[i]);
		mesh_domain_unlock(fences[i].domain);
	}
}

/* The provider may still write what it had read from the sockets before they were cut. */
static void fences_drain(const struct mesh_comm *comm, const struct mesh_fence *fences)
{
	char who[MESH_NODE_NAME_MAX + sizeof("node ")];
	int i;

	snprintf(who, sizeof(who), "node %s", comm->peer_name);
	for (i = 0; i < comm->num_paths; i++) {
		if (fences[i].result >= 0 && fences[i].domain->provider != MESH_PROVIDER_VERBS_RXM)
			mesh_fence_drain(&fences[i], who);
	}
}

/*
 * The fences use the remotes of the comm's paths without a lock. A comm with an error keeps them:
 * no path of it gets another peer, with which the one before would be freed.
 */
static void fences_prepare(struct mesh_comm *comm, struct mesh_fence *fences)
{
	int i;

	mesh_process_lock(comm->process);
	mesh_comm_lock(comm);
	mesh_comm_fail(comm, -ECANCELED, true, NULL); /* unless it has failed */
	mesh_comm_unlock(comm);
	for (i = 0; i < comm->num_paths; i++)
		mesh_path_fence_prepare(&comm->paths[i], &fences[i]);
	mesh_process_unlock(comm->process);
}

void mesh_comm_cut_off(struct mesh_comm *comm, enum mesh_cut_reason reason)
{
	struct mesh_fence fences[MESH_PATHS_MAX] = {0};
	int i;

	fences_prepare(comm, fences);
	mesh_remotes_fence(fences, comm->num_paths);
	paths_abandon(comm, fences);
	mesh_process_lock(comm->process);
	for (i = 0; i < comm->num_paths; i++) {
		if (fences[i].result) /* else there was no connection */
			others_end(comm, &fences[i], reason);
	}
	mesh_process_unlock(comm->process);
	/* Not before: the polls report the others' failed operations, as if a link was lost. */
	fences_drain(comm, fences);
	mesh_process_lock(comm->process);
	fenced_learn(comm->process, comm, fences, comm->num_paths);
	mesh_process_unlock(comm->process);
}

/* ---- at the other end ---------------------------------------------------------------------- */

static const char *reason_text(const struct mesh_frame_cut *cut, char *text, size_t size)
{
	if (cut->reason == MESH_CUT_SILENT)
		snprintf(text, size,
			 "this process had not answered for %u s: was it stopped, or the machine "
			 "overloaded?",
			 cut->waited_s);
	else if (cut->reason == MESH_CUT_STUCK)
		snprintf(text, size, "nothing had moved there for %u s: " MESH_CUT_STUCK_HINT,
			 cut->waited_s);
	else
		snprintf(text, size, "another connection between the two had broken");
	return text;
}

void mesh_peer_cut_came(struct mesh_peer *peer, const struct mesh_frame_cut *cut)
{
	char text[MESH_PEER_TEXT_MAX], why[200];
	int count;

	mesh_process_assert_locked(peer->process);
	count = comms_end(peer, NULL, "the peer cut the provider's connection with this process");
	if (count)
		mesh_warn("%s cut its connections with this process on %s; %d that NCCL uses "
			  "failed, because messages may be lost: %s",
			  mesh_peer_text(peer, text), peer->domain->nic->netdev, count,
			  reason_text(cut, why, sizeof(why)));
}
