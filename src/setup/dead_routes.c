/* SPDX-License-Identifier: Apache-2.0 */
/* dead_routes.c - the nodes to which routes let nothing through. */
#include <string.h>

#include "base/hash.h"
#include "nic/addr.h"
#include "setup/connecting.h"
#include "setup/dead_routes.h"
#include "setup/setup.h"

/* The same for the same candidates in any order, which differs from listener to listener. */
MESH_HOLDS(process)
static uint64_t ways_digest(const struct mesh_connect *connect)
{
	const struct mesh_process *process = connect->net->process;
	const struct mesh_path_choice *choice = &connect->choice;
	uint64_t digest = 0;
	int i;

	for (i = 0; i < choice->num_candidates; i++) {
		const struct mesh_path_candidate *pair = &choice->candidates[i];
		const struct mesh_addr *remote = &connect->handle.endpoints[pair->remote].addr;
		uint8_t way[3 + sizeof(remote->bytes)] = {process->endpoints[pair->local].nic,
							  pair->provider, remote->family};

		memcpy(way + 3, remote->bytes, mesh_addr_size(remote->family));
		digest += mesh_checksum(way, sizeof(way));
	}
	return digest;
}

/* The node's place, or -1. */
MESH_HOLDS(process)
static int place_find(const struct mesh_dead_routes *routes, uint64_t node_id)
{
	int i;

	for (i = 0; i < MESH_DEAD_ROUTES_MAX; i++) {
		if (node_id && routes->nodes[i].node_id == node_id)
			return i;
	}
	return -1;
}

void mesh_dead_routes_add(const struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;
	struct mesh_dead_routes *routes = &mesh_setup_of(process)->dead_routes;
	int place = place_find(routes, connect->handle.node_id);

	mesh_process_assert_locked(process);
	if (place < 0) {
		place = routes->next;
		routes->next = (routes->next + 1) % MESH_DEAD_ROUTES_MAX;
	}
	routes->nodes[place].node_id = connect->handle.node_id;
	routes->nodes[place].ways = ways_digest(connect);
}

bool mesh_dead_routes_have(const struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;
	const struct mesh_dead_routes *routes = &mesh_setup_of(process)->dead_routes;
	int place = place_find(routes, connect->handle.node_id);

	mesh_process_assert_locked(process);
	return place >= 0 && routes->nodes[place].ways == ways_digest(connect);
}

void mesh_dead_routes_remove(struct mesh_process *process, uint64_t node_id)
{
	struct mesh_dead_routes *routes = &mesh_setup_of(process)->dead_routes;
	int place = place_find(routes, node_id);

	mesh_process_assert_locked(process);
	if (place >= 0)
		routes->nodes[place].node_id = 0;
}

void mesh_dead_routes_clear(struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	memset(&mesh_setup_of(process)->dead_routes, 0, sizeof(struct mesh_dead_routes));
}
