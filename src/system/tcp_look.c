/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_look.c - the kernel's state of a TCP connection, its round trip, what it may have in flight,
 * and keep-alive.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include "system/tcp_look.h"

/* States of net/tcp_states.h; netinet/tcp.h has them, but conflicts with linux/tcp.h. */
#define STATE_SYN_SENT 2
#define STATE_SYN_RECV 3
#define STATE_CLOSE 7
#define STATE_LISTEN 10

uint64_t mesh_socket_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) ? 0 : cookie;
}

static bool state_is_connected(uint8_t state)
{
	return state != STATE_SYN_SENT && state != STATE_SYN_RECV && state != STATE_CLOSE &&
	       state != STATE_LISTEN;
}

/* Returns false if @fd is no TCP socket. */
static bool info_read(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

int mesh_tcp_look(int fd, struct mesh_tcp_look *look)
{
	struct tcp_info info;
	int queued = 0;

	if (!info_read(fd, &info) || !state_is_connected(info.tcpi_state) ||
	    ioctl(fd, SIOCOUTQ, &queued))
		return -ENOTCONN;
	look->bytes_acked = info.tcpi_bytes_acked;
	look->queued = queued > 0 ? (uint32_t)queued : 0;
	look->unacked = info.tcpi_unacked;
	look->segments_in = info.tcpi_segs_in;
	look->data_segments_in = info.tcpi_data_segs_in;
	look->resent = info.tcpi_total_retrans;
	look->retries = info.tcpi_retransmits;
	look->probes = info.tcpi_probes;
	look->heard_ago_ms = info.tcpi_last_ack_recv < info.tcpi_last_data_recv
				     ? info.tcpi_last_ack_recv
				     : info.tcpi_last_data_recv;
	look->cookie = mesh_socket_cookie(fd);
	return 0;
}

bool mesh_tcp_received(int fd, uint64_t *received, uint32_t *unread)
{
	struct tcp_info info;
	int left = 0;

	if (!info_read(fd, &info) || ioctl(fd, SIOCINQ, &left))
		return false;
	*received = info.tcpi_bytes_received;
	*unread = left > 0 ? (uint32_t)left : 0;
	return true;
}

int mesh_tcp_error_take(int fd)
{
	socklen_t len = sizeof(int);
	int error = 0;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return -error;
}

void mesh_tcp_keepalive_set(int fd, const struct mesh_tcp_keepalive *keepalive)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &keepalive->count, sizeof(keepalive->count));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &keepalive->interval_s,
		   sizeof(keepalive->interval_s));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive->idle_s, sizeof(keepalive->idle_s));
}

uint64_t mesh_socket_round_trip_ns(int fd)
{
	struct tcp_info info;

	if (!info_read(fd, &info) || info.tcpi_min_rtt == UINT32_MAX) /* net/ipv4/tcp.c: none yet */
		return 0;
	return info.tcpi_min_rtt ? info.tcpi_min_rtt * 1000ull : 1;
}

/* The third number of such a file is the largest buffer, in bytes; 0 where it has none. */
static uint64_t limit_read(const char *root, const char *name)
{
	char path[PATH_MAX];
	uint64_t limit = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/sys/net/ipv4/%s", root, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*u %*u %" SCNu64, &limit) != 1)
		limit = 0;
	fclose(file);
	return limit;
}

uint64_t mesh_tcp_window_bytes(const char *root)
{
	uint64_t sent = limit_read(root, "tcp_wmem"), received = limit_read(root, "tcp_rmem");

	return (sent < received ? sent : received) / 2;
}
