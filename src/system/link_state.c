/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_state.c - whether a NIC has a carrier now, and a socket that becomes readable when a link
 * or an address changes.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "base/descriptors.h"
#include "system/link_state.h"

/* @fd: any socket */
static bool nic_runs(int fd, const struct mesh_nic *nic)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", nic->netdev);
	if (ioctl(fd, SIOCGIFFLAGS, &request))
		return errno != ENODEV;
	return request.ifr_flags & IFF_RUNNING;
}

bool mesh_carrier_is_up(const struct mesh_nic *nic)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool runs;

	if (fd < 0)
		return true;
	runs = nic_runs(fd, nic);
	close(fd);
	return runs;
}

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
