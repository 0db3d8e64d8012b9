/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - the path that the plugin takes between two nodes of a map, and why. */
#include <stdio.h>
#include <stdlib.h>

#include "common/subnet.h"
#include "nic/path_choice.h"
#include "topo/map.h"
#include "topo/path.h"

/* One node's NICs as the plugin uses them: the first 16 only. */
struct side {
	struct mesh_endpoint_addr endpoints[MESH_NICS_MAX];
	int nics[MESH_NICS_MAX]; /* in the map */
	int num;
	bool link_local; /* some have nothing but a link-local address */
};

static void side_fill(const struct topo_map *map, int node, struct side *side)
{
	int i, first = map->nodes[node].first_nic;

	side->num = 0;
	side->link_local = false;
	for (i = first; i < first + map->nodes[node].num_nics && side->num < MESH_NICS_MAX; i++) {
		const struct topo_nic *nic = &map->nics[i];

		if (nic->addr.family == MESH_FAMILY_NONE || nic->state == TOPO_DOWN)
			continue;
		if (mesh_addr_is_link_local(&nic->addr)) {
			side->link_local = true;
			continue;
		}
		side->endpoints[side->num] = (struct mesh_endpoint_addr){
			.addr = nic->addr, .nic = (uint8_t)side->num, .provider = nic->provider};
		side->nics[side->num++] = i;
	}
}

/* A link that would join the two if it were up, or -1. */
static int broken_link(const struct topo_map *map, int from, int to)
{
	int i, k, first = map->nodes[from].first_nic;

	for (i = first; i < first + map->nodes[from].num_nics; i++) {
		const struct topo_link *link;

		if (map->nics[i].link < 0)
			continue;
		link = &map->links[map->nics[i].link];
		for (k = link->first; k < link->first + link->num; k++)
			if (map->nics[map->members[k]].node == to)
				return map->nics[i].link;
	}
	return -1;
}

static void reason_none(const struct topo_map *map, const struct side *local,
			const struct side *remote, const struct mesh_path_choice *choice,
			struct topo_path *path)
{
	char text[MESH_ADDR_TEXT_MAX];
	int link;

	if (choice->provider_differs) {
		const struct mesh_endpoint_addr *a = &local->endpoints[choice->differing.local];
		const struct mesh_endpoint_addr *b = &remote->endpoints[choice->differing.remote];

		snprintf(path->reason, sizeof(path->reason),
			 "none: %s uses %s and %s uses %s on their cable",
			 map->nodes[path->from].name, mesh_provider_id_text(a->provider),
			 map->nodes[path->to].name, mesh_provider_id_text(b->provider));
		return;
	}
	if (local->link_local && remote->link_local) {
		snprintf(path->reason, sizeof(path->reason),
			 "not known: link-local addresses do not tell which NICs share a cable; "
			 "`fi_mesh check --peer` finds it");
		return;
	}
	link = broken_link(map, path->from, path->to);
	if (link >= 0)
		snprintf(path->reason, sizeof(path->reason), "none: their cable is down, %s",
			 mesh_addr_text_prefix(&map->links[link].subnet, text));
	else
		snprintf(path->reason, sizeof(path->reason),
			 "none: no common subnet, and there is no relay yet");
}

/* Counts the cables: candidates that share no NIC with a better one are first. */
static int count_cables(const struct mesh_path_choice *choice)
{
	uint32_t local = 0, remote = 0;
	int i;

	for (i = 0; i < choice->num_candidates; i++) {
		const struct mesh_path_candidate *pair = &choice->candidates[i];

		if (local & 1u << pair->local || remote & 1u << pair->remote)
			break;
		local |= 1u << pair->local;
		remote |= 1u << pair->remote;
	}
	return i;
}

void topo_path_find(const struct topo_map *map, int from, int to, struct topo_path *path)
{
	struct mesh_path_hints hints = {.local_nic = -1, .remote_nic = -1};
	struct mesh_path_choice choice;
	struct side local, remote;
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr subnet;

	*path = (struct topo_path){.from = from, .to = to, .local = -1, .remote = -1};
	side_fill(map, from, &local);
	side_fill(map, to, &remote);
	mesh_path_choose(local.endpoints, local.num, remote.endpoints, remote.num, &hints, &choice);
	if (!choice.num_candidates) {
		reason_none(map, &local, &remote, &choice, path);
		return;
	}
	path->local = local.nics[choice.candidates[0].local];
	path->remote = remote.nics[choice.candidates[0].remote];
	path->num_cables = count_cables(&choice);
	subnet = mesh_subnet_of(&map->nics[path->local].addr);
	mesh_addr_text_prefix(&subnet, text);
	if (path->num_cables == 1)
		snprintf(path->reason, sizeof(path->reason), "the only one: both are on %s", text);
	else
		snprintf(path->reason, sizeof(path->reason),
			 "one of %d cables: both are on %s; each message is spread over them",
			 path->num_cables, text);
}

struct topo_path *topo_paths_find(const struct topo_map *map, long max, long *num)
{
	long pairs = (long)map->num_nodes * (map->num_nodes - 1) / 2, count = 0;
	struct topo_path *paths;
	int from, to;

	*num = pairs;
	if (pairs > max)
		return NULL;
	paths = calloc((size_t)pairs + 1, sizeof(*paths));
	for (from = 0; paths && from < map->num_nodes; from++)
		for (to = from + 1; to < map->num_nodes; to++)
			topo_path_find(map, from, to, &paths[count++]);
	return paths;
}
