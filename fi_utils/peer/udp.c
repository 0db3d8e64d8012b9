/* SPDX-License-Identifier: Apache-2.0 */
/* udp.c - datagrams of full size. */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer/udp.h"
#include "peer/wire.h"

/* IPv4 and UDP header without options; IPv6's is fixed (RFC 791, 768, 8200). */
#define IPV4_UDP_HEADERS 28
#define IPV6_UDP_HEADERS 48
/* Datagrams examined in one call, so that noise does not block other work. */
#define RECEIVE_MAX 64

static int socket_set(int fd, bool ipv6)
{
	int probe = ipv6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;

	if (ipv6)
		return setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof(probe));
	return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
}

int peer_udp_open(const struct mesh_addr *local, uint16_t *port)
{
	struct sockaddr_storage from;
	socklen_t len = mesh_addr_to_sockaddr(local, 0, &from);
	struct mesh_addr bound;
	int fd, ret;

	fd = socket(from.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!socket_set(fd, local->family == MESH_FAMILY_IPV6) &&
	    !bind(fd, (struct sockaddr *)&from, len) &&
	    !getsockname(fd, (struct sockaddr *)&from, &len) &&
	    !mesh_addr_from_sockaddr((struct sockaddr *)&from, len, &bound, port))
		return fd;
	ret = errno ? -errno : -EINVAL;
	close(fd);
	return ret;
}

size_t peer_udp_payload(const struct mesh_addr *local, uint32_t mtu)
{
	uint32_t headers = local->family == MESH_FAMILY_IPV6 ? IPV6_UDP_HEADERS : IPV4_UDP_HEADERS;

	if (mtu < headers + sizeof(struct mesh_check_probe))
		return sizeof(struct mesh_check_probe);
	return mtu - headers > PEER_UDP_MAX ? PEER_UDP_MAX : mtu - headers;
}

int peer_udp_send(int fd, const struct mesh_addr *remote, uint16_t port, uint64_t token,
		  uint32_t id, size_t size)
{
	struct mesh_check_probe probe = {MESH_CHECK_PROBE_MAGIC, id, token};
	static uint8_t bytes[PEER_UDP_MAX]; /* zeros, except the head of the latest probe */
	struct sockaddr_storage to;
	socklen_t len = mesh_addr_to_sockaddr(remote, port, &to);

	if (size < sizeof(probe) || size > sizeof(bytes))
		return -EMSGSIZE;
	memcpy(bytes, &probe, sizeof(probe));
	if (sendto(fd, bytes, size, MSG_DONTWAIT, (struct sockaddr *)&to, len) < 0)
		return -errno;
	return 0;
}

int peer_udp_receive(int fd, const struct mesh_addr *remote, uint64_t token, uint32_t *id,
		     uint32_t *size)
{
	struct mesh_check_probe probe;
	struct sockaddr_storage from;
	struct mesh_addr sender;
	socklen_t len;
	ssize_t n;
	int i;

	for (i = 0; i < RECEIVE_MAX; i++) {
		len = sizeof(from);
		/* MSG_TRUNC: the length is that of the whole datagram. */
		n = recvfrom(fd, &probe, sizeof(probe), MSG_TRUNC, (struct sockaddr *)&from, &len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -EAGAIN;
		if ((size_t)n < sizeof(probe) ||
		    mesh_addr_from_sockaddr((struct sockaddr *)&from, len, &sender, NULL) ||
		    sender.family != remote->family ||
		    memcmp(sender.bytes, remote->bytes, mesh_addr_size(remote->family)) != 0 ||
		    mesh_check_probe_decode(&probe, sizeof(probe), &probe) || probe.token != token)
			continue;
		*id = probe.id;
		*size = (uint32_t)n;
		return 0;
	}
	return -EAGAIN;
}
