/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - a star of TCP connections around rank 0. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tests/driver/clock.h>
#include <tests/fabric_pingpong/rendezvous.h>

#include "ranks.h"

/* "NCCT" and the version of what ranks say to each other. */
#define GREETING_MAGIC 0x4e434354u
#define GREETING_MS 5000

struct greeting {
	uint32_t magic;
	uint32_t rank, world;
};

/* A whole number of the environment in 0..most, or -1. */
static int number_of(const char *name, long most)
{
	const char *text = getenv(name);
	char *end;
	long value;

	if (!text || !*text)
		return -1;
	value = strtol(text, &end, 10);
	return *end || value < 0 || value > most ? -1 : (int)value;
}

static int read_environment(struct ranks *ranks, struct options *options)
{
	ranks->rank = number_of("RANK", RANKS_MAX - 1);
	ranks->world = number_of("WORLD_SIZE", RANKS_MAX);
	options->rank = ranks->rank;
	options->world = ranks->world;
	if (ranks->rank >= 0 && ranks->world > ranks->rank && !rendezvous_address(options))
		return 0;
	fprintf(stderr,
		"nccl_collectives: set RANK, WORLD_SIZE (at most %d), MASTER_ADDR and MASTER_PORT, "
		"or start it with tests/nccl/run.sh or torchrun\n",
		RANKS_MAX);
	return -EINVAL;
}

/* The sockets block, so that one call takes all of it or fails. */
static int send_all(int fd, const void *data, size_t size)
{
	return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -ECONNRESET;
}

static int receive_all(int fd, void *data, size_t size)
{
	return recv(fd, data, size, MSG_WAITALL) == (ssize_t)size ? 0 : -ECONNRESET;
}

/*
 * A stranger that sends nothing or something wrong is disconnected; the wait for the others
 * continues.
 */
static void greet(struct ranks *ranks, int fd)
{
	struct timeval limit = {.tv_sec = GREETING_MS / 1000};
	struct greeting greeting;

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (receive_all(fd, &greeting, sizeof(greeting)) || greeting.magic != GREETING_MAGIC ||
	    (int)greeting.world != ranks->world || !greeting.rank ||
	    greeting.rank >= (uint32_t)ranks->world || ranks->fd[greeting.rank] >= 0) {
		fprintf(stderr, "nccl_collectives: somebody connected who is no rank of ours\n");
		close(fd);
		return;
	}
	/* From here on a rank may take its time. */
	limit.tv_sec = 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	ranks->fd[greeting.rank] = fd;
}

static int missing_rank(const struct ranks *ranks)
{
	for (int rank = 1; rank < ranks->world; rank++)
		if (ranks->fd[rank] < 0)
			return rank;
	return 0;
}

static int gather(struct ranks *ranks, int listener, uint64_t deadline_ns)
{
	struct pollfd poller = {.fd = listener, .events = POLLIN};
	int fd;

	while (missing_rank(ranks)) {
		if (now_ns() > deadline_ns) {
			fprintf(stderr, "nccl_collectives: rank %d did not come\n",
				missing_rank(ranks));
			return -ETIMEDOUT;
		}
		if (poll(&poller, 1, 100) != 1)
			continue;
		fd = accept(listener, NULL, NULL);
		if (fd >= 0)
			greet(ranks, fd);
	}
	return 0;
}

static int meet_as_first(struct ranks *ranks, const struct options *options)
{
	uint64_t deadline_ns = now_ns() + options->rendezvous_s * NS_PER_S;
	int listener, error;

	if (ranks->world == 1)
		return 0;
	listener = rendezvous_listen(options);
	if (listener < 0)
		return listener;
	error = gather(ranks, listener, deadline_ns);
	close(listener);
	return error;
}

static int meet_as_other(struct ranks *ranks, const struct options *options)
{
	struct greeting greeting = {GREETING_MAGIC, (uint32_t)ranks->rank, (uint32_t)ranks->world};
	int fd = rendezvous_connect(options);

	if (fd < 0)
		return fd;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	ranks->fd[0] = fd;
	return send_all(fd, &greeting, sizeof(greeting));
}

int ranks_meet(struct ranks *ranks, unsigned int timeout_s)
{
	/* Large: a list of pairs that is of no use here. */
	struct options *options = calloc(1, sizeof(*options));
	int error;

	memset(ranks->fd, 0xff, sizeof(ranks->fd));
	if (!options)
		return -ENOMEM;
	options->rendezvous_s = timeout_s;
	error = read_environment(ranks, options);
	if (!error)
		error = ranks->rank ? meet_as_other(ranks, options) : meet_as_first(ranks, options);
	free(options);
	return error;
}

int ranks_broadcast(struct ranks *ranks, void *data, size_t size)
{
	int rank, error = 0;

	if (ranks->rank)
		return receive_all(ranks->fd[0], data, size);
	for (rank = 1; rank < ranks->world && !error; rank++)
		error = send_all(ranks->fd[rank], data, size);
	return error;
}

int ranks_largest(struct ranks *ranks, double *value)
{
	double other;
	int rank, error = 0;

	if (ranks->rank) {
		error = send_all(ranks->fd[0], value, sizeof(*value));
		return error ? error : ranks_broadcast(ranks, value, sizeof(*value));
	}
	for (rank = 1; rank < ranks->world && !error; rank++) {
		error = receive_all(ranks->fd[rank], &other, sizeof(other));
		if (!error && other > *value)
			*value = other;
	}
	return error ? error : ranks_broadcast(ranks, value, sizeof(*value));
}

void ranks_part(struct ranks *ranks)
{
	for (int rank = 0; rank < RANKS_MAX; rank++)
		if (ranks->fd[rank] >= 0)
			close(ranks->fd[rank]);
	memset(ranks->fd, 0xff, sizeof(ranks->fd));
}
