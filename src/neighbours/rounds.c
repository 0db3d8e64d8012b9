/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.c - asks the neighbours in an engine. */
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "neighbours/rounds.h"

MESH_HOLDS(process)
static void socket_close(struct mesh_asking *asking, int i)
{
	struct mesh_rounds *rounds = mesh_container_of(asking, struct mesh_rounds, asking);

	mesh_engine_unwatch(rounds->engine, &rounds->watches[i]);
}

/* Watches sockets that are new, and sets the timer: after each step of asking. */
MESH_HOLDS(process)
static void asking_follow(struct mesh_rounds *rounds)
{
	struct mesh_watch *watch;
	int i;

	for (i = 0; i < MESH_ASKING_SOCKETS; i++) {
		watch = &rounds->watches[i];
		if (watch->fd >= 0 || rounds->asking.fds[i] < 0)
			continue;
		watch->fd = rounds->asking.fds[i];
		mesh_engine_watch(rounds->engine, watch, EPOLLIN);
	}
	if (rounds->asking.began_ms)
		mesh_engine_timer_set(rounds->engine, &rounds->timer, rounds->asking.due_ms);
	else
		mesh_engine_timer_cancel(rounds->engine, &rounds->timer);
}

MESH_HOLDS(process)
static void asking_due(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_rounds *rounds = mesh_container_of(timer, struct mesh_rounds, timer);

	mesh_asking_advance(&rounds->asking, now_ms);
	asking_follow(rounds);
	if (rounds->stepped)
		rounds->stepped(rounds, now_ms);
}

MESH_HOLDS(process)
static void answers_ready(struct mesh_rounds *rounds, int i)
{
	uint64_t now_ms = mesh_clock_ms();

	mesh_asking_take(&rounds->asking, rounds->asking.fds[i], now_ms);
	asking_follow(rounds);
	if (rounds->stepped)
		rounds->stepped(rounds, now_ms);
}

MESH_HOLDS(process)
static void ipv6_ready(struct mesh_watch *watch, uint32_t events)
{
	(void)events;
	answers_ready(mesh_container_of(watch, struct mesh_rounds, watches[0]), 0);
}

MESH_HOLDS(process)
static void ipv4_ready(struct mesh_watch *watch, uint32_t events)
{
	(void)events;
	answers_ready(mesh_container_of(watch, struct mesh_rounds, watches[1]), 1);
}

/* @ret: of the beginning */
MESH_HOLDS(process)
static void round_begun(struct mesh_rounds *rounds, int ret, uint64_t now_ms)
{
	if (ret)
		mesh_info("cannot ask the neighbours: %s", strerror(-ret));
	mesh_asking_advance(&rounds->asking, now_ms);
	asking_follow(rounds);
}

void mesh_rounds_ask(struct mesh_rounds *rounds)
{
	uint64_t now_ms = mesh_clock_ms();

	round_begun(rounds, mesh_asking_begin(&rounds->asking, now_ms), now_ms);
}

void mesh_rounds_seek(struct mesh_rounds *rounds, uint64_t node_id)
{
	uint64_t now_ms = mesh_clock_ms();

	round_begun(rounds, mesh_asking_seek(&rounds->asking, node_id, now_ms), now_ms);
}

void mesh_rounds_init(struct mesh_rounds *rounds, struct mesh_engine *engine,
		      const struct mesh_neighbour_self *self)
{
	memset(rounds, 0, sizeof(*rounds));
	rounds->engine = engine;
	mesh_asking_init(&rounds->asking, self);
	rounds->asking.close = socket_close;
	rounds->watches[0] = (struct mesh_watch){.fd = -1, .ready = ipv6_ready};
	rounds->watches[1] = (struct mesh_watch){.fd = -1, .ready = ipv4_ready};
	rounds->timer.expired = asking_due;
}

void mesh_rounds_finish(struct mesh_rounds *rounds)
{
	mesh_engine_timer_cancel(rounds->engine, &rounds->timer);
	mesh_asking_finish(&rounds->asking);
}
