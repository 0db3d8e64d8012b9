/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_nics.c - comms that exist get further paths: over NICs that join, here or at a peer; and
 * over links and routes that are better than what they have, and let nothing through before.
 */
#include <string.h>

#include "base/random.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "control/peer_send.h"
#include "setup/candidates.h"
#include "setup/late_nics.h"
#include "transport/rejoin.h"
#include "wire/handle.h"

/* ---- what the peer has ---------------------------------------------------------------------- */

MESH_HOLDS(process)
static bool nic_is_known(const struct mesh_peer *peer, const struct mesh_endpoint_addr *nic)
{
	int i;

	for (i = 0; i < peer->num_nics; i++) {
		if (mesh_addr_equal(&peer->nics[i].addr, &nic->addr))
			return true;
	}
	return false;
}

MESH_HOLDS(process)
static void peer_nics_learn(struct mesh_peer *peer, const struct mesh_wire_nic *nics, int num_nics)
{
	struct mesh_endpoint_addr nic;
	int i;

	for (i = 0; peer->nics && i < num_nics; i++) {
		if (mesh_wire_nic_decode(&nics[i], &nic) || nic_is_known(peer, &nic) ||
		    peer->num_nics == MESH_NICS_MAX)
			continue;
		peer->nics[peer->num_nics++] = nic;
		peer->late_nics |= 1u << nic.nic;
	}
}

/* Only those that we connected to have a list: their comms send. */
MESH_HOLDS(process)
static void nics_learn(const struct mesh_peer *peer, const struct mesh_wire_nic *nics, int num_nics)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		mesh_peer_drained_learn(other, nics, num_nics);
		peer_nics_learn(other, nics, num_nics);
	}
	atomic_store(&peer->process->late_nics, true);
	mesh_engine_wake(&peer->process->engine);
}

void mesh_late_nics_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	mesh_process_assert_locked(peer->process);
	/* Its end may be up, and the greeting that tells us still on its way. */
	if (peer->state == MESH_PEER_UP || peer->state == MESH_PEER_GREETING)
		nics_learn(peer, frame->nics.nics, frame->nics.num_nics);
}

void mesh_late_nics_introduced(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	mesh_process_assert_locked(peer->process);
	nics_learn(peer, hello->nics, hello->num_nics);
}

/* ---- the links ------------------------------------------------------------------------------ */

/* True for a link that did not exist when the process, or the peer's, started. */
MESH_HOLDS(process)
static bool pair_is_late(const struct mesh_peer *peer, const struct mesh_path_candidate *pair)
{
	const struct mesh_process *process = peer->process;

	return process->endpoints[pair->local].nic >= process->num_lasting ||
	       peer->late_nics >> peer->nics[pair->remote].nic & 1;
}

/*
 * True if a way over the pair may be of use to a comm of this tier: it is better, or one more of
 * them. Unless neighbours have answered, most pairs of link-local addresses share no link.
 */
MESH_HOLDS(process)
static bool pair_is_of_use(const struct mesh_process *process, const struct mesh_handle *handle,
			   const struct mesh_path_choice *choice,
			   const struct mesh_path_candidate *pair, const struct mesh_way *way,
			   enum mesh_path_tier tier)
{
	if (tier == MESH_TIER_DRAINED)
		return true;
	if (tier == MESH_TIER_LINK && !choice->proven &&
	    mesh_addr_is_link_local(&handle->endpoints[pair->remote].addr))
		return false;
	return (pair->class == MESH_PATH_DIRECT || pair->class == MESH_PATH_ROUTED) &&
	       mesh_link_tier(process, mesh_way_dev(way), &way->address, way->routed) <= tier;
}

MESH_HOLDS(process)
static void pair_want(struct mesh_process *process, uint64_t process_id,
		      const struct mesh_handle *handle, const struct mesh_path_choice *choice,
		      int i, enum mesh_path_tier tier, struct mesh_comm *comm)
{
	const struct mesh_path_candidate *pair = &choice->candidates[i];
	struct mesh_way way;

	if (mesh_way_of_pair(process, handle, pair, &way) &&
	    pair_is_of_use(process, handle, choice, pair, &way, tier))
		mesh_rejoin_new(process, process_id, &way, comm);
}

void mesh_late_links_want(struct mesh_comm *comm, const struct mesh_handle *handle,
			  const struct mesh_path_choice *choice)
{
	enum mesh_path_tier tier = mesh_comm_tier(comm);
	int i;

	mesh_process_assert_locked(comm->process);
	if (handle->node_id == comm->process->node_id)
		return; /* between two ranks of one node every path is the same memory */
	for (i = 0; i < choice->num_candidates; i++)
		pair_want(comm->process, mesh_process_id_of(handle->cookie), handle, choice, i,
			  tier, comm);
}

void mesh_late_links_find(struct mesh_comm *comm, const struct mesh_handle *handle)
{
	int dev = comm->paths[0].peer->domain->dev;
	struct mesh_path_choice choice;

	mesh_candidates_find(comm->process, dev, handle, &choice);
	mesh_late_links_want(comm, handle, &choice);
}

/* Tries the links to the peer's process over which its comms may get a path. */
MESH_HOLDS(process)
static void links_try(const struct mesh_peer *peer)
{
	struct mesh_handle handle = {
		.num_endpoints = peer->num_nics,
		.total_nics = (uint8_t)peer->num_nics,
		.control_port = peer->control_port,
		.cookie = peer->process_id,
	};
	struct mesh_path_choice choice;
	int i;

	memcpy(handle.endpoints, peer->nics, (size_t)peer->num_nics * sizeof(*peer->nics));
	mesh_candidates_find(peer->process, peer->domain->dev, &handle, &choice);
	for (i = 0; i < choice.num_candidates; i++) {
		if (pair_is_late(peer, &choice.candidates[i]))
			pair_want(peer->process, peer->process_id, &handle, &choice, i,
				  MESH_TIER_ROUTED_RDMA, NULL);
	}
}

/* True if the peer's process, on another node, lives as far as we know, and links may be late. */
MESH_HOLDS(process)
static bool is_useful(const struct mesh_peer *peer)
{
	const struct mesh_process *process = peer->process;

	return (peer->late_nics || process->num_devs > process->num_lasting) && peer->num_nics &&
	       !peer->incoming && !peer->over && peer->node_id != process->node_id &&
	       (peer->state == MESH_PEER_UP ||
		(peer->state == MESH_PEER_LOST && !LIST_EMPTY(&peer->user_list)));
}

void mesh_late_nics_tick(struct mesh_process *process)
{
	struct mesh_peer *peer;

	mesh_process_assert_locked(process);
	if (!atomic_exchange(&process->late_nics, false))
		return;
	LIST_FOREACH(peer, &process->peers, entry) {
		if (is_useful(peer))
			links_try(peer);
	}
}
