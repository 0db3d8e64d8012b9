/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_unordered.c - lets all that copies bytes for a program bring them out of order.
 *
 * Usage: LD_PRELOAD=preload_unordered.so PROGRAM
 * memcpy() and memmove() promise no order, nor does a kernel that copies from a socket. Here each
 * of them brings the last 8 bytes of every 128-byte line first (NCCL's LL128 has its flag there),
 * lets other threads run, and then brings the rest. So a program that relies on an order that it
 * does not make by itself fails each time, on every processor.
 */
#undef _FORTIFY_SOURCE /* its inline functions would be the ones that are overridden here */
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LINE 128
#define FLAG_AT (LINE - sizeof(uint64_t))
/* How often others may run while flags are there and their data is not. */
#define YIELDS 20
/* Bytes that one read from a socket may bring; what lies behind them comes with the next one. */
#define READ_MAX ((size_t)1 << 16)

#define OVERRIDES __attribute__((visibility("default")))

OVERRIDES void *__memcpy_chk(void *to, const void *from, size_t size, size_t room);

static __thread char own_bytes[READ_MAX];

/* volatile: the compiler would make a call of memcpy() of the loop. */
static void bytes_copy(void *to, const void *from, size_t size)
{
	const volatile char *source = from;
	volatile char *target = to;

	for (size_t i = 0; i < size; i++)
		target[i] = source[i];
}

/* Whole lines of @to get their flags first. */
static void lines_copy(void *to, const void *from, size_t size)
{
	size_t at = (LINE - (uintptr_t)to % LINE) % LINE;

	if (size >= at + LINE) {
		for (; at + LINE <= size; at += LINE)
			bytes_copy((char *)to + at + FLAG_AT, (const char *)from + at + FLAG_AT,
				   sizeof(uint64_t));
		for (int i = 0; i < YIELDS; i++)
			sched_yield();
	}
	bytes_copy(to, from, size);
}

OVERRIDES void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	lines_copy(to, from, size);
	return to;
}

void *__memcpy_chk(void *to, const void *from, size_t size, size_t room)
{
	return memcpy(to, from, size);
}

OVERRIDES void *memmove(void *to, const void *from, size_t size)
{
	const volatile char *source = from;
	volatile char *target = to;

	if ((uintptr_t)to + size <= (uintptr_t)from || (uintptr_t)from + size <= (uintptr_t)to)
		lines_copy(to, from, size);
	else if (target < source)
		bytes_copy(to, from, size);
	else
		while (size--)
			target[size] = source[size];
	return to;
}

OVERRIDES ssize_t recv(int fd, void *to, size_t size, int flags)
{
	size_t most = size < READ_MAX ? size : READ_MAX;
	ssize_t read = syscall(SYS_recvfrom, fd, own_bytes, most, flags, NULL, NULL);

	if (read > 0)
		lines_copy(to, own_bytes, (size_t)read < most ? (size_t)read : most);
	return read;
}

OVERRIDES ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	struct iovec own = {.iov_base = own_bytes, .iov_len = 0}, *places = message->msg_iov;
	size_t num = message->msg_iovlen, i, left, part;
	const char *from = own_bytes;
	ssize_t read;

	for (i = 0; i < num; i++)
		own.iov_len += places[i].iov_len;
	if (own.iov_len > READ_MAX)
		own.iov_len = READ_MAX;
	message->msg_iov = &own;
	message->msg_iovlen = 1;
	read = syscall(SYS_recvmsg, fd, message, flags);
	message->msg_iov = places;
	message->msg_iovlen = num;
	left = read > 0 ? (size_t)read : 0;
	for (i = 0; i < num && left; i++, left -= part, from += part) {
		part = places[i].iov_len < left ? places[i].iov_len : left;
		lines_copy(places[i].iov_base, from, part);
	}
	return read;
}
