/* SPDX-License-Identifier: Apache-2.0 */
/* explore.c - which nodes the mesh has and how they are linked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "neighbours/datagram.h"
#include "neighbours/explore.h"

/* A node with more entries than fit into these is cut. */
#define ANSWERS_MAX 4
/* A node is asked again so often. */
#define AGAIN_MAX 3
#define NONE (-1)

/* ---- nodes --------------------------------------------------------------------------------- */

static struct mesh_explored *node_add(struct mesh_explore *explore, uint64_t id, int parent)
{
	struct mesh_explored *nodes;

	if (explore->num_nodes == MESH_ID_INDEX_MAX)
		return NULL;
	nodes = mesh_array_room(explore->nodes, (size_t)explore->num_nodes, sizeof(*nodes));
	if (!nodes)
		return NULL;
	explore->nodes = nodes;
	nodes += explore->num_nodes;
	*nodes = (struct mesh_explored){.id = id, .parent = parent};
	if (parent != NONE)
		nodes->depth = explore->nodes[parent].depth + 1;
	nodes->again = mesh_id_index_find(&explore->index, id) >= 0;
	if (!nodes->again)
		mesh_id_index_add(&explore->index, id, explore->num_nodes);
	explore->num_nodes++;
	return nodes;
}

int mesh_explore_begin(struct mesh_explore *explore, uint64_t self, uint64_t token, uint64_t job)
{
	memset(explore, 0, sizeof(*explore));
	mesh_graph_init(&explore->graph);
	explore->token = token;
	explore->job = job;
	explore->relay_flags = MESH_LINKS_SAME_JOB | MESH_LINKS_RELAY;
	explore->hops_max = MESH_LINKS_ROUTE_MAX;
	if (!node_add(explore, self, NONE))
		return -ENOMEM;
	explore->nodes[0].state = MESH_EXPLORED_KNOWN;
	return mesh_explore_links_set(explore, NULL, 0);
}

void mesh_explore_finish(struct mesh_explore *explore)
{
	int i;

	for (i = 0; i < explore->num_nodes; i++) {
		free(explore->nodes[i].nics);
		free(explore->nodes[i].links);
	}
	free(explore->nodes);
	mesh_graph_finish(&explore->graph);
	memset(explore, 0, sizeof(*explore));
}

int mesh_explore_links_set(struct mesh_explore *explore, const struct mesh_graph_link *links,
			   int num_links)
{
	struct mesh_explored *self = &explore->nodes[0];
	struct mesh_graph_link *copy = calloc((size_t)num_links + 1, sizeof(*copy));
	int ret =
		copy ? mesh_graph_report(&explore->graph, self->id, false, false, links, num_links)
		     : -ENOMEM;

	if (ret < 0) {
		free(copy);
		return ret;
	}
	mesh_graph_site_set(&explore->graph, ret, explore->site);
	if (num_links)
		memcpy(copy, links, (size_t)num_links * sizeof(*copy));
	free(self->links);
	self->links = copy;
	self->num_links = num_links;
	self->seen = 0;
	explore->changed = true;
	return 0;
}

/* ---- whom to ask --------------------------------------------------------------------------- */

/* The depth up to which nodes are asked: all, unless the target is found and the mesh is large. */
static int depth_wanted(const struct mesh_explore *explore)
{
	int target = mesh_id_index_find(&explore->index, explore->target);

	if (!explore->target || target < 0 || explore->num_nodes <= MESH_EXPLORE_SMALL ||
	    explore->nodes[target].state != MESH_EXPLORED_KNOWN)
		return explore->hops_max;
	return explore->nodes[target].depth;
}

static bool may_ask(const struct mesh_explore *explore, int reporter, uint64_t id, uint64_t now_ms)
{
	return mesh_id_index_find(&explore->index, id) < 0 &&
	       !mesh_graph_hop_is_doubtful(&explore->graph, explore->nodes[reporter].id, id,
					   now_ms);
}

/* A node that @node has reported and that was not asked yet; 0: none. */
static uint64_t unasked(struct mesh_explore *explore, int node, uint64_t now_ms)
{
	struct mesh_explored *at = &explore->nodes[node];

	if (at->state != MESH_EXPLORED_KNOWN || at->depth >= explore->depth_max)
		return 0;
	for (; at->seen < at->num_links; at->seen++) {
		if (may_ask(explore, node, at->links[at->seen].node_id, now_ms))
			return at->links[at->seen].node_id;
	}
	return 0;
}

/*
 * From our own node down: at each node, to the one of its neighbours, or to its own report, where
 * the fewest were asked so far. A node stands behind its parent in the array.
 *
 * Returns the reporter, or NONE.
 */
static int reporter_choose(struct mesh_explore *explore, uint64_t now_ms)
{
	bool open[MESH_ID_INDEX_MAX] = {false}, own[MESH_ID_INDEX_MAX] = {false};
	int i, at = 0, best, best_served;

	for (i = explore->num_nodes - 1; i >= 0; i--) {
		own[i] = unasked(explore, i, now_ms) != 0;
		open[i] = open[i] || own[i];
		if (open[i] && i)
			open[explore->nodes[i].parent] = true;
	}
	while (open[at]) {
		best = own[at] ? at : NONE;
		best_served = own[at] ? explore->nodes[at].own : 0;
		for (i = at + 1; i < explore->num_nodes; i++) {
			if (explore->nodes[i].parent != at || !open[i] ||
			    (best != NONE && explore->nodes[i].served >= best_served))
				continue;
			best = i;
			best_served = explore->nodes[i].served;
		}
		if (best == at)
			return at;
		at = best;
	}
	return NONE;
}

static bool has_reported(const struct mesh_explored *node, uint64_t id)
{
	int i;

	for (i = 0; node->state == MESH_EXPLORED_KNOWN && i < node->num_links; i++) {
		if (node->links[i].node_id == id)
			return true;
	}
	return false;
}

/* Of those who have reported @id: the nearest, so that routes are short. NONE: there is none. */
static int nearest_reporter(const struct mesh_explore *explore, uint64_t id, uint64_t now_ms)
{
	int i, best = NONE;

	for (i = 0; i < explore->num_nodes; i++) {
		if (explore->nodes[i].depth < explore->hops_max &&
		    (best == NONE || explore->nodes[i].depth < explore->nodes[best].depth) &&
		    has_reported(&explore->nodes[i], id) &&
		    !mesh_graph_hop_is_doubtful(&explore->graph, explore->nodes[i].id, id, now_ms))
			best = i;
	}
	return best;
}

/* True if @reporter's link to @id should stand in the answers of @id, and does not. */
static bool is_missed(const struct mesh_explore *explore, int reporter, uint64_t id,
		      uint64_t now_ms)
{
	int place = mesh_graph_find(&explore->graph, id), i, times = 0;
	const struct mesh_graph_node *report;

	if (mesh_graph_hop_is_doubtful(&explore->graph, explore->nodes[reporter].id, id, now_ms))
		return false;
	report = place < 0 ? NULL : &explore->graph.nodes[place];
	if (report && mesh_graph_link_find(report, explore->nodes[reporter].id) < report->num_links)
		return false;
	for (i = reporter; i > 0; i = explore->nodes[i].parent) {
		if (explore->nodes[i].id == id)
			return false; /* the question would pass it */
	}
	for (i = 0; i < explore->num_nodes; i++) {
		if (explore->nodes[i].id != id)
			continue;
		if (explore->nodes[i].parent == reporter ||
		    explore->nodes[i].state == MESH_EXPLORED_ASKED)
			return false;
		times++;
	}
	return times && times <= AGAIN_MAX;
}

/* A node that is to be asked again, over a reporter whose link it has not confirmed; or NULL. */
static struct mesh_explored *again_choose(struct mesh_explore *explore, uint64_t now_ms)
{
	const struct mesh_explored *reporter;
	int i, k;

	for (i = 1; i < explore->num_nodes && explore->changed; i++) {
		reporter = &explore->nodes[i];
		if (reporter->state != MESH_EXPLORED_KNOWN || reporter->depth >= explore->depth_max)
			continue;
		for (k = 0; k < reporter->num_links; k++) {
			if (reporter->links[k].node_id != explore->nodes[0].id &&
			    is_missed(explore, i, reporter->links[k].node_id, now_ms))
				return node_add(explore, reporter->links[k].node_id, i);
		}
	}
	explore->changed = false;
	return NULL;
}

static struct mesh_explored *node_choose(struct mesh_explore *explore, uint64_t now_ms)
{
	int reporter = NONE, at;
	uint64_t id = explore->target;

	if (explore->num_nodes == MESH_ID_INDEX_MAX)
		return NULL;
	explore->depth_max = depth_wanted(explore);
	if (id && mesh_id_index_find(&explore->index, id) < 0)
		reporter = nearest_reporter(explore, id, now_ms);
	if (reporter == NONE) {
		at = reporter_choose(explore, now_ms);
		if (at == NONE)
			return again_choose(explore, now_ms);
		id = unasked(explore, at, now_ms);
		explore->nodes[at].own++;
		for (reporter = at; reporter > 0; reporter = explore->nodes[reporter].parent)
			explore->nodes[reporter].served++;
		reporter = nearest_reporter(explore, id, now_ms);
	}
	return node_add(explore, id, reporter);
}

/* ---- questions ----------------------------------------------------------------------------- */

static void question_fill(struct mesh_explore *explore, struct mesh_explored *node, uint64_t now_ms,
			  struct mesh_links_question *question)
{
	int at = (int)(node - explore->nodes), i;

	memset(question, 0, sizeof(*question));
	question->token = explore->token;
	question->job = explore->job;
	question->number = (uint16_t)at;
	question->cursor = node->cursor;
	question->tries = (uint8_t)node->tries++;
	question->num_route = (uint8_t)node->depth;
	for (i = node->depth - 1; i >= 0; i--) {
		question->route[i] = explore->nodes[at].id;
		at = explore->nodes[at].parent;
	}
	node->sent_ms = now_ms;
	explore->sent++;
}

/* An answer of the node is no longer awaited. */
static void asked_end(struct mesh_explore *explore, const struct mesh_explored *node,
		      enum mesh_explored_state state)
{
	int at = (int)(node - explore->nodes), i;

	explore->nodes[at].state = state;
	for (i = 0; explore->asked[i] != at; i++)
		continue;
	explore->asked[i] = explore->asked[--explore->num_asked];
}

static uint64_t due_ms(const struct mesh_explored *node)
{
	/* The rest of an answer is asked for at once. */
	return node->tries ? node->sent_ms + MESH_EXPLORE_TIMEOUT_MS : 0;
}

/* Asks once more, or gives a node up. */
static bool question_repeat(struct mesh_explore *explore, uint64_t now_ms,
			    struct mesh_links_question *question)
{
	struct mesh_explored *node;
	int i;

	for (i = explore->num_asked - 1; i >= 0; i--) {
		node = &explore->nodes[explore->asked[i]];
		if (now_ms < due_ms(node))
			continue;
		if (node->tries < MESH_EXPLORE_TRIES) {
			question_fill(explore, node, now_ms, question);
			return true;
		}
		asked_end(explore, node, MESH_EXPLORED_SILENT);
		explore->changed = true;
	}
	return false;
}

bool mesh_explore_next(struct mesh_explore *explore, uint64_t now_ms,
		       struct mesh_links_question *question)
{
	struct mesh_explored *node;

	if (question_repeat(explore, now_ms, question))
		return true;
	if (explore->num_asked == MESH_EXPLORE_WINDOW)
		return false;
	node = node_choose(explore, now_ms);
	if (!node)
		return false;
	explore->asked[explore->num_asked++] = (int)(node - explore->nodes);
	question_fill(explore, node, now_ms, question);
	return true;
}

uint64_t mesh_explore_due_ms(const struct mesh_explore *explore)
{
	uint64_t due = UINT64_MAX, at_ms;
	int i;

	for (i = 0; i < explore->num_asked; i++) {
		at_ms = due_ms(&explore->nodes[explore->asked[i]]);
		if (at_ms < due)
			due = at_ms;
	}
	return due;
}

/* ---- answers ------------------------------------------------------------------------------- */

static void *entries_room(void *array, int num, int more, size_t size)
{
	return more ? realloc(array, (size_t)(num + more) * size) : array;
}

/* Returns false if memory is short. */
static bool entries_take(struct mesh_explored *node, const struct mesh_links_answer *answer)
{
	struct mesh_links_nic *nics =
		entries_room(node->nics, node->num_nics, answer->num_nics, sizeof(*nics));
	struct mesh_graph_link *links;
	struct mesh_links_link link;
	int i;

	if (nics)
		node->nics = nics;
	links = entries_room(node->links, node->num_links, answer->num_links, sizeof(*links));
	if (links)
		node->links = links;
	if ((answer->num_nics && !nics) || (answer->num_links && !links))
		return false;
	for (i = 0; i < answer->num_nics; i++)
		mesh_links_nic_get(answer, i, &node->nics[node->num_nics++]);
	for (i = 0; i < answer->num_links; i++) {
		mesh_links_link_get(answer, i, &link);
		node->links[node->num_links++] =
			(struct mesh_graph_link){.node_id = link.node_id,
						 .speed_mbps = link.speed_mbps,
						 .nic = link.nic,
						 .peer_nic = link.peer_nic};
	}
	return true;
}

/* Enters what the node says of the NIC at which each link begins: all of its NICs are known now. */
static void links_mark(struct mesh_explored *node)
{
	const struct mesh_links_nic *nic;
	bool rdma;
	int i, k;

	for (i = 0; i < node->num_nics; i++) {
		nic = &node->nics[i];
		rdma = !(nic->flags & MESH_LINKS_NIC_DOWN) &&
		       mesh_providers_have_rdma(nic->providers);
		for (k = 0; k < node->num_links; k++) {
			if (node->links[k].nic != nic->nic)
				continue;
			node->links[k].rdma |= rdma;
			node->links[k].drained |= nic->flags & MESH_LINKS_NIC_DRAINED;
		}
	}
}

static void report_finish(struct mesh_explore *explore, struct mesh_explored *node)
{
	int ret;

	links_mark(node);
	ret = mesh_graph_report(&explore->graph, node->id,
				(node->flags & explore->relay_flags) != 0, node->again, node->links,
				node->num_links);
	if (ret >= 0)
		mesh_graph_site_set(&explore->graph, ret, mesh_neighbour_site_number(node->site));
	asked_end(explore, node, ret < 0 ? MESH_EXPLORED_SILENT : MESH_EXPLORED_KNOWN);
	explore->changed = true;
}

bool mesh_explore_answer(struct mesh_explore *explore, const struct mesh_links_answer *answer)
{
	struct mesh_explored *node;

	if (answer->token != explore->token || answer->number >= explore->num_nodes)
		return false;
	node = &explore->nodes[answer->number];
	if (node->state != MESH_EXPLORED_ASKED || answer->node_id != node->id ||
	    answer->cursor != node->cursor)
		return false;
	memcpy(node->node, answer->head.node, sizeof(node->node));
	memcpy(node->site, answer->site, sizeof(node->site));
	node->flags = answer->flags;
	node->protocol = answer->protocol;
	node->num_ranks = answer->num_ranks;
	node->first_rank = answer->first_rank;
	if (!entries_take(node, answer)) {
		asked_end(explore, node, MESH_EXPLORED_SILENT);
		return true;
	}
	node->cursor = answer->next;
	node->tries = 0;
	if (!answer->next || ++node->answers == ANSWERS_MAX)
		report_finish(explore, node);
	return true;
}

/* ---- results ------------------------------------------------------------------------------- */

/* True if the node has reported one that was not asked. */
static bool has_unasked(const struct mesh_explore *explore, const struct mesh_explored *node)
{
	int i;

	for (i = node->seen; i < node->num_links; i++) {
		if (mesh_id_index_find(&explore->index, node->links[i].node_id) < 0)
			return true;
	}
	return false;
}

bool mesh_explore_has_found(const struct mesh_explore *explore, uint64_t node_id)
{
	int target = mesh_id_index_find(&explore->index, node_id), i, depth;
	const struct mesh_explored *node;

	if (target < 0 || explore->nodes[target].state != MESH_EXPLORED_KNOWN)
		return false;
	depth = explore->nodes[target].depth;
	for (i = 0; i < explore->num_nodes; i++) {
		node = &explore->nodes[i];
		if (node->state == MESH_EXPLORED_ASKED && node->depth < depth)
			return false;
		if (node->state == MESH_EXPLORED_KNOWN && node->depth < depth - 1 &&
		    has_unasked(explore, node))
			return false;
	}
	return true;
}

const char *mesh_explore_node_name(const struct mesh_explore *explore, uint64_t node_id)
{
	int at = explore->num_nodes ? mesh_id_index_find(&explore->index, node_id) : NONE;

	return at > 0 && explore->nodes[at].state == MESH_EXPLORED_KNOWN ? explore->nodes[at].node
									 : NULL;
}

bool mesh_explore_is_over(const struct mesh_explore *explore)
{
	return !explore->num_asked;
}
