/* SPDX-License-Identifier: Apache-2.0 */
/* mesh_simulation.c - a mesh whose nodes pass questions on. */
#include "base/random.h"
#include "mesh_simulation.h"
#include "unit.h"

#define DELAY_US 100
#define JITTER_US 200
/* What a node invents. */
#define INVENTED 60
/* A search asks once more after this time. */
#define AGAIN_US 200000
/* Instead of a datagram: a search asks again; a node passes on. */
#define WAKE (-1)
#define PASS (-2)

struct simulation_event {
	uint64_t at_us, order;
	int to, from, nic;
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
	for (int i = 0; i < node->num_links; i++) {
		if (node->links[i].node == other)
			return &node->links[i];
	}
	return NULL;
}

/* @datagram: its length is set */
static void datagram_send(struct simulation *simulation, int from,
			  const struct simulated_link *link, uint16_t port,
			  const union mesh_links *datagram)
{
	struct simulation_event *event;
	uint64_t token;

	simulation->datagrams++;
	if (link->down || simulation_draw(simulation, 100) < simulation->loss_percent)
		return;
	event = calloc(1, sizeof(*event));
	/* A cable keeps the order of an answer's datagrams. */
	token = datagram->head.type == MESH_LINKS_QUESTION ? datagram->question.token
							   : datagram->answer.token;
	event->at_us = simulation->now_us + DELAY_US +
		       mesh_hash_add(token, (int[]){from, link->node, link->own}, 3 * sizeof(int)) %
			       JITTER_US;
	event->from = from;
	event->to = link->node;
	event->nic = link->nic;
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
	from->links[from->num_links] =
		(struct simulated_link){.own = from->num_links, .node = b, .nic = to->num_links};
	to->links[to->num_links] =
		(struct simulated_link){.own = to->num_links, .node = a, .nic = from->num_links};
	from->num_links++;
	to->num_links++;
}

void simulation_switches(struct simulation *simulation, int nics)
{
	struct simulated_node *node;

	for (int a = 0; a < simulation->num_nodes; a++) {
		node = &simulation->nodes[a];
		for (int nic = 0; nic < nics; nic++) {
			for (int b = 0; b < simulation->num_nodes; b++) {
				if (b != a)
					node->links[node->num_links++] = (struct simulated_link){
						.own = nic, .node = b, .nic = nic};
			}
		}
	}
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

static void ask(void *owner, uint32_t links, const struct mesh_links_question *question)
{
	struct simulated_node *node = owner;
	union mesh_links datagram = {.question = *question};

	mesh_links_question_finish(&datagram.question);
	for (int i = 0; i < node->num_links; i++) {
		if (!(links >> node->links[i].own & 1))
			datagram_send(running, index_of(node), &node->links[i], 0, &datagram);
	}
}

static void answer(void *owner, const struct mesh_forwarding_asker *to,
		   const struct mesh_links_answer *answer)
{
	union mesh_links datagram = {.answer = *answer};

	datagram_send(running, index_of(owner), link_to(owner, (int)to->ifindex), to->port,
		      &datagram);
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
				.nic = (uint8_t)node->links[i].own,
				.peer_nic = (uint8_t)node->links[i].nic};
	}
	return num;
}

static bool own(void *owner, const struct mesh_forwarding_slot *slot)
{
	struct mesh_links_nic nics[2] = {{.nic = 0, .netdev = "mesh0"}, {.nic = 1}};
	struct simulated_node *node = owner;
	struct mesh_links_link links[MESH_LINKS_MAX];
	struct mesh_links_answer own = {.node_id = SIMULATION_ID + (uint64_t)index_of(node),
					.token = slot->token,
					.flags = MESH_LINKS_SAME_JOB};
	int i, num = links_list(node, links);

	for (i = 0; node->lie == SIMULATION_INVENTS && i < INVENTED; i++)
		links[num++] = (struct mesh_links_link){.node_id = own.node_id * 1000003 +
								   (uint64_t)i + 1000000,
							.speed_mbps = 9000};
	snprintf(own.head.node, sizeof(own.head.node), "node%d", index_of(node));
	do {
		mesh_links_answer_fill(&own, own.next, nics, 2, links, num);
		answer(owner, &slot->asker, &own);
	} while (own.next);
	return true;
}

/* ---- searches ------------------------------------------------------------------------------ */

static struct simulation_event *event_make(struct simulation *simulation, int kind, uint64_t in_us)
{
	struct simulation_event *event = calloc(1, sizeof(*event));

	event->from = kind;
	event->at_us = simulation->now_us + in_us;
	return event;
}

static void question_send(struct simulation *simulation, int i)
{
	struct simulated_search *search = &simulation->searches[i];
	const struct simulated_node *node = &simulation->nodes[search->node];
	union mesh_links datagram = {
		.question = {.token = search->explore.token + (uint64_t)search->tries++,
			     .job = 1,
			     .node_id = SIMULATION_ID + (uint64_t)search->node,
			     .hops = MESH_LINKS_HOPS_MAX}};
	struct simulation_event *again = event_make(simulation, WAKE, AGAIN_US);

	again->port = (uint16_t)i;
	event_push(simulation, again);
	mesh_links_question_finish(&datagram.question);
	for (int k = 0; k < node->num_links; k++)
		datagram_send(simulation, search->node, &node->links[k], (uint16_t)(i + 1),
			      &datagram);
}

void simulation_search(struct simulation *simulation, int i, int node)
{
	struct simulated_search *search = &simulation->searches[i];
	struct mesh_graph_link links[SIMULATION_LINKS_MAX];
	struct mesh_links_link own_links[MESH_LINKS_MAX];
	int k, num = links_list(&simulation->nodes[node], own_links);
	uint64_t token = (uint64_t)simulation_draw(simulation, 1u << 24) << 24;

	mesh_explore_finish(&search->explore);
	search->node = node;
	search->done_us = 0;
	search->tries = 0;
	for (k = 0; k < num; k++)
		links[k] = (struct mesh_graph_link){
			.node_id = own_links[k].node_id,
			.speed_mbps = own_links[k].speed_mbps,
			.nic = own_links[k].nic,
			.peer_nic = own_links[k].peer_nic,
		};
	token |= simulation_draw(simulation, 1u << 24);
	assert_int_equal(
		mesh_explore_begin(&search->explore, SIMULATION_ID + (uint64_t)node, token), 0);
	assert_int_equal(mesh_explore_links_set(&search->explore, links, num), 0);
	running = simulation;
	question_send(simulation, i);
}

/* ---- running ------------------------------------------------------------------------------- */

static void datagram_take(struct simulation *simulation, const struct simulation_event *event)
{
	struct simulated_node *node = &simulation->nodes[event->to];
	struct mesh_forwarding_asker from = {.ifindex = (unsigned int)event->from,
					     .port = event->port};
	uint64_t now_ms = simulation->now_us / 1000;
	struct simulated_search *search;

	node->received++;
	if (node->lie == SIMULATION_SILENT)
		return;
	if (event->datagram.head.type == MESH_LINKS_QUESTION) {
		mesh_forwarding_question(&node->forwarding, event->nic, &from,
					 &event->datagram.question, now_ms);
		if (!node->passes) {
			struct simulation_event *pass =
				event_make(simulation, PASS, MESH_FORWARDING_DELAY_MS * 1000);

			pass->to = event->to;
			event_push(simulation, pass);
			node->passes = true;
		}
	} else if (!event->port) {
		mesh_forwarding_answer(&node->forwarding, &event->datagram.answer, now_ms);
	} else {
		search = &simulation->searches[event->port - 1];
		mesh_explore_answer(&search->explore, &event->datagram.answer);
		if (!search->done_us && mesh_explore_is_complete(&search->explore))
			search->done_us = simulation->now_us;
	}
}

static void pass(struct simulation *simulation, int at)
{
	struct simulated_node *node = &simulation->nodes[at];
	struct simulation_event *event;

	node->passes = mesh_forwarding_advance(&node->forwarding, simulation->now_us / 1000);
	if (!node->passes)
		return;
	event = event_make(simulation, PASS, MESH_FORWARDING_DELAY_MS * 1000);
	event->to = at;
	event_push(simulation, event);
}

/* Asks again, or ends. */
static void search_wake(struct simulation *simulation, int i)
{
	struct simulated_search *search = &simulation->searches[i];

	if (!search->done_us && search->tries < MESH_EXPLORE_TRIES)
		question_send(simulation, i);
	else if (!search->done_us)
		search->done_us = simulation->now_us;
}

void simulation_run(struct simulation *simulation, uint64_t us)
{
	struct simulation_event *event;
	uint64_t end_us = simulation->now_us + us;

	running = simulation;
	while (simulation->num_events && simulation->events[0]->at_us <= end_us) {
		event = event_pop(simulation);
		simulation->now_us = event->at_us;
		if (event->from == PASS)
			pass(simulation, event->to);
		else if (event->from != WAKE)
			datagram_take(simulation, event);
		else
			search_wake(simulation, event->port);
		free(event);
	}
	if (simulation->num_events)
		simulation->now_us = end_us;
}

void simulation_open(struct simulation *simulation, int num_nodes, int num_searches, uint32_t seed)
{
	memset(simulation, 0, sizeof(*simulation));
	simulation->seed = seed;
	simulation->now_us = 1000000;
	simulation->num_nodes = num_nodes;
	simulation->num_searches = num_searches;
	simulation->nodes = calloc((size_t)num_nodes, sizeof(*simulation->nodes));
	simulation->searches = calloc((size_t)num_searches, sizeof(*simulation->searches));
	for (int i = 0; i < num_nodes; i++) {
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
	for (int i = 0; i < simulation->num_searches; i++)
		mesh_explore_finish(&simulation->searches[i].explore);
	while (simulation->num_events)
		free(event_pop(simulation));
	free(simulation->events);
	free(simulation->nodes);
	free(simulation->searches);
}
