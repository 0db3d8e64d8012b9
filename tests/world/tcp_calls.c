/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_calls.c - the system calls of TCP sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include <linux/sockios.h>
#include <linux/tcp.h>

#include "tcp.h"

static uint32_t tcp_events(struct world_file *file)
{
	struct tcp *tcp = (struct tcp *)file;

	switch (tcp->state) {
	case TCP_LISTENS:
		return tcp->num_backlog ? EPOLLIN : 0;
	case TCP_CONNECTS:
		return 0;
	default: /* tcp_poll() of Linux */
		return (tcp->in.size ? EPOLLIN : 0) | (tcp->error ? EPOLLERR : 0) |
		       (tcp->ended || tcp->shut ? EPOLLIN | EPOLLRDHUP : 0) |
		       (tcp->shut || tcp->state == TCP_IS_CLOSED ? EPOLLHUP : 0) |
		       (tcp->shut || tcp->out.size < TCP_SEND_BYTES * 2 / 3 ? EPOLLOUT : 0);
	}
}

static int error_take(struct tcp *tcp)
{
	int error = tcp->error;

	tcp->error = 0;
	return -error;
}

static ssize_t tcp_receive_once(struct tcp *tcp, struct msghdr *message, int flags)
{
	size_t had = tcp->in.size, size;
	int ret;

	ret = tcp->in.size ? 0 : world_file_await(&tcp->file, EPOLLIN, flags);
	if (ret)
		return ret;
	if (!tcp->in.size) {
		if (tcp->error && !tcp->ended)
			return error_take(tcp);
		return tcp->ended || tcp->shut ? 0 : -ENOTCONN;
	}
	size = world_message_put(message, tcp->in.data + tcp->in.first, tcp->in.size);
	if (flags & MSG_PEEK)
		return (ssize_t)size;
	tcp_bytes_drop(&tcp->in, size);
	if (had >= TCP_RECEIVE_BYTES / 2 && tcp->in.size < TCP_RECEIVE_BYTES / 2 &&
	    tcp->state == TCP_IS_UP)
		tcp_packet_send(tcp, TCP_ACK, tcp->next, 0);
	return (ssize_t)size;
}

static ssize_t tcp_receive(struct world_file *file, struct msghdr *message, int flags)
{
	struct iovec piece;
	struct msghdr rest = {.msg_iov = &piece, .msg_iovlen = 1};
	ssize_t ret, got;

	got = tcp_receive_once((struct tcp *)file, message, flags);
	if (!(flags & MSG_WAITALL) || file->nonblocking || message->msg_iovlen != 1)
		return got;
	while (got > 0 && (size_t)got < message->msg_iov->iov_len) {
		piece.iov_base = (char *)message->msg_iov->iov_base + got;
		piece.iov_len = message->msg_iov->iov_len - (size_t)got;
		ret = tcp_receive_once((struct tcp *)file, &rest, flags);
		if (ret <= 0)
			return got;
		got += ret;
	}
	return got;
}

static ssize_t tcp_send(struct world_file *file, const struct msghdr *message, int flags)
{
	struct tcp *tcp = (struct tcp *)file;
	size_t i, part, sent = 0;
	int ret;

	if (tcp->error)
		return error_take(tcp);
	if (tcp->end != TCP_MAY_SEND || tcp->state == TCP_IS_CLOSED)
		return -EPIPE;
	ret = world_file_await(file, EPOLLOUT, flags);
	if (ret || tcp->state != TCP_IS_UP)
		return ret ? ret : -EPIPE;
	for (i = 0; i < (size_t)message->msg_iovlen && tcp->out.size < TCP_SEND_BYTES; i++) {
		part = message->msg_iov[i].iov_len;
		if (part > TCP_SEND_BYTES - tcp->out.size)
			part = TCP_SEND_BYTES - tcp->out.size;
		tcp_bytes_add(&tcp->out, message->msg_iov[i].iov_base, part);
		sent += part;
	}
	tcp_output(tcp);
	return (ssize_t)sent;
}

static void end_send(struct tcp *tcp)
{
	tcp->shut = true;
	if (tcp->end == TCP_MAY_SEND)
		tcp->end = TCP_ENDS;
	tcp_output(tcp);
}

static void tcp_close(struct world_file *file)
{
	struct tcp *tcp = (struct tcp *)file;

	for (int i = 0; i < tcp->num_backlog; i++) {
		tcp_reset(tcp->backlog[i]);
		tcp_free(tcp->backlog[i]);
	}
	tcp->num_backlog = 0;
	tcp->keepalive = false;
	if (tcp->in.size)
		tcp_reset(tcp);
	if (tcp->state != TCP_IS_UP) {
		tcp_free(tcp);
		return;
	}
	tcp->orphan = true;
	end_send(tcp);
	if (tcp_is_done(tcp))
		tcp_free(tcp);
}

static int tcp_bind(struct world_file *file, const struct sockaddr *name, socklen_t len)
{
	struct tcp *tcp = (struct tcp *)file, *other;
	struct sockaddr_in in;

	if (len < sizeof(in))
		return -EINVAL;
	memcpy(&in, name, sizeof(in));
	if (in.sin_addr.s_addr && ntohl(in.sin_addr.s_addr) >> 24 != 127 &&
	    !world_nic_find(file->node, in.sin_addr))
		return -EADDRNOTAVAIL;
	if (!in.sin_port)
		in.sin_port = htons(file->node->next_port++);
	LIST_FOREACH(other, &tcp_sockets, entry) {
		if (other->file.node == file->node && other->state == TCP_LISTENS &&
		    other->local.sin_port == in.sin_port &&
		    other->local.sin_addr.s_addr == in.sin_addr.s_addr)
			return -EADDRINUSE;
	}
	tcp->local = in;
	return 0;
}

static int tcp_listen(struct world_file *file, int backlog)
{
	((struct tcp *)file)->state = TCP_LISTENS;
	return 0;
}

static int tcp_accept(struct world_file *file, struct world_file **accepted)
{
	struct tcp *tcp = (struct tcp *)file;

	if (!tcp->num_backlog)
		return -EAGAIN;
	*accepted = &tcp->backlog[0]->file;
	memmove(tcp->backlog, tcp->backlog + 1, (size_t)--tcp->num_backlog * sizeof(struct tcp *));
	return 0;
}

/* Afterwards the socket is like a new one, except for its name and the error. */
static void tcp_disconnect(struct tcp *tcp)
{
	if (tcp->state > TCP_LISTENS)
		tcp->error = ECONNRESET;
	tcp_reset(tcp);
	tcp->in.size = 0;
	tcp->peer.sin_port = 0;
	tcp->ended = tcp->shut = false;
	tcp->end = TCP_MAY_SEND;
}

static int tcp_connect(struct world_file *file, const struct sockaddr *name, socklen_t len)
{
	struct tcp *tcp = (struct tcp *)file;
	struct world_nic *nic;

	if (name->sa_family == AF_UNSPEC) {
		tcp_disconnect(tcp);
		return 0;
	}
	if (tcp->state != TCP_IS_CLOSED)
		return tcp->state == TCP_CONNECTS ? -EALREADY : -EISCONN;
	if (len < sizeof(tcp->peer))
		return -EINVAL;
	memcpy(&tcp->peer, name, sizeof(tcp->peer));
	nic = world_route(file->node, tcp->local.sin_addr, tcp->peer.sin_addr);
	if (!nic)
		return -ENETUNREACH;
	tcp->local.sin_family = AF_INET;
	if (!tcp->local.sin_addr.s_addr)
		tcp->local.sin_addr = nic->cable < 0 ? tcp->peer.sin_addr : nic->addr;
	if (!tcp->local.sin_port)
		tcp->local.sin_port = htons(file->node->next_port++);
	tcp->state = TCP_CONNECTS;
	tcp->rto_ns = TCP_SYN_RTO_NS;
	tcp->waits_since_ns = world.now_ns;
	tcp_packet_send(tcp, TCP_SYN, 0, 0);
	tcp_timer_arm(tcp);
	if (file->nonblocking)
		return -EINPROGRESS;
	world_file_await(file, EPOLLIN | EPOLLOUT, 0);
	return error_take(tcp);
}

static int tcp_shutdown(struct world_file *file)
{
	struct tcp *tcp = (struct tcp *)file;

	if (tcp->state == TCP_LISTENS || tcp->state == TCP_CONNECTS) {
		tcp_disconnect(tcp);
		return 0;
	}
	end_send(tcp);
	return tcp->state == TCP_IS_UP ? 0 : -ENOTCONN;
}

static int tcp_name(struct world_file *file, bool peer, struct sockaddr_in *name)
{
	struct tcp *tcp = (struct tcp *)file;

	if (peer && tcp->state != TCP_IS_UP)
		return -ENOTCONN;
	*name = peer ? tcp->peer : tcp->local;
	name->sin_family = AF_INET;
	return 0;
}

static uint32_t since_ms(uint64_t ns)
{
	return (uint32_t)((world.now_ns - ns) / WORLD_MS);
}

static void info_fill(const struct tcp *tcp, struct tcp_info *info)
{
	static const uint8_t states[] = {7, 10, 2, 3, 1}; /* net/tcp_states.h */

	memset(info, 0, sizeof(*info));
	info->tcpi_state = states[tcp->state];
	info->tcpi_retransmits = (uint8_t)tcp->retries;
	info->tcpi_probes = (uint8_t)tcp->probes;
	info->tcpi_unacked =
		(uint32_t)((tcp->next - tcp->una + TCP_SEGMENT_BYTES - 1) / TCP_SEGMENT_BYTES);
	info->tcpi_last_ack_recv = since_ms(tcp->heard_ns);
	info->tcpi_last_data_recv = info->tcpi_last_ack_recv;
	info->tcpi_rtt = info->tcpi_min_rtt = 100;
	info->tcpi_total_retrans = (uint32_t)tcp->resent;
	info->tcpi_bytes_acked = tcp->una;
	info->tcpi_bytes_received = tcp->received;
	info->tcpi_segs_in = (uint32_t)tcp->segments_in;
	info->tcpi_data_segs_in = (uint32_t)tcp->data_segments_in;
}

static int tcp_get(struct world_file *file, int level, int option, void *value, socklen_t *len)
{
	struct tcp *tcp = (struct tcp *)file;
	struct tcp_info info;
	int number = 0;

	if (level == IPPROTO_TCP && option == TCP_INFO) {
		info_fill(tcp, &info);
		if (*len > sizeof(info))
			*len = sizeof(info);
		memcpy(value, &info, *len);
		return 0;
	}
	if (level == SOL_SOCKET && option == SO_PEERNAME) {
		if (!tcp->peer.sin_port)
			return -ENOTCONN;
		memcpy(value, &tcp->peer, *len < sizeof(tcp->peer) ? *len : sizeof(tcp->peer));
		return 0;
	}
	if (level == SOL_SOCKET && option == SO_ERROR)
		number = -error_take(tcp);
	else if (level == SOL_SOCKET && option == SO_ACCEPTCONN)
		number = tcp->state == TCP_LISTENS;
	else if (level == SOL_SOCKET && (option == SO_SNDBUF || option == SO_RCVBUF))
		number = TCP_SEND_BYTES;
	memcpy(value, &number, sizeof(number));
	return 0;
}

static int tcp_set(struct world_file *file, int level, int option, const void *value)
{
	struct tcp *tcp = (struct tcp *)file;
	int number;

	memcpy(&number, value, sizeof(number));
	if (level == SOL_SOCKET && option == SO_ZEROCOPY)
		return -ENOPROTOOPT;
	if (level == SOL_SOCKET && option == SO_KEEPALIVE)
		tcp->keepalive = number;
	if (level == IPPROTO_TCP) {
		switch (option) {
		case TCP_USER_TIMEOUT:
			tcp->user_timeout_ns = (uint64_t)number * WORLD_MS;
			break;
		case TCP_KEEPIDLE:
			tcp->idle_ns = (uint64_t)number * WORLD_S;
			break;
		case TCP_KEEPINTVL:
			tcp->interval_ns = (uint64_t)number * WORLD_S;
			break;
		case TCP_KEEPCNT:
			tcp->probes_max = number;
			break;
		case TCP_NODELAY:
			break;
		default: /* TCP_RTO_MAX_MS, of Linux 6.15 */
			return -ENOPROTOOPT;
		}
		if (tcp->state == TCP_IS_UP && !tcp->out.size)
			tcp_timer_arm(tcp);
	}
	return 0;
}

static int tcp_ioctl(struct world_file *file, unsigned long request, void *arg)
{
	struct tcp *tcp = (struct tcp *)file;

	if (request == SIOCINQ)
		*(int *)arg = (int)tcp->in.size;
	else if (request == SIOCOUTQ)
		*(int *)arg = (int)tcp->out.size;
	else
		return -ENOTTY;
	return 0;
}

static const struct world_file_kind tcp_kind = {
	.name = "socket:[tcp]",
	.events = tcp_events,
	.receive = tcp_receive,
	.send = tcp_send,
	.close = tcp_close,
	.bind = tcp_bind,
	.listen = tcp_listen,
	.accept = tcp_accept,
	.connect = tcp_connect,
	.shutdown = tcp_shutdown,
	.name_of = tcp_name,
	.get = tcp_get,
	.set = tcp_set,
	.ioctl = tcp_ioctl,
};

struct tcp *tcp_make(struct world_node *node)
{
	struct tcp *tcp = world_file_new(&tcp_kind, node, sizeof(*tcp));

	tcp->rto_ns = TCP_RTO_MIN_NS;
	tcp->idle_ns = 7200 * WORLD_S;
	tcp->interval_ns = 75 * WORLD_S;
	tcp->probes_max = 9;
	tcp->heard_ns = world.now_ns;
	LIST_INSERT_HEAD(&tcp_sockets, tcp, entry);
	return tcp;
}

struct world_file *world_tcp_new(struct world_node *node)
{
	return &tcp_make(node)->file;
}
