/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - short threads for what takes too long for NCCL's calls and for the engine. */
#ifndef MESH_BASE_THREADS_H
#define MESH_BASE_THREADS_H

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

#endif
