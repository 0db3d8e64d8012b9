/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - asks the kernel by which interface a packet would leave, and to which node it goes. */
#include <errno.h>
#include <string.h>

#include <linux/rtnetlink.h>

#include "system/netlink_ask.h"
#include "system/route.h"

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
	struct mesh_kernel_route *route = arg;
	struct nlattr *attrs[RTA_MAX + 1];
	const struct rtmsg *header;

	if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWROUTE ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(struct rtmsg), attrs, RTA_MAX, policy))
		return NL_SKIP;
	if (attrs[RTA_OIF])
		route->ifindex = nla_get_u32(attrs[RTA_OIF]);
	hop_read(attrs[RTA_GATEWAY], attrs[RTA_VIA], &route->hop);
	header = nlmsg_data(nlmsg_hdr(msg));
	route->is_local = header->rtm_type == RTN_LOCAL;
	return NL_OK;
}

/* Returns 0 or a negative error of libnl. */
static int question_fill(struct nl_msg *msg, const struct mesh_addr *source,
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

int mesh_route_look(const struct mesh_addr *source, const struct mesh_addr *destination,
		    unsigned int ifindex, struct mesh_kernel_route *route)
{
	struct nl_msg *msg;
	int ret;

	if (source->family != destination->family || !mesh_addr_size(source->family))
		return -EINVAL;
	*route = (struct mesh_kernel_route){.hop = {.family = destination->family}};
	memcpy(route->hop.bytes, destination->bytes, sizeof(route->hop.bytes));
	msg = nlmsg_alloc_simple(RTM_GETROUTE, NLM_F_REQUEST);
	if (!msg)
		return -ENOMEM;
	ret = question_fill(msg, source, destination, ifindex)
		      ? -EIO
		      : mesh_netlink_ask(msg, route_read, route);
	nlmsg_free(msg);
	if (ret)
		return ret;
	return route->ifindex ? 0 : -EIO;
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
