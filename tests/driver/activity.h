/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activity.h - what the threads that call the plugin are doing, for the thread that watches them,
 * and the word from that thread that they must stop.
 */
#ifndef DRIVER_ACTIVITY_H
#define DRIVER_ACTIVITY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACTIVITY_STEP_MAX 400
#define ACTIVITY_DETAILS_MAX 1400

/* NCCL's two proxy threads. */
enum activity_thread {
	ACTIVITY_SERVICE,  /* set-up and teardown */
	ACTIVITY_PROGRESS, /* isend, irecv, test */
	ACTIVITY_THREADS
};

struct activity_call {
	_Atomic(const char *) name; /* the plugin's function that was entered; NULL outside */
	atomic_ulong count;	    /* calls so far */
};

struct activity {
	atomic_bool busy;      /* false: waiting for rank 0, which may take any time */
	atomic_ulong progress; /* grows with everything that gets done */
	atomic_bool stop;      /* leave now, as NCCL does on an abort */
	struct activity_call calls[ACTIVITY_THREADS];
	pthread_mutex_t lock; /* covers the text below */
	char step[ACTIVITY_STEP_MAX];
	char details[ACTIVITY_DETAILS_MAX];
};

void activity_init(struct activity *activity);

void activity_destroy(struct activity *activity);

/** Says which of the two threads the calling one is. */
void activity_thread_is(enum activity_thread thread);

/** Says in words what is being done from now on; counts as progress. */
void activity_step(struct activity *activity, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Adds words about how far it has come, when asked to stop. */
void activity_details(struct activity *activity, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Something got done. */
static inline void activity_progress(struct activity *activity)
{
	atomic_fetch_add_explicit(&activity->progress, 1, memory_order_relaxed);
}

static inline bool activity_stopped(const struct activity *activity)
{
	return atomic_load_explicit(&activity->stop, memory_order_relaxed);
}

/** Around each call of the plugin. */
void activity_enter(struct activity *activity, const char *name);
void activity_leave(struct activity *activity);

/* What a watcher saw at its last look. */
struct activity_watch {
	unsigned long progress, counts[ACTIVITY_THREADS];
	uint64_t progress_ns, call_ns[ACTIVITY_THREADS]; /* when that changed last */
	uint64_t look_ns;				 /* when it looked last */
};

/** Starts to watch. */
void activity_watch_init(struct activity_watch *watch, struct activity *activity);

/** Looks now; returns for how many ns nothing got done, 0 while it is not busy. */
uint64_t activity_watch_look(struct activity_watch *watch, struct activity *activity);

/** Name of the plugin's function that has not returned for @ns, or NULL. */
const char *activity_watch_stuck(const struct activity_watch *watch,
				 const struct activity *activity, uint64_t ns);

/** True once activity_details() was called. */
bool activity_has_details(struct activity *activity);

/** Copies the details, or the step if there are none, as a text of at most @size bytes. */
void activity_describe(struct activity *activity, char *text, size_t size);

#endif
