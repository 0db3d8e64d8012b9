/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - the thread that polls the NICs of the circuits, because NCCL's threads sleep between
 * collectives. It polls for a short while after traffic (rest.h), and otherwise sleeps on the NICs'
 * descriptors; where a provider has none it looks ever more seldom. It takes no lock of set-up.
 */
#ifndef MESH_RELAY_THREAD_H
#define MESH_RELAY_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/process.h"

_Static_assert(MESH_MAIN_DOMAINS <= 32, "a bit for each");

struct mesh_relay_thread {
	struct mesh_process *process;
	pthread_t thread;
	bool running;
	int wake_fd;	      /* eventfd; -1 until the thread is started */
	_Atomic(int) look_ms; /* the longest sleep while there are circuits */
	_Atomic(bool) stop;
	_Atomic(uint32_t) domains;  /* a bit for each main domain that has a circuit */
	_Atomic(uint64_t) moved;    /* counts what circuits forward */
	_Atomic(uint64_t) messages; /* those of it that are small messages of NCCL */
	_Atomic(bool) sleeps;	    /* what is forwarded now needs wake_fd */
	_Atomic(uint64_t) turns;    /* counts how often the thread has polled */
};

void mesh_relay_thread_init(struct mesh_relay_thread *thread, struct mesh_process *process);

/** Starts the thread if it does not run. Returns 0 or a negative errno after a WARN line. */
int mesh_relay_thread_start(struct mesh_relay_thread *thread);

/** Stops it and waits for its end. No lock held. */
void mesh_relay_thread_stop(struct mesh_relay_thread *thread);

/** Frees what mesh_relay_thread_start() made, after mesh_relay_thread_stop(). */
void mesh_relay_thread_finish(struct mesh_relay_thread *thread);

/** Sets what it polls: bit N for process->domains[N]; without any it sleeps. */
void mesh_relay_thread_domains_set(struct mesh_relay_thread *thread, uint32_t domains);

/** Ends its sleep. Any lock may be held. */
void mesh_relay_thread_wake(struct mesh_relay_thread *thread);

/**
 * A circuit has forwarded something, in whichever thread: completions of what was posted may make
 * no event that would wake this one. Any lock may be held. @message: it was a small message of
 * NCCL.
 */
static inline void mesh_relay_thread_moved(struct mesh_relay_thread *thread, bool message)
{
	if (message)
		atomic_fetch_add_explicit(&thread->messages, 1, memory_order_relaxed);
	atomic_fetch_add(&thread->moved, 1);
	if (atomic_load(&thread->sleeps))
		mesh_relay_thread_wake(thread);
}

#endif
