/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer.h - deadlines of many objects, ordered: the engine finds those that are due without a walk
 * over all objects. A pairing heap: setting and cancelling need no memory and no search.
 */
#ifndef MESH_CONTROL_TIMER_H
#define MESH_CONTROL_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/* The deadline of one object. Embedded in its owner; zeros: not set. */
struct mesh_timer {
	uint64_t due_ms; /* of mesh_clock_ms() */
	/* Called once, when it is due; the timer is no longer set, and may be set again. */
	void (*expired)(struct mesh_timer *timer, uint64_t now_ms);
	bool set;
	uint64_t run;			 /* the last one that called it */
	struct mesh_timer *child, *next; /* its first child, its next sibling */
	struct mesh_timer *previous;	 /* its previous sibling, or its parent; NULL: the first */
};

/* All deadlines of one owner; zeros: none. The owner's lock protects it. */
struct mesh_timers {
	struct mesh_timer *first; /* the one that is due first; NULL: none is set */
	uint64_t run;		  /* calls of mesh_timers_run() so far */
	uint64_t running_ms;	  /* during such a call: its time; else 0 */
};

/** Sets the deadline, also if it is set already. */
void mesh_timers_set(struct mesh_timers *timers, struct mesh_timer *timer, uint64_t due_ms);

/** Cancels the deadline if it is set. */
void mesh_timers_cancel(struct mesh_timers *timers, struct mesh_timer *timer);

/**
 * Calls those that are due at @now_ms, the earliest first, also those that are set meanwhile; but
 * each only once: one that is set again is due a millisecond later at the earliest.
 */
void mesh_timers_run(struct mesh_timers *timers, uint64_t now_ms);

#endif
