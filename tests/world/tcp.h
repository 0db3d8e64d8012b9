/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.h - a TCP socket: tcp.c moves its packets, tcp_calls.c is what a process calls. */
#ifndef TESTS_WORLD_TCP_H
#define TESTS_WORLD_TCP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "kernel.h"

#define TCP_SEGMENT_BYTES 65536
#define TCP_SEND_BYTES ((size_t)1 << 20)
#define TCP_RECEIVE_BYTES ((size_t)1 << 20)
#define TCP_BACKLOG_MAX 512
#define TCP_RTO_MIN_NS (200 * WORLD_MS)
#define TCP_SYN_RTO_NS (1 * WORLD_S)

enum tcp_state {
	TCP_IS_CLOSED,
	TCP_LISTENS,
	TCP_CONNECTS, /* SYN_SENT */
	TCP_ANSWERS,  /* SYN_RECV: not in the listener's backlog yet */
	TCP_IS_UP,    /* ESTABLISHED, and all states after it */
};

struct bytes {
	uint8_t *data;
	size_t first, size, room;
};

struct tcp {
	struct world_file file;
	LIST_ENTRY(tcp) entry;
	enum tcp_state state;
	struct sockaddr_in local, peer;
	int error;   /* for the next call */
	bool orphan; /* nobody has a descriptor */
	/* A listener's. */
	struct tcp *backlog[TCP_BACKLOG_MAX];
	int num_backlog;
	/* Sending: [una, next) is in flight, [una, una + out.size) is kept; the end counts as 1. */
	struct bytes out;
	uint64_t una, next, edge, recovers;
	enum {
		TCP_MAY_SEND,
		TCP_ENDS,
		TCP_HAS_ENDED
	} end; /* the last two: shut down for sending */
	int retries;
	uint64_t rto_ns, waits_since_ns;
	/* Receiving. */
	struct bytes in;
	uint64_t expected;
	bool ended; /* by the other end */
	bool shut;  /* by shutdown() or a failure, in both directions */
	/* The one timer, and when a look at it comes; 0: none. */
	uint64_t due_ns, look_ns;
	/* Options, and what TCP_INFO shows. */
	uint64_t user_timeout_ns, idle_ns, interval_ns;
	int probes_max, probes;
	bool keepalive;
	uint64_t heard_ns, resent, segments_in, data_segments_in, received;
};

/* What a packet is. */
enum {
	TCP_SYN = 1,
	TCP_ACK = 2,
	TCP_FIN = 4,
	TCP_RST = 8,
	TCP_PROBE = 16, /* of keepalive or of a closed window: must be answered */
	TCP_GAP = 32,	/* a packet before it is missing: the sender resends */
};

LIST_HEAD(tcp_list, tcp);

/** All of the world. */
extern struct tcp_list tcp_sockets;

/** A socket of a node, which is closed. */
struct tcp *tcp_make(struct world_node *node);

void tcp_free(struct tcp *tcp);

/** Sends a packet of @size bytes of what waits from @sequence on. */
void tcp_packet_send(struct tcp *tcp, int flags, uint64_t sequence, size_t size);

/** Sends what may be sent now. */
void tcp_output(struct tcp *tcp);

/** Sets the timer: to send again, or to ask whether the other end lives. */
void tcp_timer_arm(struct tcp *tcp);

/** Sends RST and closes the connection. What it holds is dropped. */
void tcp_reset(struct tcp *tcp);

/** True if nobody needs it any more. */
bool tcp_is_done(const struct tcp *tcp);

void tcp_bytes_add(struct bytes *bytes, const void *data, size_t size);
void tcp_bytes_drop(struct bytes *bytes, size_t size);

#endif
