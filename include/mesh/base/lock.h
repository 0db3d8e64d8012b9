/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - a mutex that knows its holder, so that the lock contract can be asserted.
 *
 * Asserts are compiled into debug and sanitizer builds (no NDEBUG); a release build keeps only
 * the store of the holder.
 *
 * Order, outermost first: node (mesh/transport/node.h), domain, comm, transmit
 * (mesh/fabric/domain.h).
 */
#ifndef MESH_BASE_LOCK_H
#define MESH_BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct mesh_lock {
	pthread_mutex_t mutex;
	_Atomic(pthread_t) holder; /* 0 while free; exact only for the asking thread itself */
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

static inline bool mesh_lock_held(struct mesh_lock *lock)
{
	return atomic_load_explicit(&lock->holder, memory_order_relaxed) == pthread_self();
}

#ifdef NDEBUG
#define mesh_lock_assert_held(lock) ((void)(lock))
#else
#define mesh_lock_assert_held(lock) assert(mesh_lock_held(lock))
#endif

static inline void mesh_lock_take(struct mesh_lock *lock)
{
	assert(!mesh_lock_held(lock));
	pthread_mutex_lock(&lock->mutex);
	atomic_store_explicit(&lock->holder, pthread_self(), memory_order_relaxed);
}

static inline bool mesh_lock_try(struct mesh_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex))
		return false;
	atomic_store_explicit(&lock->holder, pthread_self(), memory_order_relaxed);
	return true;
}

static inline void mesh_lock_release(struct mesh_lock *lock)
{
	mesh_lock_assert_held(lock);
	atomic_store_explicit(&lock->holder, 0, memory_order_relaxed);
	pthread_mutex_unlock(&lock->mutex);
}

#endif
