/* SPDX-License-Identifier: Apache-2.0 */
/* provider_gate.h - keeps a thread inside the fake provider until the test lets it go on. */
#ifndef MESH_TESTS_PROVIDER_GATE_H
#define MESH_TESTS_PROVIDER_GATE_H

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "fake_fabric.h"
#include "unit.h"

/* After which a thread that should have gone on has not. */
#define LIMIT_MS 10000

static struct gate {
	pthread_t test; /* which must never be inside */
	sem_t entered, open;
	bool closed;	    /* sends wait inside */
	_Atomic(int) wrong; /* calls that a thread made while another one was inside */
	_Atomic(bool) occupied;
} gate;

static inline void gate_init(void)
{
	memset(&gate, 0, sizeof(gate));
	gate.test = pthread_self();
	sem_init(&gate.entered, 0, 0);
	sem_init(&gate.open, 0, 0);
}

static inline void sem_await(sem_t *sem)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += LIMIT_MS / 1000;
	assert_int_equal(sem_timedwait(sem, &limit), 0);
}

/* fake.before: runs in each call of the provider. */
static inline void gate_pass(enum fake_call call)
{
	if (call != FAKE_SEND && call != FAKE_WRITE && call != FAKE_INJECT && call != FAKE_CQ_READ)
		return;
	if (atomic_load(&gate.occupied))
		atomic_fetch_add(&gate.wrong, 1);
	if (!gate.closed || (call != FAKE_SEND && call != FAKE_WRITE))
		return;
	if (pthread_equal(pthread_self(), gate.test)) {
		atomic_fetch_add(&gate.wrong, 1);
		return;
	}
	atomic_store(&gate.occupied, true);
	sem_post(&gate.entered);
	while (sem_wait(&gate.open))
		;
	atomic_store(&gate.occupied, false);
}

#endif
