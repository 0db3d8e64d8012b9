/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - starts the plugin's own threads. */
#ifndef MESH_BASE_THREAD_H
#define MESH_BASE_THREAD_H

#include <pthread.h>

/**
 * Starts a thread that blocks all signals: the host's handlers must run in the host's own threads.
 *
 * @name: up to 15 characters, as `ps -L` and debuggers show it
 *
 * Returns 0 or a negative errno.
 */
int mesh_thread_create(pthread_t *thread, const char *name, void *(*main)(void *arg), void *arg);

#endif
