/* SPDX-License-Identifier: Apache-2.0 */
/* peer_index.c - finds peers by the process at the other end, and by their address. */
#include "control/peer_index.h"
#include "control/process.h"
#include "fabric/remote.h"

/* Spreads the bits of @key; the multiplier is 2^64 divided by the golden ratio. */
static unsigned int bucket_of(uint64_t key)
{
	return (unsigned int)(key * 0x9e3779b97f4a7c15u >> 32) % MESH_PEER_BUCKETS;
}

static unsigned int address_bucket(const struct mesh_addr *address, uint16_t control_port)
{
	uint64_t key = control_port;
	size_t i;

	for (i = 0; i < mesh_addr_size(address->family); i++)
		key = key * 31 + address->bytes[i];
	return bucket_of(key);
}

void mesh_peer_process_set(struct mesh_peer *peer, uint64_t process_id)
{
	struct mesh_process *process = peer->process;

	mesh_process_assert_locked(process);
	if (peer->process_id && peer->process_entry.le_prev)
		LIST_REMOVE(peer, process_entry);
	peer->process_id = process_id;
	if (process_id)
		LIST_INSERT_HEAD(&process->index.by_process[bucket_of(process_id)], peer,
				 process_entry);
}

void mesh_peer_index_add(struct mesh_peer *peer)
{
	struct mesh_process *process = peer->process;

	mesh_process_assert_locked(process);
	LIST_INSERT_HEAD(
		&process->index.by_address[address_bucket(&peer->address.addr, peer->control_port)],
		peer, address_entry);
}

void mesh_peer_index_remove(struct mesh_peer *peer)
{
	mesh_peer_process_set(peer, 0);
	if (peer->address_entry.le_prev)
		LIST_REMOVE(peer, address_entry);
	peer->address_entry.le_prev = NULL;
}

struct mesh_peer *mesh_peer_of_process(const struct mesh_peer *peer, struct mesh_peer *previous)
{
	struct mesh_process *process = peer->process;
	struct mesh_peer *other;

	mesh_process_assert_locked(process);
	if (!previous)
		return (struct mesh_peer *)peer;
	if (previous != peer)
		other = LIST_NEXT(previous, process_entry);
	else
		other = LIST_FIRST(&process->index.by_process[bucket_of(peer->process_id)]);
	/* The process is unknown, and the id 0, until HELLO has arrived. */
	while (other &&
	       (other == peer || !peer->process_id || other->process_id != peer->process_id))
		other = LIST_NEXT(other, process_entry);
	return other;
}

bool mesh_peer_flow_is_shared(const struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (other != peer && other->state == MESH_PEER_UP && other->remote &&
		    other->remote->flow == peer->remote->flow)
			return true;
	}
	return false;
}

bool mesh_process_is_known(const struct mesh_process *process, uint64_t process_id)
{
	const struct mesh_peer *peer;

	mesh_process_assert_locked(process);
	LIST_FOREACH(peer, &process->index.by_process[bucket_of(process_id)], process_entry) {
		if (peer->process_id == process_id && !LIST_EMPTY(&peer->user_list) && !peer->over)
			return true;
	}
	return false;
}

const struct mesh_peer_bucket *mesh_peers_at(const struct mesh_process *process,
					     const struct mesh_addr *address, uint16_t control_port)
{
	mesh_process_assert_locked(process);
	return &process->index.by_address[address_bucket(address, control_port)];
}

bool mesh_peer_node_is_known(const struct mesh_process *process, const struct mesh_addr *address)
{
	const struct mesh_peer *peer;

	LIST_FOREACH(peer, mesh_peers_at(process, address, 0), address_entry) {
		if (peer->incoming && peer->state == MESH_PEER_UP &&
		    mesh_addr_equal(&peer->address.addr, address))
			return true;
	}
	return false;
}

uint64_t mesh_way_tried_ms(const struct mesh_process *process, const struct mesh_way *way)
{
	const struct mesh_peer *peer;
	uint64_t tried_ms = 0;

	mesh_process_assert_locked(process);
	LIST_FOREACH(peer, &process->peers, entry) {
		if (!peer->tried_ms || peer->state == MESH_PEER_LOST ||
		    !mesh_peer_is_at(peer, process->domains[way->index], &way->address.addr))
			continue;
		if (peer->state == MESH_PEER_UP)
			return 0;
		if (!tried_ms || peer->tried_ms < tried_ms)
			tried_ms = peer->tried_ms;
	}
	return tried_ms;
}
