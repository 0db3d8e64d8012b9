/* SPDX-License-Identifier: Apache-2.0 */
/* carrier.c - whether a NIC has a carrier now. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system/carrier.h"

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
