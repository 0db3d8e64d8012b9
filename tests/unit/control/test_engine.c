/* SPDX-License-Identifier: Apache-2.0 */
/* test_engine.c - which events the plugin's own thread watches for. */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/lock.h"
#include "control/engine.h"

#include "unit.h"

static int calls; /* of epoll_ctl() */

int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	calls++;
	return __real_epoll_ctl(epoll, operation, fd, event);
}

static void nothing(void *owner)
{
}

static int never(void *owner)
{
	return -1;
}

static void unexpected(struct mesh_watch *watch, uint32_t events)
{
	fail();
}

/* What epoll finds now. */
static uint32_t found(const struct mesh_engine *engine)
{
	struct epoll_event event;

	return epoll_wait(engine->epoll_fd, &event, 1, 0) == 1 ? event.events : 0;
}

/* A watch follows each change of its events, and costs no system call without one. */
TEST(rewatch)
{
	const struct mesh_engine_work work = {.timeout = never, .tick = nothing};
	struct mesh_watch watch = {.ready = unexpected};
	struct mesh_engine engine = {.epoll_fd = -1};
	struct mesh_lock lock;
	int ends[2], i;

	mesh_lock_init(&lock);
	assert_int_equal(mesh_engine_open(&engine, &lock, &work, NULL), 0);
	for (i = 0; i < 2; i++) { /* a watch may get another descriptor */
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		watch.fd = ends[0];
		assert_int_equal(mesh_engine_watch(&engine, &watch, EPOLLIN), 0);
		calls = 0;
		mesh_engine_rewatch(&engine, &watch, EPOLLIN);
		assert_int_equal(calls, 0);
		assert_int_equal(found(&engine), 0);
		mesh_engine_rewatch(&engine, &watch, EPOLLIN | EPOLLOUT);
		assert_int_equal(calls, 1);
		assert_int_equal(found(&engine), EPOLLOUT);
		mesh_engine_rewatch(&engine, &watch, EPOLLIN);
		assert_int_equal(found(&engine), 0);
		assert_int_equal(send(ends[1], "", 1, 0), 1);
		assert_int_equal(found(&engine), EPOLLIN);
		mesh_engine_rewatch(&engine, &watch, 0);
		assert_int_equal(found(&engine), 0);
		mesh_engine_rewatch(&engine, &watch, EPOLLIN | EPOLLOUT);
		assert_int_equal(found(&engine), EPOLLIN | EPOLLOUT);
		mesh_engine_unwatch(&engine, &watch);
		close(ends[1]);
	}
	mesh_engine_close(&engine);
	mesh_lock_destroy(&lock);
}
