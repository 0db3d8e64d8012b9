/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the mesh as its nodes describe it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nic/addr.h"
#include "nic/graph.h"

void mesh_graph_finish(struct mesh_graph *graph)
{
	int i;

	for (i = 0; i < graph->num_nodes; i++)
		free(graph->nodes[i].links);
	free(graph->nodes);
	memset(graph, 0, sizeof(*graph));
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* The place of this id, or the free one where it belongs: there are more places than nodes. */
static int place_of(const struct mesh_graph *graph, uint64_t id)
{
	int place = (int)((id * 0x9e3779b97f4a7c15u >> 40) % (2 * MESH_GRAPH_NODES_MAX));

	while (graph->places[place] && graph->nodes[graph->places[place] - 1].id != id)
		place = (place + 1) % (2 * MESH_GRAPH_NODES_MAX);
	return place;
}

int mesh_graph_find(const struct mesh_graph *graph, uint64_t id)
{
	return (int)graph->places[place_of(graph, id)] - 1;
}

int mesh_graph_enter(struct mesh_graph *graph, uint64_t id)
{
	int place = place_of(graph, id);
	struct mesh_graph_node *nodes;

	if (graph->places[place])
		return graph->places[place] - 1;
	if (graph->num_nodes == MESH_GRAPH_NODES_MAX)
		return -ENOSPC;
	nodes = mesh_array_room(graph->nodes, (size_t)graph->num_nodes, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	graph->nodes = nodes;
	nodes[graph->num_nodes] = (struct mesh_graph_node){.id = id};
	graph->places[place] = (uint16_t)(graph->num_nodes + 1);
	return graph->num_nodes++;
}

static int link_compare(const void *left, const void *right)
{
	const struct mesh_graph_link *a = left, *b = right;

	if (a->node_id != b->node_id)
		return a->node_id < b->node_id ? -1 : 1;
	if (a->nic != b->nic)
		return a->nic < b->nic ? -1 : 1;
	return (a->peer_nic > b->peer_nic) - (a->peer_nic < b->peer_nic);
}

/* Appends those that can be, up to the limit. Returns the new number. */
static int links_append(struct mesh_graph_link *to, int num, uint64_t id,
			const struct mesh_graph_link *links, int num_links)
{
	int i;

	for (i = 0; i < num_links && num < MESH_GRAPH_LINKS_MAX; i++) {
		if (links[i].node_id != id && links[i].nic < MESH_NICS_MAX &&
		    links[i].peer_nic < MESH_NICS_MAX)
			to[num++] = links[i];
	}
	return num;
}

/*
 * Orders them, and drops those that are listed twice: one of them is enough for RDMA. Returns the
 * new number.
 */
static int links_order(struct mesh_graph_link *links, int num)
{
	int i, kept = 0;

	qsort(links, (size_t)num, sizeof(*links), link_compare);
	for (i = 0; i < num; i++) {
		if (!kept || link_compare(&links[kept - 1], &links[i]))
			links[kept++] = links[i];
		else
			links[kept - 1].rdma |= links[i].rdma;
	}
	return kept;
}

int mesh_graph_report(struct mesh_graph *graph, uint64_t id, bool relays, bool add,
		      const struct mesh_graph_link *links, int num_links)
{
	struct mesh_graph_link found[MESH_GRAPH_LINKS_MAX], *copy;
	struct mesh_graph_node *node;
	int num = links_append(found, 0, id, links, num_links), index = mesh_graph_enter(graph, id);

	if (index < 0)
		return index;
	if (add)
		num = links_append(found, num, id, graph->nodes[index].links,
				   graph->nodes[index].num_links);
	num = links_order(found, num);
	copy = malloc((size_t)(num ? num : 1) * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	if (num)
		memcpy(copy, found, (size_t)num * sizeof(*copy));
	node = &graph->nodes[index];
	free(node->links);
	node->links = copy;
	node->num_links = num;
	node->relays = relays;
	return index;
}

/* ---- links --------------------------------------------------------------------------------- */

int mesh_graph_link_find(const struct mesh_graph_node *node, uint64_t id)
{
	int low = 0, high = node->num_links, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (node->links[middle].node_id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < node->num_links && node->links[low].node_id == id ? low : node->num_links;
}

const struct mesh_graph_link *mesh_graph_is_confirmed(const struct mesh_graph_node *other,
						      uint64_t id,
						      const struct mesh_graph_link *link)
{
	int i;

	for (i = mesh_graph_link_find(other, id);
	     i < other->num_links && other->links[i].node_id == id; i++) {
		if (other->links[i].nic == link->peer_nic && other->links[i].peer_nic == link->nic)
			return &other->links[i];
	}
	return NULL;
}

static uint32_t slower(uint32_t a, uint32_t b)
{
	if (!a || !b)
		a = b = a + b;
	return a < b ? a : b;
}

/* @rdma: of links with RDMA at both ends only; @drained: of the drained links as well */
static uint32_t width_of(const struct mesh_graph *graph, int a, int b, bool rdma, bool drained)
{
	const struct mesh_graph_node *from = &graph->nodes[a], *to = &graph->nodes[b];
	const struct mesh_graph_link *link, *back;
	uint32_t nics = 0, peer_nics = 0, speed;
	uint64_t width = 0;
	int i;

	for (i = mesh_graph_link_find(from, to->id); i < from->num_links; i++) {
		link = &from->links[i];
		if (link->node_id != to->id)
			break;
		if (nics & 1u << link->nic || peer_nics & 1u << link->peer_nic ||
		    (rdma && !link->rdma))
			continue;
		back = mesh_graph_is_confirmed(to, from->id, link);
		if (!back || (rdma && !back->rdma) ||
		    (!drained && (link->drained || back->drained)))
			continue;
		nics |= 1u << link->nic;
		peer_nics |= 1u << link->peer_nic;
		speed = slower(link->speed_mbps, back->speed_mbps);
		width += speed ? speed : 1;
	}
	return width < UINT32_MAX ? (uint32_t)width : UINT32_MAX;
}

struct mesh_graph_hop mesh_graph_hop(const struct mesh_graph *graph, int a, int b)
{
	struct mesh_graph_hop hop = {.mbps = width_of(graph, a, b, false, false)};

	if (!hop.mbps) {
		hop.mbps = width_of(graph, a, b, false, true);
		hop.drained = hop.mbps > 0;
	}
	hop.rdma_mbps = width_of(graph, a, b, true, hop.drained);
	return hop;
}
