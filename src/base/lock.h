/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - a mutex that records its holder, so that the lock contract can be asserted.
 *
 * The asserts and the holder are compiled into debug and sanitizer builds (no NDEBUG).
 *
 * Order, outermost first: process (src/control/process.h), mrs, domain, comm or circuit
 * (src/relay/circuit.h), transmit (src/fabric/domain.h).
 */
#ifndef MESH_BASE_LOCK_H
#define MESH_BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * The lock contract, for clang's thread-safety analysis; other compilers ignore it. In C, clang
 * cannot name a lock that is a member of a struct. So it checks classes of locks: a function that
 * needs a lock of a class is called with one held, and the order of the classes is kept. Debug
 * builds assert that it is the right lock of its class.
 */
#ifdef __clang__
#define MESH_LOCK_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define MESH_LOCK_ATTRIBUTE(attribute)
#endif
#define MESH_LOCK_CLASS(name) mesh_##name##_lock_class
/* Before a function: the caller holds a lock of this class. */
#define MESH_HOLDS(name) MESH_LOCK_ATTRIBUTE(requires_capability(MESH_LOCK_CLASS(name)))
/* Before a function: the caller holds none of this class. */
#define MESH_EXCLUDES(name) MESH_LOCK_ATTRIBUTE(locks_excluded(MESH_LOCK_CLASS(name)))
/* Behind a member: it is read and written with a lock of this class held. */
#define MESH_GUARDED_BY(name) MESH_LOCK_ATTRIBUTE(guarded_by(MESH_LOCK_CLASS(name)))
/* Before a function: it makes or frees what no other thread knows, or locks on a condition. */
#define MESH_NOT_ANALYSED MESH_LOCK_ATTRIBUTE(no_thread_safety_analysis)

struct MESH_LOCK_ATTRIBUTE(capability("lock")) mesh_lock_class {
	char unused;
};
/* Only named in attributes: none of them exists. The outermost first. */
extern struct mesh_lock_class MESH_LOCK_CLASS(process);
extern struct mesh_lock_class MESH_LOCK_CLASS(mrs)
	MESH_LOCK_ATTRIBUTE(acquired_after(MESH_LOCK_CLASS(process)));
extern struct mesh_lock_class MESH_LOCK_CLASS(domain)
	MESH_LOCK_ATTRIBUTE(acquired_after(MESH_LOCK_CLASS(mrs)));
extern struct mesh_lock_class MESH_LOCK_CLASS(comm)
	MESH_LOCK_ATTRIBUTE(acquired_after(MESH_LOCK_CLASS(domain)));
extern struct mesh_lock_class MESH_LOCK_CLASS(circuit)
	MESH_LOCK_ATTRIBUTE(acquired_after(MESH_LOCK_CLASS(domain)));
extern struct mesh_lock_class MESH_LOCK_CLASS(transmit)
	MESH_LOCK_ATTRIBUTE(acquired_after(MESH_LOCK_CLASS(comm), MESH_LOCK_CLASS(circuit)));

/*
 * Defines mesh_NAME_lock(), _try_lock(), _unlock() and _assert_locked() for the lock that is
 * @member of struct @owner.
 */
#define MESH_LOCK_FUNCTIONS(name, owner, member)                                                   \
	MESH_LOCK_ATTRIBUTE(acquire_capability(MESH_LOCK_CLASS(name)))                             \
	MESH_NOT_ANALYSED                                                                          \
	static inline void mesh_##name##_lock(struct owner *of)                                    \
	{                                                                                          \
		mesh_lock_take(&of->member);                                                       \
	}                                                                                          \
	MESH_LOCK_ATTRIBUTE(try_acquire_capability(true, MESH_LOCK_CLASS(name)))                   \
	MESH_NOT_ANALYSED                                                                          \
	static inline bool mesh_##name##_try_lock(struct owner *of)                                \
	{                                                                                          \
		return mesh_lock_try(&of->member);                                                 \
	}                                                                                          \
	MESH_LOCK_ATTRIBUTE(release_capability(MESH_LOCK_CLASS(name)))                             \
	MESH_NOT_ANALYSED                                                                          \
	static inline void mesh_##name##_unlock(struct owner *of)                                  \
	{                                                                                          \
		mesh_lock_release(&of->member);                                                    \
	}                                                                                          \
	MESH_HOLDS(name)                                                                           \
	static inline void mesh_##name##_assert_locked(const struct owner *of)                     \
	{                                                                                          \
		mesh_lock_assert_held(&of->member);                                                \
	}

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

static inline bool mesh_lock_held(const struct mesh_lock *lock)
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
static inline bool mesh_lock_held(const struct mesh_lock *lock)
{
	pthread_mutex_t *mutex = (pthread_mutex_t *)&lock->mutex;

	if (pthread_mutex_trylock(mutex))
		return true;
	pthread_mutex_unlock(mutex);
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
