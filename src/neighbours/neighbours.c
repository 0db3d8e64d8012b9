/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - this process among its neighbours, in an engine. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "neighbours/facts.h"
#include "neighbours/neighbours.h"

/*
 * A neighbour that answered before has so long to answer again, as two rounds of questions take: a
 * node whose processor is busy misses one. One that is gone is waited for once, not in each search.
 */
#define LATE_MS 2000

/* ---- searching ----------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void search_close(struct mesh_searching *searching, int i)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(searching, struct mesh_neighbours, searching);

	mesh_engine_unwatch(neighbours->engine, &neighbours->search_watches[i]);
}

/* After each step of the search. */
MESH_HOLDS(process)
static void search_follow(struct mesh_neighbours *neighbours, uint64_t now_ms)
{
	uint64_t due_ms = mesh_searching_due_ms(&neighbours->searching, now_ms);

	if (due_ms == UINT64_MAX)
		mesh_engine_timer_cancel(neighbours->engine, &neighbours->search_timer);
	else
		mesh_engine_timer_set(neighbours->engine, &neighbours->search_timer, due_ms);
}

MESH_HOLDS(process)
static void search_due(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(timer, struct mesh_neighbours, search_timer);

	mesh_searching_advance(&neighbours->searching, now_ms);
	search_follow(neighbours, now_ms);
}

MESH_HOLDS(process)
static void search_ready(struct mesh_neighbours *neighbours, int i)
{
	uint64_t now_ms = mesh_clock_ms();

	mesh_searching_take(&neighbours->searching, neighbours->searching.fds[i], now_ms);
	search_follow(neighbours, now_ms);
}

MESH_HOLDS(process)
static void search_ipv6_ready(struct mesh_watch *watch, uint32_t events)
{
	(void)events;
	search_ready(mesh_container_of(watch, struct mesh_neighbours, search_watches[0]), 0);
}

MESH_HOLDS(process)
static void search_ipv4_ready(struct mesh_watch *watch, uint32_t events)
{
	(void)events;
	search_ready(mesh_container_of(watch, struct mesh_neighbours, search_watches[1]), 1);
}

/* At the end of a round: what has not changed was logged before. */
static void heard_log(struct mesh_neighbours *neighbours)
{
	char words[MESH_NEIGHBOURS_WORDS_MAX];

	mesh_asking_words(&neighbours->rounds.asking, words, sizeof(words));
	if (!strcmp(words, neighbours->said))
		return;
	memcpy(neighbours->said, words, sizeof(words));
	mesh_info("%s", words);
}

/* Our own neighbours have answered, maybe: the search goes on behind them. */
MESH_HOLDS(process)
static void rounds_stepped(struct mesh_rounds *rounds, uint64_t now_ms)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(rounds, struct mesh_neighbours, rounds);

	if (!rounds->asking.began_ms)
		heard_log(neighbours);
	mesh_searching_advance(&neighbours->searching, now_ms);
	search_follow(neighbours, now_ms);
}

int mesh_neighbours_search(struct mesh_neighbours *neighbours, uint64_t target, uint64_t limit_ms)
{
	uint64_t now_ms = mesh_clock_ms();
	int i, ret = mesh_searching_begin(&neighbours->searching, target, limit_ms, now_ms);

	for (i = 0; i < MESH_ASKING_SOCKETS && !ret; i++) {
		neighbours->search_watches[i].fd = neighbours->searching.fds[i];
		if (neighbours->search_watches[i].fd >= 0)
			ret = mesh_engine_watch(neighbours->engine, &neighbours->search_watches[i],
						EPOLLIN);
	}
	if (ret) {
		mesh_searching_finish(&neighbours->searching);
		return ret;
	}
	mesh_neighbours_ask(neighbours);
	search_follow(neighbours, now_ms);
	return 0;
}

/* The best route so far. Returns false if there is none. */
MESH_HOLDS(process)
static bool best_find(const struct mesh_neighbours *neighbours, uint64_t target,
		      struct mesh_route *route)
{
	return mesh_neighbours_routes(neighbours, target, MESH_ROUTE_RELAYS_MAX, route, 1) == 1;
}

/* True if the best route so far leads over another site: a longer one may stay inside this one. */
MESH_HOLDS(process)
static bool route_leaves(const struct mesh_neighbours *neighbours, uint64_t target)
{
	struct mesh_route route;

	return neighbours->self.site[0] && best_find(neighbours, target, &route) && route.leaves;
}

bool mesh_neighbours_miss_rdma(const struct mesh_neighbours *neighbours, uint64_t target)
{
	const struct mesh_graph *graph = &neighbours->searching.explore.graph;
	struct mesh_route route;

	return mesh_graph_has_rdma(graph, neighbours->self.node_id) &&
	       mesh_graph_has_rdma(graph, target) && best_find(neighbours, target, &route) &&
	       route.num_relays && !route.rdma;
}

/* True if this neighbour has no part in the search, and may still answer. */
MESH_HOLDS(process)
static bool is_late(const struct mesh_neighbours *neighbours, const struct mesh_heard *heard)
{
	uint64_t began_ms = neighbours->searching.began_ms;

	return !heard->error && heard->about.node_id != neighbours->self.node_id &&
	       heard->heard_ms < began_ms &&
	       (!heard->missed_ms || began_ms < heard->missed_ms + LATE_MS);
}

/* Not what the link itself counts as: the neighbour may have more of them. */
MESH_HOLDS(process)
static uint64_t late_number(const struct mesh_neighbours *neighbours, int link,
			    const struct mesh_heard *heard)
{
	const struct mesh_graph_link late = {
		.node_id = heard->about.node_id,
		.nic = neighbours->rounds.asking.links[link].about.nic,
		.peer_nic = heard->about.nic,
	};

	return ~mesh_graph_link_number(neighbours->self.node_id, &late);
}

/*
 * A number for the neighbours on NICs with RDMA that are known, and have no part in the search yet.
 * 0: none.
 */
MESH_HOLDS(process)
static uint64_t late_hope(const struct mesh_neighbours *neighbours, bool young)
{
	const struct mesh_asking *asking = &neighbours->rounds.asking;
	uint64_t hope = 0;
	int i, k;

	for (i = 0; i < asking->num_links; i++) {
		if (!mesh_providers_have_rdma(asking->links[i].about.providers))
			continue;
		if (young && !asking->asked[i].num_heard)
			hope++;
		for (k = 0; k < asking->asked[i].num_heard; k++) {
			if (is_late(neighbours, asking->asked[i].heard[k]))
				hope += late_number(neighbours, i, asking->asked[i].heard[k]);
		}
	}
	return hope;
}

/* True if a NIC of this node that has RDMA and a carrier has not heard any neighbour. */
static bool hears_nobody(const struct mesh_explored *node)
{
	const struct mesh_links_nic *nic;
	int i, k;

	for (i = 0; i < node->num_nics; i++) {
		nic = &node->nics[i];
		if (nic->flags & MESH_LINKS_NIC_DOWN || !mesh_providers_have_rdma(nic->providers))
			continue;
		for (k = 0; k < node->num_links && node->links[k].nic != nic->nic; k++)
			;
		if (k == node->num_links)
			return true;
	}
	return false;
}

/* The same of a node that the search has found. */
MESH_HOLDS(process)
static bool any_hears_nobody(const struct mesh_neighbours *neighbours)
{
	const struct mesh_explore *explore = &neighbours->searching.explore;
	int i;

	for (i = 1; i < explore->num_nodes; i++) {
		if (explore->nodes[i].state == MESH_EXPLORED_KNOWN &&
		    hears_nobody(&explore->nodes[i]))
			return true;
	}
	return false;
}

uint64_t mesh_neighbours_rdma_hope(const struct mesh_neighbours *neighbours, uint64_t target,
				   bool young)
{
	uint64_t hope = mesh_graph_rdma_hope(&neighbours->searching.explore.graph,
					     neighbours->self.node_id, target, mesh_clock_ms());

	hope += late_hope(neighbours, young);
	return hope + (young && any_hears_nobody(neighbours));
}

bool mesh_neighbours_searches(const struct mesh_neighbours *neighbours, uint64_t target)
{
	return neighbours->searching.searches &&
	       (!target || !mesh_explore_has_found(&neighbours->searching.explore, target) ||
		route_leaves(neighbours, target) || mesh_neighbours_miss_rdma(neighbours, target));
}

int mesh_neighbours_routes_beside(const struct mesh_neighbours *neighbours, uint64_t target,
				  int relays_max, const uint64_t *avoided, int num_avoided,
				  struct mesh_route *routes, int routes_max)
{
	return mesh_graph_routes_beside(&neighbours->searching.explore.graph,
					neighbours->self.node_id, target, relays_max,
					mesh_clock_ms(), avoided, num_avoided, routes, routes_max);
}

int mesh_neighbours_routes(const struct mesh_neighbours *neighbours, uint64_t target,
			   int relays_max, struct mesh_route *routes, int routes_max)
{
	return mesh_graph_routes(&neighbours->searching.explore.graph, neighbours->self.node_id,
				 target, relays_max, mesh_clock_ms(), routes, routes_max);
}

int mesh_neighbours_cables(const struct mesh_neighbours *neighbours, uint64_t target,
			   struct mesh_route *route)
{
	return mesh_graph_cables(&neighbours->searching.explore.graph, neighbours->self.node_id,
				 target, mesh_clock_ms(), route);
}

void mesh_neighbours_doubt(struct mesh_neighbours *neighbours, uint64_t a, uint64_t b,
			   uint64_t for_ms)
{
	mesh_graph_doubt(&neighbours->searching.explore.graph, a, b, mesh_clock_ms() + for_ms);
}

const char *mesh_neighbours_node_name(const struct mesh_neighbours *neighbours, uint64_t node_id)
{
	return mesh_explore_node_name(&neighbours->searching.explore, node_id);
}

const struct mesh_heard *mesh_neighbours_hop(const struct mesh_neighbours *neighbours,
					     uint64_t node_id, int *next, unsigned int *ifindex)
{
	const struct mesh_asking *asking = &neighbours->rounds.asking;
	const struct mesh_heard *heard;
	int i, k, at = 0;

	for (i = 0; i < asking->num_links; i++) {
		for (k = 0; k < asking->asked[i].num_heard; k++) {
			heard = asking->asked[i].heard[k];
			if (heard->error || heard->about.node_id != node_id || at++ < *next)
				continue;
			++*next;
			*ifindex = asking->links[i].ifindex;
			return heard;
		}
	}
	return NULL;
}

void mesh_neighbours_ask(struct mesh_neighbours *neighbours)
{
	mesh_rounds_ask(&neighbours->rounds);
}

void mesh_neighbours_seek(struct mesh_neighbours *neighbours, uint64_t node_id)
{
	mesh_rounds_seek(&neighbours->rounds, node_id);
}

/* ---- opening and closing ------------------------------------------------------------------- */

MESH_HOLDS(process)
static void posted(struct mesh_members *members)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(members, struct mesh_neighbours, members);

	if (members->posts[MESH_POST_SPEAKER].held) {
		mesh_deputy_end(&neighbours->deputy);
		mesh_answering_open(&neighbours->answering, MESH_ANSWERING_ALL);
	} else {
		mesh_deputy_begin(&neighbours->deputy);
	}
}

MESH_HOLDS(process)
static void speaker_lives(struct mesh_members *members)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(members, struct mesh_neighbours, members);

	mesh_deputy_speaker_lives(&neighbours->deputy);
}

MESH_HOLDS(process)
static bool question_keep(struct mesh_answering *answering, const struct mesh_datagram *question)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(answering, struct mesh_neighbours, answering);

	return mesh_deputy_keep(&neighbours->deputy, question);
}

struct mesh_neighbours *mesh_neighbours_open(struct mesh_engine *engine,
					     const struct mesh_neighbour_self *self)
{
	struct mesh_neighbours *neighbours = calloc(1, sizeof(*neighbours));

	if (!neighbours)
		return NULL;
	neighbours->engine = engine;
	neighbours->self = *self;
	mesh_rounds_init(&neighbours->rounds, engine, &neighbours->self);
	neighbours->rounds.stepped = rounds_stepped;
	mesh_searching_init(&neighbours->searching, &neighbours->rounds.asking);
	neighbours->searching.close = search_close;
	neighbours->search_watches[0] = (struct mesh_watch){.fd = -1, .ready = search_ipv6_ready};
	neighbours->search_watches[1] = (struct mesh_watch){.fd = -1, .ready = search_ipv4_ready};
	neighbours->search_timer.expired = search_due;
	mesh_answering_init(&neighbours->answering, engine, &neighbours->self,
			    &neighbours->members);
	neighbours->answering.keep = question_keep;
	mesh_deputy_init(&neighbours->deputy, &neighbours->members, &neighbours->answering);
	neighbours->members.engine = engine;
	neighbours->members.self = &neighbours->self;
	neighbours->members.posted = posted;
	neighbours->members.speaker_lives = speaker_lives;
	mesh_members_open(&neighbours->members);
	return neighbours;
}

void mesh_neighbours_close(struct mesh_neighbours *neighbours)
{
	if (!neighbours)
		return;
	mesh_deputy_end(&neighbours->deputy);
	mesh_answering_close(&neighbours->answering);
	mesh_members_close(&neighbours->members);
	mesh_engine_timer_cancel(neighbours->engine, &neighbours->search_timer);
	mesh_searching_finish(&neighbours->searching);
	mesh_rounds_finish(&neighbours->rounds);
	free(neighbours);
}

void mesh_neighbours_links_set(struct mesh_neighbours *neighbours,
			       const struct mesh_neighbour_link *links, int num_links, bool ask)
{
	bool changed = mesh_asking_links_set(&neighbours->rounds.asking, links, num_links);

	/* One that is gone leaves the others as they were. */
	if (!changed && num_links == neighbours->members.num_links)
		return;
	mesh_members_links_set(&neighbours->members, neighbours->rounds.asking.links, num_links);
	if (neighbours->deputy.on)
		mesh_deputy_begin(&neighbours->deputy);
	if (ask && changed)
		mesh_neighbours_ask(neighbours);
}

int mesh_neighbours_links(const struct mesh_neighbours *neighbours,
			  struct mesh_neighbour_link *links)
{
	const struct mesh_asking *asking = &neighbours->rounds.asking;

	memcpy(links, asking->links, (size_t)asking->num_links * sizeof(*links));
	return asking->num_links;
}

void mesh_neighbours_down_set(struct mesh_neighbours *neighbours,
			      const struct mesh_nic *const *nics, int num)
{
	struct mesh_reporting *reporting = &neighbours->answering.reporting;
	int i;

	mesh_reporting_down_clear(reporting);
	for (i = 0; i < num; i++)
		mesh_reporting_down_add(reporting, nics[i]);
}

const struct mesh_asked *mesh_neighbours_asked(const struct mesh_neighbours *neighbours,
					       int *num_asked)
{
	*num_asked = neighbours->rounds.asking.num_links;
	return neighbours->rounds.asking.asked;
}

const char *mesh_neighbours_words(const struct mesh_neighbours *neighbours, char *text, size_t size)
{
	return mesh_asking_words(&neighbours->rounds.asking, text, size);
}

uint64_t mesh_neighbours_waited_ms(const struct mesh_neighbours *neighbours, uint64_t now_ms)
{
	return mesh_asking_waited_ms(&neighbours->rounds.asking, now_ms);
}
