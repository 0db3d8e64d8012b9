/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - one line that shows what a subcommand waits for. */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/output.h"
#include "common/progress.h"

#define SHOW_AFTER_S 2

struct progress {
	pthread_t thread;
	pthread_mutex_t mutex; /* covers what follows */
	pthread_cond_t wake;
	char text[200];
	bool done;
};

static void line_show(struct progress *progress, int seconds)
{
	/* Carriage return, text, erase to the end of the line (ECMA-48 EL). */
	fprintf(stderr, "\r%s ... %d s\033[K", progress->text, seconds);
	fflush(stderr);
}

static void *progress_run(void *arg)
{
	struct progress *progress = arg;
	struct timespec until;
	int seconds = 0;

	pthread_mutex_lock(&progress->mutex);
	clock_gettime(CLOCK_MONOTONIC, &until);
	while (!progress->done) {
		until.tv_sec++;
		while (!progress->done &&
		       !pthread_cond_timedwait(&progress->wake, &progress->mutex, &until))
			;
		if (!progress->done && ++seconds >= SHOW_AFTER_S)
			line_show(progress, seconds);
	}
	if (seconds >= SHOW_AFTER_S)
		fputs("\r\033[K", stderr);
	pthread_mutex_unlock(&progress->mutex);
	return NULL;
}

__attribute__((format(printf, 2, 0))) static void text_set(struct progress *progress,
							   const char *format, va_list args)
{
	vsnprintf(progress->text, sizeof(progress->text), format, args);
	output_clean(progress->text);
}

/* Starts the thread with all signals blocked: the main thread handles Ctrl-C. */
static int thread_start(struct progress *progress)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	ret = pthread_create(&progress->thread, NULL, progress_run, progress);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

struct progress *progress_begin(const char *format, ...)
{
	struct progress *progress;
	pthread_condattr_t monotonic;
	va_list args;

	if (!isatty(STDERR_FILENO))
		return NULL;
	progress = calloc(1, sizeof(*progress));
	if (!progress)
		return NULL;
	va_start(args, format);
	text_set(progress, format, args);
	va_end(args);
	pthread_mutex_init(&progress->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&progress->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (!thread_start(progress))
		return progress;
	pthread_cond_destroy(&progress->wake);
	pthread_mutex_destroy(&progress->mutex);
	free(progress);
	return NULL;
}

void progress_say(struct progress *progress, const char *format, ...)
{
	va_list args;

	if (!progress)
		return;
	va_start(args, format);
	pthread_mutex_lock(&progress->mutex);
	text_set(progress, format, args);
	pthread_mutex_unlock(&progress->mutex);
	va_end(args);
}

void progress_end(struct progress *progress)
{
	if (!progress)
		return;
	pthread_mutex_lock(&progress->mutex);
	progress->done = true;
	pthread_cond_signal(&progress->wake);
	pthread_mutex_unlock(&progress->mutex);
	pthread_join(progress->thread, NULL);
	pthread_cond_destroy(&progress->wake);
	pthread_mutex_destroy(&progress->mutex);
	free(progress);
}
