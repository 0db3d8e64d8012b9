/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - asks the kernel by which interface a packet would leave, and to which node it goes. */
#include <errno.h>
#include <string.h>

#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "system/route.h"

struct answer {
	struct mesh_kernel_route *route; /* ifindex 0: none yet */
	int error;			 /* the kernel's own, negative errno */
};

/* A gateway of the other family comes in RTA_VIA, behind its family. */
static void via_read(const struct nlattr *attr, struct mesh_addr *hop)
{
	enum mesh_family family = MESH_FAMILY_NONE;
	struct rtvia via;

	if (nla_len(attr) < (int)sizeof(via))
		return;
	memcpy(&via, nla_data(attr), sizeof(via));
	if (via.rtvia_family == AF_INET)
		family = MESH_FAMILY_IPV4;
	else if (via.rtvia_family == AF_INET6)
		family = MESH_FAMILY_IPV6;
	if (!family || nla_len(attr) != (int)(sizeof(via) + mesh_addr_size(family)))
		return;
	*hop = (struct mesh_addr){.family = family};
	memcpy(hop->bytes, (const uint8_t *)nla_data(attr) + sizeof(via), mesh_addr_size(family));
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
	struct nlattr *attrs[RTA_MAX + 1];
	struct answer *answer = arg;
	const struct rtmsg *header;

	if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWROUTE ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(struct rtmsg), attrs, RTA_MAX, policy))
		return NL_SKIP;
	if (attrs[RTA_OIF])
		answer->route->ifindex = nla_get_u32(attrs[RTA_OIF]);
	hop_read(attrs[RTA_GATEWAY], attrs[RTA_VIA], &answer->route->hop);
	header = nlmsg_data(nlmsg_hdr(msg));
	answer->route->is_local = header->rtm_type == RTN_LOCAL;
	return NL_OK;
}

/* libnl translates the kernel's errno into its own numbers; we need the kernel's. */
static int error_read(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	struct answer *answer = arg;

	(void)from;
	answer->error = error->error;
	return NL_STOP;
}

static int request_send(struct nl_sock *sock, const struct mesh_addr *source,
			const struct mesh_addr *destination, unsigned int ifindex)
{
	int size = (int)mesh_addr_size(source->family), ret;
	struct rtmsg header = {
		.rtm_family = source->family == MESH_FAMILY_IPV4 ? AF_INET : AF_INET6,
		.rtm_src_len = (unsigned char)(8 * size),
		.rtm_dst_len = (unsigned char)(8 * size),
	};
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETROUTE, NLM_F_REQUEST);

	if (!msg)
		return -NLE_NOMEM;
	ret = nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO);
	if (!ret)
		ret = nla_put(msg, RTA_SRC, size, source->bytes);
	if (!ret)
		ret = nla_put(msg, RTA_DST, size, destination->bytes);
	if (!ret && ifindex)
		ret = nla_put_u32(msg, RTA_OIF, ifindex);
	if (!ret)
		ret = nl_send_auto(sock, msg);
	nlmsg_free(msg);
	return ret < 0 ? ret : 0;
}

int mesh_route_look(const struct mesh_addr *source, const struct mesh_addr *destination,
		    unsigned int ifindex, struct mesh_kernel_route *route)
{
	struct answer answer = {.route = route};
	struct nl_sock *sock;
	int ret;

	if (source->family != destination->family || !mesh_addr_size(source->family))
		return -EINVAL;
	*route = (struct mesh_kernel_route){.hop = {.family = destination->family}};
	memcpy(route->hop.bytes, destination->bytes, sizeof(route->hop.bytes));
	sock = nl_socket_alloc();
	if (!sock)
		return -ENOMEM;
	nl_socket_disable_auto_ack(sock);
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, route_read, &answer);
	nl_socket_modify_err_cb(sock, NL_CB_CUSTOM, error_read, &answer);
	ret = nl_connect(sock, NETLINK_ROUTE);
	if (!ret)
		ret = request_send(sock, source, destination, ifindex);
	if (!ret)
		ret = nl_recvmsgs_default(sock);
	nl_socket_free(sock);
	if (answer.error)
		return answer.error;
	return ret < 0 || !route->ifindex ? -EIO : 0;
}

int mesh_route_find(const struct mesh_addr *source, const struct mesh_addr *destination,
		    unsigned int *ifindex)
{
	struct mesh_kernel_route route;
	int ret = mesh_route_look(source, destination, 0, &route);

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
