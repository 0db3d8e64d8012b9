/* SPDX-License-Identifier: Apache-2.0 */
/* round_trip.c - a file of its own, because linux/tcp.h and netinet/tcp.h exclude each other. */
#include "system/round_trip.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

uint64_t mesh_socket_round_trip_ns(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    len < offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt))
		return 0;
	if (info.tcpi_min_rtt == UINT32_MAX) /* net/ipv4/tcp.c: none yet */
		return 0;
	return info.tcpi_min_rtt ? info.tcpi_min_rtt * 1000ull : 1;
}
