/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c - rank 0 collects the data of each rank and sends it to all. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "meet.h"

#define LIMIT_S 240

void fatal(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* The sockets block, so that one call takes all of it or fails. */
static void say(int fd, const void *data, size_t size)
{
	if (send(fd, data, size, MSG_NOSIGNAL) != (ssize_t)size)
		fatal("another rank has ended: %s", strerror(errno));
}

static void hear(int fd, void *data, size_t size)
{
	ssize_t n = size ? recv(fd, data, size, MSG_WAITALL) : 0;

	if (n != (ssize_t)size)
		fatal("another rank has ended, or is silent for %d s", LIMIT_S);
}

static int new_socket(void)
{
	const struct timeval limit = {.tv_sec = LIMIT_S};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fatal("socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static void open_hub(struct meet *meet, const struct sockaddr_un *where)
{
	int listener = new_socket(), fd, rank;

	unlink(where->sun_path);
	if (bind(listener, (const struct sockaddr *)where, sizeof(*where)) ||
	    listen(listener, MEET_RANKS_MAX))
		fatal("%s: %s", where->sun_path, strerror(errno));
	for (int i = 1; i < meet->ranks; i++) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			fatal("the other ranks did not come: %s", strerror(errno));
		hear(fd, &rank, sizeof(rank));
		if (rank < 1 || rank >= meet->ranks || meet->sockets[rank] >= 0)
			fatal("rank %d came, of %d", rank, meet->ranks);
		meet->sockets[rank] = fd;
	}
	close(listener);
	unlink(where->sun_path);
}

static void join_hub(struct meet *meet, const struct sockaddr_un *where)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t limit = now_ns() + LIMIT_S * NS_PER_S;
	int fd = new_socket();

	while (connect(fd, (const struct sockaddr *)where, sizeof(*where))) {
		if (now_ns() > limit)
			fatal("rank 0 does not come to %s", where->sun_path);
		nanosleep(&pause, NULL);
	}
	say(fd, &meet->rank, sizeof(meet->rank));
	meet->sockets[0] = fd;
}

void meet_open(struct meet *meet, const char *path, int rank, int ranks)
{
	struct sockaddr_un where = {.sun_family = AF_UNIX};

	meet->rank = rank;
	meet->ranks = ranks;
	for (int i = 0; i < MEET_RANKS_MAX; i++)
		meet->sockets[i] = -1;
	if (strlen(path) >= sizeof(where.sun_path))
		fatal("%s is too long for a socket", path);
	strcpy(where.sun_path, path);
	if (rank == 0)
		open_hub(meet, &where);
	else
		join_hub(meet, &where);
}

void meet_gather(struct meet *meet, const void *mine, size_t size, void *all)
{
	char *room = all;

	if (meet->rank) {
		say(meet->sockets[0], mine, size);
		hear(meet->sockets[0], all, size * (size_t)meet->ranks);
		return;
	}
	memcpy(room, mine, size);
	for (int i = 1; i < meet->ranks; i++)
		hear(meet->sockets[i], room + (size_t)i * size, size);
	for (int i = 1; i < meet->ranks; i++)
		say(meet->sockets[i], all, size * (size_t)meet->ranks);
}

void meet_barrier(struct meet *meet)
{
	char mine = 0, all[MEET_RANKS_MAX];

	meet_gather(meet, &mine, 1, all);
}

void meet_close(struct meet *meet)
{
	for (int i = 0; i < MEET_RANKS_MAX; i++)
		if (meet->sockets[i] >= 0)
			close(meet->sockets[i]);
}
