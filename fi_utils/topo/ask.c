/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - finds the mesh that this node belongs to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "neighbours/searching.h"
#include "plan/cable_list.h"
#include "system/stats_file.h"

#include "common/interrupt.h"
#include "common/subnet.h"
#include "peer/search.h"
#include "peer/self.h"
#include "topo/map.h"
#include "watch/sample.h"

#define WHO "fi_mesh topo"

/* ---- what the NICs of this node move now ------------------------------------------------ */

/* Time in which the rates are measured, while the neighbours are asked. */
#define RATES_MS 1000

static int sample_read(struct watch_sample *sample)
{
	struct watch_filter filter = {.pid = 0};
	struct mesh_config config;

	mesh_config_load(NULL, NULL, &config);
	/* The counters of processes are not needed here. */
	snprintf(config.stats_dir, sizeof(config.stats_dir), "%s", MESH_STATS_NONE);
	return watch_sample_read("/sys", &config, &filter, sample);
}

static void nic_enter(struct topo_map *map, const struct watch_nic *now,
		      const struct watch_nic *before, double seconds)
{
	int nic = topo_map_nic_find(map, 0, now->netdev);

	if (nic < 0 || !before || !(now->netdev_known || now->rdma_known))
		return;
	map->nics[nic].rates_known = true;
	map->nics[nic].sends = watch_rate(now->netdev_tx, before->netdev_tx, seconds) +
			       watch_rate(now->rdma_tx, before->rdma_tx, seconds);
	map->nics[nic].receives = watch_rate(now->netdev_rx, before->netdev_rx, seconds) +
				  watch_rate(now->rdma_rx, before->rdma_rx, seconds);
}

/* Waits until RATES_MS have passed since @before, and enters the rates of this node's NICs. */
static int rates_enter(const struct watch_sample *before, struct topo_map *map)
{
	uint64_t due_ms = before->time_ns / 1000000 + RATES_MS;
	struct watch_sample now;
	int i, ret;

	if (interrupt_wait(-1, 0, due_ms) == -EINTR)
		return -EINTR;
	ret = sample_read(&now);
	if (ret)
		return ret;
	for (i = 0; i < now.num_nics; i++)
		nic_enter(map, &now.nics[i], watch_nic_find(before, &now.nics[i]),
			  watch_seconds(&now, before));
	watch_sample_free(&now);
	return 0;
}

/* ---- the map ------------------------------------------------------------------------------- */

static int nic_add(struct topo_map *map, const struct mesh_links_nic *from)
{
	bool down = from->flags & MESH_LINKS_NIC_DOWN;
	struct topo_nic nic = {
		.rate_mbps = from->speed_mbps <= INT32_MAX ? (int)from->speed_mbps : 0,
		.state = down ? TOPO_DOWN : TOPO_UP,
		.provider = peer_best_provider(from->providers),
	};

	if (down)
		snprintf(nic.note, sizeof(nic.note), "its link is down");
	snprintf(nic.name, sizeof(nic.name), "%s", from->netdev);
	if (from->addr.family)
		mesh_neighbour_addr_get(&from->addr, &nic.addr);
	return topo_map_nic_add(map, &nic);
}

static int own_down_add(struct topo_map *map, const struct mesh_nic *from)
{
	struct topo_nic nic = {.state = TOPO_DOWN};

	if (from->num_addrs)
		nic.addr = from->addrs[0];
	snprintf(nic.name, sizeof(nic.name), "%s", from->netdev);
	snprintf(nic.note, sizeof(nic.note), "%s", from->reason);
	return topo_map_nic_add(map, &nic);
}

static int own_node_add(struct topo_map *map, const struct peer_self *node)
{
	const struct mesh_nic *from;
	struct topo_nic nic;
	int i, ret = topo_map_node_add(map, node->name);

	if (!ret)
		topo_map_site_set(map, node->config.site);
	for (i = 0; i < node->num_nics && !ret; i++) {
		from = &node->table.nics[i];
		nic = (struct topo_nic){
			.rate_mbps = from->speed_mbps > 0 ? from->speed_mbps : 0,
			.addr = from->source,
			.state = TOPO_UP,
			.provider = node->providers[i],
		};
		snprintf(nic.name, sizeof(nic.name), "%s", from->netdev);
		ret = topo_map_nic_add(map, &nic);
	}
	for (i = 0; i < node->table.num_nics && !ret; i++) {
		if (node->table.nics[i].verdict == MESH_NIC_LINK_DOWN)
			ret = own_down_add(map, &node->table.nics[i]);
	}
	return ret;
}

static int node_add(struct topo_map *map, const struct mesh_explored *node)
{
	char name[MESH_PLAN_NAME_MAX];
	int i, ret;

	snprintf(name, sizeof(name), "%s", node->node);
	if (!mesh_node_name_valid(name))
		snprintf(name, sizeof(name), "node-%016llx", (unsigned long long)node->id);
	ret = topo_map_node_add(map, name);
	if (!ret)
		topo_map_site_set(map, node->site);
	for (i = 0; i < node->num_nics && !ret; i++)
		ret = nic_add(map, &node->nics[i]);
	return ret;
}

/* The NIC with this index in its node's order, as an index of the map; -1: it was not reported. */
static int map_nic(const struct topo_map *map, const struct mesh_explored *nodes, int place,
		   int map_node, int nic)
{
	const struct topo_node *at = &map->nodes[map_node];
	int i;

	if (!place) /* our own: in their order, those that are down last */
		return nic < at->num_nics && map->nics[at->first_nic + nic].state == TOPO_UP
			       ? at->first_nic + nic
			       : -1;
	for (i = 0; i < nodes[place].num_nics; i++) {
		if (nodes[place].nics[i].nic == nic &&
		    !(nodes[place].nics[i].flags & MESH_LINKS_NIC_DOWN))
			return at->first_nic + i;
	}
	return -1;
}

static bool shares_subnet(const struct topo_nic *nic, const struct topo_nic *other)
{
	struct mesh_addr a, b;

	if (!nic->addr.family || !other->addr.family || mesh_addr_is_link_local(&nic->addr))
		return false;
	a = mesh_subnet_of(&nic->addr);
	b = mesh_subnet_of(&other->addr);
	return a.prefix_len == b.prefix_len && mesh_addr_equal(&a, &b);
}

/* How many NICs a node has on the wire of @nic. */
static int num_on_wire(const struct topo_map *map, int nic, int node)
{
	int i, num = 0;

	for (i = 0; i < map->num_nics; i++)
		num += map->nics[i].node == node &&
		       topo_map_wire_of(map, i) == topo_map_wire_of(map, nic);
	return num;
}

/*
 * A NIC that is down answers nobody: if one other NIC is all that is on its subnet, the two are the
 * ends of a cable, or of a half of one. Not if the other is up on a wire where no NIC of this node
 * is missing: a cable is in another port then.
 */
static void down_wire(struct topo_map *map)
{
	int i, k, num, found;

	for (i = 0; i < map->num_nics; i++) {
		if (map->nics[i].state != TOPO_DOWN)
			continue;
		num = 0;
		found = i;
		for (k = 0; k < map->num_nics; k++) {
			if (k == i || !shares_subnet(&map->nics[i], &map->nics[k]))
				continue;
			num++;
			found = k;
		}
		if (num == 1 && (map->nics[found].state == TOPO_DOWN ||
				 num_on_wire(map, found, map->nics[found].node) >
					 num_on_wire(map, found, map->nics[i].node)))
			topo_map_wire(map, i, found);
	}
}

/*
 * Joins the NICs of all links that both ends have reported. Our own are what we have heard: nothing
 * may run here that answers the others. @map_nodes: beside explore->nodes
 */
static int links_join(const struct mesh_explore *explore, struct topo_map *map,
		      const int *map_nodes)
{
	const struct mesh_graph *graph = &explore->graph;
	const struct mesh_graph_link *link;
	int here, k, there, near, far;

	for (here = 0; here < graph->num_nodes; here++) {
		for (k = 0; k < graph->nodes[here].num_links; k++) {
			link = &graph->nodes[here].links[k];
			there = mesh_graph_find(graph, link->node_id);
			if (there <= here || !explore->nodes[there].known ||
			    (here && !mesh_graph_is_confirmed(&graph->nodes[there],
							      graph->nodes[here].id, link)))
				continue;
			near = map_nic(map, explore->nodes, here, map_nodes[here], link->nic);
			far = map_nic(map, explore->nodes, there, map_nodes[there], link->peer_nic);
			if (near >= 0 && far >= 0)
				topo_map_wire(map, near, far);
		}
	}
	down_wire(map);
	return topo_map_wires_join(map);
}

/* Links are those that both of their ends have reported; @node has answered no question itself. */
static int explored_map(const struct mesh_explore *explore, const struct peer_self *node,
			struct topo_map *map)
{
	int *map_nodes = calloc((size_t)explore->num_nodes + 1, sizeof(*map_nodes));
	int i, ret = map_nodes ? own_node_add(map, node) : -ENOMEM;

	map->shape = (struct mesh_shape){.kind = MESH_SHAPE_CABLES};
	map->asked = true;
	for (i = 1; i < explore->num_nodes && !ret; i++) {
		map_nodes[i] = map->num_nodes;
		if (explore->nodes[i].known)
			ret = node_add(map, &explore->nodes[i]);
	}
	if (!ret)
		ret = links_join(explore, map, map_nodes);
	free(map_nodes);
	return ret;
}

/* ---- what is missing ----------------------------------------------------------------------- */

static void silence_report(const struct mesh_explore *explore)
{
	const struct mesh_explored *node, *parent;
	int i;

	for (i = 1; i < explore->num_nodes; i++) {
		node = &explore->nodes[i];
		if (node->known)
			continue;
		parent = &explore->nodes[node->parent];
		fprintf(stderr,
			WHO ": a node behind %s (id %016llx) has not answered; is "
			    "`fi_mesh serve` or a job of this version running there?\n",
			node->parent ? parent->node : "this node", (unsigned long long)node->id);
	}
}

static int mesh_ask(struct topo_map *map)
{
	struct peer_search *search = calloc(1, sizeof(*search));
	struct peer_self node;
	int ret = search ? peer_self_open(&node) : -ENOMEM;

	if (ret)
		goto free_search;
	interrupt_catch();
	if (!node.num_nics) {
		fprintf(stderr,
			WHO ": no NIC of this node can carry the mesh; `fi_mesh nics` says why\n");
		ret = -ENODEV;
	}
	if (!ret)
		ret = peer_search_run(search, &node);
	if (!ret)
		ret = explored_map(&search->searching.explore, &node, map);
	if (!ret)
		silence_report(&search->searching.explore);
	peer_search_finish(search);
	peer_self_close(&node);
free_search:
	free(search);
	return ret;
}

int topo_ask(struct topo_map *map, bool with_rates)
{
	struct watch_sample before;
	int ret;

	if (!with_rates)
		return mesh_ask(map);
	ret = sample_read(&before);
	if (ret)
		return ret;
	ret = mesh_ask(map);
	if (!ret)
		ret = rates_enter(&before, map);
	watch_sample_free(&before);
	return ret;
}
