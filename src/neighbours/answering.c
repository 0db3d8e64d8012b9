/* SPDX-License-Identifier: Apache-2.0 */
/* answering.c - the speaker's sockets: one answer of this node to each question. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/container.h"
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
/* While the speaker before this one ends, its port is taken. */
#define TRY_AGAIN_MS 50
#define TRIES_MAX 10

static const enum mesh_family families[MESH_ANSWERING_SOCKETS] = {MESH_FAMILY_IPV6,
								  MESH_FAMILY_IPV4};

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

MESH_HOLDS(process)
static void question_answer(struct mesh_answering_socket *socket,
			    const struct mesh_datagram *question)
{
	struct mesh_answering *answering = socket->answering;
	const struct mesh_neighbour_link *link =
		mesh_members_link(answering->members, question->ifindex);
	const struct mesh_neighbour_addr *entry;
	struct mesh_neighbour answer;
	struct mesh_addr own, to;
	bool reaches;

	if (!link)
		return; /* a NIC that is none of the mesh */
	entry = own_address(&link->about, socket->family, &question->from, &reaches);
	if (!entry)
		return;
	answer = link->about;
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

/* True for what may be answered: never what comes from another speaker's port. */
static bool is_question(const struct mesh_datagram *datagram)
{
	if (datagram->port == MESH_NEIGHBOUR_PORT)
		return false;
	if (datagram->from.family == MESH_FAMILY_IPV6 && !mesh_addr_is_link_local(&datagram->from))
		return false;
	return datagram->error || datagram->about.type == MESH_NEIGHBOUR_QUESTION;
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
	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++) {
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
	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++) {
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
		if (ret && is_question(&datagram))
			question_answer(socket, &datagram);
		else
			answering->dropped++;
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
	fd = mesh_datagram_open(socket->family, MESH_NEIGHBOUR_PORT);
	if (fd < 0)
		return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ? 0 : fd;
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

	for (i = 0; i < MESH_ANSWERING_SOCKETS && !ret; i++)
		ret = socket_open(&answering->sockets[i]);
	if (!ret)
		return;
	if (++answering->tries < TRIES_MAX)
		mesh_engine_timer_set(answering->engine, &answering->timer,
				      mesh_clock_ms() + TRY_AGAIN_MS);
	else
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
			 const struct mesh_members *members)
{
	int i;

	memset(answering, 0, sizeof(*answering));
	answering->engine = engine;
	answering->members = members;
	answering->timer.expired = timer_expired;
	answering->credit = TAKE_BURST;
	answering->credit_ms = mesh_clock_ms();
	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++)
		answering->sockets[i] = (struct mesh_answering_socket){
			.watch = {.fd = -1, .ready = socket_ready},
			.answering = answering,
			.family = families[i],
		};
}

void mesh_answering_open(struct mesh_answering *answering)
{
	answering->tries = 0;
	sockets_open(answering);
}

void mesh_answering_close(struct mesh_answering *answering)
{
	int i;

	mesh_engine_timer_cancel(answering->engine, &answering->timer);
	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++)
		mesh_engine_unwatch(answering->engine, &answering->sockets[i].watch);
}
