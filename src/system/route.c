/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.c - asks the kernel by which interface a packet would leave, to which node it goes, and
 * whether the kernel knows that node's link address (by ARP, or NDP).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "system/route.h"

#define DISCARD_PORT 9
/* The states in which the kernel sends to it at once: its NUD_VALID. */
#define KNOWN (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

/* Where a packet goes next. */
struct kernel_route {
	unsigned int ifindex; /* the interface by which it leaves */
	/*
	 * The gateway, perhaps of the other family, or the destination, without a scope. No family
	 * if the packet does not leave this node.
	 */
	struct mesh_addr hop;
};

/* libnl translates the kernel's errno into its own numbers; we need the kernel's. */
static int error_read(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	int *kernel_error = arg;

	(void)from;
	*kernel_error = error->error;
	return NL_STOP;
}

/*
 * Sends @msg over a socket of its own and gives each answer to @read, with @arg. The kernel answers
 * at once. Frees @msg, which is NULL if memory is short.
 *
 * @filled: @msg is complete but for what nl_send_auto() fills in
 *
 * Returns 0; the kernel's own error, a negative errno; -ENOMEM; -EIO.
 */
static int kernel_ask(struct nl_msg *msg, bool filled, nl_recvmsg_msg_cb_t read, void *arg)
{
	struct nl_sock *sock = filled ? nl_socket_alloc() : NULL;
	int ret, kernel_error = 0;

	if (!sock) {
		ret = msg && !filled ? -EIO : -ENOMEM;
		goto free_msg;
	}
	nl_socket_disable_auto_ack(sock);
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, read, arg);
	nl_socket_modify_err_cb(sock, NL_CB_CUSTOM, error_read, &kernel_error);
	ret = nl_connect(sock, NETLINK_ROUTE);
	if (!ret)
		ret = nl_send_auto(sock, msg);
	if (ret >= 0)
		ret = nl_recvmsgs_default(sock);
	nl_socket_free(sock);
	ret = kernel_error ? kernel_error : ret < 0 ? -EIO : 0;
free_msg:
	nlmsg_free(msg);
	return ret;
}

/* A gateway of the other family comes in RTA_VIA, behind its family. */
static void via_read(const struct nlattr *attr, struct mesh_addr *hop)
{
	const size_t len = (size_t)nla_len(attr);
	const uint8_t *data = nla_data(attr);
	struct mesh_addr addr;
	struct rtvia via;

	if (len < sizeof(via))
		return;
	memcpy(&via, data, sizeof(via));
	if (mesh_addr_from_bytes(via.rtvia_family, data + sizeof(via), len - sizeof(via), &addr))
		*hop = addr;
}

/* Without a gateway the hop stays the destination. */
static void hop_read(const struct nlattr *gateway, const struct nlattr *via, struct mesh_addr *hop)
{
	if (gateway && nla_len(gateway) == (int)mesh_addr_size(hop->family))
		memcpy(hop->bytes, nla_data(gateway), mesh_addr_size(hop->family));
	else if (via)
		via_read(via, hop);
}

static int route_read(struct nl_msg *msg, void *arg)
{
	static const struct nla_policy policy[RTA_MAX + 1] = {
		[RTA_OIF] = {.type = NLA_U32},
	};
	struct kernel_route *route = arg;
	struct nlattr *attrs[RTA_MAX + 1];
	const struct rtmsg *header;

	if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWROUTE ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(struct rtmsg), attrs, RTA_MAX, policy))
		return NL_SKIP;
	if (attrs[RTA_OIF])
		route->ifindex = nla_get_u32(attrs[RTA_OIF]);
	hop_read(attrs[RTA_GATEWAY], attrs[RTA_VIA], &route->hop);
	header = nlmsg_data(nlmsg_hdr(msg));
	if (header->rtm_type == RTN_LOCAL)
		route->hop.family = MESH_FAMILY_NONE;
	return NL_OK;
}

/* Returns 0 or a negative error of libnl. */
static int route_question_fill(struct nl_msg *msg, const struct mesh_addr *source,
			       const struct mesh_addr *destination, unsigned int ifindex)
{
	int size = (int)mesh_addr_size(source->family), ret;
	struct rtmsg header = {
		.rtm_family = source->family == MESH_FAMILY_IPV4 ? AF_INET : AF_INET6,
		.rtm_src_len = (unsigned char)(8 * size),
		.rtm_dst_len = (unsigned char)(8 * size),
	};

	ret = nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO);
	if (!ret)
		ret = nla_put(msg, RTA_SRC, size, source->bytes);
	if (!ret)
		ret = nla_put(msg, RTA_DST, size, destination->bytes);
	if (!ret && ifindex)
		ret = nla_put_u32(msg, RTA_OIF, ifindex);
	return ret;
}

/*
 * Asks for the route and its next hop, as mesh_route_find().
 *
 * @ifindex: only routes that leave by this interface; 0: any
 */
static int route_look(const struct mesh_addr *source, const struct mesh_addr *destination,
		      unsigned int ifindex, struct kernel_route *route)
{
	struct nl_msg *msg;
	int ret;

	if (source->family != destination->family || !mesh_addr_size(source->family))
		return -EINVAL;
	*route = (struct kernel_route){.hop = {.family = destination->family}};
	memcpy(route->hop.bytes, destination->bytes, sizeof(route->hop.bytes));
	msg = nlmsg_alloc_simple(RTM_GETROUTE, NLM_F_REQUEST);
	ret = kernel_ask(msg, msg && !route_question_fill(msg, source, destination, ifindex),
			 route_read, route);
	if (ret)
		return ret;
	return route->ifindex ? 0 : -EIO;
}

int mesh_route_find(const struct mesh_addr *source, const struct mesh_addr *destination,
		    unsigned int *ifindex)
{
	struct kernel_route route;
	int ret = route_look(source, destination, 0, &route);

	if (!ret)
		*ifindex = route.ifindex;
	return ret;
}

bool mesh_route_leads(const struct mesh_addr *source, unsigned int ifindex,
		      const struct mesh_addr *destination)
{
	unsigned int leaves_by;

	return !mesh_route_find(source, destination, &leaves_by) && leaves_by == ifindex;
}

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
static int state_question_fill(struct nl_msg *msg, const struct kernel_route *route)
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
static int state_find(const struct kernel_route *route)
{
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETNEIGH, NLM_F_REQUEST);
	int state = 0;
	int ret = kernel_ask(msg, msg && !state_question_fill(msg, route), state_read, &state);

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
	struct kernel_route route;
	int state;

	if (route_look(source, destination, ifindex, &route) || !route.hop.family)
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
