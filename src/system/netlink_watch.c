/* SPDX-License-Identifier: Apache-2.0 */
/* netlink_watch.c - a socket that becomes readable when a link or an address changes. */
#include <errno.h>
#include <sys/socket.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "base/descriptors.h"
#include "system/netlink_watch.h"

int mesh_netlink_watch_open(void)
{
	struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd, ret;

	fd = mesh_descriptor_hide(
		socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&groups, sizeof(groups)))
		return fd;
	ret = -errno;
	mesh_descriptor_close(fd);
	return ret;
}

void mesh_netlink_watch_drain(int fd)
{
	char byte;

	/* Reading one byte drops the whole datagram. */
	while (recv(fd, &byte, sizeof(byte), 0) >= 0 || errno == ENOBUFS || errno == EINTR)
		continue;
}
