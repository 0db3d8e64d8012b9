/* SPDX-License-Identifier: Apache-2.0 */
/* answering.c - one answer of this node to each question. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "neighbours/answering.h"
#include "neighbours/datagram.h"

/*
 * Datagrams taken: a second, and at once. 64 processes on each of 16 nodes of a switch that start
 * together send 1024 questions. The rest stays in the kernel, which drops it.
 */
#define TAKE_PER_S 2000
#define TAKE_BURST 4096
/* In one call, which has the engine's lock. */
#define TAKE_MAX 64
#define PAUSE_MS 100
/* Another program may have the port. */
#define TRY_AGAIN_MS 50
#define TRIES_MAX 10

/* ---- answers ------------------------------------------------------------------------------- */

/* Our address on that NIC from which the sender is reached, or NULL. */
static const struct mesh_neighbour_addr *own_address(const struct mesh_neighbour *about,
						     enum mesh_family family,
						     const struct mesh_addr *from, bool *reaches)
{
	const struct mesh_neighbour_addr *found = NULL;
	struct mesh_addr own;
	int i;

	*reaches = false;
	for (i = 0; i < about->num_addrs && !*reaches; i++) {
		if (about->addrs[i].family != (uint8_t)family)
			continue;
		mesh_neighbour_addr_get(&about->addrs[i], &own);
		if (family == MESH_FAMILY_IPV6 && !mesh_addr_is_link_local(&own))
			continue;
		*reaches = family == MESH_FAMILY_IPV6 || mesh_addr_in_subnet(from, &own);
		if (!found || *reaches)
			found = &about->addrs[i];
	}
	return found;
}

/* An open socket that sends on this NIC, or NULL. */
static const struct mesh_answering_socket *socket_for(const struct mesh_answering *answering,
						      enum mesh_family family, unsigned int ifindex)
{
	const struct mesh_answering_socket *socket = answering->sockets;

	for (; socket < answering->sockets + answering->num_sockets; socket++) {
		if (socket->family == family && socket->watch.fd >= 0 &&
		    (!socket->ifindex || socket->ifindex == ifindex))
			return socket;
	}
	return NULL;
}

MESH_HOLDS(process)
static void question_answer(struct mesh_answering *answering, const struct mesh_datagram *question)
{
	const struct mesh_answering_socket *socket =
		socket_for(answering, question->from.family, question->ifindex);
	const struct mesh_neighbour_link *link =
		mesh_members_link(answering->members, question->ifindex);
	const struct mesh_neighbour_addr *entry;
	struct mesh_neighbour answer;
	struct mesh_addr own, to;
	bool reaches;

	if (!link || !socket)
		return; /* a NIC that is none of the mesh */
	entry = own_address(&link->about, socket->family, &question->from, &reaches);
	if (!entry)
		return;
	answer = link->about;
	if (mesh_members_drained(answering->members, question->ifindex))
		answer.flags |= MESH_NEIGHBOUR_DRAINED;
	/* A question of another version gets an answer of ours: both have the names. */
	answer.token = question->about.token;
	answer.job = question->about.job;
	mesh_members_list(answering->members, &answer);
	mesh_neighbour_finish(&answer, MESH_NEIGHBOUR_ANSWER);
	mesh_neighbour_addr_get(entry, &own);
	/* IPv4 has no route to an address of another subnet: all nodes of the link get it. */
	to = reaches ? question->from : mesh_datagram_group(socket->family);
	if (!mesh_datagram_send(socket->watch.fd, question->ifindex, &own, &to, question->port,
				&answer))
		answering->answered++;
}

/* From our port, which the answer comes back to. */
MESH_HOLDS(process)
static void links_send(struct mesh_reporting *reporting, unsigned int ifindex, bool all,
		       const struct mesh_addr *to, uint16_t port,
		       const struct mesh_links_head *links)
{
	struct mesh_answering *answering =
		mesh_container_of(reporting, struct mesh_answering, reporting);
	const struct mesh_neighbour_link *link = mesh_members_link(answering->members, ifindex);
	const struct mesh_answering_socket *socket = socket_for(answering, to->family, ifindex);
	const struct mesh_neighbour_addr *entry;
	struct mesh_addr own, group = mesh_datagram_group(to->family);
	bool reaches;

	entry = link ? own_address(&link->about, to->family, to, &reaches) : NULL;
	if (!entry || !socket)
		return;
	mesh_neighbour_addr_get(entry, &own);
	mesh_datagram_links_send(socket->watch.fd, ifindex, &own, reaches && !all ? to : &group,
				 port, links);
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

void mesh_answering_take(struct mesh_answering *answering, const struct mesh_datagram *question)
{
	if (!question->is_links)
		question_answer(answering, question);
	else if (mesh_members_link(answering->members, question->ifindex))
		mesh_reporting_take(&answering->reporting, question, mesh_clock_ms());
}

/* ---- pace ---------------------------------------------------------------------------------- */

static void credit_add(struct mesh_answering *answering, uint64_t now_ms)
{
	uint64_t earned = mesh_clock_elapsed_ms(answering->credit_ms, now_ms) * TAKE_PER_S / 1000;

	answering->credit_ms = now_ms;
	answering->credit += earned;
	if (answering->credit > TAKE_BURST)
		answering->credit = TAKE_BURST;
}

MESH_HOLDS(process)
static void pause_begin(struct mesh_answering *answering, uint64_t now_ms)
{
	char more[MESH_LOG_LIMIT_TEXT_MAX];
	int i;

	if (mesh_log_limit_pass(&answering->floods, 1, now_ms, more))
		mesh_warn("more than %d datagrams a second arrive on UDP port %d, so some "
			  "neighbours' questions are not answered; connections are not affected%s",
			  TAKE_PER_S, MESH_NEIGHBOUR_PORT, more);
	answering->paused = true;
	for (i = 0; i < answering->num_sockets; i++) {
		if (answering->sockets[i].watch.fd >= 0)
			mesh_engine_rewatch(answering->engine, &answering->sockets[i].watch, 0);
	}
	mesh_engine_timer_set(answering->engine, &answering->timer, now_ms + PAUSE_MS);
}

MESH_HOLDS(process)
static void pause_end(struct mesh_answering *answering)
{
	int i;

	answering->paused = false;
	for (i = 0; i < answering->num_sockets; i++) {
		if (answering->sockets[i].watch.fd >= 0)
			mesh_engine_rewatch(answering->engine, &answering->sockets[i].watch,
					    EPOLLIN);
	}
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
		else if (!answering->keep || !answering->keep(answering, &datagram))
			mesh_answering_take(answering, &datagram);
	}
}

/* ---- sockets ------------------------------------------------------------------------------- */

/* Returns 0, also where the kernel has no such family. */
MESH_HOLDS(process)
static int socket_open(struct mesh_answering_socket *socket)
{
	int fd, ret;

	if (socket->watch.fd >= 0)
		return 0;
	if (socket->answering->scope == MESH_ANSWERING_ALL)
		fd = mesh_datagram_open(socket->family, MESH_NEIGHBOUR_PORT);
	else
		fd = mesh_datagram_group_open(socket->family, socket->ifindex, MESH_NEIGHBOUR_PORT);
	if (fd < 0)
		return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL || fd == -ENODEV ? 0 : fd;
	socket->watch.fd = fd;
	ret = mesh_engine_watch(socket->answering->engine, &socket->watch, EPOLLIN);
	if (ret)
		mesh_engine_unwatch(socket->answering->engine, &socket->watch);
	return ret;
}

MESH_HOLDS(process)
static void sockets_open(struct mesh_answering *answering)
{
	int i, ret = 0;

	for (i = 0; i < answering->num_sockets && !ret; i++)
		ret = socket_open(&answering->sockets[i]);
	if (!ret)
		return;
	if (++answering->tries < TRIES_MAX)
		mesh_engine_timer_set(answering->engine, &answering->timer,
				      mesh_clock_ms() + TRY_AGAIN_MS);
	else if (answering->scope == MESH_ANSWERING_ALL)
		mesh_info("this node does not answer its neighbours: UDP port %d: %s",
			  MESH_NEIGHBOUR_PORT, strerror(-ret));
}

MESH_HOLDS(process)
static void timer_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_answering *answering = mesh_container_of(timer, struct mesh_answering, timer);

	(void)now_ms;
	if (answering->paused)
		pause_end(answering);
	else
		sockets_open(answering);
}

void mesh_answering_init(struct mesh_answering *answering, struct mesh_engine *engine,
			 const struct mesh_neighbour_self *self, const struct mesh_members *members)
{
	int i;

	memset(answering, 0, sizeof(*answering));
	answering->engine = engine;
	answering->members = members;
	answering->timer.expired = timer_expired;
	mesh_reporting_init(&answering->reporting, engine, self, members);
	answering->reporting.send = links_send;
	answering->credit = TAKE_BURST;
	answering->credit_ms = mesh_clock_ms();
	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++)
		answering->sockets[i] = (struct mesh_answering_socket){
			.watch = {.fd = -1, .ready = socket_ready},
			.answering = answering,
		};
}

static void socket_add(struct mesh_answering *answering, enum mesh_family family,
		       unsigned int ifindex)
{
	struct mesh_answering_socket *socket = &answering->sockets[answering->num_sockets++];

	socket->family = family;
	socket->ifindex = ifindex;
}

MESH_HOLDS(process)
static void sockets_close(struct mesh_answering *answering)
{
	int i;

	mesh_engine_timer_cancel(answering->engine, &answering->timer);
	for (i = 0; i < answering->num_sockets; i++)
		mesh_engine_unwatch(answering->engine, &answering->sockets[i].watch);
	answering->num_sockets = 0;
	answering->paused = false;
}

void mesh_answering_open(struct mesh_answering *answering, enum mesh_answering_scope scope)
{
	const struct mesh_members *members = answering->members;
	int i;

	sockets_close(answering);
	answering->scope = scope;
	answering->tries = 0;
	socket_add(answering, MESH_FAMILY_IPV4, 0);
	if (scope == MESH_ANSWERING_ALL)
		socket_add(answering, MESH_FAMILY_IPV6, 0);
	for (i = 0; scope == MESH_ANSWERING_GROUP && i < members->num_links; i++) {
		if (members->links[i].ask_from.family == MESH_FAMILY_IPV6)
			socket_add(answering, MESH_FAMILY_IPV6, members->links[i].ifindex);
	}
	sockets_open(answering);
}

void mesh_answering_close(struct mesh_answering *answering)
{
	sockets_close(answering);
	mesh_reporting_finish(&answering->reporting);
}
