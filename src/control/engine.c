/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - the plugin's own thread: one epoll loop. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/log.h"
#include "base/private_descriptor.h"
#include "control/engine.h"

int mesh_engine_watch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data = {.ptr = watch}};

	return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) ? -errno : 0;
}

void mesh_engine_rewatch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data = {.ptr = watch}};

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

void mesh_engine_wake(struct mesh_engine *engine)
{
	const uint64_t one = 1;

	atomic_store_explicit(&engine->awake, true, memory_order_relaxed);
	/* A full counter also wakes the thread, so the result does not matter. */
	if (write(engine->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void wakes_drain(struct mesh_engine *engine)
{
	uint64_t count;

	if (read(engine->wake_fd, &count, sizeof(count)) < 0)
		return;
}

/*
 * Handles one event at a time: the handler may free the owners of other watches, to which further
 * events of the same batch would still point.
 */
static void engine_turn(struct mesh_engine *engine)
{
	struct mesh_watch *watch;
	struct epoll_event event;
	int timeout, n;

	mesh_lock_take(engine->lock);
	timeout = engine->work->timeout(engine->owner);
	mesh_lock_release(engine->lock);
	n = epoll_wait(engine->epoll_fd, &event, 1, timeout);
	if (!n && !timeout)
		sched_yield(); /* it polls without a pause: let others have the lock and the CPU */

	mesh_lock_take(engine->lock);
	if (n == 1 && event.data.ptr) {
		watch = event.data.ptr;
		watch->ready(watch, event.events);
	} else if (n == 1) {
		wakes_drain(engine);
	}
	engine->work->tick(engine->owner);
	mesh_lock_release(engine->lock);
}

static void *engine_main(void *arg)
{
	struct mesh_engine *engine = arg;

	while (!atomic_load(&engine->stop))
		engine_turn(engine);
	return NULL;
}

/* Blocks all signals: the host's handlers must run in the host's own threads. */
static int thread_start(struct mesh_engine *engine)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(&engine->thread, NULL, engine_main, engine);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pthread_setname_np(engine->thread, "nccl-net-mesh");
	return ret;
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
	atomic_store(&engine->stop, false);
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
	int ret = thread_start(engine);

	if (ret)
		return engine_fail(ret, "start the plugin's thread");
	engine->running = true;
	return 0;
}

void mesh_engine_stop(struct mesh_engine *engine)
{
	if (!engine->running)
		return;
	atomic_store(&engine->stop, true);
	mesh_engine_wake(engine);
	pthread_join(engine->thread, NULL);
	engine->running = false;
}

void mesh_engine_close(struct mesh_engine *engine)
{
	mesh_descriptor_close(engine->epoll_fd);
	mesh_descriptor_close(engine->wake_fd);
	engine->epoll_fd = engine->wake_fd = -1;
}
