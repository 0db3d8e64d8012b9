/* SPDX-License-Identifier: Apache-2.0 */
/* datagram.c - what this process says of itself and its NICs, and the UDP sockets for that. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/random.h"
#include "base/version.h"
#include "neighbours/datagram.h"

/* Room for the NIC and the hop limit of either family. */
#define CONTROL_BYTES 128

/* ---- ourselves ----------------------------------------------------------------------------- */

/* IPv6 first: its link-local address needs no subnet. */
static const struct mesh_addr *asking_address(const struct mesh_nic *nic)
{
	int i;

	for (i = 0; i < nic->num_addrs; i++) {
		if (nic->addrs[i].family == MESH_FAMILY_IPV6 &&
		    mesh_addr_is_link_local(&nic->addrs[i]))
			return &nic->addrs[i];
	}
	for (i = 0; i < nic->num_addrs; i++) {
		if (nic->addrs[i].family == MESH_FAMILY_IPV4)
			return &nic->addrs[i];
	}
	return NULL;
}

void mesh_neighbour_site_set(struct mesh_neighbour_self *self, const char *setting)
{
	snprintf(self->site, sizeof(self->site), "%.*s", (int)sizeof(self->site) - 1, setting);
}

uint32_t mesh_neighbour_site_number(const char *site)
{
	return *site ? mesh_checksum(site, strlen(site)) : 0;
}

static uint64_t port_of(const struct mesh_nic *nic)
{
	if (nic->port_id == MESH_NIC_PORT_UNSURE)
		return 0;
	if (nic->port_id || nic->kind != MESH_NIC_PHYSICAL || !*nic->pci_path)
		return nic->port_id;
	/* A card whose functions share a port has names for its ports. */
	return mesh_hash_add(MESH_HASH_START, nic->pci_path, strlen(nic->pci_path));
}

void mesh_neighbour_link_describe(const struct mesh_neighbour_self *self,
				  const struct mesh_nic *nic, int index, uint8_t providers,
				  struct mesh_neighbour_link *link)
{
	const struct mesh_addr *from = asking_address(nic);
	struct mesh_neighbour *about = &link->about;
	int i;

	memset(link, 0, sizeof(*link));
	link->ifindex = nic->ifindex;
	if (from)
		link->ask_from = *from;
	snprintf(about->product, sizeof(about->product), "%s", mesh_version());
	memcpy(about->node, self->node, sizeof(about->node));
	memcpy(about->site, self->site, sizeof(about->site));
	about->protocol = MESH_PROTOCOL_VERSION;
	about->nic = (uint8_t)index;
	about->providers = providers;
	about->node_id = self->node_id;
	about->token = port_of(nic);
	about->mtu = (uint32_t)nic->mtu;
	about->speed_mbps = (uint32_t)nic->speed_mbps;
	memcpy(about->netdev, nic->netdev, sizeof(about->netdev));
	if (nic->source.family != MESH_FAMILY_NONE)
		mesh_neighbour_addr_add(about, &nic->source);
	for (i = 0; i < nic->num_addrs; i++) {
		if (!mesh_addr_equal(&nic->addrs[i], &nic->source))
			mesh_neighbour_addr_add(about, &nic->addrs[i]);
	}
}

/* ---- sockets ------------------------------------------------------------------------------- */

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

int mesh_datagram_open(enum mesh_family family, uint16_t port)
{
	struct mesh_addr any = {.family = family};
	struct sockaddr_storage sockaddr;
	socklen_t len = mesh_addr_to_sockaddr(&any, port, &sockaddr);
	int fd, ret;

	fd = mesh_descriptor_hide(
		socket(sockaddr.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	if ((family == MESH_FAMILY_IPV6 ? options_set_ipv6(fd) : options_set_ipv4(fd)) &&
	    (!port || option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1)) &&
	    !bind(fd, (struct sockaddr *)&sockaddr, len))
		return fd;
	ret = -errno;
	mesh_descriptor_close(fd);
	return ret;
}

int mesh_datagram_watch(struct mesh_engine *engine, struct mesh_watch *watch,
			enum mesh_family family, uint16_t port)
{
	int fd = mesh_datagram_open(family, port), ret;

	if (fd < 0)
		return fd;
	watch->fd = fd;
	ret = engine ? mesh_engine_watch(engine, watch, EPOLLIN) : 0;
	if (ret) {
		mesh_descriptor_close(fd);
		watch->fd = -1;
	}
	return ret;
}

static void control_put(struct msghdr *message, int level, int type, const void *info, size_t size)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);

	control->cmsg_level = level;
	control->cmsg_type = type;
	control->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(control), info, size);
	message->msg_controllen = CMSG_SPACE(size);
}

/* Adds the NIC and the source address. */
static void control_add(struct msghdr *message, unsigned int ifindex, const struct mesh_addr *from)
{
	struct in6_pktinfo ipv6 = {.ipi6_ifindex = ifindex};
	struct in_pktinfo ipv4 = {.ipi_ifindex = (int)ifindex};

	if (from->family == MESH_FAMILY_IPV6) {
		memcpy(&ipv6.ipi6_addr, from->bytes, sizeof(ipv6.ipi6_addr));
		control_put(message, IPPROTO_IPV6, IPV6_PKTINFO, &ipv6, sizeof(ipv6));
	} else {
		memcpy(&ipv4.ipi_spec_dst, from->bytes, sizeof(ipv4.ipi_spec_dst));
		control_put(message, IPPROTO_IP, IP_PKTINFO, &ipv4, sizeof(ipv4));
	}
}

int mesh_datagram_send(int fd, unsigned int ifindex, const struct mesh_addr *from,
		       const struct mesh_addr *to, uint16_t port, const void *datagram, size_t size)
{
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES] = {0};
	struct iovec bytes = {(void *)datagram, size};
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

/* Reads the NIC; returns the hop limit, -1 if the kernel does not say. */
static int control_read(struct msghdr *message, unsigned int *ifindex)
{
	struct cmsghdr *control;
	struct in6_pktinfo ipv6;
	struct in_pktinfo ipv4;
	int hops = -1;

	*ifindex = 0;
	for (control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		bool is_ipv6 = control->cmsg_level == IPPROTO_IPV6;

		if (is_ipv6 && control->cmsg_type == IPV6_PKTINFO) {
			memcpy(&ipv6, CMSG_DATA(control), sizeof(ipv6));
			*ifindex = ipv6.ipi6_ifindex;
		} else if (!is_ipv6 && control->cmsg_type == IP_PKTINFO) {
			memcpy(&ipv4, CMSG_DATA(control), sizeof(ipv4));
			*ifindex = (unsigned int)ipv4.ipi_ifindex;
		} else if (control->cmsg_type == (is_ipv6 ? IPV6_HOPLIMIT : IP_TTL)) {
			memcpy(&hops, CMSG_DATA(control), sizeof(hops));
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
