/* SPDX-License-Identifier: Apache-2.0 */
/* relays.c - the routes over relays to a peer without a link or route of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nic/graph.h"
#include "nic/nic_select.h"
#include "system/this_process.h"

#include "common/finding.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/output.h"
#include "common/relay_choice.h"
#include "peer/checker.h"
#include "peer/search.h"

/* What a search misses, because a node was slow, another one finds after this. */
#define AGAIN_MS 1200
#define HOP_TEXT_MAX 256
#define NODES_TEXT_MAX 512

/* What is needed to name the nodes and NICs of a route. */
struct relays {
	const struct peer_checker *checker;
	const struct peer *peer;
	const struct mesh_explore *explore;
	const struct mesh_asking *asking;
	struct peer_routes *routes; /* the result */
	bool replace; /* only those for which connections leave routed tcp are wanted */
};

/* One end of a hop. */
struct hop_end {
	const char *netdev;
	uint8_t providers; /* bit N: enum mesh_provider_id N */
};

/* A cable from one node of a route to the next. */
struct hop {
	const char *from, *to; /* nodes */
	struct hop_end near, far;
	enum mesh_provider_id provider;
	/* Of all cables between the two, or of those with RDMA; 1 or less: unknown. */
	uint32_t width_mbps;
	int cables; /* of which that is */
};

/* ---- the hops of a route ------------------------------------------------------------------- */

static const struct mesh_explored *node_of(const struct relays *relays, uint64_t id)
{
	int i = mesh_graph_find(&relays->explore->graph, id);

	return i < 0 ? NULL : &relays->explore->nodes[i];
}

static const char *name_of(const struct relays *relays, uint64_t id)
{
	const char *name = mesh_explore_node_name(relays->explore, id);

	if (id == relays->checker->self.node_id)
		return relays->checker->self.name;
	return name ? name : "?";
}

/* The NIC with this index in its node's order. */
static struct hop_end end_of(const struct relays *relays, uint64_t id, int nic)
{
	const struct mesh_explored *node = node_of(relays, id);
	const struct peer_self *self = &relays->checker->self;
	int i;

	if (id == self->node_id && nic < self->num_nics)
		return (struct hop_end){self->table.nics[nic].netdev,
					peer_self_providers(self, nic)};
	for (i = 0; node && i < node->num_nics; i++) {
		if (node->nics[i].nic == nic && !(node->nics[i].flags & MESH_LINKS_NIC_DOWN))
			return (struct hop_end){node->nics[i].netdev, node->nics[i].providers};
	}
	return (struct hop_end){"?", 0};
}

static bool has_rdma(struct hop_end near, struct hop_end far)
{
	return mesh_providers_have_rdma(near.providers & far.providers);
}

/* A circuit takes cables with RDMA, where there are some. */
static void hop_find(const struct relays *relays, uint64_t from, uint64_t to, struct hop *hop)
{
	const struct mesh_graph *graph = &relays->explore->graph;
	int a = mesh_graph_find(graph, from), b = mesh_graph_find(graph, to), i;
	const struct mesh_graph_node *node = &graph->nodes[a];
	const struct mesh_graph_hop all = mesh_graph_hop(graph, a, b);
	const struct mesh_graph_link *link;
	struct hop_end near, far;

	*hop = (struct hop){
		.from = name_of(relays, from),
		.to = name_of(relays, to),
		.near = {"?", 0},
		.far = {"?", 0},
		.width_mbps = all.rdma_mbps ? all.rdma_mbps : all.mbps,
	};
	for (i = mesh_graph_link_find(node, to); i < node->num_links; i++) {
		link = &node->links[i];
		if (link->node_id != to)
			break;
		near = end_of(relays, from, link->nic);
		far = end_of(relays, to, link->peer_nic);
		if (!mesh_graph_is_confirmed(&graph->nodes[b], from, link) ||
		    (all.rdma_mbps && !has_rdma(near, far)) || hop->cables++)
			continue;
		hop->near = near;
		hop->far = far;
	}
	hop->provider = peer_best_provider(hop->near.providers & hop->far.providers);
}

/* "a ab - ba b: tcp, 10 Gb/s" */
static const char *hop_text(const struct hop *hop, char *text)
{
	char speed[MESH_NIC_SPEED_TEXT_MAX];

	snprintf(text, HOP_TEXT_MAX, "%s %s - %s %s: %s", hop->from, hop->near.netdev,
		 hop->far.netdev, hop->to, mesh_provider_id_text(hop->provider));

	if (hop->width_mbps > 1)
		output_add(text, HOP_TEXT_MAX, ", %s%s", hop->cables > 1 ? "together " : "",
			   mesh_nic_speed_text((int)hop->width_mbps, speed));
	return text;
}

static json_t *hop_json(const struct hop *hop)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:i}", "from", output_json_text(hop->from),
			 "to", output_json_text(hop->to), "nic", output_json_text(hop->near.netdev),
			 "peer_nic", output_json_text(hop->far.netdev), "provider",
			 mesh_provider_id_text(hop->provider), "width_mbps",
			 hop->width_mbps > 1 ? (int)hop->width_mbps : 0);
}

/* ---- our own links ------------------------------------------------------------------------- */

/*
 * Nothing may run here that answers our neighbours, so they do not report their links with us: what
 * we have heard from them counts. Returns 0 or -ENOMEM.
 */
static int own_links_confirm(const struct relays *relays, struct mesh_explore *explore)
{
	const struct peer_self *self = &relays->checker->self;
	struct mesh_graph *graph = &explore->graph;
	const struct mesh_graph_node own = graph->nodes[0];
	int i, at, nic, ret = 0;

	for (i = 0; i < own.num_links && ret >= 0; i++) {
		const struct mesh_graph_link *link = &own.links[i];
		struct mesh_graph_link back = {
			.node_id = self->node_id,
			.nic = link->peer_nic,
			.peer_nic = link->nic,
			.rdma = mesh_providers_have_rdma(
				end_of(relays, link->node_id, link->peer_nic).providers),
		};

		nic = link->nic;
		at = mesh_graph_find(graph, link->node_id);
		if (at < 0 || !explore->nodes[at].known ||
		    mesh_graph_is_confirmed(&graph->nodes[at], self->node_id, link))
			continue;
		if (nic < self->num_nics && self->table.nics[nic].speed_mbps > 0)
			back.speed_mbps = (uint32_t)self->table.nics[nic].speed_mbps;
		ret = mesh_graph_report(graph, link->node_id, graph->nodes[at].relays, true, &back,
					1);
	}
	return ret < 0 ? ret : 0;
}

/* ---- reports ------------------------------------------------------------------------------- */

/* What relays at the nodes of a route: "node b: a rank of some job; node c: nothing". */
static void nodes_text(const struct relays *relays, const struct mesh_route *route, char *text)
{
	const struct mesh_explored *node;
	const char *what;
	int i;

	*text = '\0';
	for (i = 0; i < route->num_relays; i++) {
		node = node_of(relays, route->hops[i]);
		what = "nothing relays there now";
		if (node && node->flags & MESH_LINKS_RELAY)
			what = "`fi_mesh serve --relay` relays there for all jobs";
		else if (node && node->flags & MESH_LINKS_SAME_JOB)
			what = "a rank runs there, and relays for its job";
		output_add(text, NODES_TEXT_MAX, "%snode %s: %s", i ? "; " : "",
			   name_of(relays, route->hops[i]), what);
	}
}

/* The hops as text; adds the route to the list for --json. */
static void hops_collect(const struct relays *relays, const struct mesh_route *route, bool serves,
			 char *text, json_t *list)
{
	json_t *hops = json_array(), *via = json_array();
	uint64_t from = relays->checker->self.node_id;
	char words[HOP_TEXT_MAX];
	struct hop hop;
	int i;

	*text = '\0';
	for (i = 0; i <= route->num_relays; i++) {
		hop_find(relays, from, route->hops[i], &hop);
		from = route->hops[i];
		output_add(text, PEER_ROUTE_TEXT_MAX, "%s%s", i ? "; " : "", hop_text(&hop, words));
		hops = output_json_append(hops, hop_json(&hop));
		if (i < route->num_relays)
			via = output_json_append(via, output_json_text(hop.to));
	}
	json_array_append_new(
		list, json_pack("{s:o, s:o, s:b}", "via", via, "hops", hops, "served", serves));
}

/* Reports a route. @serves: each of its nodes relays */
static void route_say(const struct relays *relays, const struct mesh_route *route, bool serves,
		      struct check_result *result, json_t *list)
{
	char hops[PEER_ROUTE_TEXT_MAX], nodes[NODES_TEXT_MAX];
	const char *plural = route->num_relays == 1 ? "" : "s";

	hops_collect(relays, route, serves, hops, list);
	if (serves && !relays->routes->num)
		memcpy(relays->routes->text, hops, sizeof(hops));
	nodes_text(relays, route, nodes);
	if (serves) {
		check_say(result, CHECK_PASS, "route over %d relay%s: %s (%s)", route->num_relays,
			  plural, hops, nodes);
		return;
	}
	check_say(result, CHECK_WARN,
		  "no link or route to node %s; cables reach it over %d node%s, where nothing "
		  "relays now: %s",
		  relays->peer->name, route->num_relays, plural, hops);
	check_seen(result, "%s", nodes);
	check_fix(result, "run a rank of the job on each node between, or `fi_mesh serve --relay`");
}

/* What the hops of a route are, for what is measured over it. */
static void route_add(const struct relays *relays, const struct mesh_route *route)
{
	struct peer_routes *routes = relays->routes;
	uint64_t from = relays->checker->self.node_id;
	double gbps, narrowest = 0;
	struct hop hop;
	int i;

	for (i = 0; i <= route->num_relays; i++) {
		hop_find(relays, from, route->hops[i], &hop);
		from = route->hops[i];
		gbps = hop.width_mbps > 1 ? hop.width_mbps / 1000.0 : 0;
		if (!i || gbps < narrowest)
			narrowest = gbps;
		routes->rdma &= hop.provider == MESH_PROVIDER_VERBS_RXM;
	}
	/* One of which nothing is known makes all of them unknown. */
	if (!routes->num++ || (routes->gbps > 0 && narrowest > 0))
		routes->gbps += narrowest;
	else
		routes->gbps = 0;
	routes->num_relays = route->num_relays;
}

/* The job of a rank that relays on this node; 0: there is none, or a service relays for all. */
static uint64_t job_there(const struct mesh_neighbour *about)
{
	uint64_t job = 0;
	int i;

	for (i = 0; i < about->num_processes; i++) {
		const struct mesh_neighbour_process *process = &about->processes[i];

		if (mesh_neighbour_serves(process, 0))
			return 0;
		if (process->role == MESH_NEIGHBOUR_RANK && process->control_port)
			job = process->job;
	}
	return job;
}

/*
 * The job whose relays are asked. Without one in the environment, a rank on the first node of a
 * route decides: its job is no secret, and it relays for no other.
 */
static uint64_t job_of(const struct relays *relays, uint64_t first)
{
	uint64_t job = mesh_job_key();
	const struct mesh_asked *asked = relays->asking->asked;
	int i, k;

	for (i = 0; !job && i < relays->asking->num_links; i++) {
		for (k = 0; !job && k < asked[i].num_heard; k++)
			if (asked[i].heard[k]->about.node_id == first)
				job = job_there(&asked[i].heard[k]->about);
	}
	return job;
}

/* The routes that the plugin uses together. */
static bool routes_say(const struct relays *relays, struct check_result *result, json_t *list)
{
	struct mesh_route routes[MESH_ROUTES_MAX];
	int i, num, together;
	const char *link;

	num = mesh_graph_routes(&relays->explore->graph, relays->checker->self.node_id,
				relays->peer->hello.node_id, MESH_ROUTE_RELAYS_MAX, NULL, 0, routes,
				MESH_ROUTES_MAX);
	link = "no link";
	for (i = 0; i < num; i++)
		if (!routes[i].num_relays) /* a cable that joins the two, although it is no path */
			link = "no usable link";
	together = relays_together(routes, num, relays->replace);
	if (!together)
		return false;
	check_say(result, CHECK_PASS,
		  "%s or route %sto node %s: connections go through relays, on %d route%s", link,
		  relays->replace ? "with RDMA " : "", relays->peer->name, together,
		  together == 1 ? "" : "s together, which share no relay");
	relays->routes->rdma = true;
	for (i = 0; i < together; i++) {
		route_say(relays, &routes[i], true, result, list);
		route_add(relays, &routes[i]);
	}
	relays->routes->job = job_of(relays, routes[0].hops[0]);
	return true;
}

/* The nodes over which the cables reach it, if none of them relays. */
static bool cables_say(const struct relays *relays, struct mesh_graph *graph,
		       struct check_result *result, json_t *list)
{
	struct mesh_route route;
	int i;

	for (i = 0; i < graph->num_nodes; i++)
		graph->nodes[i].relays = true;
	if (relays->replace ||
	    mesh_graph_routes(graph, relays->checker->self.node_id, relays->peer->hello.node_id,
			      MESH_ROUTE_RELAYS_MAX, NULL, 0, &route, 1) != 1 ||
	    !route.num_relays)
		return false;
	route_say(relays, &route, false, result, list);
	return true;
}

/* Searches once. Returns 1 if something was reported, 0 if not, or a negative errno. */
static int mesh_search(struct relays *relays, struct peer *peer, struct check_result *result)
{
	const struct peer_self *self = &relays->checker->self;
	struct peer_search *search = calloc(1, sizeof(*search));
	int ret;

	if (!search)
		return -ENOMEM;
	relays->explore = &search->searching.explore;
	relays->asking = &search->asking;
	ret = peer_search_run(search, self);
	if (!ret)
		ret = own_links_confirm(relays, &search->searching.explore);
	if (!ret)
		ret = routes_say(relays, result, peer->relays) ||
		      cables_say(relays, &search->searching.explore.graph, result, peer->relays);
	peer_search_finish(search);
	free(search);
	return ret;
}

bool peer_relays_check(const struct peer_checker *checker, struct peer *peer, bool replace,
		       struct check_result *result)
{
	struct relays relays = {
		.checker = checker, .peer = peer, .routes = &peer->routes, .replace = replace};
	int ret;

	peer->relays = json_array();
	ret = mesh_search(&relays, peer, result);
	/* As the plugin does: nodes ask their own neighbours when they are asked, and know more. */
	if (!ret && interrupt_wait(-1, 0, mesh_clock_ms() + AGAIN_MS) != -EINTR)
		ret = mesh_search(&relays, peer, result);
	return ret > 0;
}
