/* SPDX-License-Identifier: Apache-2.0 */
/* datagram.c - UDP sockets that see on which NIC a datagram arrives. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "neighbours/datagram.h"

/* Room for the NIC and the hop limit of either family. */
#define CONTROL_BYTES 128

static bool option_set(int fd, int level, int name, int value)
{
	return !setsockopt(fd, level, name, &value, sizeof(value));
}

/* A node must not hear its own questions, unless a cable brings them back. */
static bool options_set_ipv6(int fd)
{
	return option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
	       option_set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) &&
	       option_set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) &&
	       option_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0) &&
	       option_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, MESH_NEIGHBOUR_HOP_LIMIT) &&
	       option_set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, MESH_NEIGHBOUR_HOP_LIMIT);
}

static bool options_set_ipv4(int fd)
{
	return option_set(fd, IPPROTO_IP, IP_PKTINFO, 1) &&
	       option_set(fd, IPPROTO_IP, IP_RECVTTL, 1) &&
	       option_set(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0) &&
	       option_set(fd, IPPROTO_IP, IP_MULTICAST_TTL, MESH_NEIGHBOUR_HOP_LIMIT) &&
	       option_set(fd, IPPROTO_IP, IP_TTL, MESH_NEIGHBOUR_HOP_LIMIT);
}

struct mesh_addr mesh_datagram_group(enum mesh_family family)
{
	if (family == MESH_FAMILY_IPV6) /* RFC 4291, 2.7.1 */
		return (struct mesh_addr){.family = family, .bytes = {0xff, 2, [15] = 1}};
	return (struct mesh_addr){.family = family, .bytes = {224, 0, 0, 1}}; /* RFC 1112 */
}

static int socket_open(const struct mesh_addr *addr, uint16_t port)
{
	struct sockaddr_storage sockaddr;
	socklen_t len = mesh_addr_to_sockaddr(addr, port, &sockaddr);
	int fd, ret;

	fd = mesh_descriptor_hide(
		socket(sockaddr.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	if ((addr->family == MESH_FAMILY_IPV6 ? options_set_ipv6(fd) : options_set_ipv4(fd)) &&
	    (!port || option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1)) &&
	    !bind(fd, (struct sockaddr *)&sockaddr, len))
		return fd;
	ret = -errno;
	mesh_descriptor_close(fd);
	return ret;
}

int mesh_datagram_open(enum mesh_family family, uint16_t port)
{
	struct mesh_addr any = {.family = family};

	return socket_open(&any, port);
}

int mesh_datagram_group_open(enum mesh_family family, unsigned int ifindex, uint16_t port)
{
	struct mesh_addr group = mesh_datagram_group(family);

	group.scope_id = ifindex;
	return socket_open(&group, port);
}

/* Adds the NIC and the source address. */
static void control_add(struct msghdr *message, unsigned int ifindex, const struct mesh_addr *from)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);

	if (from->family == MESH_FAMILY_IPV6) {
		struct in6_pktinfo info = {.ipi6_ifindex = ifindex};

		memcpy(&info.ipi6_addr, from->bytes, sizeof(info.ipi6_addr));
		control->cmsg_level = IPPROTO_IPV6;
		control->cmsg_type = IPV6_PKTINFO;
		control->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(control), &info, sizeof(info));
		message->msg_controllen = CMSG_SPACE(sizeof(info));
	} else {
		struct in_pktinfo info = {.ipi_ifindex = (int)ifindex};

		memcpy(&info.ipi_spec_dst, from->bytes, sizeof(info.ipi_spec_dst));
		control->cmsg_level = IPPROTO_IP;
		control->cmsg_type = IP_PKTINFO;
		control->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(control), &info, sizeof(info));
		message->msg_controllen = CMSG_SPACE(sizeof(info));
	}
}

static int bytes_send(int fd, unsigned int ifindex, const struct mesh_addr *from,
		      const struct mesh_addr *to, uint16_t port, struct iovec bytes)
{
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES] = {0};
	struct mesh_addr scoped = *to;
	struct sockaddr_storage sockaddr;
	struct msghdr message = {
		.msg_name = &sockaddr,
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	scoped.scope_id = ifindex;
	message.msg_namelen = mesh_addr_to_sockaddr(&scoped, port, &sockaddr);
	control_add(&message, ifindex, from);
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int mesh_datagram_send(int fd, unsigned int ifindex, const struct mesh_addr *from,
		       const struct mesh_addr *to, uint16_t port,
		       const struct mesh_neighbour *neighbour)
{
	return bytes_send(fd, ifindex, from, to, port,
			  (struct iovec){(void *)neighbour, neighbour->length});
}

int mesh_datagram_links_send(int fd, unsigned int ifindex, const struct mesh_addr *from,
			     const struct mesh_addr *to, uint16_t port,
			     const struct mesh_links_head *links)
{
	return bytes_send(fd, ifindex, from, to, port,
			  (struct iovec){(void *)links, links->length});
}

static int control_int(const struct cmsghdr *control)
{
	int value;

	memcpy(&value, CMSG_DATA(control), sizeof(value));
	return value;
}

/* Reads the NIC; returns the hop limit, -1 if the kernel does not say. */
static int control_read(struct msghdr *message, unsigned int *ifindex)
{
	struct cmsghdr *control;
	int hops = -1;

	*ifindex = 0;
	for (control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(control), sizeof(info));
			*ifindex = (unsigned int)info.ipi6_ifindex;
		} else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(control), sizeof(info));
			*ifindex = (unsigned int)info.ipi_ifindex;
		} else if ((control->cmsg_level == IPPROTO_IPV6 &&
			    control->cmsg_type == IPV6_HOPLIMIT) ||
			   (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TTL)) {
			hops = control_int(control);
		}
	}
	return hops;
}

/* Returns 0 if it is of no known kind, else 1. */
static int bytes_decode(const void *bytes, size_t size, struct mesh_datagram *datagram)
{
	struct mesh_links_head head;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, bytes, sizeof(head));
	datagram->is_links = head.type >= MESH_LINKS_QUESTION;
	datagram->error = datagram->is_links ? mesh_links_decode(bytes, size, &datagram->links)
					     : mesh_neighbour_decode(bytes, size, &datagram->about);
	return datagram->error != -EPROTO;
}

int mesh_datagram_receive(int fd, struct mesh_datagram *datagram)
{
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES];
	union {
		struct mesh_neighbour neighbour;
		union mesh_links links;
	} raw;
	struct iovec bytes = {&raw, sizeof(raw)};
	struct sockaddr_storage sockaddr;
	struct msghdr message = {
		.msg_name = &sockaddr,
		.msg_namelen = sizeof(sockaddr),
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t size = recvmsg(fd, &message, MSG_DONTWAIT | MSG_TRUNC);

	if (size < 0) /* an ICMP error of an earlier answer is reported once, and means nothing */
		return errno == EAGAIN || errno == EWOULDBLOCK ? -EAGAIN : 0;
	if (control_read(&message, &datagram->ifindex) != MESH_NEIGHBOUR_HOP_LIMIT ||
	    !datagram->ifindex || (size_t)size > sizeof(raw) ||
	    mesh_addr_from_sockaddr((struct sockaddr *)&sockaddr, message.msg_namelen,
				    &datagram->from, &datagram->port))
		return 0;
	return bytes_decode(&raw, (size_t)size, datagram);
}
