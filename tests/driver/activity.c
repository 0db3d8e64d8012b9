/* SPDX-License-Identifier: Apache-2.0 */
/* activity.c - step texts and the watch over them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "activity.h"
#include "clock.h"

static _Thread_local enum activity_thread this_thread;

void activity_init(struct activity *activity)
{
	memset(activity, 0, sizeof(*activity));
	pthread_mutex_init(&activity->lock, NULL);
}

void activity_destroy(struct activity *activity)
{
	pthread_mutex_destroy(&activity->lock);
}

void activity_thread_is(enum activity_thread thread)
{
	this_thread = thread;
}

void activity_step(struct activity *activity, const char *format, ...)
{
	va_list args;

	activity_progress(activity);
	/* The activity at the time of the stop request is the one to report. */
	if (activity_stopped(activity))
		return;
	va_start(args, format);
	pthread_mutex_lock(&activity->lock);
	vsnprintf(activity->step, sizeof(activity->step), format, args);
	pthread_mutex_unlock(&activity->lock);
	va_end(args);
}

void activity_details(struct activity *activity, const char *format, ...)
{
	size_t used;
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&activity->lock);
	used = strlen(activity->details);
	vsnprintf(activity->details + used, sizeof(activity->details) - used, format, args);
	pthread_mutex_unlock(&activity->lock);
	va_end(args);
}

void activity_enter(struct activity *activity, const char *name)
{
	struct activity_call *call = &activity->calls[this_thread];

	atomic_store_explicit(&call->name, name, memory_order_relaxed);
	atomic_store_explicit(&call->count,
			      atomic_load_explicit(&call->count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

void activity_leave(struct activity *activity)
{
	atomic_store_explicit(&activity->calls[this_thread].name, NULL, memory_order_relaxed);
}

void activity_watch_init(struct activity_watch *watch, struct activity *activity)
{
	memset(watch, 0, sizeof(*watch));
	watch->progress_ns = now_ns();
	activity_watch_look(watch, activity);
}

uint64_t activity_watch_look(struct activity_watch *watch, struct activity *activity)
{
	uint64_t now = now_ns();
	unsigned long progress = atomic_load(&activity->progress), count;

	if (progress != watch->progress || !atomic_load(&activity->busy))
		watch->progress_ns = now;
	watch->progress = progress;
	watch->look_ns = now;
	for (int i = 0; i < ACTIVITY_THREADS; i++) {
		count = atomic_load(&activity->calls[i].count);
		if (count != watch->counts[i] || !atomic_load(&activity->calls[i].name))
			watch->call_ns[i] = now;
		watch->counts[i] = count;
	}
	return now - watch->progress_ns;
}

const char *activity_watch_stuck(const struct activity_watch *watch,
				 const struct activity *activity, uint64_t ns)
{
	for (int i = 0; i < ACTIVITY_THREADS; i++)
		if (watch->look_ns - watch->call_ns[i] >= ns)
			return atomic_load(&activity->calls[i].name);
	return NULL;
}

bool activity_has_details(struct activity *activity)
{
	bool any;

	pthread_mutex_lock(&activity->lock);
	any = activity->details[0];
	pthread_mutex_unlock(&activity->lock);
	return any;
}

void activity_describe(struct activity *activity, char *text, size_t size)
{
	pthread_mutex_lock(&activity->lock);
	snprintf(text, size, "%s", activity->details[0] ? activity->details : activity->step);
	pthread_mutex_unlock(&activity->lock);
}
