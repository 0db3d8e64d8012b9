/* SPDX-License-Identifier: Apache-2.0 */
/* searching.c - asks the whole mesh for its links. */
#include <string.h>

#include "base/random.h"
#include "base/version.h"
#include "neighbours/searching.h"

/* Rounds of others may follow this one, and go on. */
#define SEARCH_MS 1000

void mesh_searching_finish(struct mesh_searching *searching)
{
	searching->goes_on = false;
	mesh_explore_finish(&searching->explore);
}

/* Enters our own links if there are more than before. */
static void own_links_enter(struct mesh_searching *searching)
{
	const struct mesh_asking *asking = searching->asking;
	struct mesh_graph_link links[MESH_GRAPH_LINKS_MAX];
	const struct mesh_heard *heard;
	const struct mesh_neighbour *ours;
	struct mesh_heard_at at = {0};
	int num = 0;

	while (num < MESH_GRAPH_LINKS_MAX &&
	       (heard = mesh_asking_heard_next(asking, 0, searching->began_ms, &at))) {
		ours = &asking->links[at.link].about;
		links[num++] = (struct mesh_graph_link){
			.node_id = heard->about.node_id,
			.speed_mbps = heard->about.speed_mbps,
			.nic = ours->nic,
			.peer_nic = heard->about.nic,
			.rdma = mesh_providers_have_rdma(ours->providers),
			.drained = ours->flags & MESH_NEIGHBOUR_DRAINED,
		};
	}
	if (num == searching->num_own)
		return;
	if (!mesh_explore_links_set(&searching->explore, links, num))
		searching->num_own = num;
}

static void question_send(struct mesh_searching *searching)
{
	const struct mesh_neighbour_self *self = searching->asking->self;
	struct mesh_links_question question = {
		.token = searching->explore.token,
		.job = self->job,
		.node_id = self->node_id,
		.hops = MESH_LINKS_HOPS_MAX,
		.tries = searching->tries++,
	};

	memcpy(question.head.product, mesh_version(), strlen(mesh_version()));
	memcpy(question.head.node, self->node, sizeof(question.head.node));
	mesh_links_question_finish(&question);
	mesh_asking_send_all(searching->asking, &question, question.head.length);
}

int mesh_searching_begin(struct mesh_searching *searching, uint64_t now_ms)
{
	const struct mesh_graph_doubts doubts = searching->explore.graph.doubts;
	const struct mesh_neighbour_self *self = searching->asking->self;
	uint64_t token;
	int ret = mesh_random(&token, sizeof(token));

	mesh_searching_finish(searching);
	if (!ret)
		ret = mesh_explore_begin(&searching->explore, self->node_id, token);
	if (ret) {
		mesh_explore_finish(&searching->explore);
		return ret;
	}
	searching->explore.graph.doubts = doubts;
	searching->explore.site = mesh_neighbour_site_number(self->site);
	searching->began_ms = now_ms;
	searching->num_own = searching->tries = 0;
	ret = mesh_asking_begin(searching->asking, now_ms);
	searching->goes_on = !ret;
	mesh_searching_advance(searching, now_ms);
	return ret;
}

/* One with the first question of the round, one with the third: by then all
 * could answer. */
static int tries_due(const struct mesh_asking *asking)
{
	return (asking->sent + 1) / 2;
}

/* A NIC whose cable leads nowhere has no answer at all. */
static bool neighbours_are_heard(const struct mesh_asking *asking)
{
	return mesh_asking_all_answered(asking) || tries_due(asking) > 1;
}

bool mesh_searching_expects(const struct mesh_searching *searching)
{
	return searching->goes_on && !mesh_explore_is_complete(&searching->explore);
}

void mesh_searching_advance(struct mesh_searching *searching, uint64_t now_ms)
{
	const struct mesh_asking *asking = searching->asking;

	if (!searching->goes_on)
		return;
	own_links_enter(searching);
	if (!asking->began_ms || now_ms >= searching->began_ms + SEARCH_MS ||
	    (mesh_explore_is_complete(&searching->explore) && neighbours_are_heard(asking)))
		searching->goes_on = false;
	else if (searching->tries < tries_due(asking))
		question_send(searching);
}

static void links_answered(void *owner, const struct mesh_links_answer *answer)
{
	struct mesh_searching *searching = owner;

	if (searching->goes_on)
		mesh_explore_answer(&searching->explore, answer);
}

void mesh_searching_init(struct mesh_searching *searching, struct mesh_asking *asking)
{
	memset(searching, 0, sizeof(*searching));
	searching->asking = asking;
	asking->links_answered = links_answered;
	asking->links_owner = searching;
}
