/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the plugin's own thread. It waits on file descriptors and does the work that must go
 * on while NCCL's threads sleep: greeting peers, detecting dead ones, closing. It uses no CPU while
 * there is nothing to do.
 */
#ifndef MESH_CONTROL_ENGINE_H
#define MESH_CONTROL_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

/* A file descriptor and the function to call when it is ready. Embedded in its owner. */
struct mesh_watch {
	int fd; /* -1 while there is none */
	/* @events: EPOLLIN and so on; the engine's lock is held. May free its owner. */
	void (*ready)(struct mesh_watch *watch, uint32_t events);
};

/* What the thread does for its owner. */
struct mesh_engine_work {
	/* Milliseconds until tick() is due, -1 for never. The engine's lock is held for both. */
	int (*timeout)(void *owner);
	/* Does the work that is due. Called after each event and after each timeout. */
	void (*tick)(void *owner);
};

struct mesh_engine {
	struct mesh_lock *lock; /* the owner's; held during every callback */
	const struct mesh_engine_work *work;
	void *owner;
	int epoll_fd;
	int wake_fd; /* eventfd */
	pthread_t thread;
	bool running;
	_Atomic(bool) stop;
	/*
	 * True while the thread polls the domains periodically, because NCCL's threads have polled
	 * recently. They set it again with mesh_engine_busy().
	 */
	_Atomic(bool) awake;
};

/**
 * mesh_engine_open() opens the event queue, so that watches can be added; mesh_engine_start()
 * starts the thread. Both return 0, or a negative errno after a WARN line. If the thread does not
 * start, mesh_engine_close() undoes mesh_engine_open().
 */
int mesh_engine_open(struct mesh_engine *engine, struct mesh_lock *lock,
		     const struct mesh_engine_work *work, void *owner);
int mesh_engine_start(struct mesh_engine *engine);

/** Ends the thread, if there is one, and waits for it. The engine's lock must not be held. */
void mesh_engine_stop(struct mesh_engine *engine);

/** Closes the event queue; watches may still be removed afterwards. The thread must not run. */
void mesh_engine_close(struct mesh_engine *engine);

/** Makes the thread run a tick soon. Any thread may call it, with any lock held. */
void mesh_engine_wake(struct mesh_engine *engine);

/** Called by the threads that poll for NCCL; costs one load while the thread is awake. */
static inline void mesh_engine_busy(struct mesh_engine *engine)
{
	if (!atomic_load_explicit(&engine->awake, memory_order_relaxed))
		mesh_engine_wake(engine);
}

/** Starts to watch watch->fd for @events. Returns 0 or a negative errno. */
int mesh_engine_watch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events);

/** Changes the events that are watched for; 0 pauses the watch. */
void mesh_engine_rewatch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events);

/** Removes the watch, shuts the connection down if it is one, and closes the descriptor. */
void mesh_engine_unwatch(struct mesh_engine *engine, struct mesh_watch *watch);

#endif
