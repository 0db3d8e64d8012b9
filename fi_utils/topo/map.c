/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - a mesh to be drawn: nodes, their NICs, and the links between these. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "common/subnet.h"
#include "plan/cable_list.h"
#include "plan/topology.h"
#include "topo/map.h"

#define NICS_MAX (2 * MESH_TOPOLOGY_CABLES_MAX)

int topo_map_node_add(struct topo_map *map, const char *name)
{
	struct topo_node *nodes;

	if (!mesh_node_name_valid(name)) {
		fprintf(stderr, "fi_mesh topo: \"%.64s\" is not a valid node name\n", name);
		return -EINVAL;
	}
	if (map->num_nodes == MESH_TOPOLOGY_NODES_MAX) {
		fprintf(stderr, "fi_mesh topo: more than %d nodes\n", MESH_TOPOLOGY_NODES_MAX);
		return -EINVAL;
	}
	nodes = mesh_array_room(map->nodes, (size_t)map->num_nodes, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	map->nodes = nodes;
	nodes += map->num_nodes++;
	*nodes = (struct topo_node){.first_nic = map->num_nics};
	snprintf(nodes->name, sizeof(nodes->name), "%s", name);
	return 0;
}

int topo_map_nic_add(struct topo_map *map, const struct topo_nic *nic)
{
	struct topo_nic *nics;

	if (map->num_nics == NICS_MAX) {
		fprintf(stderr, "fi_mesh topo: more than %d NICs\n", NICS_MAX);
		return -E2BIG;
	}
	nics = mesh_array_room(map->nics, (size_t)map->num_nics, sizeof(*nics));
	if (!nics)
		return -ENOMEM;
	map->nics = nics;
	nics += map->num_nics++;
	*nics = *nic;
	nics->node = map->num_nodes - 1;
	nics->link = -1;
	map->nodes[nics->node].num_nics++;
	return 0;
}

/* ---- links ------------------------------------------------------------------------------ */

/* A NIC with its subnet, to sort. */
struct located_nic {
	struct mesh_addr subnet;
	int nic;
};

static int located_compare(const void *left, const void *right)
{
	const struct located_nic *a = left, *b = right;
	int bytes;

	if (a->subnet.family != b->subnet.family)
		return a->subnet.family < b->subnet.family ? -1 : 1;
	bytes = memcmp(a->subnet.bytes, b->subnet.bytes, sizeof(a->subnet.bytes));
	if (bytes)
		return bytes;
	if (a->subnet.prefix_len != b->subnet.prefix_len)
		return a->subnet.prefix_len < b->subnet.prefix_len ? -1 : 1;
	return (a->nic > b->nic) - (a->nic < b->nic);
}

static bool same_subnet(const struct located_nic *a, const struct located_nic *b)
{
	return a->subnet.prefix_len == b->subnet.prefix_len &&
	       mesh_addr_equal(&a->subnet, &b->subnet);
}

/* NICs whose subnet identifies one link. */
static int nics_locate(const struct topo_map *map, struct located_nic *located)
{
	int i, num = 0;

	for (i = 0; i < map->num_nics; i++) {
		const struct mesh_addr *addr = &map->nics[i].addr;

		if (addr->family == MESH_FAMILY_NONE || mesh_addr_is_link_local(addr))
			continue;
		located[num++] = (struct located_nic){mesh_subnet_of(addr), i};
	}
	qsort(located, (size_t)num, sizeof(*located), located_compare);
	return num;
}

/* Adds the link of NICs located[first] .. located[last - 1], unless they are all on one node. */
static int link_add(struct topo_map *map, const struct located_nic *located, int first, int last,
		    int *num_members)
{
	struct topo_link *links;
	bool several = false;
	int i;

	for (i = first; i < last; i++)
		several = several ||
			  map->nics[located[i].nic].node != map->nics[located[first].nic].node;
	if (!several)
		return 0;
	links = mesh_array_room(map->links, (size_t)map->num_links, sizeof(*links));
	if (!links)
		return -ENOMEM;
	map->links = links;
	links[map->num_links] =
		(struct topo_link){located[first].subnet, *num_members, last - first};
	for (i = first; i < last; i++) {
		map->members[(*num_members)++] = located[i].nic;
		map->nics[located[i].nic].link = map->num_links;
	}
	map->num_links++;
	return 0;
}

static int names_check(const struct topo_map *map)
{
	const char **names = calloc((size_t)map->num_nodes + 1, sizeof(*names)), *repeated;
	int i, ret = 0;

	if (!names)
		return -ENOMEM;
	for (i = 0; i < map->num_nodes; i++)
		names[i] = map->nodes[i].name;
	repeated = mesh_names_repeated(names, (size_t)map->num_nodes);
	if (repeated) {
		fprintf(stderr, "fi_mesh topo: two nodes have the name %s\n", repeated);
		ret = -EINVAL;
	}
	free(names);
	return ret;
}

int topo_map_join(struct topo_map *map)
{
	struct located_nic *located = calloc((size_t)map->num_nics + 1, sizeof(*located));
	int i, num, first = 0, num_members = 0, ret = names_check(map);

	map->members = calloc((size_t)map->num_nics + 1, sizeof(*map->members));
	if (!located || !map->members)
		ret = -ENOMEM;
	num = ret ? 0 : nics_locate(map, located);
	for (i = 1; i <= num && !ret; i++) {
		if (i < num && same_subnet(&located[first], &located[i]))
			continue;
		ret = link_add(map, located, first, i, &num_members);
		first = i;
	}
	free(located);
	return ret;
}

void topo_map_free(struct topo_map *map)
{
	free(map->nodes);
	free(map->nics);
	free(map->links);
	free(map->members);
	memset(map, 0, sizeof(*map));
}

/* ---- questions -------------------------------------------------------------------------- */

int topo_map_node_find(const struct topo_map *map, const char *name)
{
	int i;

	for (i = 0; i < map->num_nodes; i++)
		if (!strcmp(map->nodes[i].name, name))
			return i;
	return -1;
}

int topo_map_nic_find(const struct topo_map *map, int node, const char *name)
{
	int i, first = map->nodes[node].first_nic;

	for (i = first; i < first + map->nodes[node].num_nics; i++)
		if (!strcmp(map->nics[i].name, name))
			return i;
	return -1;
}

enum topo_state topo_link_state(const struct topo_map *map, int link)
{
	const struct topo_link *at = &map->links[link];
	enum topo_state state = TOPO_PLANNED;
	int i;

	for (i = at->first; i < at->first + at->num; i++)
		if (map->nics[map->members[i]].state > state)
			state = map->nics[map->members[i]].state;
	return state;
}

int topo_link_rate(const struct topo_map *map, int link)
{
	const struct topo_link *at = &map->links[link];
	int i, rate, slowest = 0;

	for (i = at->first; i < at->first + at->num; i++) {
		rate = map->nics[map->members[i]].rate_mbps;
		if (rate && (!slowest || rate < slowest))
			slowest = rate;
	}
	return slowest;
}

const char *topo_state_text(enum topo_state state)
{
	static const char *const texts[] = {
		[TOPO_PLANNED] = "planned",
		[TOPO_UP] = "up",
		[TOPO_DOWN] = "down",
	};

	return texts[state];
}
