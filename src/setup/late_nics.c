/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_nics.c - comms that exist get further paths: over NICs that join, here or at a peer; and
 * those over relays over the links that let nothing through before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "control/dial.h"
#include "control/peer_index.h"
#include "control/peer_send.h"
#include "setup/candidates.h"
#include "setup/late_nics.h"
#include "setup/neighbour_hints.h"
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

	while ((other = mesh_peer_of_process(peer, other)))
		peer_nics_learn(other, nics, num_nics);
	atomic_store(&peer->process->late_nics, true);
	mesh_engine_wake(&peer->process->engine);
}

void mesh_late_nics_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	mesh_process_assert_locked(peer->process);
	if (peer->state == MESH_PEER_UP)
		nics_learn(peer, frame->nics.nics, frame->nics.num_nics);
}

void mesh_late_nics_introduced(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	mesh_process_assert_locked(peer->process);
	nics_learn(peer, hello->nics, hello->num_nics);
}

/* ---- the links ------------------------------------------------------------------------------ */

MESH_HOLDS(process)
static bool is_own_address(const struct mesh_process *process, const struct mesh_addr *address)
{
	int dev;

	for (dev = 0; dev < process->num_devs; dev++) {
		if (mesh_addr_equal(&process->nics[dev]->source, address))
			return true;
	}
	return false;
}

/* True for a link that did not exist when the process, or the peer's, started. */
MESH_HOLDS(process)
static bool pair_is_late(const struct mesh_peer *peer, const struct mesh_path_candidate *pair)
{
	const struct mesh_process *process = peer->process;

	return process->endpoints[pair->local].nic >= process->num_lasting ||
	       peer->late_nics >> peer->nics[pair->remote].nic & 1;
}

/* Tries the links to the peer's process over which its comms may get a path. */
MESH_HOLDS(process)
static void links_try(struct mesh_peer *peer)
{
	struct mesh_process *process = peer->process;
	struct mesh_path_choice choice;
	struct mesh_handle handle;
	struct mesh_way way;
	int i;

	memset(&handle, 0, sizeof(handle));
	memcpy(handle.endpoints, peer->nics, (size_t)peer->num_nics * sizeof(*peer->nics));
	handle.num_endpoints = peer->num_nics;
	handle.total_nics = (uint8_t)peer->num_nics;
	handle.control_port = peer->control_port;
	handle.cookie = peer->process_id;
	mesh_candidates_find(process, peer->domain->dev, &handle, &choice);
	for (i = 0; i < choice.num_candidates; i++) {
		if (choice.candidates[i].class == MESH_PATH_DIRECT &&
		    pair_is_late(peer, &choice.candidates[i]) &&
		    mesh_way_of_pair(process, &handle, &choice.candidates[i], &way))
			mesh_rejoin_new(process, peer->process_id, &way);
	}
}

void mesh_late_links_want(struct mesh_process *process, int dev, const struct mesh_handle *handle,
			  bool routed)
{
	struct mesh_path_choice choice;
	struct mesh_way way;
	int i;

	mesh_candidates_find(process, dev, handle, &choice);
	mesh_neighbour_hints_order(process, handle, &choice);
	for (i = 0; i < choice.num_candidates; i++) {
		if ((routed || choice.candidates[i].class == MESH_PATH_DIRECT) &&
		    mesh_way_of_pair(process, handle, &choice.candidates[i], &way))
			mesh_rejoin_new(process, mesh_process_id_of(handle->cookie), &way);
	}
}

/* True if the peer's process lives as far as we know, and its NICs are known. */
MESH_HOLDS(process)
static bool is_useful(const struct mesh_peer *peer)
{
	return !peer->incoming && peer->num_nics && !peer->over &&
	       (peer->state == MESH_PEER_UP ||
		(peer->state == MESH_PEER_LOST && !LIST_EMPTY(&peer->user_list)));
}

/* One peer stands for its process: the first one that is useful. */
MESH_HOLDS(process)
static bool stands_for_process(const struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (is_useful(other))
			return other == peer;
	}
	return false;
}

void mesh_late_nics_tick(struct mesh_process *process)
{
	struct mesh_peer *peer, *next;

	mesh_process_assert_locked(process);
	if (atomic_exchange(&process->nics_new, false)) {
		for (peer = LIST_FIRST(&process->peers); peer; peer = next) {
			next = LIST_NEXT(peer, entry);
			if (peer->state == MESH_PEER_UP)
				mesh_peer_nics_send(peer);
		}
		atomic_store(&process->late_nics, true);
	}
	if (!atomic_exchange(&process->late_nics, false))
		return;
	LIST_FOREACH(peer, &process->peers, entry) {
		if (is_useful(peer) && stands_for_process(peer) &&
		    !is_own_address(process, &peer->address.addr))
			links_try(peer);
	}
}
