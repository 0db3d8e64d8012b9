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

/*
 * Between two polls while something depends on the provider, such as a greeting or a comm that
 * lingers; and between two looks while NCCL has polled a moment ago, or a change goes step by step.
 */
#define MESH_ENGINE_POLL_MS 1
#define MESH_ENGINE_LOOK_MS 20

/* A file descriptor and the function to call when it is ready. Embedded in its owner. */
struct mesh_watch {
	int fd;		 /* -1 while there is none */
	uint32_t events; /* that are watched for; only engine.c uses it */
	/*
	 * @events: EPOLLIN and so on; the engine's lock is held. Frees no owner of a watch: the
	 * engine may have more events at hand. That is the timers' work.
	 */
	void (*ready)(struct mesh_watch *watch, uint32_t events);
};

/* The deadline of one object. Embedded in its owner; zeros: not set. */
struct mesh_timer {
	uint64_t due_ms; /* of mesh_clock_ms() */
	/* Called once, when it is due; the timer is no longer set, and may be set again. */
	void (*expired)(struct mesh_timer *timer, uint64_t now_ms);
	bool set;
	uint64_t run; /* the last one that called it */
	struct mesh_timer *parent, *children[2];
};

/*
 * All deadlines, ordered: those that are due are found without a walk over all objects. A
 * randomized meldable heap: setting and cancelling need no memory and no search.
 */
struct mesh_timers {
	struct mesh_timer *first; /* the one that is due first; NULL: none is set */
	uint64_t run;		  /* times that the engine has looked for those that are due */
	uint64_t running_ms;	  /* during such a look: its time; else 0 */
	uint64_t random;
};

/* What the thread does for its owner. */
struct mesh_engine_work {
	/*
	 * Milliseconds until tick() is due, -1 for never: for what has no deadline. The engine's
	 * lock is held for both.
	 */
	int (*timeout)(void *owner);
	/* Called in each turn, after the events and before the timers. */
	void (*tick)(void *owner);
};

struct mesh_engine {
	struct mesh_lock *lock; /* the owner's; held during every callback */
	const struct mesh_engine_work *work;
	void *owner;
	int epoll_fd;
	int wake_fd; /* eventfd */
	struct mesh_timers timers;
	uint64_t sleeps_until_ms; /* while it may wait for events; 0: it will look at the timers */
	pthread_t thread;
	_Atomic(bool) runs; /* false: it ends, or was not started */
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

/** The thread polls the domains for a while. Any thread may call it. */
static inline void mesh_engine_stay_awake(struct mesh_engine *engine)
{
	atomic_store_explicit(&engine->awake, true, memory_order_relaxed);
}

/** Called by the threads that poll for NCCL; costs one load while the thread is awake. */
static inline void mesh_engine_busy(struct mesh_engine *engine)
{
	if (!atomic_load_explicit(&engine->awake, memory_order_relaxed))
		mesh_engine_wake(engine);
}

/**
 * Sets a deadline, at which the thread calls timer->expired with the engine's lock held, which the
 * caller holds as well.
 */
void mesh_engine_timer_set(struct mesh_engine *engine, struct mesh_timer *timer, uint64_t due_ms);
void mesh_engine_timer_cancel(struct mesh_engine *engine, struct mesh_timer *timer);

/**
 * Calls those that are due at @now_ms, the earliest first, also those that are set meanwhile; but
 * each only once: one that is set again is due a millisecond later at the earliest.
 */
void mesh_timers_run(struct mesh_timers *timers, uint64_t now_ms);

/** Starts to watch watch->fd for @events. Returns 0 or a negative errno. */
int mesh_engine_watch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events);

/** Changes the events that are watched for; 0 pauses the watch. */
void mesh_engine_rewatch(struct mesh_engine *engine, struct mesh_watch *watch, uint32_t events);

/** Removes the watch, shuts the connection down if it is one, and closes the descriptor. */
void mesh_engine_unwatch(struct mesh_engine *engine, struct mesh_watch *watch);

#endif
