/* SPDX-License-Identifier: Apache-2.0 */
/* link_address.c - whether the kernel knows the link address of a node (by ARP, or NDP). */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "system/link_address.h"
#include "system/netlink_ask.h"
#include "system/route.h"

#define DISCARD_PORT 9
/* The states in which the kernel sends to it at once: its NUD_VALID. */
#define KNOWN (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

static int state_read(struct nl_msg *msg, void *arg)
{
	const struct ndmsg *header = nlmsg_data(nlmsg_hdr(msg));
	int *state = arg;

	if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWNEIGH ||
	    !nlmsg_valid_hdr(nlmsg_hdr(msg), sizeof(*header)))
		return NL_SKIP;
	*state = header->ndm_state;
	return NL_OK;
}

/* Returns 0 or a negative error of libnl. */
static int question_fill(struct nl_msg *msg, const struct mesh_kernel_route *route)
{
	struct ndmsg header = {
		.ndm_family = route->hop.family == MESH_FAMILY_IPV4 ? AF_INET : AF_INET6,
		.ndm_ifindex = (int)route->ifindex,
	};
	int ret = nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO);

	return ret ? ret
		   : nla_put(msg, NDA_DST, (int)mesh_addr_size(route->hop.family),
			     route->hop.bytes);
}

/* Returns the state (NUD_*) of the next hop's address, or a negative errno. */
static int state_find(const struct mesh_kernel_route *route)
{
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETNEIGH, NLM_F_REQUEST);
	int ret, state = 0;

	if (!msg)
		return -ENOMEM;
	ret = question_fill(msg, route) ? -EIO : mesh_netlink_ask(msg, state_read, &state);
	nlmsg_free(msg);
	return ret ? ret : state;
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
