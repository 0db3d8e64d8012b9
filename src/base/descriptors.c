/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.c - file descriptors: whether they have run out, and those that forked children do
 * not keep.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/memory.h"

/* libfabric needs several at once: an endpoint of tcp needs about six. */
#define PROBES 8

bool mesh_descriptors_exhausted(void)
{
	int fds[PROBES], n, saved_errno = errno;
	bool exhausted = false;

	for (n = 0; n < PROBES && !exhausted; n++) {
		fds[n] = eventfd(0, EFD_CLOEXEC);
		exhausted = fds[n] < 0 && (errno == EMFILE || errno == ENFILE);
	}
	while (n--) {
		if (fds[n] >= 0)
			close(fds[n]);
	}
	errno = saved_errno;
	return exhausted;
}

const char *mesh_descriptors_hint(void)
{
	return mesh_descriptors_exhausted() ? "; out of file descriptors: " MESH_DESCRIPTORS_RAISE
					    : "";
}

/*
 * A fork() handler takes no argument, so the list belongs to the process. The lock is held only
 * within this file, and across fork(), so that the child finds a consistent list.
 */
static pthread_mutex_t hidden_lock = PTHREAD_MUTEX_INITIALIZER;
static int *hidden; /* under hidden_lock, as num_hidden */
static size_t num_hidden;

static void before_fork(void)
{
	pthread_mutex_lock(&hidden_lock);
}

static void parent_after_fork(void)
{
	pthread_mutex_unlock(&hidden_lock);
}

/* Calls only async-signal-safe functions: the child of a process with threads, see fork(2). */
static void child_after_fork(void)
{
	while (num_hidden)
		close(hidden[--num_hidden]);
	pthread_mutex_unlock(&hidden_lock);
}

static void fork_watch(void)
{
	/* If memory for three pointers is short, children keep the descriptors; all else works. */
	pthread_atfork(before_fork, parent_after_fork, child_after_fork);
}

int mesh_descriptor_hide(int fd)
{
	static pthread_once_t watched = PTHREAD_ONCE_INIT;
	int *grown;

	if (fd < 0)
		return -1;
	pthread_once(&watched, fork_watch);
	pthread_mutex_lock(&hidden_lock);
	grown = mesh_array_room(hidden, num_hidden, sizeof(*hidden));
	if (grown) {
		hidden = grown;
		hidden[num_hidden++] = fd;
	}
	pthread_mutex_unlock(&hidden_lock);
	if (grown)
		return fd;
	close(fd);
	errno = ENOMEM;
	return -1;
}

void mesh_descriptor_close(int fd)
{
	int saved_errno = errno;
	size_t i;

	if (fd < 0)
		return;
	/*
	 * Removal and close() happen under one lock: otherwise a child could close another file
	 * that has reused the number.
	 */
	pthread_mutex_lock(&hidden_lock);
	for (i = 0; i < num_hidden && hidden[i] != fd; i++)
		;
	if (i < num_hidden)
		hidden[i] = hidden[--num_hidden];
	close(fd);
	pthread_mutex_unlock(&hidden_lock);
	errno = saved_errno;
}
