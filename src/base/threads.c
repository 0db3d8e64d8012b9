/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - threads of the plugin: one that it keeps, and short ones. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/threads.h"

struct task {
	void (*main)(void *arg);
	void *arg;
};

/* The threads of the whole process; a forked child has none of them. */
static pthread_mutex_t threads_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_ended = PTHREAD_COND_INITIALIZER;
static int num_threads; /* under threads_mutex */
/* Read without threads_mutex, which a child may have inherited locked by a thread it lacks. */
static _Atomic(pid_t) threads_process;

static void threads_count(int change)
{
	pthread_mutex_lock(&threads_mutex);
	atomic_store(&threads_process, getpid());
	num_threads += change;
	if (!num_threads)
		pthread_cond_broadcast(&threads_ended);
	pthread_mutex_unlock(&threads_mutex);
}

void mesh_threads_await(void)
{
	if (atomic_load(&threads_process) != getpid())
		return;
	pthread_mutex_lock(&threads_mutex);
	while (num_threads)
		pthread_cond_wait(&threads_ended, &threads_mutex);
	pthread_mutex_unlock(&threads_mutex);
}

/* At exit(), before libfabric's own destructor frees what the threads use. */
__attribute__((destructor)) static void threads_end(void)
{
	mesh_threads_await();
}

static void *thread_main(void *arg)
{
	struct task task = *(struct task *)arg;

	free(arg);
	task.main(task.arg);
	threads_count(-1);
	return NULL;
}

int mesh_thread_start(void (*main)(void *arg), void *arg)
{
	struct task *task = malloc(sizeof(*task));
	pthread_t thread;
	int ret;

	if (!task)
		return -ENOMEM;
	*task = (struct task){.main = main, .arg = arg};
	threads_count(1);
	ret = mesh_thread_create(&thread, "nccl-mesh-task", thread_main, task);
	if (!ret) {
		pthread_detach(thread);
		return 0;
	}
	threads_count(-1);
	free(task);
	return ret;
}

int mesh_thread_create(pthread_t *thread, const char *name, void *(*main)(void *arg), void *arg)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pthread_setname_np(*thread, name);
	return ret;
}
