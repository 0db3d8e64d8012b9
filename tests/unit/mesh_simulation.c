/* SPDX-License-Identifier: Apache-2.0 */
/* mesh_simulation.c - a mesh whose nodes pass questions on. */
#include "mesh_simulation.h"
#include "unit.h"

#define DELAY_US 100
#define JITTER_US 200
/* What a node invents. */
#define INVENTED 60
/* Of an explorer's wake-up, instead of a datagram. */
#define WAKE (-1)

struct simulation_event {
	uint64_t at_us, order;
	int to, from;
	uint16_t port; /* 0: the node's; i + 1: search i */
	union mesh_links datagram;
};

static struct simulation *running; /* for the callbacks */

uint32_t simulation_draw(struct simulation *simulation, uint32_t below)
{
	simulation->seed = simulation->seed * 1664525 + 1013904223;
	return (simulation->seed >> 8) % below;
}

/* ---- events -------------------------------------------------------------------------------- */

static bool is_sooner(const struct simulation_event *a, const struct simulation_event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void event_push(struct simulation *simulation, struct simulation_event *event)
{
	int at = simulation->num_events++, up;

	event->order = simulation->order++;
	if (!(at & (at - 1)))
		simulation->events =
			realloc(simulation->events, (size_t)(at ? 2 * at : 1) * sizeof(event));
	for (; at; at = up) {
		up = (at - 1) / 2;
		if (!is_sooner(event, simulation->events[up]))
			break;
		simulation->events[at] = simulation->events[up];
	}
	simulation->events[at] = event;
}

static struct simulation_event *event_pop(struct simulation *simulation)
{
	struct simulation_event *first = simulation->events[0];
	struct simulation_event *last = simulation->events[--simulation->num_events];
	int at = 0, down;

	for (;;) {
		down = 2 * at + 1;
		if (down + 1 < simulation->num_events &&
		    is_sooner(simulation->events[down + 1], simulation->events[down]))
			down++;
		if (down >= simulation->num_events || !is_sooner(simulation->events[down], last))
			break;
		simulation->events[at] = simulation->events[down];
		at = down;
	}
	simulation->events[at] = last;
	return first;
}

/* ---- links --------------------------------------------------------------------------------- */

static struct simulated_link *link_to(struct simulated_node *node, int other)
{
	int i;

	for (i = 0; i < node->num_links; i++) {
		if (node->links[i].node == other)
			return &node->links[i];
	}
	return NULL;
}

/* @datagram: its length is set */
static void datagram_send(struct simulation *simulation, int from, int to, uint16_t port,
			  const union mesh_links *datagram)
{
	const struct simulated_link *link = link_to(&simulation->nodes[from], to);
	struct simulation_event *event;

	assert_non_null(link);
	simulation->datagrams++;
	if (link->down || simulation_draw(simulation, 100) < simulation->loss_percent)
		return;
	event = calloc(1, sizeof(*event));
	event->at_us = simulation->now_us + DELAY_US + simulation_draw(simulation, JITTER_US);
	event->from = from;
	event->to = to;
	event->port = port;
	/* As the network does it: what was sent is decoded. */
	if (mesh_links_decode(datagram, datagram->head.length, &event->datagram))
		fail_msg("a datagram of type %d cannot be decoded", datagram->head.type);
	event_push(simulation, event);
}

void simulation_cable(struct simulation *simulation, int a, int b)
{
	struct simulated_node *from = &simulation->nodes[a], *to = &simulation->nodes[b];

	assert_true(from->num_links < SIMULATION_LINKS_MAX && to->num_links < SIMULATION_LINKS_MAX);
	from->links[from->num_links] = (struct simulated_link){.node = b, .nic = to->num_links};
	to->links[to->num_links] = (struct simulated_link){.node = a, .nic = from->num_links};
	from->num_links++;
	to->num_links++;
}

void simulation_cable_set(struct simulation *simulation, int a, int b, bool down)
{
	link_to(&simulation->nodes[a], b)->down = down;
	link_to(&simulation->nodes[b], a)->down = down;
}

void simulation_torus(struct simulation *simulation, int x, int y, int z)
{
	int i, k, l, at;

	for (i = 0; i < x; i++) {
		for (k = 0; k < y; k++) {
			for (l = 0; l < z; l++) {
				at = (i * y + k) * z + l;
				simulation_cable(simulation, at, ((i + 1) % x * y + k) * z + l);
				simulation_cable(simulation, at, (i * y + (k + 1) % y) * z + l);
				simulation_cable(simulation, at, (i * y + k) * z + (l + 1) % z);
			}
		}
	}
}

void simulation_random_graph(struct simulation *simulation, int cables)
{
	int i, a, b, tries = 0;

	for (i = 1; i < simulation->num_nodes; i++, cables--) {
		do {
			a = (int)simulation_draw(simulation, (uint32_t)i);
		} while (simulation->nodes[a].num_links == SIMULATION_LINKS_MAX);
		simulation_cable(simulation, i, a);
	}
	for (; cables > 0 && tries < 10000; tries++) {
		a = (int)simulation_draw(simulation, (uint32_t)simulation->num_nodes);
		b = (int)simulation_draw(simulation, (uint32_t)simulation->num_nodes);
		if (a == b || link_to(&simulation->nodes[a], b) ||
		    simulation->nodes[a].num_links == SIMULATION_LINKS_MAX ||
		    simulation->nodes[b].num_links == SIMULATION_LINKS_MAX)
			continue;
		simulation_cable(simulation, a, b);
		cables--;
	}
}

/* ---- nodes --------------------------------------------------------------------------------- */

static int index_of(const struct simulated_node *node)
{
	return (int)(node - running->nodes);
}

static bool ask(void *owner, uint64_t node_id, const struct mesh_links_question *question)
{
	struct simulated_node *node = owner;
	union mesh_links datagram = {.question = *question};
	int to = (int)(node_id - SIMULATION_ID);

	if (node_id < SIMULATION_ID || !link_to(node, to))
		return false;
	datagram_send(running, index_of(node), to, 0, &datagram);
	return true;
}

static void answer(void *owner, const struct mesh_forwarding_asker *to,
		   const struct mesh_links_answer *answer)
{
	union mesh_links datagram = {.answer = *answer};

	datagram_send(running, index_of(owner), (int)to->ifindex, to->port, &datagram);
}

static void answer_with(struct simulated_node *node, const struct mesh_forwarding_asker *from,
			const struct mesh_links_question *question, uint64_t id,
			const struct mesh_links_link *links, int num_links)
{
	struct mesh_links_nic nics[2] = {{.nic = 0, .netdev = "mesh0"}, {.nic = 1}};
	union mesh_links datagram = {.answer = {.node_id = id, .flags = MESH_LINKS_SAME_JOB}};

	snprintf(datagram.answer.head.node, sizeof(datagram.answer.head.node), "node%d",
		 (int)(id % 100000));
	mesh_links_answer_fill(&datagram.answer, question, nics, 2, links, num_links);
	datagram_send(running, index_of(node), (int)from->ifindex, from->port, &datagram);
}

/* What this node really has; a liar adds to it. */
static int links_list(const struct simulated_node *node, struct mesh_links_link *links)
{
	int i, num = 0;

	for (i = 0; i < node->num_links; i++) {
		if (!node->links[i].down)
			links[num++] = (struct mesh_links_link){
				.node_id = SIMULATION_ID + (uint64_t)node->links[i].node,
				.speed_mbps = 1000,
				.nic = (uint8_t)i,
				.peer_nic = (uint8_t)node->links[i].nic};
	}
	return num;
}

static void own(void *owner, const struct mesh_forwarding_asker *from,
		const struct mesh_links_question *question)
{
	struct mesh_links_link links[SIMULATION_LINKS_MAX];
	struct simulated_node *node = owner;

	answer_with(node, from, question, SIMULATION_ID + (uint64_t)index_of(node), links,
		    links_list(node, links));
}

/* ---- liars --------------------------------------------------------------------------------- */

static void lie(struct simulated_node *node, const struct mesh_forwarding_asker *from,
		const struct mesh_links_question *question)
{
	struct mesh_links_link links[MESH_LINKS_MAX];
	uint64_t self = SIMULATION_ID + (uint64_t)index_of(node);
	uint64_t id = question->route[question->num_route - 1];
	int i, num = id == self ? links_list(node, links) : 0;

	if (node->lie == SIMULATION_FORGES && id != self)
		links[num++] = (struct mesh_links_link){.node_id = self, .speed_mbps = 9000};
	for (i = 0; node->lie == SIMULATION_FORGES && id == self && i < running->num_nodes &&
		    num < MESH_LINKS_MAX;
	     i++)
		links[num++] = (struct mesh_links_link){.node_id = SIMULATION_ID + (uint64_t)i,
							.speed_mbps = 9000};
	for (i = 0; node->lie == SIMULATION_INVENTS && i < INVENTED; i++)
		links[num++] = (struct mesh_links_link){
			.node_id = id * 1000003 + (uint64_t)i + 1000000, .speed_mbps = 9000};
	answer_with(node, from, question, id, links, num);
}

/* Returns false where the node does what an honest one does. */
static bool is_lied_about(const struct simulated_node *node,
			  const struct mesh_links_question *question)
{
	uint64_t id = question->route[question->num_route - 1];

	if (question->route[0] != SIMULATION_ID + (uint64_t)index_of(node))
		return false;
	if (node->lie == SIMULATION_FORGES)
		return true;
	return node->lie == SIMULATION_INVENTS &&
	       (question->num_route == 1 || id >= SIMULATION_ID + (uint64_t)running->num_nodes);
}

/* ---- searches ------------------------------------------------------------------------------ */

static void search_pump(struct simulation *simulation, int i)
{
	struct simulated_search *search = &simulation->searches[i];
	union mesh_links datagram;
	struct simulation_event *wake;
	uint64_t due_ms;

	memset(&datagram, 0, sizeof(datagram));
	while (mesh_explore_next(&search->explore, simulation->now_us / 1000, &datagram.question)) {
		mesh_links_question_finish(&datagram.question);
		datagram_send(simulation, search->node,
			      (int)(datagram.question.route[0] - SIMULATION_ID), (uint16_t)(i + 1),
			      &datagram);
		memset(&datagram, 0, sizeof(datagram));
	}
	if (!search->done_us && mesh_explore_is_over(&search->explore))
		search->done_us = simulation->now_us;
	due_ms = mesh_explore_due_ms(&search->explore);
	if (due_ms == UINT64_MAX || search->wake_us > simulation->now_us)
		return; /* it will look again */
	wake = calloc(1, sizeof(*wake));
	wake->at_us = due_ms * 1000 > simulation->now_us ? due_ms * 1000 : simulation->now_us + 1;
	wake->from = WAKE;
	wake->port = (uint16_t)(i + 1);
	search->wake_us = wake->at_us;
	event_push(simulation, wake);
}

void simulation_search(struct simulation *simulation, int i, int node, int target)
{
	struct simulated_search *search = &simulation->searches[i];
	struct mesh_graph_link links[SIMULATION_LINKS_MAX];
	struct mesh_links_link own_links[SIMULATION_LINKS_MAX];
	const struct mesh_graph_doubts doubts = search->explore.graph.doubts;
	int k, num = links_list(&simulation->nodes[node], own_links);

	mesh_explore_finish(&search->explore);
	search->node = node;
	search->done_us = 0;
	for (k = 0; k < num; k++)
		links[k] = (struct mesh_graph_link){
			.node_id = own_links[k].node_id,
			.speed_mbps = own_links[k].speed_mbps,
			.nic = own_links[k].nic,
			.peer_nic = own_links[k].peer_nic,
		};
	assert_int_equal(mesh_explore_begin(&search->explore, SIMULATION_ID + (uint64_t)node,
					    0x1234567 + simulation_draw(simulation, 1000000), 1),
			 0);
	search->explore.graph.doubts = doubts;
	search->explore.target = target < 0 ? 0 : SIMULATION_ID + (uint64_t)target;
	assert_int_equal(mesh_explore_links_set(&search->explore, links, num), 0);
	running = simulation;
	search_pump(simulation, i);
}

/* ---- running ------------------------------------------------------------------------------- */

static void datagram_take(struct simulation *simulation, const struct simulation_event *event)
{
	struct simulated_node *node = &simulation->nodes[event->to];
	struct mesh_forwarding_asker from = {.ifindex = (unsigned int)event->from,
					     .port = event->port};
	uint64_t now_ms = simulation->now_us / 1000, bytes;

	node->received++;
	if (node->lie == SIMULATION_SILENT)
		return;
	if (event->datagram.head.type == MESH_LINKS_QUESTION) {
		if (is_lied_about(node, &event->datagram.question))
			lie(node, &from, &event->datagram.question);
		else
			mesh_forwarding_question(&node->forwarding, &from,
						 &event->datagram.question, now_ms);
	} else if (!event->port) {
		mesh_forwarding_answer(&node->forwarding, &event->datagram.answer, now_ms);
	} else {
		mesh_explore_answer(&simulation->searches[event->port - 1].explore,
				    &event->datagram.answer);
		search_pump(simulation, event->port - 1);
	}
	bytes = mesh_forwarding_bytes(&node->forwarding);
	if (bytes > node->most_bytes)
		node->most_bytes = bytes;
}

void simulation_run(struct simulation *simulation, uint64_t us)
{
	struct simulation_event *event;
	uint64_t end_us = simulation->now_us + us;

	running = simulation;
	while (simulation->num_events && simulation->events[0]->at_us <= end_us) {
		event = event_pop(simulation);
		simulation->now_us = event->at_us;
		if (event->from == WAKE)
			search_pump(simulation, event->port - 1);
		else
			datagram_take(simulation, event);
		free(event);
	}
	if (simulation->num_events)
		simulation->now_us = end_us;
}

void simulation_open(struct simulation *simulation, int num_nodes, int num_searches, uint32_t seed)
{
	int i;

	memset(simulation, 0, sizeof(*simulation));
	simulation->seed = seed;
	simulation->now_us = 1000000;
	simulation->num_nodes = num_nodes;
	simulation->num_searches = num_searches;
	simulation->nodes = calloc((size_t)num_nodes, sizeof(*simulation->nodes));
	simulation->searches = calloc((size_t)num_searches, sizeof(*simulation->searches));
	for (i = 0; i < num_nodes; i++) {
		simulation->nodes[i].forwarding = (struct mesh_forwarding){
			.node_id = SIMULATION_ID + (uint64_t)i,
			.owner = &simulation->nodes[i],
			.ask = ask,
			.answer = answer,
			.own = own,
		};
	}
}

void simulation_close(struct simulation *simulation)
{
	int i;

	for (i = 0; i < simulation->num_searches; i++)
		mesh_explore_finish(&simulation->searches[i].explore);
	for (i = 0; i < simulation->num_nodes; i++)
		mesh_forwarding_clear(&simulation->nodes[i].forwarding);
	while (simulation->num_events)
		free(event_pop(simulation));
	free(simulation->events);
	free(simulation->nodes);
	free(simulation->searches);
}
