/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - a mesh to be drawn: nodes, their NICs, and the links between these. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "common/output.h"
#include "common/subnet.h"
#include "nic/addr.h"
#include "plan/cable_list.h"
#include "plan/topology.h"
#include "topo/map.h"

#define NICS_MAX (2 * MESH_TOPOLOGY_CABLES_MAX)

int topo_map_node_add(struct topo_map *map, const char *name)
{
	struct topo_node *nodes;
	char shown[65];

	if (!mesh_node_name_valid(name)) {
		snprintf(shown, sizeof(shown), "%s", name);
		fprintf(stderr, "fi_mesh topo: \"%s\" is not a valid node name\n",
			output_clean(shown));
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

void topo_map_site_set(struct topo_map *map, const char *site)
{
	struct topo_node *node = &map->nodes[map->num_nodes - 1];

	snprintf(node->site, sizeof(node->site), "%.*s", (int)sizeof(node->site) - 1, site);
	mesh_text_clean(node->site);
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
	nics->wire = map->num_nics - 1;
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

static bool same_subnet(const struct topo_map *map, const struct located_nic *a,
			const struct located_nic *b)
{
	(void)map;
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

/* A link and the physical cable that the plan gives it, to sort. */
struct planned_link {
	int physical, link;
};

static int planned_compare(const void *left, const void *right)
{
	const struct planned_link *a = left, *b = right;

	if (a->physical != b->physical)
		return a->physical < b->physical ? -1 : 1;
	return (a->link > b->link) - (a->link < b->link);
}

/* Links that a plan gives the same physical cable are its halves. */
static int halves_join(struct topo_map *map)
{
	struct planned_link *planned = calloc((size_t)map->num_links + 1, sizeof(*planned));
	int i, num = 0;

	if (!planned)
		return -ENOMEM;
	for (i = 0; i < map->num_links; i++) {
		const struct topo_link *link = &map->links[i];
		int physical = map->nics[map->members[link->first]].physical;

		if (link->num == 2 && physical)
			planned[num++] = (struct planned_link){physical, i};
	}
	qsort(planned, (size_t)num, sizeof(*planned), planned_compare);
	for (i = 1; i < num; i++) {
		if (planned[i].physical == planned[i - 1].physical)
			map->links[planned[i].link].cable = map->links[planned[i - 1].link].cable;
	}
	free(planned);
	return 0;
}

/* Adds the link of NICs located[first] .. located[last - 1], unless they are all on one node. */
static int link_add(struct topo_map *map, struct located_nic *located, int first, int last,
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
	links[map->num_links] = (struct topo_link){located[first].subnet, *num_members,
						   last - first, map->num_links};
	for (i = first; i < last; i++) {
		map->members[(*num_members)++] = located[i].nic;
		map->nics[located[i].nic].link = map->num_links;
	}
	map->num_links++;
	return 0;
}

static int names_check(const struct topo_map *map)
{
	const char *repeated = mesh_name_repeated(map->nodes, sizeof(*map->nodes), map->num_nodes);

	if (!repeated)
		return 0;
	fprintf(stderr,
		"fi_mesh topo: two nodes have the name %s: set NCCL_MESH_NODE_NAME on one "
		"of them\n",
		repeated);
	return -EINVAL;
}

/*
 * Puts the NICs in the order of what they share, and adds each group of them.
 *
 * @shared: true for two NICs of one group; NICs of a group are side by side
 */
static int groups_join(struct topo_map *map,
		       int (*locate)(const struct topo_map *map, struct located_nic *located),
		       bool (*shared)(const struct topo_map *map, const struct located_nic *a,
				      const struct located_nic *b),
		       int (*add)(struct topo_map *map, struct located_nic *located, int first,
				  int last, int *num_members))
{
	struct located_nic *located = calloc((size_t)map->num_nics + 1, sizeof(*located));
	int i, num, first = 0, num_members = 0, ret = names_check(map);

	map->members = calloc((size_t)map->num_nics + 1, sizeof(*map->members));
	if (!located || !map->members)
		ret = -ENOMEM;
	num = ret ? 0 : locate(map, located);
	for (i = 1; i <= num && !ret; i++) {
		if (i < num && shared(map, &located[first], &located[i]))
			continue;
		ret = add(map, located, first, i, &num_members);
		first = i;
	}
	free(located);
	return ret;
}

int topo_map_join(struct topo_map *map)
{
	int ret = groups_join(map, nics_locate, same_subnet, link_add);

	return ret ? ret : halves_join(map);
}

/* ---- wires ------------------------------------------------------------------------------ */

int topo_map_wire_of(const struct topo_map *map, int nic)
{
	while (map->nics[nic].wire != nic)
		nic = map->nics[nic].wire;
	return nic;
}

void topo_map_wire(struct topo_map *map, int a, int b)
{
	a = topo_map_wire_of(map, a);
	b = topo_map_wire_of(map, b);
	if (a < b)
		map->nics[b].wire = a;
	else
		map->nics[a].wire = b;
}

/* The NICs in the order of their wires. */
static int wires_locate(const struct topo_map *map, struct located_nic *located)
{
	int i, k, num = 0;

	for (i = 0; i < map->num_nics; i++) {
		if (topo_map_wire_of(map, i) != i)
			continue;
		for (k = i; k < map->num_nics; k++) {
			if (topo_map_wire_of(map, k) == i)
				located[num++] =
					(struct located_nic){mesh_subnet_of(&map->nics[k].addr), k};
		}
	}
	return num;
}

/* The other end of its cable has fewer NICs. */
static void left_over_note(struct topo_map *map, int nic, int far)
{
	if (!*map->nics[nic].note)
		snprintf(map->nics[nic].note, sizeof(map->nics[nic].note), "%s, no NIC of its own",
			 map->nodes[map->nics[far].node].name);
}

/* Adds the halves of a cable: @ours NICs of one node, which come first, and @theirs of another. */
static int halves_add(struct topo_map *map, struct located_nic *nics, int ours, int theirs,
		      int *num_members)
{
	struct mesh_addr addrs[2 * MESH_NICS_MAX];
	int partners[MESH_NICS_MAX], i, ret = 0, cable = map->num_links;
	struct located_nic pair[2];

	for (i = 0; i < ours + theirs; i++)
		addrs[i] = map->nics[nics[i].nic].addr;
	mesh_addr_pair(addrs, ours, addrs + ours, theirs, partners);
	for (i = 0; i < ours && !ret; i++) {
		if (partners[i] < 0) {
			left_over_note(map, nics[i].nic, nics[ours].nic);
			continue;
		}
		pair[0] = nics[i];
		pair[1] = nics[ours + partners[i]];
		ret = link_add(map, pair, 0, 2, num_members);
		if (!ret)
			map->links[map->num_links - 1].cable = cable;
	}
	for (i = ours; i < ours + theirs; i++) {
		if (map->nics[nics[i].nic].link < 0)
			left_over_note(map, nics[i].nic, nics[0].nic);
	}
	return ret;
}

/* Adds the links of the wire located[first] .. located[last - 1]: halves if it joins two nodes. */
static int wire_add(struct topo_map *map, struct located_nic *located, int first, int last,
		    int *num_members)
{
	const struct topo_nic *nics = map->nics;
	int mid = first;

	while (mid < last && nics[located[mid].nic].node == nics[located[first].nic].node)
		mid++;
	if (mid == last || mid - first > MESH_NICS_MAX || last - mid > MESH_NICS_MAX ||
	    nics[located[mid].nic].node != nics[located[last - 1].nic].node)
		return link_add(map, located, first, last, num_members);
	return halves_add(map, located + first, mid - first, last - mid, num_members);
}

static bool same_wire(const struct topo_map *map, const struct located_nic *a,
		      const struct located_nic *b)
{
	return topo_map_wire_of(map, a->nic) == topo_map_wire_of(map, b->nic);
}

int topo_map_wires_join(struct topo_map *map)
{
	return groups_join(map, wires_locate, same_wire, wire_add);
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

struct topo_cables topo_map_cables(const struct topo_map *map)
{
	struct topo_cables cables = {.each = 0};
	int *halves = calloc((size_t)map->num_links + 1, sizeof(*halves)), i;

	for (i = 0; i < map->num_links; i++) {
		if (map->links[i].num != 2)
			continue;
		cables.halves++;
		cables.num += map->links[i].cable == i;
		if (halves)
			halves[map->links[i].cable]++;
	}
	cables.each = cables.num && halves ? cables.halves / cables.num : 0;
	for (i = 0; i < map->num_links && halves; i++) {
		if (halves[i] && halves[i] != cables.each)
			cables.each = 0;
	}
	free(halves);
	return cables;
}

bool topo_link_is_half_of(const struct topo_map *map, int link, int other)
{
	return map->links[link].cable == map->links[other].cable;
}

bool topo_link_traffic(const struct topo_map *map, int link, double *bytes)
{
	const struct topo_link *at = &map->links[link];
	int i, num = 0;

	*bytes = 0;
	for (i = at->first; i < at->first + at->num; i++) {
		const struct topo_nic *nic = &map->nics[map->members[i]];

		if (!nic->rates_known)
			continue;
		num++;
		*bytes += nic->receives;
		if (at->num != 2)
			continue;
		/* One end knows both directions. */
		*bytes = nic->sends + nic->receives;
		return true;
	}
	return num == at->num;
}

bool topo_map_has_rates(const struct topo_map *map)
{
	int i;

	for (i = 0; i < map->num_nics; i++)
		if (map->nics[i].rates_known)
			return true;
	return false;
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
