/* SPDX-License-Identifier: Apache-2.0 */
/* link_address.c - whether the kernel knows the link address of a node (by ARP, or NDP). */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "system/link_address.h"
#include "system/route.h"

#define DISCARD_PORT 9
/* The states in which the kernel sends to it at once: its NUD_VALID. */
#define KNOWN (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

struct answer {
	int state; /* NUD_* */
	int error; /* the kernel's own, negative errno */
};

static int state_read(struct nl_msg *msg, void *arg)
{
	const struct ndmsg *header = nlmsg_data(nlmsg_hdr(msg));
	struct answer *answer = arg;

	if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWNEIGH ||
	    !nlmsg_valid_hdr(nlmsg_hdr(msg), sizeof(*header)))
		return NL_SKIP;
	answer->state = header->ndm_state;
	return NL_OK;
}

static int error_read(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	struct answer *answer = arg;

	(void)from;
	answer->error = error->error;
	return NL_STOP;
}

static int request_send(struct nl_sock *sock, const struct mesh_kernel_route *route)
{
	const struct ndmsg header = {
		.ndm_family = route->hop.family == MESH_FAMILY_IPV4 ? AF_INET : AF_INET6,
		.ndm_ifindex = (int)route->ifindex,
	};
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETNEIGH, NLM_F_REQUEST);
	int ret;

	if (!msg)
		return -NLE_NOMEM;
	ret = nlmsg_append(msg, (void *)(uintptr_t)&header, sizeof(header), NLMSG_ALIGNTO);
	if (!ret)
		ret = nla_put(msg, NDA_DST, (int)mesh_addr_size(route->hop.family),
			      route->hop.bytes);
	if (!ret)
		ret = nl_send_auto(sock, msg);
	nlmsg_free(msg);
	return ret < 0 ? ret : 0;
}

/* Returns the state (NUD_*) of the next hop's address, or a negative errno. */
static int state_find(const struct mesh_kernel_route *route)
{
	struct answer answer = {0};
	struct nl_sock *sock = nl_socket_alloc();
	int ret;

	if (!sock)
		return -ENOMEM;
	nl_socket_disable_auto_ack(sock);
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, state_read, &answer);
	nl_socket_modify_err_cb(sock, NL_CB_CUSTOM, error_read, &answer);
	ret = nl_connect(sock, NETLINK_ROUTE);
	if (!ret)
		ret = request_send(sock, route);
	if (!ret)
		ret = nl_recvmsgs_default(sock);
	nl_socket_free(sock);
	if (answer.error)
		return answer.error;
	return ret < 0 ? -EIO : answer.state;
}

/* The kernel keeps the datagram, and asks for the address. False: it does not take it. */
static bool datagram_send(const struct mesh_addr *source, unsigned int ifindex,
			  const struct mesh_addr *destination)
{
	const bool is_ipv4 = source->family == MESH_FAMILY_IPV4;
	const uint32_t by = htonl(ifindex);

	struct sockaddr_storage from, to;
	socklen_t from_len = mesh_addr_to_sockaddr(source, 0, &from);
	socklen_t to_len = mesh_addr_to_sockaddr(destination, DISCARD_PORT, &to);
	int fd = socket(from.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	bool taken;

	if (fd < 0)
		return false;
	taken = !setsockopt(fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
			    is_ipv4 ? IP_UNICAST_IF : IPV6_UNICAST_IF, &by, sizeof(by)) &&
		!bind(fd, (struct sockaddr *)&from, from_len) &&
		!sendto(fd, "", 0, MSG_NOSIGNAL, (struct sockaddr *)&to, to_len);
	close(fd);
	return taken;
}

int mesh_link_address_find(const struct mesh_addr *source, unsigned int ifindex,
			   const struct mesh_addr *destination)
{
	struct mesh_kernel_route route;
	int state;

	if (mesh_route_look(source, destination, ifindex, &route) || route.is_local)
		return 0;
	state = state_find(&route);
	if (state == -ENOENT)
		state = NUD_NONE;
	if (state < 0 || state & KNOWN)
		return 0;
	if (state & NUD_INCOMPLETE) /* it asks already */
		return -EAGAIN;
	return datagram_send(source, ifindex, destination) ? -EAGAIN : 0;
}
