/* SPDX-License-Identifier: Apache-2.0 */
/* netlink_ask.c - one question to the kernel's tables of routes and neighbours, and its answer. */
#include <errno.h>

#include <linux/rtnetlink.h>

#include "system/netlink_ask.h"

/* libnl translates the kernel's errno into its own numbers; we need the kernel's. */
static int error_read(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	int *kernel_error = arg;

	(void)from;
	*kernel_error = error->error;
	return NL_STOP;
}

int mesh_netlink_ask(struct nl_msg *msg, nl_recvmsg_msg_cb_t read, void *arg)
{
	struct nl_sock *sock = nl_socket_alloc();
	int ret, kernel_error = 0;

	if (!sock)
		return -ENOMEM;
	nl_socket_disable_auto_ack(sock);
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, read, arg);
	nl_socket_modify_err_cb(sock, NL_CB_CUSTOM, error_read, &kernel_error);
	ret = nl_connect(sock, NETLINK_ROUTE);
	if (!ret)
		ret = nl_send_auto(sock, msg);
	if (ret >= 0)
		ret = nl_recvmsgs_default(sock);
	nl_socket_free(sock);
	if (kernel_error)
		return kernel_error;
	return ret < 0 ? -EIO : 0;
}
