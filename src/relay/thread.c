/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - the thread that polls the NICs of the circuits. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/threads.h"
#include "fabric/poll.h"
#include "relay/rest.h"
#include "relay/thread.h"

/*
 * The longest sleep while there are circuits. Descriptors and mesh_relay_thread_moved() wake the
 * thread; this is for a completion that a post of another comm has made and no thread has read. The
 * engine polls for such a one as well, until a second after the last poll by another thread: a
 * shorter sleep would keep it awake.
 */
#define LOOK_MS 2000

/* What the thread sleeps on. */
struct wait_set {
	struct pollfd fds[1 + MESH_MAIN_DOMAINS]; /* wake_fd is the first one */
	int num;
	bool complete; /* an event makes each of these domains readable */
};

/* @i: the number of the lowest bit that is set. Returns that domain; NULL: it is not open. */
static struct mesh_domain *domain_next(struct mesh_relay_thread *thread, uint32_t *domains)
{
	int i = __builtin_ctz(*domains);

	*domains &= *domains - 1;
	return atomic_load(&thread->process->domains[i]);
}

static void domains_poll(struct mesh_relay_thread *thread, uint32_t domains)
{
	struct mesh_domain *domain;

	while (domains) {
		domain = domain_next(thread, &domains);
		if (domain)
			mesh_domain_poll(domain);
	}
	atomic_fetch_add_explicit(&thread->turns, 1, memory_order_relaxed);
}

static void set_prepare(struct mesh_relay_thread *thread, uint32_t domains, struct wait_set *set)
{
	struct mesh_domain *domain;
	int fd;

	set->fds[0] = (struct pollfd){.fd = thread->wake_fd, .events = POLLIN};
	set->num = 1;
	set->complete = true;
	while (domains) {
		domain = domain_next(thread, &domains);
		fd = domain ? mesh_readiness_fd(domain) : -1;
		if (fd >= 0)
			set->fds[set->num++] = (struct pollfd){.fd = fd, .events = POLLIN};
		if (fd < 0 || atomic_load_explicit(&domain->has_waiting, memory_order_relaxed))
			set->complete = false;
	}
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

/* Returns true if a NIC has ended the sleep. @seen: of thread->moved */
static bool thread_sleep(struct mesh_relay_thread *thread, struct wait_set *set, uint64_t seen,
			 const struct timespec *limit)
{
	uint64_t count;
	int num = 0;

	/* Both sides write, then read what the other one writes: one of them sees the other. */
	atomic_store(&thread->sleeps, true);
	if (atomic_load(&thread->moved) == seen)
		num = ppoll(set->fds, (nfds_t)set->num, limit, NULL);
	atomic_store(&thread->sleeps, false);
	if (num <= 0 || !set->fds[0].revents)
		return num > 0;
	if (read(thread->wake_fd, &count, sizeof(count)) < 0)
		return false;
	return false;
}

/* Sleeps until there may be something to do, or pauses. */
static void thread_rest(struct mesh_relay_thread *thread, struct mesh_rest *rest, uint32_t domains,
			struct wait_set *set, uint64_t seen)
{
	struct timespec limit = timespec_of((uint64_t)atomic_load(&thread->look_ms) * 1000000);

	if (rest->vain)
		set->num = 1; /* the NICs would end the pause at once */
	if (rest->vain || !set->complete)
		limit = timespec_of(mesh_rest_pause_ns(rest, mesh_clock_ns()));
	rest->vain = thread_sleep(thread, set, seen, domains ? &limit : NULL);
}

/* What circuits have forwarded since the last call. @seen, @messages: of thread->moved, messages */
static enum mesh_rest_moved moved_since(struct mesh_relay_thread *thread, uint64_t *seen,
					uint64_t *messages)
{
	uint64_t moved_before = *seen, messages_before = *messages;

	*seen = atomic_load(&thread->moved);
	*messages = atomic_load_explicit(&thread->messages, memory_order_relaxed);
	if (*messages != messages_before)
		return MESH_REST_MESSAGE;
	return *seen != moved_before ? MESH_REST_SEGMENT : MESH_REST_NOTHING;
}

static void *thread_run(void *arg)
{
	struct mesh_relay_thread *thread = arg;
	uint64_t seen = atomic_load(&thread->moved), messages = atomic_load(&thread->messages);
	enum mesh_rest_moved moved;
	struct mesh_rest rest;
	struct wait_set set;
	uint32_t domains;
	bool polls;

	mesh_rest_init(&rest, mesh_clock_ns());
	while (!atomic_load(&thread->stop)) {
		domains = atomic_load(&thread->domains);
		domains_poll(thread, domains);
		set_prepare(thread, domains, &set);
		moved = moved_since(thread, &seen, &messages);
		polls = mesh_rest_polls(&rest, mesh_clock_ns(), moved, set.complete);
		if (domains && polls)
			sched_yield();
		else
			thread_rest(thread, &rest, domains, &set, seen);
	}
	return NULL;
}

void mesh_relay_thread_init(struct mesh_relay_thread *thread, struct mesh_process *process)
{
	memset(thread, 0, sizeof(*thread));
	thread->process = process;
	thread->wake_fd = -1;
	atomic_store(&thread->look_ms, LOOK_MS);
}

static int start_fail(int error)
{
	mesh_warn("cannot start the thread that relays: %s", strerror(-error));
	return error;
}

int mesh_relay_thread_start(struct mesh_relay_thread *thread)
{
	int ret;

	if (thread->running)
		return 0;
	if (thread->wake_fd < 0)
		thread->wake_fd = mesh_descriptor_hide(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (thread->wake_fd < 0)
		return start_fail(-errno);
	ret = mesh_thread_create(&thread->thread, "mesh-relay", thread_run, thread);
	if (ret)
		return start_fail(ret);
	thread->running = true;
	return 0;
}

void mesh_relay_thread_wake(struct mesh_relay_thread *thread)
{
	const uint64_t one = 1;

	atomic_store(&thread->sleeps, false); /* one write is enough */
	/* A full counter also wakes the thread, so the result does not matter. */
	if (write(thread->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void mesh_relay_thread_stop(struct mesh_relay_thread *thread)
{
	atomic_store(&thread->stop, true);
	if (!thread->running)
		return;
	mesh_relay_thread_wake(thread);
	pthread_join(thread->thread, NULL);
	thread->running = false;
}

void mesh_relay_thread_finish(struct mesh_relay_thread *thread)
{
	mesh_descriptor_close(thread->wake_fd);
	thread->wake_fd = -1;
}

void mesh_relay_thread_domains_set(struct mesh_relay_thread *thread, uint32_t domains)
{
	if (atomic_exchange(&thread->domains, domains) != domains)
		mesh_relay_thread_wake(thread);
}
