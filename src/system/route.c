/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - asks the kernel by which interface a packet would leave. */
#include <errno.h>

#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "system/route.h"

/* libnl translates the kernel's errno into its own numbers; we need the kernel's. */
static int error_read(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	int *kernel_error = arg;

	(void)from;
	*kernel_error = error->error;
	return NL_STOP;
}

static int route_read(struct nl_msg *msg, void *arg)
{
	static const struct nla_policy policy[RTA_MAX + 1] = {
		[RTA_OIF] = {.type = NLA_U32},
	};
	struct nlattr *attrs[RTA_MAX + 1];
	unsigned int *ifindex = arg;

	if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWROUTE ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(struct rtmsg), attrs, RTA_MAX, policy))
		return NL_SKIP;
	if (attrs[RTA_OIF])
		*ifindex = nla_get_u32(attrs[RTA_OIF]);
	return NL_OK;
}

/* Returns 0 or a negative error of libnl. */
static int question_fill(struct nl_msg *msg, const struct mesh_addr *source,
			 const struct mesh_addr *destination)
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
	return ret ? ret : nla_put(msg, RTA_DST, size, destination->bytes);
}

/*
 * Sends @msg over @sock; the kernel answers at once. Returns 0; the kernel's own error, a negative
 * errno; -EIO.
 */
static int kernel_ask(struct nl_sock *sock, struct nl_msg *msg, unsigned int *ifindex)
{
	int ret, kernel_error = 0;

	nl_socket_disable_auto_ack(sock);
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, route_read, ifindex);
	nl_socket_modify_err_cb(sock, NL_CB_CUSTOM, error_read, &kernel_error);
	ret = nl_connect(sock, NETLINK_ROUTE);
	if (!ret)
		ret = nl_send_auto(sock, msg);
	if (ret >= 0)
		ret = nl_recvmsgs_default(sock);
	return kernel_error ? kernel_error : ret < 0 ? -EIO : 0;
}

int mesh_route_find(const struct mesh_addr *source, const struct mesh_addr *destination,
		    unsigned int *ifindex)
{
	unsigned int found = 0;
	struct nl_sock *sock;
	struct nl_msg *msg;
	int ret = -ENOMEM;

	if (source->family != destination->family || !mesh_addr_size(source->family))
		return -EINVAL;
	sock = nl_socket_alloc();
	msg = nlmsg_alloc_simple(RTM_GETROUTE, NLM_F_REQUEST);
	if (sock && msg && !question_fill(msg, source, destination))
		ret = kernel_ask(sock, msg, &found);
	nlmsg_free(msg);
	nl_socket_free(sock);
	if (ret)
		return ret;
	*ifindex = found;
	return found ? 0 : -EIO;
}

bool mesh_route_leads(const struct mesh_addr *source, unsigned int ifindex,
		      const struct mesh_addr *destination)
{
	unsigned int leaves_by;

	return !mesh_route_find(source, destination, &leaves_by) && leaves_by == ifindex;
}
