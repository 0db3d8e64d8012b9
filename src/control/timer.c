/* SPDX-License-Identifier: Apache-2.0 */
/* timer.c - deadlines of many objects, in a pairing heap. */
#include <stddef.h>

#include "control/timer.h"

/* Makes the later one the first child of the other. Both have no siblings; NULL: there is none. */
static struct mesh_timer *merge(struct mesh_timer *a, struct mesh_timer *b)
{
	struct mesh_timer *first = a, *second = b;

	if (!a || !b)
		return a ? a : b;
	if (b->due_ms < a->due_ms) {
		first = b;
		second = a;
	}
	second->previous = first;
	second->next = first->child;
	if (first->child)
		first->child->previous = second;
	first->child = second;
	return first;
}

static struct mesh_timer *alone(struct mesh_timer *timer)
{
	if (timer)
		timer->next = timer->previous = NULL;
	return timer;
}

/* Merges siblings: pairs from the left, then the pairs from the right. */
static struct mesh_timer *siblings_merge(struct mesh_timer *timer)
{
	struct mesh_timer *pairs = NULL, *first = NULL, *second, *rest;

	for (; timer; timer = rest) {
		second = timer->next;
		rest = second ? second->next : NULL;
		timer = merge(alone(timer), alone(second));
		timer->next = pairs;
		pairs = timer;
	}
	for (; pairs; pairs = rest) {
		rest = pairs->next;
		first = merge(first, alone(pairs));
	}
	return first;
}

void mesh_timers_cancel(struct mesh_timers *timers, struct mesh_timer *timer)
{
	struct mesh_timer *children;

	if (!timer->set)
		return;
	children = siblings_merge(timer->child);
	timer->set = false;
	timer->child = NULL;
	if (!timer->previous) {
		timers->first = children;
		return;
	}
	if (timer->previous->child == timer)
		timer->previous->child = timer->next;
	else
		timer->previous->next = timer->next;
	if (timer->next)
		timer->next->previous = timer->previous;
	alone(timer);
	timers->first = merge(timers->first, children);
}

void mesh_timers_set(struct mesh_timers *timers, struct mesh_timer *timer, uint64_t due_ms)
{
	if (timer->set && timer->due_ms == due_ms)
		return;
	mesh_timers_cancel(timers, timer);
	timer->due_ms = due_ms;
	if (due_ms <= timers->running_ms && timer->run == timers->run)
		timer->due_ms = timers->running_ms + 1;
	timer->set = true;
	timers->first = merge(timers->first, timer);
}

void mesh_timers_run(struct mesh_timers *timers, uint64_t now_ms)
{
	struct mesh_timer *timer;

	timers->run++;
	timers->running_ms = now_ms;
	while ((timer = timers->first) && timer->due_ms <= now_ms) {
		mesh_timers_cancel(timers, timer);
		timer->run = timers->run;
		timer->expired(timer, now_ms);
	}
	timers->running_ms = 0;
}
