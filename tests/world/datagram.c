/* SPDX-License-Identifier: Apache-2.0 */
/* datagram.c - UDP with its source and its NIC, as neighbours.c needs it. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#include "kernel.h"

#define QUEUE_MAX 64
#define TTL_DEFAULT 64

struct datagram {
	struct world_node *node; /* where it arrives */
	unsigned int ifindex;
	struct sockaddr_in from, to;
	int ttl;
	size_t size;
	uint8_t bytes[];
};

struct udp {
	struct world_file file;
	LIST_ENTRY(udp) entry;
	struct sockaddr_in local;
	int ttl;
	struct datagram *queue[QUEUE_MAX];
	int num;
};

static LIST_HEAD(, udp) sockets;

static bool is_group(struct in_addr addr)
{
	return ntohl(addr.s_addr) >> 28 == 14;
}

static void datagram_arrives(void *arg, uint64_t arrived)
{
	struct datagram *datagram = arg, *copy;
	struct udp *udp;

	LIST_FOREACH(udp, &sockets, entry) {
		if (!arrived || udp->file.node != datagram->node || udp->num == QUEUE_MAX ||
		    udp->local.sin_port != datagram->to.sin_port ||
		    (udp->local.sin_addr.s_addr &&
		     udp->local.sin_addr.s_addr != datagram->to.sin_addr.s_addr))
			continue;
		copy = malloc(sizeof(*copy) + datagram->size);
		if (!copy)
			world_die("no memory");
		memcpy(copy, datagram, sizeof(*copy) + datagram->size);
		udp->queue[udp->num++] = copy;
		if (!is_group(datagram->to.sin_addr))
			break;
	}
	free(datagram);
}

static uint32_t udp_events(struct world_file *file)
{
	return (((struct udp *)file)->num ? EPOLLIN : 0) | EPOLLOUT;
}

static void control_put(struct msghdr *message, int type, const void *value, size_t size,
			size_t *used)
{
	struct cmsghdr *control = (void *)((char *)message->msg_control + *used);

	if (!message->msg_control || *used + CMSG_SPACE(size) > message->msg_controllen)
		return;
	control->cmsg_level = IPPROTO_IP;
	control->cmsg_type = type;
	control->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(control), value, size);
	*used += CMSG_SPACE(size);
}

static ssize_t udp_receive(struct world_file *file, struct msghdr *message, int flags)
{
	struct udp *udp = (struct udp *)file;
	int ret = world_file_await(file, EPOLLIN, flags);
	struct in_pktinfo info = {0};
	struct datagram *datagram;
	size_t used = 0;
	ssize_t size;

	if (ret)
		return ret;
	datagram = udp->queue[0];
	memmove(udp->queue, udp->queue + 1, (size_t)--udp->num * sizeof(struct datagram *));
	size = (ssize_t)world_message_put(message, datagram->bytes, datagram->size);
	if (flags & MSG_TRUNC)
		size = (ssize_t)datagram->size;
	if (message->msg_name && message->msg_namelen >= sizeof(datagram->from))
		memcpy(message->msg_name, &datagram->from, sizeof(datagram->from));
	message->msg_namelen = sizeof(datagram->from);
	info.ipi_ifindex = (int)datagram->ifindex;
	info.ipi_addr = datagram->to.sin_addr;
	control_put(message, IP_PKTINFO, &info, sizeof(info), &used);
	control_put(message, IP_TTL, &datagram->ttl, sizeof(datagram->ttl), &used);
	message->msg_controllen = used;
	free(datagram);
	return size;
}

/* The NIC that the sender names, or that the route names. */
static struct world_nic *nic_of(struct udp *udp, const struct msghdr *message,
				const struct sockaddr_in *to, struct in_addr *source)
{
	const struct cmsghdr *control = message->msg_controllen ? CMSG_FIRSTHDR(message) : NULL;
	struct world_node *node = udp->file.node;
	struct in_pktinfo info = {0};

	*source = udp->local.sin_addr;
	if (control && control->cmsg_type == IP_PKTINFO) {
		memcpy(&info, CMSG_DATA(control), sizeof(info));
		*source = info.ipi_spec_dst;
	}
	for (int i = 0; i < node->num_nics; i++) {
		if (node->nics[i].ifindex == (unsigned int)info.ipi_ifindex)
			return &node->nics[i];
	}
	return world_route(node, *source, to->sin_addr);
}

static ssize_t udp_send(struct world_file *file, const struct msghdr *message, int flags)
{
	struct udp *udp = (struct udp *)file;
	size_t i, size = world_message_size(message), put = 0;
	struct datagram *datagram;
	struct sockaddr_in to;
	struct in_addr source;
	struct world_nic *nic;

	if (!message->msg_name || message->msg_namelen < sizeof(to))
		return -EDESTADDRREQ;
	memcpy(&to, message->msg_name, sizeof(to));
	nic = nic_of(udp, message, &to, &source);
	if (!nic)
		return -ENETUNREACH;
	datagram = calloc(1, sizeof(*datagram) + size);
	if (!datagram)
		world_die("no memory");
	datagram->ifindex = world_nic_other(nic, file->node, &datagram->node)->ifindex;
	datagram->to = to;
	datagram->from = udp->local;
	datagram->from.sin_family = AF_INET;
	datagram->from.sin_addr = source.s_addr ? source : nic->addr;
	datagram->ttl = udp->ttl;
	datagram->size = size;
	for (i = 0; i < (size_t)message->msg_iovlen; i++) {
		memcpy(datagram->bytes + put, message->msg_iov[i].iov_base,
		       message->msg_iov[i].iov_len);
		put += message->msg_iov[i].iov_len;
	}
	world_packet_send(nic, size + 42, datagram_arrives, datagram);
	return (ssize_t)size;
}

static void udp_close(struct world_file *file)
{
	struct udp *udp = (struct udp *)file;

	while (udp->num)
		free(udp->queue[--udp->num]);
	LIST_REMOVE(udp, entry);
	free(udp);
}

static int udp_bind(struct world_file *file, const struct sockaddr *name, socklen_t len)
{
	struct udp *udp = (struct udp *)file;

	if (len < sizeof(udp->local))
		return -EINVAL;
	memcpy(&udp->local, name, sizeof(udp->local));
	if (!udp->local.sin_port)
		udp->local.sin_port = htons(file->node->next_port++);
	return 0;
}

static int udp_name(struct world_file *file, bool peer, struct sockaddr_in *name)
{
	if (peer)
		return -ENOTCONN;
	*name = ((struct udp *)file)->local;
	name->sin_family = AF_INET;
	return 0;
}

static int udp_get(struct world_file *file, int level, int option, void *value, socklen_t *len)
{
	memset(value, 0, *len);
	return 0;
}

static int udp_set(struct world_file *file, int level, int option, const void *value)
{
	if (level == IPPROTO_IP && (option == IP_TTL || option == IP_MULTICAST_TTL))
		memcpy(&((struct udp *)file)->ttl, value, sizeof(int));
	return 0;
}

/* SIOCGIFFLAGS, of any socket. */
static int udp_ioctl(struct world_file *file, unsigned long request, void *arg)
{
	struct ifreq *question = arg;
	struct world_node *node = file->node;

	for (int i = 0; i < node->num_nics; i++) {
		if (strcmp(node->nics[i].name, question->ifr_name) != 0)
			continue;
		question->ifr_flags = IFF_UP;
		if (world_nic_runs(&node->nics[i]))
			question->ifr_flags |= IFF_RUNNING;
		return 0;
	}
	return -ENODEV;
}

static const struct world_file_kind udp_kind = {
	.name = "socket:[udp]",
	.events = udp_events,
	.receive = udp_receive,
	.send = udp_send,
	.close = udp_close,
	.bind = udp_bind,
	.name_of = udp_name,
	.get = udp_get,
	.set = udp_set,
	.ioctl = udp_ioctl,
};

struct world_file *world_datagram_new(struct world_node *node)
{
	struct udp *udp = world_file_new(&udp_kind, node, sizeof(*udp));

	udp->ttl = TTL_DEFAULT;
	LIST_INSERT_HEAD(&sockets, udp, entry);
	return &udp->file;
}
