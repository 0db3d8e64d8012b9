/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.c - TCP as the plugin and libfabric can see it: streams that a lost packet delays by
 * retransmission, with Linux's times; what becomes of a connection whose other end is gone, is cut
 * off, or does not read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tcp.h"

#define HEADER_BYTES 66
#define FLIGHT_BYTES ((size_t)256 << 10)
/* Linux: TCP_RTO_MAX, tcp_syn_retries, tcp_retries2, tcp_orphan_retries. */
#define RTO_MAX_NS (120 * WORLD_S)
#define SYN_RETRIES 6
#define RETRIES 15
#define ORPHAN_RETRIES 8

struct packet {
	struct world_node *node; /* where it arrives */
	struct sockaddr_in from, to;
	int flags;
	uint64_t sequence, ack, edge;
	size_t size;
	uint8_t bytes[];
};

struct tcp_list tcp_sockets;

/* ---- bytes --------------------------------------------------------------------------------- */

void tcp_bytes_add(struct bytes *bytes, const void *data, size_t size)
{
	if (!bytes->size) {
		bytes->first = 0;
	} else if (bytes->first + bytes->size + size > bytes->room) {
		memmove(bytes->data, bytes->data + bytes->first, bytes->size);
		bytes->first = 0;
	}
	if (bytes->size + size > bytes->room) {
		bytes->room = 2 * (bytes->size + size);
		bytes->data = realloc(bytes->data, bytes->room);
		if (!bytes->data)
			world_die("no memory");
	}
	memcpy(bytes->data + bytes->first + bytes->size, data, size);
	bytes->size += size;
}

void tcp_bytes_drop(struct bytes *bytes, size_t size)
{
	bytes->size -= size;
	bytes->first = bytes->size ? bytes->first + size : 0;
}

static void bytes_free(struct bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct bytes){.data = NULL};
}

/* ---- sockets ------------------------------------------------------------------------------- */

static bool name_equal(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

static struct tcp *tcp_find(struct world_node *node, const struct sockaddr_in *local,
			    const struct sockaddr_in *peer)
{
	struct tcp *tcp;

	LIST_FOREACH(tcp, &tcp_sockets, entry) {
		if (tcp->file.node == node && tcp->state > TCP_LISTENS &&
		    name_equal(&tcp->local, local) && name_equal(&tcp->peer, peer))
			return tcp;
	}
	return NULL;
}

static struct tcp *listener_find(struct world_node *node, const struct sockaddr_in *local)
{
	struct tcp *tcp;

	LIST_FOREACH(tcp, &tcp_sockets, entry) {
		if (tcp->file.node == node && tcp->state == TCP_LISTENS &&
		    tcp->local.sin_port == local->sin_port &&
		    (!tcp->local.sin_addr.s_addr ||
		     tcp->local.sin_addr.s_addr == local->sin_addr.s_addr))
			return tcp;
	}
	return NULL;
}

void tcp_free(struct tcp *tcp)
{
	LIST_REMOVE(tcp, entry);
	bytes_free(&tcp->in);
	bytes_free(&tcp->out);
	free(tcp);
}

/* ---- packets ------------------------------------------------------------------------------- */

static void packet_arrives(void *arg, uint64_t arrived);

static void packet_send(struct world_node *node, const struct packet *head, const uint8_t *bytes)
{
	struct world_nic *nic = world_route(node, head->from.sin_addr, head->to.sin_addr);
	struct packet *packet;

	if (!nic)
		return;
	packet = malloc(sizeof(*packet) + head->size);
	if (!packet)
		world_die("no memory");
	*packet = *head;
	if (head->size)
		memcpy(packet->bytes, bytes, head->size);
	world_nic_other(nic, node, &packet->node);
	world_packet_send(nic, HEADER_BYTES + head->size, packet_arrives, packet);
}

static uint64_t window_edge(const struct tcp *tcp)
{
	size_t room = tcp->in.size < TCP_RECEIVE_BYTES ? TCP_RECEIVE_BYTES - tcp->in.size : 0;

	return tcp->expected + room;
}

void tcp_packet_send(struct tcp *tcp, int flags, uint64_t sequence, size_t size)
{
	const struct packet head = {
		.from = tcp->local,
		.to = tcp->peer,
		.flags = flags,
		.sequence = sequence,
		.ack = tcp->expected,
		.edge = window_edge(tcp),
		.size = size,
	};

	packet_send(tcp->file.node, &head,
		    size ? tcp->out.data + tcp->out.first + (sequence - tcp->una) : NULL);
}

/* ---- sending ------------------------------------------------------------------------------- */

static void timer_runs(void *arg, uint64_t cookie);

static void timer_set(struct tcp *tcp, uint64_t due_ns)
{
	tcp->due_ns = due_ns;
	if (tcp->look_ns && tcp->look_ns <= due_ns)
		return;
	tcp->look_ns = due_ns;
	world_at(due_ns, timer_runs, NULL, tcp->file.cookie);
}

/* When to resend; no later than the user timeout, which resend() checks. */
static uint64_t resend_ns(const struct tcp *tcp)
{
	uint64_t rto_ns = world.now_ns + tcp->rto_ns;
	uint64_t limit_ns = tcp->waits_since_ns + tcp->user_timeout_ns;

	return tcp->user_timeout_ns && tcp->waits_since_ns && limit_ns < rto_ns ? limit_ns : rto_ns;
}

void tcp_timer_arm(struct tcp *tcp)
{
	if (tcp->state != TCP_IS_UP || tcp->out.size || tcp->next > tcp->una)
		timer_set(tcp, resend_ns(tcp));
	else if (tcp->keepalive && tcp->state == TCP_IS_UP)
		timer_set(tcp,
			  tcp->heard_ns + tcp->idle_ns + (uint64_t)tcp->probes * tcp->interval_ns);
	else
		tcp->due_ns = 0;
}

static uint64_t sequence_end(const struct tcp *tcp)
{
	return tcp->una + tcp->out.size;
}

void tcp_output(struct tcp *tcp)
{
	uint64_t limit = tcp->una + FLIGHT_BYTES;
	size_t size;

	if (tcp->state != TCP_IS_UP)
		return;
	if (limit > tcp->edge)
		limit = tcp->edge;
	if (limit > sequence_end(tcp))
		limit = sequence_end(tcp);
	if ((tcp->out.size || tcp->end == TCP_ENDS) && !tcp->waits_since_ns)
		tcp->waits_since_ns = world.now_ns;
	while (tcp->next < limit) {
		size = limit - tcp->next < TCP_SEGMENT_BYTES ? limit - tcp->next
							     : TCP_SEGMENT_BYTES;
		tcp_packet_send(tcp, TCP_ACK, tcp->next, size);
		tcp->next += size;
	}
	if (tcp->end == TCP_ENDS && tcp->next == sequence_end(tcp)) {
		tcp_packet_send(tcp, TCP_ACK | TCP_FIN, tcp->next, 0);
		tcp->next++;
	}
	if ((tcp->next > tcp->una || tcp->out.size) &&
	    (!tcp->due_ns || tcp->due_ns > world.now_ns + tcp->rto_ns))
		timer_set(tcp, world.now_ns + tcp->rto_ns);
}

/* The connection is over: the next call learns of it. */
static void tcp_fail(struct tcp *tcp, int error)
{
	tcp->state = TCP_IS_CLOSED;
	tcp->error = error;
	tcp->shut = true;
	tcp->out.size = 0;
	tcp->due_ns = 0;
	if (tcp->orphan)
		tcp_free(tcp);
}

void tcp_reset(struct tcp *tcp)
{
	if (tcp->state == TCP_IS_UP)
		tcp_packet_send(tcp, TCP_RST | TCP_ACK, tcp->next, 0);
	tcp->state = TCP_IS_CLOSED;
	tcp->out.size = 0;
	tcp->due_ns = 0;
}

/* Nothing has been acknowledged for so long. */
static void resend(struct tcp *tcp)
{
	int limit = tcp->state != TCP_IS_UP ? SYN_RETRIES : tcp->orphan ? ORPHAN_RETRIES : RETRIES;
	bool late = tcp->user_timeout_ns && tcp->waits_since_ns &&
		    world.now_ns - tcp->waits_since_ns >= tcp->user_timeout_ns;

	if (late || tcp->retries >= limit) {
		tcp_fail(tcp, ETIMEDOUT);
		return;
	}
	tcp->retries++;
	tcp->resent++;
	tcp->rto_ns = tcp->rto_ns * 2 < RTO_MAX_NS ? tcp->rto_ns * 2 : RTO_MAX_NS;
	tcp_timer_arm(tcp);
	if (tcp->state != TCP_IS_UP) {
		tcp_packet_send(tcp, tcp->state == TCP_CONNECTS ? TCP_SYN : TCP_SYN | TCP_ACK, 0,
				0);
		return;
	}
	tcp->next = tcp->una;
	tcp->recovers = 0;
	if (tcp->edge <= tcp->una)
		tcp_packet_send(tcp, TCP_ACK | TCP_PROBE, tcp->una, 0);
	else
		tcp_output(tcp);
}

static bool keepalive_is_over(const struct tcp *tcp)
{
	if (tcp->user_timeout_ns)
		return tcp->probes && world.now_ns - tcp->heard_ns >= tcp->user_timeout_ns;
	return tcp->probes >= tcp->probes_max;
}

static void keepalive(struct tcp *tcp)
{
	tcp_timer_arm(tcp); /* something may have been heard since */
	if (!tcp->due_ns || tcp->due_ns > world.now_ns)
		return;
	if (keepalive_is_over(tcp)) {
		tcp_reset(tcp);
		tcp_fail(tcp, ETIMEDOUT);
		return;
	}
	tcp->probes++;
	tcp_packet_send(tcp, TCP_ACK | TCP_PROBE, tcp->next, 0);
	tcp_timer_arm(tcp);
}

static void timer_runs(void *arg, uint64_t cookie)
{
	struct tcp *tcp;

	LIST_FOREACH(tcp, &tcp_sockets, entry) {
		if (tcp->file.cookie == cookie)
			break;
	}
	if (!tcp || tcp->look_ns > world.now_ns)
		return;
	tcp->look_ns = 0;
	if (!tcp->due_ns)
		return;
	if (tcp->due_ns > world.now_ns)
		timer_set(tcp, tcp->due_ns);
	else if (tcp->state != TCP_IS_UP || tcp->out.size || tcp->next > tcp->una)
		resend(tcp);
	else
		keepalive(tcp);
}

/* ---- arriving ------------------------------------------------------------------------------ */

static void refuse(const struct packet *packet)
{
	const struct packet answer = {
		.from = packet->to, .to = packet->from, .flags = TCP_RST | TCP_ACK};

	if (!(packet->flags & TCP_RST))
		packet_send(packet->node, &answer, NULL);
}

static void up(struct tcp *tcp)
{
	tcp->state = TCP_IS_UP;
	tcp->una = tcp->next = tcp->expected = 1;
	tcp->edge = 1 + TCP_RECEIVE_BYTES;
	tcp->retries = 0;
	tcp->rto_ns = TCP_RTO_MIN_NS;
	tcp->waits_since_ns = 0;
	tcp->heard_ns = world.now_ns;
	tcp->due_ns = 0;
}

static void syn_arrives(const struct packet *packet)
{
	struct tcp *tcp;

	if (ntohs(packet->to.sin_port) == packet->node->closed_port)
		return;
	if (!listener_find(packet->node, &packet->to)) {
		refuse(packet);
		return;
	}
	tcp = tcp_make(packet->node);
	tcp->local = packet->to;
	tcp->peer = packet->from;
	tcp->state = TCP_ANSWERS;
	tcp->orphan = true;
	tcp->rto_ns = TCP_SYN_RTO_NS;
	tcp_packet_send(tcp, TCP_SYN | TCP_ACK, 0, 0);
	tcp_timer_arm(tcp);
}

static void ack_arrives(struct tcp *tcp, const struct packet *packet)
{
	uint64_t end = sequence_end(tcp);

	if (packet->edge > tcp->edge) {
		if (tcp->edge <= tcp->una) /* the probes of a closed window end */
			tcp->rto_ns = TCP_RTO_MIN_NS;
		tcp->edge = packet->edge;
	}
	if (packet->ack > tcp->una && packet->ack <= end + (tcp->end == TCP_ENDS)) {
		tcp_bytes_drop(&tcp->out, (packet->ack < end ? packet->ack : end) - tcp->una);
		tcp->una = packet->ack;
		if (tcp->next < tcp->una)
			tcp->next = tcp->una;
		if (packet->ack == end + 1)
			tcp->end = TCP_HAS_ENDED;
		tcp->retries = 0;
		tcp->rto_ns = TCP_RTO_MIN_NS;
		tcp->waits_since_ns = tcp->out.size || tcp->end == TCP_ENDS ? world.now_ns : 0;
		tcp_timer_arm(tcp);
	} else if (packet->flags & TCP_GAP && packet->ack == tcp->una && tcp->next > tcp->una &&
		   packet->ack >= tcp->recovers) {
		tcp->recovers = tcp->next;
		tcp->resent++;
		tcp->next = tcp->una;
	} else if (tcp->edge <= tcp->una) { /* alive, but it does not read */
		tcp->retries = 0;
	}
	tcp_output(tcp);
}

/* Returns whether an answer is due. */
static bool data_arrives(struct tcp *tcp, const struct packet *packet)
{
	bool answers = packet->size || packet->flags & TCP_FIN;
	size_t known;

	if (packet->sequence > tcp->expected)
		return answers;
	known = tcp->expected - packet->sequence;
	if (known < packet->size) {
		tcp->received += packet->size - known;
		tcp_bytes_add(&tcp->in, packet->bytes + known, packet->size - known);
		tcp->expected += packet->size - known;
	}
	if (packet->flags & TCP_FIN && packet->sequence + packet->size == tcp->expected &&
	    !tcp->ended) {
		tcp->ended = true;
		tcp->expected++;
	}
	return answers;
}

bool tcp_is_done(const struct tcp *tcp)
{
	return tcp->orphan && tcp->end == TCP_HAS_ENDED && tcp->ended;
}

static void established_arrives(struct tcp *tcp, const struct packet *packet)
{
	bool answers, lost = packet->sequence > tcp->expected;

	tcp->segments_in++;
	tcp->data_segments_in += packet->size > 0;
	/* A probe lies outside of the window: Linux answers it, and looks at nothing else in it. */
	if (packet->flags & TCP_PROBE) {
		tcp_packet_send(tcp, TCP_ACK, tcp->next, 0);
		return;
	}
	tcp->heard_ns = world.now_ns;
	tcp->probes = 0;
	if (tcp->shut && !tcp->ended && (packet->size || packet->flags & TCP_FIN) &&
	    packet->sequence + packet->size > tcp->expected) {
		tcp_reset(tcp); /* no process will read it: RFC 1122, 4.2.2.13 */
		tcp_fail(tcp, ECONNRESET);
		return;
	}
	answers = data_arrives(tcp, packet);
	if (answers)
		tcp_packet_send(tcp, TCP_ACK | (lost ? TCP_GAP : 0), tcp->next, 0);
	ack_arrives(tcp, packet);
	if (tcp_is_done(tcp))
		tcp_free(tcp);
}

/* The first packet after SYN. */
static void handshake_ends(struct tcp *tcp, const struct packet *packet)
{
	struct tcp *listener = listener_find(packet->node, &packet->to);

	if (!listener) {
		refuse(packet);
		tcp_free(tcp);
	} else if (listener->num_backlog < TCP_BACKLOG_MAX) {
		up(tcp);
		tcp->orphan = false;
		listener->backlog[listener->num_backlog++] = tcp;
		established_arrives(tcp, packet);
	}
}

static void rst_arrives(struct tcp *tcp)
{
	if (tcp->state == TCP_CONNECTS)
		tcp_fail(tcp, ECONNREFUSED);
	else
		tcp_fail(tcp, tcp->ended && !tcp->shut ? EPIPE : ECONNRESET);
}

/* SYN or SYN|ACK for a socket: the next step of the handshake, which is repeated if it was lost. */
static void syn_answer(struct tcp *tcp, const struct packet *packet)
{
	if (tcp->state == TCP_CONNECTS && packet->flags & TCP_ACK)
		up(tcp);
	if (tcp->state == TCP_ANSWERS)
		tcp_packet_send(tcp, TCP_SYN | TCP_ACK, 0, 0);
	else if (tcp->state == TCP_IS_UP)
		tcp_packet_send(tcp, TCP_ACK, tcp->next, 0);
}

static void packet_handle(const struct packet *packet)
{
	struct tcp *tcp = tcp_find(packet->node, &packet->to, &packet->from);

	if (!tcp && packet->flags == TCP_SYN)
		syn_arrives(packet);
	else if (!tcp)
		refuse(packet);
	else if (packet->flags & TCP_RST)
		rst_arrives(tcp);
	else if (packet->flags & TCP_SYN)
		syn_answer(tcp, packet);
	else if (tcp->state == TCP_ANSWERS)
		handshake_ends(tcp, packet);
	else if (tcp->state == TCP_IS_UP)
		established_arrives(tcp, packet);
}

static void packet_arrives(void *arg, uint64_t arrived)
{
	const struct packet *packet = arg;

	if (arrived && (packet->to.sin_addr.s_addr == htonl(INADDR_LOOPBACK) ||
			world_nic_find(packet->node, packet->to.sin_addr)))
		packet_handle(packet);
	free(arg);
}

void world_cable_reset(int cable)
{
	struct tcp *tcp, *next;
	struct world_nic *nic;

	world_say("the connections of cable %d are reset", cable);
	for (tcp = LIST_FIRST(&tcp_sockets); tcp; tcp = next) {
		next = LIST_NEXT(tcp, entry);
		nic = world_nic_find(tcp->file.node, tcp->local.sin_addr);
		if (tcp->state > TCP_LISTENS && nic && nic->cable == cable &&
		    !world_nic_find(tcp->file.node, tcp->peer.sin_addr))
			rst_arrives(tcp);
	}
}
