/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - threads of the plugin: one that it keeps, and short ones. */
#ifndef MESH_BASE_THREADS_H
#define MESH_BASE_THREADS_H

#include <pthread.h>

/**
 * Starts a thread that runs @main(@arg) and then ends. It blocks the host's signals, like the
 * engine's thread. Any lock may be held.
 *
 * Returns 0 or a negative errno.
 */
int mesh_thread_start(void (*main)(void *arg), void *arg);

/**
 * Waits until none of these threads is left, including those that another one of them started. No
 * lock held that they need. Returns at once in a forked child. The end of the process waits as
 * well.
 */
void mesh_threads_await(void);

/**
 * Starts a thread that blocks all signals: the host's handlers must run in the host's own threads.
 *
 * @name: up to 15 characters, as `ps -L` and debuggers show it
 *
 * Returns 0 or a negative errno.
 */
int mesh_thread_create(pthread_t *thread, const char *name, void *(*main)(void *arg), void *arg);

#endif
