/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - this process among its neighbours, in an engine. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "neighbours/neighbours.h"

/* ---- searching ----------------------------------------------------------------------------- */

/* At the end of a round: what has not changed was logged before. */
static void heard_log(struct mesh_neighbours *neighbours)
{
	char words[MESH_NEIGHBOURS_WORDS_MAX];

	mesh_asking_words(&neighbours->asking, words, sizeof(words));
	if (!strcmp(words, neighbours->said))
		return;
	memcpy(neighbours->said, words, sizeof(words));
	mesh_info("%s", words);
}

/* Our own neighbours have answered, maybe: the search goes on behind them. */
MESH_HOLDS(process)
static void asking_stepped(struct mesh_asking *asking, uint64_t now_ms)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(asking, struct mesh_neighbours, asking);

	if (!asking->began_ms)
		heard_log(neighbours);
	mesh_searching_advance(&neighbours->searching, now_ms);
}

int mesh_neighbours_search(struct mesh_neighbours *neighbours)
{
	return mesh_searching_begin(&neighbours->searching, mesh_clock_ms());
}

bool mesh_neighbours_searches(const struct mesh_neighbours *neighbours, uint64_t target)
{
	const struct mesh_explore *explore = &neighbours->searching.explore;

	/* Without a cable the round ends, and so does the search. */
	return neighbours->searching.goes_on && neighbours->asking.began_ms &&
	       (!target || !mesh_explore_node_name(explore, target) ||
		!mesh_explore_is_complete(explore));
}

int mesh_neighbours_routes(const struct mesh_neighbours *neighbours, uint64_t target,
			   int relays_max, const uint64_t *avoided, int num_avoided,
			   struct mesh_route *routes, int routes_max)
{
	return mesh_graph_routes(&neighbours->searching.explore.graph, neighbours->self.node_id,
				 target, relays_max, mesh_clock_ms(), avoided, num_avoided, routes,
				 routes_max);
}

void mesh_neighbours_doubt(struct mesh_neighbours *neighbours, uint64_t a, uint64_t b,
			   uint64_t for_ms)
{
	mesh_graph_doubt(&neighbours->searching.explore.graph, a, b, mesh_clock_ms() + for_ms);
}

void mesh_neighbours_ask(struct mesh_neighbours *neighbours)
{
	mesh_asking_begin(&neighbours->asking, mesh_clock_ms());
}

/* ---- opening and closing ------------------------------------------------------------------- */

MESH_HOLDS(process)
static void speaks(struct mesh_members *members)
{
	mesh_answering_open(
		&mesh_container_of(members, struct mesh_neighbours, members)->answering);
}

struct mesh_neighbours *mesh_neighbours_open(struct mesh_engine *engine,
					     const struct mesh_neighbour_self *self)
{
	struct mesh_neighbours *neighbours = calloc(1, sizeof(*neighbours));

	if (!neighbours)
		return NULL;
	neighbours->self = *self;
	mesh_asking_init(&neighbours->asking, &neighbours->self);
	neighbours->asking.engine = engine;
	neighbours->asking.stepped = asking_stepped;
	mesh_searching_init(&neighbours->searching, &neighbours->asking);
	mesh_answering_init(&neighbours->answering, engine, &neighbours->self,
			    &neighbours->members);
	neighbours->members.engine = engine;
	neighbours->members.self = &neighbours->self;
	neighbours->members.speaks = speaks;
	mesh_members_open(&neighbours->members);
	return neighbours;
}

void mesh_neighbours_close(struct mesh_neighbours *neighbours)
{
	if (!neighbours)
		return;
	mesh_answering_close(&neighbours->answering);
	mesh_members_close(&neighbours->members);
	mesh_searching_finish(&neighbours->searching);
	mesh_asking_finish(&neighbours->asking);
	free(neighbours);
}

void mesh_neighbours_links_set(struct mesh_neighbours *neighbours,
			       const struct mesh_neighbour_link *links, int num_links, bool ask)
{
	bool changed = mesh_asking_links_set(&neighbours->asking, links, num_links);

	/* One that is gone leaves the others as they were. */
	if (!changed && num_links == neighbours->members.num_links)
		return;
	mesh_members_links_set(&neighbours->members, neighbours->asking.links, num_links);
	if (ask && changed)
		mesh_neighbours_ask(neighbours);
}

uint64_t mesh_neighbours_waited_ms(const struct mesh_neighbours *neighbours, uint64_t now_ms)
{
	const uint64_t began_ms = neighbours->asking.began_ms;

	return began_ms ? mesh_clock_elapsed_ms(began_ms, now_ms) : UINT64_MAX;
}
