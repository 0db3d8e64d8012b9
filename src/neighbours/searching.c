/* SPDX-License-Identifier: Apache-2.0 */
/* searching.c - which nodes the mesh has and how they are linked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/version.h"
#include "neighbours/datagram.h"
#include "neighbours/searching.h"

/* The index of the node, which is entered if it is new; or a negative errno. */
static int node_enter(struct mesh_explore *explore, uint64_t id, int parent)
{
	int at = mesh_graph_find(&explore->graph, id);
	struct mesh_explored *nodes;

	if (at >= 0)
		return at;
	nodes = mesh_array_room(explore->nodes, (size_t)explore->num_nodes, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	explore->nodes = nodes;
	at = mesh_graph_enter(&explore->graph, id);
	if (at < 0)
		return at;
	nodes[explore->num_nodes++] = (struct mesh_explored){.id = id, .parent = parent};
	return at;
}

static void links_enter(struct mesh_explore *explore, int parent,
			const struct mesh_graph_link *links, int num_links)
{
	int i;

	for (i = 0; i < num_links; i++)
		node_enter(explore, links[i].node_id, parent);
}

int mesh_explore_begin(struct mesh_explore *explore, uint64_t self, uint64_t token)
{
	memset(explore, 0, sizeof(*explore));
	explore->token = token;
	if (node_enter(explore, self, -1))
		return -ENOMEM;
	explore->nodes[0].known = true;
	explore->num_known = 1;
	return 0;
}

void mesh_explore_finish(struct mesh_explore *explore)
{
	free(explore->nodes);
	mesh_graph_finish(&explore->graph);
	memset(explore, 0, sizeof(*explore));
}

int mesh_explore_links_set(struct mesh_explore *explore, const struct mesh_graph_link *links,
			   int num_links)
{
	int ret = mesh_graph_report(&explore->graph, explore->nodes[0].id, false, false, links,
				    num_links);

	if (ret < 0)
		return ret;
	links_enter(explore, 0, links, num_links);
	return 0;
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Returns false if memory is short. */
static bool entries_take(struct mesh_explore *explore, struct mesh_explored *node,
			 const struct mesh_links_answer *answer)
{
	struct mesh_graph_link links[MESH_GRAPH_LINKS_MAX];
	struct mesh_links_link link;
	int i;

	for (i = 0; i < answer->num_nics; i++)
		mesh_links_nic_get(answer, i, &node->nics[node->num_nics++]);
	for (i = 0; i < answer->num_links; i++) {
		mesh_links_link_get(answer, i, &link);
		links[i] = (struct mesh_graph_link){.node_id = link.node_id,
						    .speed_mbps = link.speed_mbps,
						    .nic = link.nic,
						    .peer_nic = link.peer_nic};
	}
	return mesh_graph_report(&explore->graph, node->id,
				 (answer->flags & (MESH_LINKS_SAME_JOB | MESH_LINKS_RELAY)) != 0,
				 answer->cursor, links, answer->num_links) >= 0;
}

/* Enters what the node says of the NIC at which each link begins: all of its NICs are known now. */
static void links_mark(const struct mesh_explored *node, const struct mesh_graph_node *of_node)
{
	const struct mesh_links_nic *nic;
	bool rdma;
	int i, k;

	for (i = 0; i < node->num_nics; i++) {
		nic = &node->nics[i];
		rdma = !(nic->flags & MESH_LINKS_NIC_DOWN) &&
		       mesh_providers_have_rdma(nic->providers);
		for (k = 0; k < of_node->num_links; k++) {
			if (of_node->links[k].nic != nic->nic)
				continue;
			of_node->links[k].rdma |= rdma;
			of_node->links[k].drained |= nic->flags & MESH_LINKS_NIC_DRAINED;
		}
	}
}

static void report_finish(struct mesh_explore *explore, int at)
{
	const struct mesh_graph_node node = explore->graph.nodes[at];

	links_mark(&explore->nodes[at], &node);
	explore->graph.nodes[at].site = mesh_neighbour_site_number(explore->nodes[at].site);
	explore->nodes[at].known = true;
	explore->num_known++;
	links_enter(explore, at, node.links, node.num_links);
}

void mesh_explore_answer(struct mesh_explore *explore, const struct mesh_links_answer *answer)
{
	struct mesh_explored *node;
	int at;

	if (answer->token - explore->token >= MESH_EXPLORE_TRIES)
		return;
	at = node_enter(explore, answer->node_id, 0);
	if (at < 0)
		return;
	node = &explore->nodes[at];
	if (!node->known && !answer->cursor)
		node->num_entries = node->num_nics = 0;
	if (node->known || answer->cursor != node->num_entries ||
	    node->num_nics + answer->num_nics > MESH_NICS_MAX)
		return;
	memcpy(node->node, answer->head.node, sizeof(node->node));
	memcpy(node->site, answer->site, sizeof(node->site));
	node->flags = answer->flags;
	node->protocol = answer->protocol;
	node->num_ranks = answer->num_ranks;
	node->first_rank = answer->first_rank;
	if (!entries_take(explore, node, answer))
		return;
	node->num_entries += answer->num_nics + answer->num_links;
	if (!answer->next)
		report_finish(explore, at);
}

const char *mesh_explore_node_name(const struct mesh_explore *explore, uint64_t node_id)
{
	int at = mesh_graph_find(&explore->graph, node_id);

	return at > 0 && explore->nodes[at].known ? explore->nodes[at].node : NULL;
}

/* ---- searches ------------------------------------------------------------------------------ */

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
		.token = searching->explore.token + searching->tries++,
		.job = self->job,
		.node_id = self->node_id,
		.hops = MESH_LINKS_HOPS_MAX,
	};

	memcpy(question.head.product, mesh_version(), strlen(mesh_version()));
	memcpy(question.head.node, self->node, sizeof(question.head.node));
	mesh_links_question_finish(&question);
	mesh_asking_send_all(searching->asking, &question, question.head.length);
}

int mesh_searching_begin(struct mesh_searching *searching, uint64_t now_ms)
{
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
	searching->explore.graph.nodes[0].site = mesh_neighbour_site_number(self->site);
	searching->began_ms = now_ms;
	searching->num_own = searching->tries = 0;
	ret = mesh_asking_begin(searching->asking, now_ms);
	searching->goes_on = !ret;
	mesh_searching_advance(searching, now_ms);
	return ret;
}

/* One with the first question of the round, one with the third: by then all could answer. */
static int tries_due(const struct mesh_asking *asking)
{
	return (asking->sent + 1) / 2;
}

/* A NIC whose cable leads nowhere has no answer at all. */
static bool neighbours_are_heard(const struct mesh_asking *asking)
{
	return mesh_asking_all_answered(asking) || tries_due(asking) > 1;
}

void mesh_searching_advance(struct mesh_searching *searching, uint64_t now_ms)
{
	const struct mesh_asking *asking = searching->asking;

	if (!searching->goes_on)
		return;
	own_links_enter(searching);
	if (!asking->began_ms || now_ms >= searching->began_ms + MESH_LINKS_KEEP_MS ||
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
