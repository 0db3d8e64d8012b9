/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straight.c - ways without a relay for a comm that has lost its relays.
 *
 * The comm stays one of relayed paths, and one of these becomes straight (transport/attach.c): the
 * sending end connects to the process at the other end as the last relay of a circuit would. So all
 * that is said of circuits holds for it: the epochs, what is sent again, what is asked.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "control/dial.h"
#include "control/peer_end.h"
#include "control/process.h"
#include "setup/candidates.h"
#include "setup/neighbour_hints.h"
#include "setup/relay_try.h"
#include "setup/straight.h"
#include "transport/attach.h"
#include "transport/path_relayed.h"
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
	struct mesh_dial dial;	      /* it */
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
	if (straight)
		mesh_dial_end(&straight->dial);
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

/* Finds what leads to the other end now, when all had their turn and some time is over. */
MESH_HOLDS(process)
static void candidates_renew(struct mesh_straight *straight, const struct mesh_comm *comm,
			     uint64_t now_ms)
{
	struct mesh_process *process = comm->process;

	if (straight->next < straight->choice.num_candidates ||
	    (straight->found_ms && mesh_clock_elapsed_ms(straight->found_ms, now_ms) < AGAIN_MS))
		return;
	straight->found_ms = now_ms;
	straight->next = 0;
	mesh_candidates_find(process, comm->paths[0].peer->domain->dev, straight->handle,
			     &straight->choice);
	mesh_neighbour_hints_order(process, straight->handle, &straight->choice);
}

/*
 * Begins with the next candidate that can be used now: one whose domain is being opened has its
 * turn in the next round. One that takes smaller messages than the comm has is never enough: the
 * comm's memory would be registered for it in vain.
 */
MESH_HOLDS(process)
static void try_begin(struct mesh_straight *straight, const struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_process *process = comm->process;
	const struct mesh_path_candidate *pair;
	struct mesh_way way;

	candidates_renew(straight, comm, now_ms);
	while (straight->next < straight->choice.num_candidates) {
		pair = &straight->choice.candidates[straight->next++];
		if (comm->eager_limit > mesh_process_eager_limit(process, pair->provider) ||
		    !mesh_way_of_pair(process, straight->handle, pair, &way))
			continue;
		if (mesh_dial_begin(&straight->dial, process, &way, false, now_ms))
			continue;
		straight->reason = pair->reason;
		if (straight->dial.state == MESH_DIAL_TRYING)
			return;
		mesh_dial_end(&straight->dial);
	}
}

/* Asks the peer, which is up, for the first path that rests. Returns it, or NULL. */
MESH_HOLDS(process)
static struct mesh_path *path_ask(struct mesh_straight *straight, struct mesh_comm *comm)
{
	int i, ret = -EAGAIN;

	for (i = 0; i < comm->num_paths && ret == -EAGAIN; i++)
		ret = mesh_attach_begin(&comm->paths[i], straight->dial.peer, false);
	if (!ret) {
		comm->paths[i - 1].reason = straight->reason;
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

/* The try is over. */
MESH_HOLDS(process)
static void refusal_note(struct mesh_straight *straight, uint64_t now_ms)
{
	if (!straight->dial.peer->first_refused_ms)
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
		mesh_peer_process_ended(comm->paths[i].peer, "its process has ended");
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
	mesh_dial_look(&straight->dial, now_ms);
	if (mesh_dial_is_vain(&straight->dial, now_ms)) {
		refusal_note(straight, now_ms);
		mesh_straight_next(straight);
	}
	end_look(straight, comm, now_ms);
	if (straight->dial.state == MESH_DIAL_REST)
		try_begin(straight, comm, now_ms);
	/* One that is up waits for its turn, however long a relay takes to answer. */
	return straight->dial.state == MESH_DIAL_UP ? path_ask(straight, comm) : NULL;
}
