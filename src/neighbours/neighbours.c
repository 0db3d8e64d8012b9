/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - this process among its neighbours, in an engine. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "neighbours/neighbours.h"

/* ---- asking -------------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void socket_close(struct mesh_asking *asking, int i)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(asking, struct mesh_neighbours, asking);

	mesh_engine_unwatch(neighbours->engine, &neighbours->watches[i]);
}

/* Watches sockets that are new, and sets the timer: after each step of asking. */
MESH_HOLDS(process)
static void asking_follow(struct mesh_neighbours *neighbours)
{
	struct mesh_watch *watch;
	int i;

	for (i = 0; i < MESH_ASKING_SOCKETS; i++) {
		watch = &neighbours->watches[i];
		if (watch->fd >= 0 || neighbours->asking.fds[i] < 0)
			continue;
		watch->fd = neighbours->asking.fds[i];
		mesh_engine_watch(neighbours->engine, watch, EPOLLIN);
	}
	if (neighbours->asking.began_ms)
		mesh_engine_timer_set(neighbours->engine, &neighbours->timer,
				      neighbours->asking.due_ms);
	else
		mesh_engine_timer_cancel(neighbours->engine, &neighbours->timer);
}

MESH_HOLDS(process)
static void asking_due(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(timer, struct mesh_neighbours, timer);

	mesh_asking_advance(&neighbours->asking, now_ms);
	asking_follow(neighbours);
}

MESH_HOLDS(process)
static void answers_ready(struct mesh_neighbours *neighbours, int i)
{
	mesh_asking_take(&neighbours->asking, neighbours->asking.fds[i], mesh_clock_ms());
	asking_follow(neighbours);
}

MESH_HOLDS(process)
static void ipv6_ready(struct mesh_watch *watch, uint32_t events)
{
	(void)events;
	answers_ready(mesh_container_of(watch, struct mesh_neighbours, watches[0]), 0);
}

MESH_HOLDS(process)
static void ipv4_ready(struct mesh_watch *watch, uint32_t events)
{
	(void)events;
	answers_ready(mesh_container_of(watch, struct mesh_neighbours, watches[1]), 1);
}

void mesh_neighbours_ask(struct mesh_neighbours *neighbours)
{
	uint64_t now_ms = mesh_clock_ms();
	int ret = mesh_asking_begin(&neighbours->asking, now_ms);

	if (ret)
		mesh_info("cannot ask the neighbours: %s", strerror(-ret));
	mesh_asking_advance(&neighbours->asking, now_ms);
	asking_follow(neighbours);
}

/* ---- opening and closing ------------------------------------------------------------------- */

MESH_HOLDS(process)
static void speak(struct mesh_members *members)
{
	struct mesh_neighbours *neighbours =
		mesh_container_of(members, struct mesh_neighbours, members);

	mesh_answering_open(&neighbours->answering);
}

struct mesh_neighbours *mesh_neighbours_open(struct mesh_engine *engine,
					     const struct mesh_neighbour_self *self)
{
	struct mesh_neighbours *neighbours = calloc(1, sizeof(*neighbours));

	if (!neighbours)
		return NULL;
	neighbours->engine = engine;
	neighbours->self = *self;
	mesh_asking_init(&neighbours->asking, &neighbours->self);
	neighbours->asking.close = socket_close;
	neighbours->watches[0] = (struct mesh_watch){.fd = -1, .ready = ipv6_ready};
	neighbours->watches[1] = (struct mesh_watch){.fd = -1, .ready = ipv4_ready};
	neighbours->timer.expired = asking_due;
	mesh_answering_init(&neighbours->answering, engine, &neighbours->members);
	mesh_members_open(&neighbours->members, engine, &neighbours->self, speak);
	return neighbours;
}

void mesh_neighbours_close(struct mesh_neighbours *neighbours)
{
	if (!neighbours)
		return;
	/* The port first: the next speaker opens it when it sees that this one has ended. */
	mesh_answering_close(&neighbours->answering);
	mesh_members_close(&neighbours->members);
	mesh_engine_timer_cancel(neighbours->engine, &neighbours->timer);
	mesh_asking_finish(&neighbours->asking);
	free(neighbours);
}

void mesh_neighbours_links_set(struct mesh_neighbours *neighbours,
			       const struct mesh_neighbour_link *links, int num_links, bool ask)
{
	bool changed = mesh_asking_links_set(&neighbours->asking, links, num_links);

	if (!changed)
		return;
	mesh_members_links_set(&neighbours->members, neighbours->asking.links, num_links);
	if (ask)
		mesh_neighbours_ask(neighbours);
}

const struct mesh_asked *mesh_neighbours_asked(const struct mesh_neighbours *neighbours,
					       int *num_asked)
{
	*num_asked = neighbours->asking.num_links;
	return neighbours->asking.asked;
}

bool mesh_neighbours_wait(const struct mesh_neighbours *neighbours, uint64_t now_ms)
{
	return mesh_asking_waits(&neighbours->asking, now_ms);
}
