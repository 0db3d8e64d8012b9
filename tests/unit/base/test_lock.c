/* SPDX-License-Identifier: Apache-2.0 */
/* test_lock.c - the lock excludes, and knows its holder. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/lock.h"

#include "unit.h"

#define THREADS 4
#define ROUNDS 20000

struct shared {
	struct mesh_lock lock;
	int count; /* under lock: a plain int, so that lost updates show */
	_Atomic(bool) foreign_hold;
};

/* Asks from another thread, which can hold nothing. */
static void *other_thread(void *arg)
{
	struct shared *shared = arg;

#ifndef NDEBUG /* a lock without a record of its owner cannot check the contract */
	if (mesh_lock_held(&shared->lock))
		atomic_store(&shared->foreign_hold, true);
#endif
	if (mesh_lock_try(&shared->lock)) {
		shared->count++;
		mesh_lock_release(&shared->lock);
	}
	return NULL;
}

static void other_thread_run(struct shared *shared)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, other_thread, shared), 0);
	pthread_join(thread, NULL);
	assert_false(atomic_load(&shared->foreign_hold));
}

TEST(holder)
{
	struct shared shared = {.count = 0};

	mesh_lock_init(&shared.lock);
	assert_false(mesh_lock_held(&shared.lock));
	mesh_lock_take(&shared.lock);
	assert_true(mesh_lock_held(&shared.lock));
	mesh_lock_assert_held(&shared.lock);
	other_thread_run(&shared);
	assert_int_equal(shared.count, 0); /* try failed */
	assert_true(mesh_lock_held(&shared.lock));
	mesh_lock_release(&shared.lock);
	assert_false(mesh_lock_held(&shared.lock));
	other_thread_run(&shared);
	assert_int_equal(shared.count, 1); /* try worked */
	assert_true(mesh_lock_try(&shared.lock));
	assert_true(mesh_lock_held(&shared.lock));
	mesh_lock_release(&shared.lock);
	mesh_lock_destroy(&shared.lock);
}

static void *thread_count(void *arg)
{
	struct shared *shared = arg;

	for (int i = 0; i < ROUNDS; i++) {
		if (i % 2 || !mesh_lock_try(&shared->lock))
			mesh_lock_take(&shared->lock);
		if (!mesh_lock_held(&shared->lock))
			atomic_store(&shared->foreign_hold, true);
		shared->count++;
		mesh_lock_release(&shared->lock);
	}
	return NULL;
}

TEST(excludes)
{
	struct shared shared = {.count = 0};
	pthread_t threads[THREADS];

	mesh_lock_init(&shared.lock);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_count, &shared), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.count, THREADS * ROUNDS);
	assert_false(atomic_load(&shared.foreign_hold));
	mesh_lock_destroy(&shared.lock);
}

#ifndef NDEBUG
static void take_twice(struct mesh_lock *lock)
{
	mesh_lock_take(lock);
	mesh_lock_take(lock);
}

static void release_free(struct mesh_lock *lock)
{
	mesh_lock_release(lock);
}

static void assert_free(struct mesh_lock *lock)
{
	mesh_lock_assert_held(lock);
}

/* True if @misuse ends the process with an assertion. */
static bool aborts(void (*misuse)(struct mesh_lock *lock))
{
	const struct rlimit no_core = {0, 0};
	struct mesh_lock lock;
	int status;
	pid_t child;

	mesh_lock_init(&lock);
	child = fork();
	if (!child) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		alarm(20);
		misuse(&lock);
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	mesh_lock_destroy(&lock);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* With asserts, a broken contract ends the process with a message. */
TEST(misuse)
{
	assert_true(aborts(take_twice));
	assert_true(aborts(release_free));
	assert_true(aborts(assert_free));
}
#endif
