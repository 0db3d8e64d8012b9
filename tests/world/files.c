/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - descriptors, and the calls that take one. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernel.h"

WORLD_REAL_OF(read)
WORLD_REAL_OF(write)
WORLD_REAL_OF(close)
WORLD_REAL_OF(fcntl)
WORLD_REAL_OF(ioctl)

ssize_t world_recvfrom(int fd, void *bytes, size_t size, int flags, struct sockaddr *name,
		       socklen_t *len) WORLD_AS(recvfrom);
ssize_t world_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *name,
		     socklen_t len) WORLD_AS(sendto);

int world_result(ssize_t ret)
{
	if (ret >= 0)
		return (int)ret;
	errno = (int)-ret;
	return -1;
}

/* ---- descriptors --------------------------------------------------------------------------- */

void *world_file_new(const struct world_file_kind *kind, struct world_node *node, size_t size)
{
	static uint64_t cookies;
	struct world_file *file = calloc(1, size);

	if (!file)
		world_die("no memory");
	file->kind = kind;
	file->node = node;
	file->cookie = ++cookies;
	return file;
}

void world_file_free(struct world_file *file)
{
	free(file);
}

static int descriptor_set(struct world_file *file, int i)
{
	file->node->files[i] = file;
	file->node->num_files++;
	file->references++;
	return WORLD_FD_FIRST + i;
}

int world_file_open(struct world_file *file)
{
	struct world_node *node = file->node;
	int i = 0;

	while (i < WORLD_FILES_MAX && node->files[i])
		i++;
	if (i < WORLD_FILES_MAX && node->num_files < node->limit_files)
		return descriptor_set(file, i);
	if (!file->references)
		file->kind->close(file);
	return -EMFILE;
}

static struct world_file **place_of(int fd)
{
	struct world_node *node = world_acting();

	if (fd < WORLD_FD_FIRST || fd >= WORLD_FD_FIRST + WORLD_FILES_MAX)
		return NULL;
	if (!node)
		world_die("descriptor %d of nobody", fd);
	return &node->files[fd - WORLD_FD_FIRST];
}

struct world_file *world_file_of(int fd)
{
	struct world_file **place = place_of(fd);

	return place ? *place : NULL;
}

static void descriptor_close(struct world_file **place)
{
	struct world_file *file = *place;

	*place = NULL;
	file->node->num_files--;
	if (!--file->references)
		file->kind->close(file);
}

void world_files_close(struct world_node *node)
{
	for (int i = 0; i < WORLD_FILES_MAX; i++) {
		if (node->files[i])
			descriptor_close(&node->files[i]);
	}
}

struct await {
	struct world_file *file;
	uint32_t events;
};

static bool await_ready(void *arg)
{
	const struct await *await = arg;

	return await->file->kind->events(await->file) & (await->events | EPOLLERR | EPOLLHUP);
}

int world_file_await(struct world_file *file, uint32_t events, int flags)
{
	struct await await = {file, events};

	if (await_ready(&await))
		return 0;
	if (file->nonblocking || flags & MSG_DONTWAIT)
		return -EAGAIN;
	return world_wait(await_ready, &await,
			  file->limit_ns ? world.now_ns + file->limit_ns : WORLD_NEVER)
		       ? 0
		       : -EAGAIN;
}

size_t world_message_size(const struct msghdr *message)
{
	size_t i, size = 0;

	for (i = 0; i < (size_t)message->msg_iovlen; i++)
		size += message->msg_iov[i].iov_len;
	return size;
}

size_t world_message_put(struct msghdr *message, const void *bytes, size_t size)
{
	size_t i, part, put = 0;

	for (i = 0; i < (size_t)message->msg_iovlen && put < size; i++, put += part) {
		part = message->msg_iov[i].iov_len;
		if (part > size - put)
			part = size - put;
		memcpy(message->msg_iov[i].iov_base, (const char *)bytes + put, part);
	}
	return put;
}

/* ---- calls of any descriptor --------------------------------------------------------------- */

int close(int fd)
{
	struct world_file **place = place_of(fd);

	if (!place)
		return WORLD_REAL(close)(fd);
	world_enter();
	if (!*place)
		return world_result(-EBADF);
	descriptor_close(place);
	return 0;
}

/*
 * After world_enter(), in which another thread may have closed the descriptor. A kind without such
 * a call fails with EINVAL.
 */
static ssize_t received(int fd, struct msghdr *message, int flags)
{
	struct world_file *file;

	world_enter();
	file = world_file_of(fd);
	if (!file)
		return -EBADF;
	return file->kind->receive ? file->kind->receive(file, message, flags) : -EINVAL;
}

static ssize_t sent(int fd, const struct msghdr *message, int flags)
{
	struct world_file *file;

	world_enter();
	file = world_file_of(fd);
	if (!file)
		return -EBADF;
	return file->kind->send ? file->kind->send(file, message, flags) : -EINVAL;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	message->msg_flags = 0;
	return world_result(received(fd, message, flags));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return world_result(sent(fd, message, flags));
}

ssize_t world_recvfrom(int fd, void *bytes, size_t size, int flags, struct sockaddr *name,
		       socklen_t *len)
{
	struct iovec piece = {bytes, size};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_name = name};
	ssize_t ret;

	message.msg_namelen = len ? *len : 0;
	ret = received(fd, &message, flags);
	if (len)
		*len = message.msg_namelen;
	return world_result(ret);
}

ssize_t world_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *name,
		     socklen_t len)
{
	struct iovec piece = {(void *)(uintptr_t)bytes, size};
	struct msghdr message = {.msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_name = (void *)(uintptr_t)name,
				 .msg_namelen = len};

	return world_result(sent(fd, &message, flags));
}

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
	return world_recvfrom(fd, bytes, size, flags, NULL, NULL);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	return world_sendto(fd, bytes, size, flags, NULL, 0);
}

ssize_t read(int fd, void *bytes, size_t size)
{
	return place_of(fd) ? recv(fd, bytes, size, 0) : WORLD_REAL(read)(fd, bytes, size);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	return place_of(fd) ? send(fd, bytes, size, 0) : WORLD_REAL(write)(fd, bytes, size);
}

int fcntl(int fd, int command, ...)
{
	struct world_file *file = world_file_of(fd);
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	if (!place_of(fd))
		return WORLD_REAL(fcntl)(fd, command, arg);
	if (!file)
		return world_result(-EBADF);
	switch (command) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return world_result(world_file_open(file));
	case F_GETFL:
		return O_RDWR | (file->nonblocking ? O_NONBLOCK : 0);
	case F_SETFL:
		file->nonblocking = (uintptr_t)arg & O_NONBLOCK;
		return 0;
	case F_GETFD:
	case F_SETFD:
		return 0;
	default:
		world_die("fcntl %d", command);
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	struct world_file *file = world_file_of(fd);
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!place_of(fd))
		return WORLD_REAL(ioctl)(fd, request, arg);
	if (!file)
		return world_result(-EBADF);
	return file->kind->ioctl ? world_result(file->kind->ioctl(file, request, arg))
				 : world_result(-ENOTTY);
}
