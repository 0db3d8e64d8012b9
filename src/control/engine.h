/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the plugin's own thread. It sleeps on file descriptors, does everything that must
 * move while NCCL's threads sleep (greeting peers, noticing dead ones, closing), and costs
 * nothing when there is nothing to do.
 */
#ifndef MESH_CONTROL_ENGINE_H
#define MESH_CONTROL_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

/* A file descriptor and who is called when it is ready. Embedded in its owner. */
struct mesh_watch {
	int fd; /* -1 while there is none */
	/* @events: EPOLLIN and so on; the engine's lock is held. May free its owner. */
	void (*ready)(struct mesh_watch *watch, uint32_t events);
};

/* What the thread does for its owner. */
struct mesh_engine_work {
	/* Milliseconds until tick() is due, -1 for never. The engine's lock is held for both. */
	int (*timeout)(void *owner);
	/* Whatever is due by now. Called after each event, and when the time is over. */
	void (*tick)(void *owner);
};

struct mesh_engine {
	struct mesh_lock *lock; /* the owner's, held while the thread does anything */
	const struct mesh_engine_work *work;
	void *owner;
	int epoll_fd;
	int wake_fd; /* eventfd */
	pthread_t thread;
	bool running;
	_Atomic(bool) stop;
	/*
	 * True while the thread looks at the domains from time to time, because NCCL's threads
	 * have been polling lately. They set it again with mesh_engine_busy().
	 */
	_Atomic(bool) awake;
};

/**
 * Makes what is watched with, so that watches can be added; starts the thread; both return 0 or a
 * negative errno after a WARN line. Without a thread, mesh_engine_close() undoes the first.
 */
int mesh_engine_open(struct mesh_engine *engine, struct mesh_lock *lock,
		     const struct mesh_engine_work *work, void *owner);
int mesh_engine_start(struct mesh_engine *engine);

/** Ends the thread, if there is one, and waits for it. The engine's lock must not be held. */
void mesh_engine_stop(struct mesh_engine *engine);

/** Ends the rest; watches may still be taken out afterwards. The thread must not run. */
void mesh_engine_close(struct mesh_engine *engine);

/** Lets the thread look at everything soon. Any thread, any lock. */
void mesh_engine_wake(struct mesh_engine *engine);

/** Called by whoever polls for NCCL: costs one load while the thread is awake. */
static inline void mesh_engine_busy(struct mesh_engine *engine)
{
	if (!atomic_load_explicit(&engine->awake, memory_order_relaxed))
		mesh_engine_wake(engine);
}

/** Starts to watch watch->fd for @events. Returns 0 or a negative errno. */
int mesh_engine_watch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events);

/** Changes what is watched for; 0 pauses. */
void mesh_engine_rewatch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events);

/** Stops watching, ends the connection if it is one, and closes the file descriptor. */
void mesh_engine_unwatch(struct mesh_engine *engine, struct mesh_watch *watch);

#endif
