/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straight.c - ways without a relay for a comm that has lost its relays.
 *
 * The comm stays one of relayed paths, and one of these becomes straight (transport/reroute.c): the
 * sending end connects to the process at the other end as the last relay of a circuit would. So all
 * that is said of circuits holds for it: the epochs, what is sent again, what is asked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "control/peer_life.h"
#include "control/peer_send.h"
#include "control/process.h"
#include "setup/candidates.h"
#include "setup/connect_judge.h"
#include "setup/neighbour_hints.h"
#include "setup/openings.h"
#include "setup/relay_try.h"
#include "setup/straight.h"
#include "transport/path_relayed.h"
#include "transport/reroute.h"
#include "transport/route_wait.h"

/* Relays alone are looked for: those that there are answer sooner. */
#define RELAYS_MS 2000
/* Where the last route had RDMA on each hop, they have this part of the comm's wait at most. */
#define RDMA_SHARE 3
/* The kernel is asked for its routes again after this. */
#define AGAIN_MS 1000

struct mesh_straight {
	const struct mesh_handle *handle;
	uint64_t since_ms; /* of the first look; 0: none */
	struct mesh_path_choice choice;
	uint64_t found_ms;	      /* when these were found; 0: they were not */
	int next;		      /* candidate; choice.num_candidates: all had their turn */
	enum mesh_path_reason reason; /* of the one that is tried now */
	struct mesh_peer *peer;	      /* of the one that is tried now; counted; or NULL */
	uint64_t try_ms;	      /* since when */
	uint64_t refused_ms;	      /* since when each try is refused; 0: the last one was not */
};

struct mesh_straight *mesh_straight_open(const struct mesh_handle *handle)
{
	struct mesh_straight *straight = calloc(1, sizeof(*straight));

	if (straight)
		straight->handle = handle;
	return straight;
}

void mesh_straight_next(struct mesh_straight *straight)
{
	if (straight && straight->peer)
		mesh_peer_put(straight->peer);
	if (straight)
		straight->peer = NULL;
}

void mesh_straight_restart(struct mesh_straight *straight)
{
	mesh_straight_next(straight);
	if (!straight)
		return;
	straight->since_ms = straight->found_ms = straight->refused_ms = 0;
	straight->next = straight->choice.num_candidates;
}

void mesh_straight_close(struct mesh_straight *straight)
{
	mesh_straight_next(straight);
	free(straight);
}

/*
 * The domain of this candidate, if it can be used now; else NULL. One that takes smaller messages
 * than the comm has is never enough: the comm's memory would be registered for it in vain.
 */
MESH_HOLDS(process)
static struct mesh_domain *domain_of(const struct mesh_comm *comm,
				     const struct mesh_path_candidate *pair)
{
	struct mesh_process *process = comm->process;
	int nic = process->endpoints[pair->local].nic;
	int index = mesh_process_domain_index(process, nic, pair->provider);

	if (index < 0 || process->nics_away >> nic & 1 ||
	    comm->eager_limit > mesh_process_eager_limit(process, pair->provider) ||
	    mesh_opening_need(process, index, false))
		return NULL;
	return process->domains[index];
}

/* Begins to connect over the next candidate that can be used. */
MESH_HOLDS(process)
static void try_begin(struct mesh_straight *straight, const struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_process *process = comm->process;
	const struct mesh_handle *handle = straight->handle;
	const struct mesh_path_candidate *pair;
	struct mesh_domain *domain;

	if (straight->next >= straight->choice.num_candidates) {
		if (straight->found_ms &&
		    mesh_clock_elapsed_ms(straight->found_ms, now_ms) < AGAIN_MS)
			return;
		straight->found_ms = now_ms;
		straight->next = 0;
		mesh_candidates_find(process, mesh_path_peer(&comm->paths[0])->domain->dev, handle,
				     &straight->choice);
		mesh_neighbour_hints_order(process, handle, &straight->choice);
	}
	while (!straight->peer && straight->next < straight->choice.num_candidates) {
		pair = &straight->choice.candidates[straight->next++];
		domain = domain_of(comm, pair);
		if (!domain || mesh_peer_get(process, domain, &handle->endpoints[pair->remote],
					     handle->control_port, handle->listen_id,
					     handle->cookie, &straight->peer))
			continue;
		straight->peer->routed = mesh_path_class_is_routed(pair->class);
		straight->reason = pair->reason;
		straight->try_ms = now_ms;
	}
}

/* Asks the process at the other end for the path. */
MESH_HOLDS(process)
static void request_send(const struct mesh_straight *straight, const struct mesh_path *path)
{
	const struct mesh_comm *comm = path->comm;
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.connect.cookie = straight->handle->cookie;
	frame.connect.listen_id = straight->handle->listen_id;
	frame.connect.comm_key = comm->key;
	frame.connect.comm = path->sink.id;
	frame.connect.token = path->sink.token;
	frame.connect.path = (uint8_t)(path - comm->paths);
	frame.connect.num_paths = (uint8_t)comm->wanted_paths;
	frame.connect.alone = mesh_comm_lacks_route(comm);
	frame.connect.epoch = comm->epoch;
	memcpy(frame.connect.origin, comm->process->name, sizeof(frame.connect.origin));
	mesh_peer_send(straight->peer, &frame, MESH_FRAME_CONNECT);
}

/* Gives the first path that rests to the peer, which is up. Returns it, or NULL. */
MESH_HOLDS(process)
static struct mesh_path *path_ask(struct mesh_straight *straight, struct mesh_comm *comm)
{
	int i, ret = -EAGAIN;

	for (i = 0; i < comm->num_paths && ret == -EAGAIN; i++)
		ret = mesh_reroute_begin_straight(&comm->paths[i], straight->peer);
	if (!ret) {
		comm->paths[i - 1].reason = straight->reason;
		request_send(straight, &comm->paths[i - 1]);
		return &comm->paths[i - 1];
	}
	if (ret != -EAGAIN)
		mesh_straight_next(straight);
	return NULL;
}

/* For how long relays alone are looked for: a comm that has left RDMA does not return to it. */
MESH_HOLDS(process)
static uint64_t patience_ms(const struct mesh_comm *comm)
{
	uint64_t share_ms = comm->process->config.recovery_timeout_s * 1000 / RDMA_SHARE;
	bool rdma = false;
	int i;

	for (i = 0; i < comm->num_paths; i++)
		rdma |= mesh_path_relayed_route(&comm->paths[i])->rdma;
	if (!rdma || share_ms < RELAYS_MS)
		return RELAYS_MS;
	return share_ms < MESH_RELAY_RDMA_MS ? share_ms : MESH_RELAY_RDMA_MS;
}

/* True if nothing more is to be expected of the one that is tried now. */
MESH_HOLDS(process)
static bool try_is_over(const struct mesh_straight *straight, uint64_t now_ms)
{
	const struct mesh_peer *peer = straight->peer;

	/* One that is up waits for its turn, however long a relay takes to answer. */
	if (!peer || peer->state == MESH_PEER_UP)
		return false;
	return peer->state == MESH_PEER_LOST || peer->refusal || peer->first_refused_ms ||
	       mesh_clock_elapsed_ms(straight->try_ms, now_ms) >= MESH_TRY_MS;
}

/* The try is over. */
MESH_HOLDS(process)
static void refusal_note(struct mesh_straight *straight, uint64_t now_ms)
{
	if (!straight->peer->first_refused_ms)
		straight->refused_ms = 0;
	else if (!straight->refused_ms)
		straight->refused_ms = now_ms;
}

/*
 * The process at the other end, which a path has led to without a relay, refuses for as long as one
 * that has ended: its connections may have been reset, which says nothing by itself.
 */
MESH_HOLDS(process)
static void end_look(const struct mesh_straight *straight, const struct mesh_comm *comm,
		     uint64_t now_ms)
{
	int i;

	if (!straight->refused_ms ||
	    mesh_clock_elapsed_ms(straight->refused_ms, now_ms) < MESH_REFUSED_MS)
		return;
	for (i = 0; i < comm->num_paths; i++) {
		if (mesh_path_has_relay(&comm->paths[i]))
			continue;
		mesh_peer_process_ended(mesh_path_peer(&comm->paths[i]), "its process has ended");
		return;
	}
}

struct mesh_path *mesh_straight_look(struct mesh_straight *straight, struct mesh_comm *comm,
				     uint64_t now_ms)
{
	mesh_process_assert_locked(comm->process);
	if (!straight)
		return NULL;
	if (!straight->since_ms)
		straight->since_ms = now_ms;
	if (mesh_clock_elapsed_ms(straight->since_ms, now_ms) < patience_ms(comm))
		return NULL;
	if (try_is_over(straight, now_ms)) {
		refusal_note(straight, now_ms);
		mesh_straight_next(straight);
	}
	end_look(straight, comm, now_ms);
	if (!straight->peer)
		try_begin(straight, comm, now_ms);
	if (!straight->peer || straight->peer->state != MESH_PEER_UP)
		return NULL;
	return path_ask(straight, comm);
}
