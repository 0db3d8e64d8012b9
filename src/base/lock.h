/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - a mutex that records its holder, so that the lock contract can be asserted.
 *
 * The asserts and the holder are compiled into debug and sanitizer builds (no NDEBUG).
 *
 * Order, outermost first: node (src/transport/node.h), domain, comm, transmit
 * (src/fabric/domain.h).
 */
#ifndef MESH_BASE_LOCK_H
#define MESH_BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct mesh_lock {
	pthread_mutex_t mutex;
	_Atomic(pthread_t) holder; /* 0 while free; exact only for the thread that reads it */
};

static inline void mesh_lock_init(struct mesh_lock *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
	atomic_init(&lock->holder, 0);
}

static inline void mesh_lock_destroy(struct mesh_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

#ifndef NDEBUG

static inline bool mesh_lock_held(struct mesh_lock *lock)
{
	return atomic_load_explicit(&lock->holder, memory_order_relaxed) == pthread_self();
}

static inline void mesh_lock_note(struct mesh_lock *lock, pthread_t holder)
{
	atomic_store_explicit(&lock->holder, holder, memory_order_relaxed);
}

#define mesh_lock_assert_held(lock) assert(mesh_lock_held(lock))

#else

/* True if any thread holds it; sufficient for tests with one thread. */
static inline bool mesh_lock_held(struct mesh_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex))
		return true;
	pthread_mutex_unlock(&lock->mutex);
	return false;
}

#define mesh_lock_note(lock, holder) ((void)0)
#define mesh_lock_assert_held(lock) ((void)(lock))

#endif

static inline void mesh_lock_take(struct mesh_lock *lock)
{
	assert(!mesh_lock_held(lock));
	pthread_mutex_lock(&lock->mutex);
	mesh_lock_note(lock, pthread_self());
}

static inline bool mesh_lock_try(struct mesh_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex))
		return false;
	mesh_lock_note(lock, pthread_self());
	return true;
}

static inline void mesh_lock_release(struct mesh_lock *lock)
{
	mesh_lock_assert_held(lock);
	mesh_lock_note(lock, 0);
	pthread_mutex_unlock(&lock->mutex);
}

#endif
