/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - the plugin's own thread: one epoll loop. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/threads.h"
#include "control/engine.h"

/* Events of one turn: more of them keep the lock for longer. */
#define EVENTS 32

/* ---- watches --------------------------------------------------------------------------------- */

int mesh_engine_watch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data = {.ptr = watch}};

	watch->events = events;
	return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) ? -errno : 0;
}

void mesh_engine_rewatch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data = {.ptr = watch}};

	if (watch->events == events)
		return; /* as after almost every frame */
	watch->events = events;
	epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
}

void mesh_engine_unwatch(struct mesh_engine *engine, struct mesh_watch *watch)
{
	if (watch->fd < 0)
		return;
	epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	/*
	 * A child process that was not made by fork() may hold a copy of the descriptor: then
	 * close() alone does not end the connection.
	 */
	shutdown(watch->fd, SHUT_RDWR);
	mesh_descriptor_close(watch->fd);
	watch->fd = -1;
}

/* Makes the thread return from epoll_wait(). */
static void engine_rouse(struct mesh_engine *engine)
{
	const uint64_t one = 1;

	/* A full counter also wakes the thread, so the result does not matter. */
	if (write(engine->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void mesh_engine_wake(struct mesh_engine *engine)
{
	mesh_engine_stay_awake(engine);
	engine_rouse(engine);
}

/* ---- timers ---------------------------------------------------------------------------------- */

/*
 * Merges two heaps; NULL: empty. The child that the later one goes to is chosen at random, so that
 * no path is long, whatever the order of the deadlines.
 */
static struct mesh_timer *timers_merge(struct mesh_timers *timers, struct mesh_timer *a,
				       struct mesh_timer *b)
{
	struct mesh_timer *first = a, *second = b, **child;

	if (!a || !b)
		return a ? a : b;
	if (b->due_ms < a->due_ms) {
		first = b;
		second = a;
	}
	timers->random = timers->random * 6364136223846793005u + 1; /* Knuth's MMIX */
	child = &first->children[timers->random >> 63];
	*child = timers_merge(timers, *child, second);
	(*child)->parent = first;
	return first;
}

static void timers_cancel(struct mesh_timers *timers, struct mesh_timer *timer)
{
	struct mesh_timer *rest, *parent = timer->parent;

	if (!timer->set)
		return;
	rest = timers_merge(timers, timer->children[0], timer->children[1]);
	if (rest)
		rest->parent = parent;
	if (parent)
		parent->children[parent->children[1] == timer] = rest;
	else
		timers->first = rest;
	timer->set = false;
	timer->parent = timer->children[0] = timer->children[1] = NULL;
}

static void timers_set(struct mesh_timers *timers, struct mesh_timer *timer, uint64_t due_ms)
{
	if (timer->set && timer->due_ms == due_ms)
		return;
	timers_cancel(timers, timer);
	timer->due_ms = due_ms;
	if (due_ms <= timers->running_ms && timer->run == timers->run)
		timer->due_ms = timers->running_ms + 1;
	timer->set = true;
	timers->first = timers_merge(timers, timers->first, timer);
}

void mesh_timers_run(struct mesh_timers *timers, uint64_t now_ms)
{
	struct mesh_timer *timer;

	timers->run++;
	timers->running_ms = now_ms;
	while ((timer = timers->first) && timer->due_ms <= now_ms) {
		timers_cancel(timers, timer);
		timer->run = timers->run;
		timer->expired(timer, now_ms);
	}
	timers->running_ms = 0;
}

void mesh_engine_timer_set(struct mesh_engine *engine, struct mesh_timer *timer, uint64_t due_ms)
{
	timers_set(&engine->timers, timer, due_ms);
	if (due_ms < engine->sleeps_until_ms) {
		engine->sleeps_until_ms = 0;
		engine_rouse(engine);
	}
}

void mesh_engine_timer_cancel(struct mesh_engine *engine, struct mesh_timer *timer)
{
	timers_cancel(&engine->timers, timer);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void wakes_drain(struct mesh_engine *engine)
{
	uint64_t count;

	if (read(engine->wake_fd, &count, sizeof(count)) < 0)
		return;
}

/* Milliseconds until the first timer or the owner's work is due; -1: never. */
static int engine_timeout(struct mesh_engine *engine)
{
	const struct mesh_timer *first = engine->timers.first;
	int timeout = engine->work->timeout(engine->owner);
	uint64_t now_ms, left_ms;

	engine->sleeps_until_ms = UINT64_MAX;
	if (!first)
		return timeout;
	now_ms = mesh_clock_ms();
	left_ms = mesh_clock_elapsed_ms(now_ms, first->due_ms);
	engine->sleeps_until_ms = now_ms + left_ms;
	if (timeout >= 0 && (uint64_t)timeout <= left_ms)
		return timeout;
	return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

static void events_handle(struct mesh_engine *engine, const struct epoll_event *events, int num)
{
	struct mesh_watch *watch;
	int i;

	for (i = 0; i < num; i++) {
		watch = events[i].data.ptr;
		if (!watch)
			wakes_drain(engine);
		else if (watch->fd >= 0) /* else it was removed a moment ago */
			watch->ready(watch, events[i].events);
	}
}

static void engine_turn(struct mesh_engine *engine)
{
	struct epoll_event events[EVENTS];
	int timeout, n;

	mesh_lock_take(engine->lock);
	timeout = engine_timeout(engine);
	mesh_lock_release(engine->lock);
	n = epoll_wait(engine->epoll_fd, events, EVENTS, timeout);
	if (!n && !timeout)
		sched_yield(); /* it polls without a pause: let others have the lock and the CPU */

	mesh_lock_take(engine->lock);
	engine->sleeps_until_ms = 0;
	events_handle(engine, events, n);
	engine->work->tick(engine->owner);
	mesh_timers_run(&engine->timers, mesh_clock_ms());
	mesh_lock_release(engine->lock);
}

static void *engine_main(void *arg)
{
	struct mesh_engine *engine = arg;

	while (atomic_load(&engine->runs))
		engine_turn(engine);
	return NULL;
}

static int engine_fail(int error, const char *what)
{
	mesh_warn("cannot %s: %s%s", what, strerror(-error), mesh_descriptors_hint());
	return error;
}

int mesh_engine_open(struct mesh_engine *engine, struct mesh_lock *lock,
		     const struct mesh_engine_work *work, void *owner)
{
	struct epoll_event wake = {.events = EPOLLIN, .data = {.ptr = NULL}};
	int error;

	engine->lock = lock;
	engine->work = work;
	engine->owner = owner;
	engine->timers = (struct mesh_timers){.first = NULL};
	engine->wake_fd = -1;
	engine->epoll_fd = mesh_descriptor_hide(epoll_create1(EPOLL_CLOEXEC));
	if (engine->epoll_fd >= 0)
		engine->wake_fd = mesh_descriptor_hide(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (engine->wake_fd >= 0 &&
	    !epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, engine->wake_fd, &wake))
		return 0;
	error = -errno;
	mesh_engine_close(engine);
	return engine_fail(error, "open an event queue");
}

int mesh_engine_start(struct mesh_engine *engine)
{
	int ret;

	atomic_store(&engine->runs, true);
	ret = mesh_thread_create(&engine->thread, "nccl-net-mesh", engine_main, engine);
	if (!ret)
		return 0;
	atomic_store(&engine->runs, false);
	return engine_fail(ret, "start the plugin's thread");
}

void mesh_engine_stop(struct mesh_engine *engine)
{
	if (!atomic_exchange(&engine->runs, false))
		return;
	mesh_engine_wake(engine);
	pthread_join(engine->thread, NULL);
}

void mesh_engine_close(struct mesh_engine *engine)
{
	mesh_descriptor_close(engine->epoll_fd);
	mesh_descriptor_close(engine->wake_fd);
	engine->epoll_fd = engine->wake_fd = -1;
}
