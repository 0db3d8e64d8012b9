/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longest.h - what the longest call of the data path has cost: while it runs, other comms may wait.
 *
 * The time of the processor is the calling thread's own, but on a busy machine it is longer by what
 * interrupts and others' use of the cache cost; the bytes are not. libfabric's calls of the C
 * library find the functions of this program before the library's own.
 */
#ifndef FAULT_DRIVER_LONGEST_H
#define FAULT_DRIVER_LONGEST_H

#include <sys/socket.h>
#include <sys/syscall.h>

#include "driver.h"

struct call {
	uint64_t cpu_ns, sent, received;
};

/* The C library's headers may have a body for the name already. */
#define IN_PLACE_OF(name) __asm__(name) __attribute__((visibility("default"), used))

ssize_t counted_sendmsg(int fd, const struct msghdr *message, int flags) IN_PLACE_OF("sendmsg");
ssize_t counted_send(int fd, const void *bytes, size_t size, int flags) IN_PLACE_OF("send");
ssize_t counted_recvmsg(int fd, struct msghdr *message, int flags) IN_PLACE_OF("recvmsg");
ssize_t counted_recv(int fd, void *bytes, size_t size, int flags) IN_PLACE_OF("recv");

/* Bytes that the thread has moved through sockets. */
static __thread uint64_t thread_sent, thread_received;

static ssize_t moved(uint64_t *count, ssize_t ret)
{
	if (ret > 0)
		*count += (uint64_t)ret;
	return ret;
}

ssize_t counted_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return moved(&thread_sent, syscall(SYS_sendmsg, fd, message, flags));
}

ssize_t counted_send(int fd, const void *bytes, size_t size, int flags)
{
	return moved(&thread_sent, syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0));
}

ssize_t counted_recvmsg(int fd, struct msghdr *message, int flags)
{
	return moved(&thread_received, syscall(SYS_recvmsg, fd, message, flags));
}

ssize_t counted_recv(int fd, void *bytes, size_t size, int flags)
{
	return moved(&thread_received, syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL));
}

static struct call call_begin(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (struct call){
		.cpu_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
		.sent = thread_sent,
		.received = thread_received,
	};
}

static void most_keep(_Atomic(uint64_t) *most, uint64_t value)
{
	uint64_t before = *most;

	while (value > before && !atomic_compare_exchange_weak(most, &before, value))
		;
}

static void call_end(struct driver *d, const struct call *begin)
{
	struct call end = call_begin();

	most_keep(&d->calls.cpu_ns, end.cpu_ns - begin->cpu_ns);
	most_keep(&d->calls.sent, end.sent - begin->sent);
	most_keep(&d->calls.received, end.received - begin->received);
}

/* longest: the most since the last time. */
static int command_longest(struct driver *d, int argc, char **argv)
{
	printf("note longest call %" PRIu64 " us %" PRIu64 " KiB sent %" PRIu64 " KiB received\n",
	       atomic_exchange(&d->calls.cpu_ns, 0) / 1000,
	       atomic_exchange(&d->calls.sent, 0) >> 10,
	       atomic_exchange(&d->calls.received, 0) >> 10);
	return OUTCOME_OK;
}

#endif
