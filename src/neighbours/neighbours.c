/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neighbours.c - this process among its neighbours, in an engine: one answer of this node to each
 * question, and its own questions.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "neighbours/neighbours.h"

/*
 * Datagrams taken: a second, and at once. 64 processes on each of 16 nodes of a switch that start
 * together send 1024 questions. The rest stays in the kernel, which drops it.
 */
#define TAKE_RATE 2000
#define TAKE_BURST 4096
/* In one call, which has the engine's lock. */
#define TAKE_MAX 64
/* Nodes that are named for each of our NICs; a switch may have many more. */
#define NAMED_MAX 3

/* ---- answers ------------------------------------------------------------------------------- */

/*
 * Our address on that NIC from which the sender is reached, or one of its family: then only a
 * datagram to @all gets there. Returns false if there is none.
 */
static bool own_address(const struct mesh_neighbour *about, const struct mesh_addr *from,
			struct mesh_addr *own, bool *all)
{
	struct mesh_addr addr;
	bool found = false;
	int i;

	for (i = 0; i < about->num_addrs; i++) {
		mesh_neighbour_addr_get(&about->addrs[i], &addr);
		if (addr.family != from->family ||
		    (addr.family == MESH_FAMILY_IPV6 && !mesh_addr_is_link_local(&addr)))
			continue;
		if (addr.family == MESH_FAMILY_IPV6 || mesh_addr_in_subnet(from, &addr)) {
			*own = addr;
			return true;
		}
		if (!found)
			*own = addr;
		found = true;
	}
	*all = true;
	return found;
}

/*
 * Sends from our NIC @link. IPv4 has no route to an address of another subnet: what is for one goes
 * to the group of all nodes of the link. Returns 0 or a negative errno.
 */
static int link_send(const struct mesh_answering *answering, const struct mesh_neighbour_link *link,
		     struct mesh_addr to, uint16_t port, const void *datagram, size_t size)
{
	int fd = answering->sockets[to.family == MESH_FAMILY_IPV6 ? 0 : 1].watch.fd;
	struct mesh_addr own;
	bool all = false;

	if (fd < 0 || !own_address(&link->about, &to, &own, &all))
		return -EADDRNOTAVAIL;
	if (all)
		to = mesh_datagram_group(to.family);
	return mesh_datagram_send(fd, link->ifindex, &own, &to, port, datagram, size);
}

MESH_HOLDS(process)
static void question_answer(struct mesh_answering *answering, const struct mesh_datagram *question,
			    const struct mesh_neighbour_link *link)
{
	struct mesh_neighbour answer = link->about;

	/* A question of another version gets an answer of ours: both have the names. */
	answer.token = question->about.token;
	answer.job = question->about.job;
	mesh_members_list(answering->members, &answer);
	mesh_neighbour_finish(&answer, MESH_NEIGHBOUR_ANSWER);
	if (!link_send(answering, link, question->from, question->port, &answer, answer.length))
		answering->answered++;
}

/* From our port, which the answer comes back to. */
MESH_HOLDS(process)
static void links_send(struct mesh_reporting *reporting, unsigned int ifindex,
		       const struct mesh_addr *addr, uint16_t port,
		       const struct mesh_links_head *links)
{
	const struct mesh_answering *answering =
		mesh_container_of(reporting, struct mesh_answering, reporting);
	struct mesh_neighbour_link link;
	struct mesh_addr group;

	if (!mesh_members_link(answering->members, ifindex, &link))
		return;
	group = mesh_datagram_group(link.ask_from.family);
	link_send(answering, &link, addr ? *addr : group, port, links, links->length);
}

/* True for what may be answered: never what comes from another node's port. */
static bool is_question(const struct mesh_datagram *datagram)
{
	if (datagram->from.family == MESH_FAMILY_IPV6 && !mesh_addr_is_link_local(&datagram->from))
		return false;
	if (datagram->is_links)
		return true;
	return datagram->port != MESH_NEIGHBOUR_PORT &&
	       (datagram->error || datagram->about.type == MESH_NEIGHBOUR_QUESTION);
}

MESH_HOLDS(process)
static void datagram_take(struct mesh_answering *answering, const struct mesh_datagram *datagram)
{
	struct mesh_neighbour_link link;

	if (!mesh_members_link(answering->members, datagram->ifindex, &link))
		return;
	if (datagram->is_links)
		mesh_reporting_take(&answering->reporting, datagram, mesh_clock_ms());
	else
		question_answer(answering, datagram, &link);
}

/* ---- pace ---------------------------------------------------------------------------------- */

static void credit_add(struct mesh_answering *answering, uint64_t now_ms)
{
	uint64_t earned = mesh_clock_elapsed_ms(answering->credit_ms, now_ms) * TAKE_RATE / 1000;

	answering->credit_ms = now_ms;
	answering->credit += earned;
	if (answering->credit > TAKE_BURST)
		answering->credit = TAKE_BURST;
}

MESH_HOLDS(process)
static void sockets_rewatch(struct mesh_answering *answering, uint32_t events)
{
	int i;

	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++) {
		if (answering->sockets[i].watch.fd >= 0)
			mesh_engine_rewatch(answering->engine, &answering->sockets[i].watch,
					    events);
	}
}

MESH_HOLDS(process)
static void pause_end(struct mesh_timer *timer, uint64_t now_ms)
{
	(void)now_ms;
	sockets_rewatch(mesh_container_of(timer, struct mesh_answering, timer), EPOLLIN);
}

MESH_HOLDS(process)
static void pause_begin(struct mesh_answering *answering, uint64_t now_ms)
{
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	if (mesh_log_limit_pass(&answering->floods, 1, now_ms, more))
		mesh_warn("more than %d datagrams a second arrive on UDP port %d, so some "
			  "neighbours' questions are not answered; connections are not "
			  "affected%s",
			  TAKE_RATE, MESH_NEIGHBOUR_PORT, more);
	sockets_rewatch(answering, 0);
	mesh_engine_timer_set(answering->engine, &answering->timer, now_ms + MESH_MEMBERS_PAUSE_MS);
}

MESH_HOLDS(process)
static void socket_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_answering_socket *socket =
		mesh_container_of(watch, struct mesh_answering_socket, watch);
	struct mesh_answering *answering = socket->answering;
	uint64_t now_ms = mesh_clock_ms();
	struct mesh_datagram datagram;
	int i, ret;

	(void)events;
	credit_add(answering, now_ms);
	for (i = 0; i < TAKE_MAX; i++) {
		if (!answering->credit) {
			pause_begin(answering, now_ms);
			return;
		}
		ret = mesh_datagram_receive(watch->fd, &datagram);
		if (ret == -EAGAIN)
			return;
		answering->credit--;
		if (!ret || !is_question(&datagram))
			answering->dropped++;
		else
			datagram_take(answering, &datagram);
	}
}

/* ---- sockets ------------------------------------------------------------------------------- */

/* Returns 0, also where the kernel has no such family. */
MESH_HOLDS(process)
static int socket_open(struct mesh_answering_socket *socket)
{
	int ret = mesh_datagram_watch(socket->answering->engine, &socket->watch, socket->family,
				      MESH_NEIGHBOUR_PORT);

	return ret == -EAFNOSUPPORT || ret == -EADDRNOTAVAIL ? 0 : ret;
}

static void answering_init(struct mesh_answering *answering, struct mesh_engine *engine,
			   const struct mesh_neighbour_self *self,
			   const struct mesh_members *members)
{
	int i;

	memset(answering, 0, sizeof(*answering));
	answering->engine = engine;
	answering->members = members;
	answering->timer.expired = pause_end;
	mesh_reporting_init(&answering->reporting, engine, self, members);
	answering->reporting.send = links_send;
	answering->credit = TAKE_BURST;
	answering->credit_ms = mesh_clock_ms();
	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++)
		answering->sockets[i] = (struct mesh_answering_socket){
			.watch = {.fd = -1, .ready = socket_ready},
			.answering = answering,
			.family = i ? MESH_FAMILY_IPV4 : MESH_FAMILY_IPV6,
		};
}

MESH_HOLDS(process)
static void answering_open(struct mesh_answering *answering)
{
	int i, ret;

	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++) {
		ret = socket_open(&answering->sockets[i]);
		if (ret)
			mesh_info("this node does not answer its neighbours over IPv%d: UDP port "
				  "%d: %s",
				  (int)answering->sockets[i].family, MESH_NEIGHBOUR_PORT,
				  strerror(-ret));
	}
}

MESH_HOLDS(process)
static void answering_close(struct mesh_answering *answering)
{
	int i;

	mesh_engine_timer_cancel(answering->engine, &answering->timer);
	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++)
		mesh_engine_unwatch(answering->engine, &answering->sockets[i].watch);
	mesh_reporting_finish(&answering->reporting);
}

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
	answering_open(&mesh_container_of(members, struct mesh_neighbours, members)->answering);
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
	answering_init(&neighbours->answering, engine, &neighbours->self, &neighbours->members);
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
	answering_close(&neighbours->answering);
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
