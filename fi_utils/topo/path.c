/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - the path that the plugin takes between two nodes of a map, and why. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <net/if.h>

#include "common/output.h"
#include "common/relay_choice.h"
#include "common/subnet.h"
#include "neighbours/datagram.h"
#include "nic/addr.h"
#include "nic/graph.h"
#include "nic/path_choice.h"
#include "system/node.h"
#include "topo/map.h"
#include "topo/path.h"

/* ---- relays ----------------------------------------------------------------------------- */

/* Of a larger mesh only single pairs are looked at. */
#define RELAYS_NODES_MAX 64

/* The plugin has as many NICs at most; further ones are no part of the graph. */
static int nic_index(const struct topo_map *map, int nic)
{
	return nic - map->nodes[map->nics[nic].node].first_nic;
}

/* Adds the links of one NIC, to each other NIC on its wire or subnet. */
static int nic_report(const struct topo_map *map, int nic, struct mesh_graph *graph)
{
	const struct topo_link *link = &map->links[map->nics[nic].link];
	int i, ret = 0;

	for (i = link->first; i < link->first + link->num && ret >= 0; i++) {
		const struct topo_nic *other = &map->nics[map->members[i]];
		const struct mesh_graph_link found = {
			.node_id = (uint64_t)other->node + 1,
			.speed_mbps = (uint32_t)other->rate_mbps,
			.nic = (uint8_t)nic_index(map, nic),
			.peer_nic = (uint8_t)nic_index(map, map->members[i]),
			.rdma = map->nics[nic].provider == MESH_PROVIDER_VERBS_RXM,
		};

		if (other->node == map->nics[nic].node || other->state == TOPO_DOWN ||
		    nic_index(map, map->members[i]) >= MESH_NICS_MAX)
			continue;
		ret = mesh_graph_report(graph, (uint64_t)map->nics[nic].node + 1, true, true,
					&found, 1);
	}
	return ret;
}

/*
 * Makes the graph of the links that are not down, as the plugin's own search does. Ids are the
 * nodes' numbers plus one.
 *
 * Returns 0, then mesh_graph_finish() it; -ENOSPC for too many nodes; -ENOMEM.
 */
static int relays_graph(const struct topo_map *map, struct mesh_graph *graph)
{
	int i, ret = 0;

	memset(graph, 0, sizeof(*graph));
	for (i = 0; i < map->num_nodes && ret >= 0; i++) {
		ret = mesh_graph_report(graph, (uint64_t)i + 1, true, false, NULL, 0);
		if (ret >= 0)
			graph->nodes[ret].site = mesh_neighbour_site_number(map->nodes[i].site);
	}
	for (i = 0; i < map->num_nics && ret >= 0; i++) {
		if (map->nics[i].link >= 0 && map->nics[i].state != TOPO_DOWN &&
		    nic_index(map, i) < MESH_NICS_MAX)
			ret = nic_report(map, i, graph);
	}
	if (ret < 0)
		mesh_graph_finish(graph);
	return ret < 0 ? ret : 0;
}

static bool joins(const struct topo_map *map, int link, int a, int b)
{
	const struct topo_link *at = &map->links[link];
	bool has_a = false, has_b = false;
	int i;

	for (i = at->first; i < at->first + at->num; i++) {
		has_a |= map->nics[map->members[i]].node == a;
		has_b |= map->nics[map->members[i]].node == b;
	}
	return has_a && has_b;
}

/* True if the link joins two nodes that follow each other on one of the routes. */
static bool routes_have_link(const struct topo_map *map, const struct relay_routes *routes,
			     int from, int to, int link)
{
	int route, i, node;

	for (route = 0; route < routes->num; route++) {
		node = from;
		for (i = 0; i < routes->num_relays; i++) {
			if (joins(map, link, node, routes->relays[route][i]))
				return true;
			node = routes->relays[route][i];
		}
		if (joins(map, link, node, to))
			return true;
	}
	return false;
}

/* The beginning of a reason. */
#define NO_PATH "none: "

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
			.addr = nic->addr,
			.nic = (uint8_t)side->num,
			.provider = nic->provider,
			.also_tcp = nic->provider == MESH_PROVIDER_VERBS_RXM};
		side->nics[side->num++] = i;
	}
}

/*
 * A link that would join the two if it were up, or -1. One whose ends are up joins them, and is no
 * path: these share no subnet.
 */
static int broken_link(const struct topo_map *map, int from, int to)
{
	int i, k, first = map->nodes[from].first_nic;

	for (i = first; i < first + map->nodes[from].num_nics; i++) {
		const struct topo_link *link;

		if (map->nics[i].link < 0)
			continue;
		link = &map->links[map->nics[i].link];
		for (k = link->first; k < link->first + link->num; k++)
			if (map->nics[map->members[k]].node == to &&
			    (map->nics[i].state == TOPO_DOWN ||
			     map->nics[map->members[k]].state == TOPO_DOWN))
				return map->nics[i].link;
	}
	return -1;
}

/* Returns true if relays may help. */
static bool reason_none(const struct topo_map *map, const struct side *local,
			const struct side *remote, const struct mesh_path_choice *choice,
			struct topo_path *path)
{
	char text[MESH_ADDR_TEXT_MAX];
	int link;

	if (choice->differing.provider) {
		const struct mesh_endpoint_addr *a = &local->endpoints[choice->differing.local];
		const struct mesh_endpoint_addr *b = &remote->endpoints[choice->differing.remote];

		snprintf(path->reason, sizeof(path->reason),
			 "none: %s uses %s and %s uses %s on their cable",
			 map->nodes[path->from].name, mesh_provider_id_text(a->provider),
			 map->nodes[path->to].name, mesh_provider_id_text(b->provider));
		return false;
	}
	if (local->link_local && remote->link_local && !map->asked) {
		snprintf(
			path->reason, sizeof(path->reason),
			"not known: link-local addresses do not show which NICs share a cable; use "
			"`fi_mesh check --peer`");
		return false;
	}
	link = broken_link(map, path->from, path->to);
	path->link_down = link >= 0;
	if (link >= 0)
		snprintf(path->reason, sizeof(path->reason), NO_PATH "their cable is down, %s",
			 mesh_addr_text_prefix(&map->links[link].subnet, text));
	else
		snprintf(path->reason, sizeof(path->reason),
			 NO_PATH "no %scommon subnet; ranks on nodes between may relay",
			 map->asked ? "cable with a " : "");
	return true;
}

/* "cables", or "halves of the cable" if all links that the path stands for are one cable's. */
static const char *cables_word(const struct topo_map *map, const struct topo_path *path)
{
	int i, halves = 0, chosen = map->nics[path->local].link;

	for (i = 0; i < map->num_links && chosen >= 0; i++)
		halves += topo_link_is_half_of(map, i, chosen);
	return halves == path->num_cables ? "halves of the cable" : "cables";
}

/* The provider and its reason; where only one of the NICs has RDMA, which node lacks it. */
static void provider_append(const struct topo_map *map, const struct mesh_path_candidate *pair,
			    struct topo_path *path)
{
	enum mesh_provider_id ours = map->nics[path->local].provider;
	enum mesh_provider_id theirs = map->nics[path->remote].provider;

	path->provider = pair->provider;
	if (pair->provider == MESH_PROVIDER_NONE)
		return; /* a plan */
	path->provider_why = provider_reason_of(ours, theirs, pair, false);
	output_add(path->reason, sizeof(path->reason), "; %s",
		   mesh_provider_id_text(pair->provider));
	if (path->provider_why == PROVIDER_WHY_ONE_END)
		output_add(path->reason, sizeof(path->reason), ", because %s has no RDMA there",
			   map->nodes[ours == pair->provider ? path->from : path->to].name);
	else
		output_add(path->reason, sizeof(path->reason), " (%s)",
			   provider_reason_text(path->provider_why));
}

/* The best provider that both ends of a wire have: it was not chosen by addresses. */
static void wire_provider_append(const struct topo_map *map, struct topo_path *path)
{
	enum mesh_provider_id ours = map->nics[path->local].provider;
	struct mesh_path_candidate pair = {.provider = ours};

	if (ours != map->nics[path->remote].provider)
		pair.provider = MESH_PROVIDER_TCP;
	provider_append(map, &pair, path);
}

/* Where the nodes have said which NICs share a wire: link-local addresses do. */
static bool wire_find(const struct topo_map *map, struct topo_path *path)
{
	int i, k, first = map->nodes[path->from].first_nic;
	const struct topo_link *link;

	for (i = first; i < first + map->nodes[path->from].num_nics && map->asked; i++) {
		if (map->nics[i].link < 0 || !mesh_addr_is_link_local(&map->nics[i].addr))
			continue;
		link = &map->links[map->nics[i].link];
		for (k = link->first; k < link->first + link->num; k++) {
			if (map->nics[map->members[k]].node != path->to ||
			    !mesh_addr_is_link_local(&map->nics[map->members[k]].addr))
				continue;
			if (!path->num_cables++) {
				path->local = i;
				path->remote = map->members[k];
			}
			break; /* the next cable has another NIC of ours */
		}
	}
	if (path->num_cables)
		path->why = MESH_PATH_WHY_CABLE;
	if (path->num_cables == 1)
		snprintf(path->reason, sizeof(path->reason), "the only one: one cable");
	else if (path->num_cables)
		snprintf(path->reason, sizeof(path->reason),
			 "one of %d %s; each message is spread over them", path->num_cables,
			 cables_word(map, path));
	if (path->num_cables)
		wire_provider_append(map, path);
	return path->num_cables > 0;
}

/* @arg: this node's NICs, by their number in the choice */
static bool route_leads(const struct mesh_endpoint_addr *local,
			const struct mesh_endpoint_addr *remote, const void *arg)
{
	const struct topo_nic *const *nics = arg;
	unsigned int ifindex = if_nametoindex(nics[local->nic]->name);

	return ifindex && mesh_route_leads(NULL, &local->addr, ifindex, &remote->addr);
}

/*
 * Without a link: what the kernel of this node, the first one of a mesh that was asked, has as a
 * route. What the kernels of other nodes have is not known here.
 */
static bool routed_find(const struct topo_map *map, struct topo_path *path)
{
	struct mesh_path_hints hints = {.local_nic = -1, .remote_nic = -1};
	const struct topo_nic *nics[MESH_NICS_MAX];
	bool turned = path->from > 0;
	struct mesh_path_choice choice = {.num_candidates = 0};
	struct side here, there;
	int i;

	if (!map->asked || (path->from && path->to))
		return false;
	side_fill(map, 0, &here);
	side_fill(map, turned ? path->from : path->to, &there);
	for (i = 0; i < here.num; i++)
		nics[i] = &map->nics[here.nics[i]];
	hints.same_count = here.num == there.num;
	mesh_path_choose_routed(here.endpoints, here.num, there.endpoints, there.num, &hints,
				route_leads, nics, &choice);
	if (!choice.num_candidates)
		return false;
	path->local = turned ? there.nics[choice.candidates[0].remote]
			     : here.nics[choice.candidates[0].local];
	path->remote = turned ? here.nics[choice.candidates[0].local]
			      : there.nics[choice.candidates[0].remote];
	path->routed = true;
	path->replaceable = relays_replace(choice.candidates, choice.num_candidates);
	path->why = choice.candidates[0].reason;
	snprintf(path->reason, sizeof(path->reason), "routed: no subnet in common, and %s",
		 path_reason_text(path->why));
	provider_append(map, &choice.candidates[0], path);
	return true;
}

/* Two NICs may share a subnet, and no cable. */
static void cabled_keep(const struct topo_map *map, const struct side *local,
			const struct side *remote, struct mesh_path_choice *choice)
{
	int i, a, b, kept = 0;

	for (i = 0; i < choice->num_candidates; i++) {
		a = map->nics[local->nics[choice->candidates[i].local]].link;
		b = map->nics[remote->nics[choice->candidates[i].remote]].link;
		if (a >= 0 && b >= 0 && topo_link_is_half_of(map, a, b))
			choice->candidates[kept++] = choice->candidates[i];
	}
	choice->num_candidates = kept;
}

/*
 * Finds the direct path, a route of the kernel, or the reason why there is none. Returns false if
 * relays may help, or replace that route.
 */
static bool direct_find(const struct topo_map *map, int from, int to, struct topo_path *path)
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
	if (map->asked)
		cabled_keep(map, &local, &remote, &choice);
	if (!choice.num_candidates && (wire_find(map, path) || routed_find(map, path)))
		return !path->replaceable;
	if (!choice.num_candidates)
		return !reason_none(map, &local, &remote, &choice, path);
	path->local = local.nics[choice.candidates[0].local];
	path->remote = remote.nics[choice.candidates[0].remote];
	path->num_cables = mesh_path_ways(choice.candidates, choice.num_candidates);
	subnet = mesh_subnet_of(&map->nics[path->local].addr);
	mesh_addr_text_prefix(&subnet, text);
	if (path->num_cables == 1)
		snprintf(path->reason, sizeof(path->reason), "the only one: both are on %s", text);
	else
		snprintf(path->reason, sizeof(path->reason),
			 "one of %d %s: both are on %s; each message is spread over them",
			 path->num_cables, cables_word(map, path), text);
	path->why = choice.candidates[0].reason;
	provider_append(map, &choice.candidates[0], path);
	return true;
}

/*
 * Adds the routes over relays to a path without NICs, or in place of a route of the kernel that
 * connections leave for them, and what they are to its reason.
 */
static void relays_add(const struct mesh_graph *graph, struct topo_path *path)
{
	char lead[TOPO_REASON_MAX] = "no link in common";
	struct relay_routes via;

	relay_routes_find(graph, path->from, path->to, path->replaceable, &via);
	if (!via.num)
		return;
	if (path->link_down)
		snprintf(lead, sizeof(lead), "%s", path->reason + strlen(NO_PATH));
	if (path->replaceable) {
		*path = (struct topo_path){
			.from = path->from, .to = path->to, .local = -1, .remote = -1};
		snprintf(lead, sizeof(lead), "routed without RDMA, which relays have");
	}
	path->via = via;
	path->why = MESH_PATH_WHY_RELAY;
	snprintf(path->reason, sizeof(path->reason), "%.120s: %d relay%s%s", lead, via.num_relays,
		 via.num_relays == 1 ? "" : "s",
		 via.num > 1 ? " on each of the routes, which are used together" : "");
}

void topo_path_find(const struct topo_map *map, int from, int to, struct topo_path *path)
{
	struct mesh_graph graph;

	if (direct_find(map, from, to, path) || relays_graph(map, &graph))
		return;
	relays_add(&graph, path);
	mesh_graph_finish(&graph);
}

bool topo_path_has_link(const struct topo_map *map, const struct topo_path *path, int link)
{
	if (link < 0)
		return false;
	if (path->local >= 0)
		return link == map->nics[path->local].link;
	return routes_have_link(map, &path->via, path->from, path->to, link);
}

struct topo_path *topo_paths_find(const struct topo_map *map, long max, long *num)
{
	long pairs = (long)map->num_nodes * (map->num_nodes - 1) / 2, count = 0;
	struct mesh_graph graph;
	struct topo_path *paths;
	bool relays;
	int from, to;

	*num = pairs;
	if (pairs > max)
		return NULL;
	relays = map->num_nodes <= RELAYS_NODES_MAX && !relays_graph(map, &graph);
	paths = calloc((size_t)pairs + 1, sizeof(*paths));
	for (from = 0; paths && from < map->num_nodes; from++) {
		for (to = from + 1; to < map->num_nodes; to++, count++) {
			if (!direct_find(map, from, to, &paths[count]) && relays)
				relays_add(&graph, &paths[count]);
		}
	}
	if (relays)
		mesh_graph_finish(&graph);
	return paths;
}
