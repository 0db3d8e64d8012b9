/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - this process among its neighbours, in an engine. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "neighbours/neighbours.h"

/* Nodes that are named for each of our NICs; a switch may have many more. */
#define NAMED_MAX 3

/* ---- words --------------------------------------------------------------------------------- */

struct words {
	char *text;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void words_add(struct words *words, const char *format,
							    ...)
{
	va_list args;
	int n;

	if (words->used >= words->size)
		return;
	va_start(args, format);
	n = vsnprintf(words->text + words->used, words->size - words->used, format, args);
	va_end(args);
	if (n > 0)
		words->used += (size_t)n;
}

static void clause_begin(struct words *words)
{
	words_add(words, "%s", words->used ? "; " : "Neighbours: ");
}

static void neighbour_add(struct words *words, const struct mesh_neighbour *ours,
			  const struct mesh_heard *heard)
{
	const struct mesh_neighbour *theirs = &heard->about;

	clause_begin(words);
	words_add(words, "%s is cabled to node %s", ours->netdev, theirs->node);
	if (!heard->error)
		words_add(words, " (%s)", theirs->netdev);
	if (heard->error || theirs->protocol != ours->protocol) {
		words_add(words, ", which has another version, nccl-net-mesh %s", theirs->product);
		return;
	}
	if (theirs->mtu && ours->mtu && theirs->mtu != ours->mtu)
		words_add(words, ", whose MTU is %u, that of %s is %u", theirs->mtu, ours->netdev,
			  ours->mtu);
}

static void node_add(struct words *words, const struct mesh_asking *asking,
		     const struct mesh_asked_cable *cable, int index, const struct mesh_heard *node)
{
	const struct mesh_heard *partner = mesh_cable_partner(asking, cable, index, node);
	uint64_t port = mesh_neighbour_link_port(&asking->links[index]);
	int first = cable->nics[0], other = mesh_cable_other(asking, cable, index);

	neighbour_add(words, &asking->links[index].about, partner ? partner : node);
	if (mesh_cable_half(asking, cable, index) >= 0 && index != first)
		words_add(words, ", a half of the same cable as %s",
			  asking->links[first].about.netdev);
	else if (cable->far == MESH_CABLE_LEADS && cable->num_heard < cable->num_nics &&
		 index == first)
		words_add(words, ", and so is %s: %s", asking->links[other].about.netdev,
			  port && port == mesh_neighbour_link_port(&asking->links[other])
				  ? "the other half of the port there is missing"
				  : "two cables to one NIC");
}

static void own_add(struct words *words, const struct mesh_asking *asking,
		    const struct mesh_asked_cable *cable, int index)
{
	int other = mesh_cable_other(asking, cable, index);

	if (index != cable->nics[0])
		return; /* it is said */
	clause_begin(words);
	words_add(words,
		  cable->far == MESH_CABLE_LOOP
			  ? "both ends of one cable are on this node: %s and %s"
			  : "%s and %s hear each other, and no other node",
		  asking->links[index].about.netdev, asking->links[other].about.netdev);
}

static void nic_add(struct words *words, const struct mesh_asking *asking, int index)
{
	const struct mesh_heard *node;
	struct mesh_asked_cable cable;
	int at = 0, num = 0;

	mesh_cable_find(asking, index, &cable);
	if (!asking->asked[index].num_heard || cable.far == MESH_CABLE_SILENT) {
		clause_begin(words);
		words_add(words, "%s has no answer", asking->links[index].about.netdev);
		return;
	}
	if (!cable.num_heard)
		own_add(words, asking, &cable, index);
	for (; (node = mesh_cable_node_next(&cable, &at)); num++) {
		if (num < NAMED_MAX)
			node_add(words, asking, &cable, index, node);
	}
	if (num > NAMED_MAX)
		words_add(words, " and %d more", num - NAMED_MAX);
}

const char *mesh_asking_words(const struct mesh_asking *asking, char *text, size_t size)
{
	struct words words = {text, size, 0};
	int i;

	*text = '\0';
	for (i = 0; i < asking->num_links; i++)
		nic_add(&words, asking, i);
	return text;
}

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
				 target, relays_max, avoided, num_avoided, routes, routes_max);
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
