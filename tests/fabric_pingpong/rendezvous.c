/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.c - listening and connecting with deadlines. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "rendezvous.h"

#define RETRY_MS 100

int rendezvous_address(struct options *options)
{
	const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	/* torch/distributed/elastic/agent/server/local_elastic_agent.py sets it for each rank. */
	const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE");
	bool beside = store && !strcmp(store, "True");
	unsigned long number, last = beside ? UINT16_MAX - 1 : UINT16_MAX;
	char *end;

	if (!address || !*address) {
		fputs("fabric_pingpong: MASTER_ADDR is not set: it is an address of rank 0's "
		      "machine that all ranks reach\n",
		      stderr);
		return -EINVAL;
	}
	if (!port || !*port) {
		fputs("fabric_pingpong: MASTER_PORT is not set: it is a free TCP port of rank 0's "
		      "machine, the same for all ranks\n",
		      stderr);
		return -EINVAL;
	}
	number = strtoul(port, &end, 10);
	if (*port < '0' || *port > '9' || *end || !number || number > last) {
		fprintf(stderr,
			"fabric_pingpong: MASTER_PORT='%s' is not a TCP port from 1 to %lu\n", port,
			last);
		return -EINVAL;
	}
	number += beside;
	options->master_addr = address;
	snprintf(options->master_port, sizeof(options->master_port), "%lu", number);
	return 0;
}

static int resolve(const struct options *options, int flags, struct addrinfo **found)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
	int rc = getaddrinfo(options->master_addr, options->master_port, &hints, found);

	if (!rc)
		return 0;
	fprintf(stderr,
		"fabric_pingpong: rank %d cannot resolve MASTER_ADDR='%s': %s. Use an IP address "
		"of rank 0's machine, or a name that this machine knows (getent hosts %s)\n",
		options->rank, options->master_addr, gai_strerror(rc), options->master_addr);
	return -EINVAL;
}

static bool is_name(const char *text)
{
	uint8_t address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, text, address) != 1 && inet_pton(AF_INET6, text, address) != 1;
}

/*
 * A name that is the loopback here may be another address elsewhere: Debian and Ubuntu have the
 * machine's own name at 127.0.1.1 in its /etc/hosts, and operators for Kubernetes tell rank 0 alone
 * "localhost". PyTorch's store listens on all addresses, too.
 */
static void widen_loopback(struct sockaddr *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

	if (address->sa_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET)
		in->sin_addr.s_addr = htonl(INADDR_ANY);
	else if (address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr))
		in6->sin6_addr = in6addr_any;
}

static int listen_on(const struct addrinfo *address)
{
	int one = 1, error;
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, address->ai_addr, address->ai_addrlen) && !listen(fd, OPTIONS_RANKS_MAX))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

int rendezvous_listen(const struct options *options)
{
	struct addrinfo *found, *address;
	int fd = -EADDRNOTAVAIL;

	if (resolve(options, AI_PASSIVE, &found))
		return -EINVAL;
	for (address = found; address && fd < 0; address = address->ai_next) {
		if (is_name(options->master_addr))
			widen_loopback(address->ai_addr);
		fd = listen_on(address);
	}
	freeaddrinfo(found);
	if (fd < 0)
		fprintf(stderr, "fabric_pingpong: rank 0 cannot listen on %s port %s: %s%s\n",
			options->master_addr, options->master_port, strerror(-fd),
			fd == -EADDRNOTAVAIL ? " (MASTER_ADDR must be an address of this machine)"
					     : "");
	return fd;
}

/* One attempt of at most a second. Returns a blocking socket or a negative errno. */
static int connect_to(const struct addrinfo *address)
{
	struct pollfd poller = {.events = POLLOUT};
	int fd, error = 0, one = 1;
	socklen_t size = sizeof(error);

	fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, address->ai_addr, address->ai_addrlen) && errno != EINPROGRESS)
		error = errno;
	poller.fd = fd;
	if (!error && poll(&poller, 1, 1000) != 1)
		error = ETIMEDOUT;
	if (!error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	if (error) {
		close(fd);
		return -error;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int rendezvous_connect(const struct options *options)
{
	uint64_t deadline = now_ns() + options->rendezvous_s * NS_PER_S;
	struct addrinfo *found, *address;
	int fd = -ETIMEDOUT;

	if (resolve(options, 0, &found))
		return -EINVAL;
	for (;;) {
		for (address = found; address && fd < 0; address = address->ai_next)
			fd = connect_to(address);
		if (fd >= 0 || now_ns() > deadline)
			break;
		poll(NULL, 0, RETRY_MS);
	}
	freeaddrinfo(found);
	if (fd < 0)
		fprintf(stderr,
			"fabric_pingpong: rank %d cannot reach rank 0 at %s port %s: %s, for %u s. "
			"Is rank 0 running, and is the port open?\n",
			options->rank, options->master_addr, options->master_port, strerror(-fd),
			options->rendezvous_s);
	return fd;
}
