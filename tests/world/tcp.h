/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.h - a TCP socket: tcp.c sends and handles packets, tcp_calls.c has the system calls.
 *
 * As in Linux: retransmission times, timeouts, keepalive, windows, resets, states. Left out:
 * congestion control (a fixed flight), SACK and the queue of segments out of order, tail loss
 * probes, TIME_WAIT, ARP and ICMP (a peer that is cut off gives ETIMEDOUT, never EHOSTUNREACH).
 * Sequence numbers have 64 bits; SYN has number 0, data begins at 1, FIN comes after the data.
 */
#ifndef TESTS_WORLD_TCP_H
#define TESTS_WORLD_TCP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "kernel.h"

#define TCP_SEGMENT_BYTES 65536
#define TCP_SEND_BYTES (world.socket_bytes)
#define TCP_RECEIVE_BYTES (world.socket_bytes)
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
	int error;   /* SO_ERROR: what the next call returns */
	bool orphan; /* no process has a descriptor, or will have one */
	/* A listener's. */
	struct tcp *backlog[TCP_BACKLOG_MAX];
	int num_backlog;
	/*
	 * Sending: out holds [una, una + out.size), of which [una, next) has been sent. FIN counts
	 * as one byte. The receiver takes no byte from edge on. A gap that it reports is ignored
	 * before recovers: it has been resent.
	 */
	struct bytes out;
	uint64_t una, next, edge, recovers;
	enum {
		TCP_MAY_SEND,
		TCP_ENDS,     /* FIN is to be sent, or to be acknowledged */
		TCP_HAS_ENDED /* FIN has been acknowledged */
	} end;
	int retries;
	uint64_t rto_ns;
	uint64_t waits_since_ns; /* the last progress, while there are bytes to send; or 0 */
	/* Receiving. */
	struct bytes in;
	uint64_t expected; /* the next byte */
	bool ended;	   /* by the other end */
	bool shut;	   /* by shutdown() or a failure, in both directions */
	/* The timer, and its next event, which may come too early; 0: none. */
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

/** All TCP sockets of all nodes. */
extern struct tcp_list tcp_sockets;

/** Makes a socket in the state CLOSED, without a descriptor. */
struct tcp *tcp_make(struct world_node *node);

void tcp_free(struct tcp *tcp);

/** Sends a packet with @size bytes of out, from @sequence on. */
void tcp_packet_send(struct tcp *tcp, int flags, uint64_t sequence, size_t size);

/** Sends what the window and the flight allow. */
void tcp_output(struct tcp *tcp);

/** Sets the timer: for retransmission, else for keepalive. */
void tcp_timer_arm(struct tcp *tcp);

/** Sends RST and closes the connection. What it holds is dropped. */
void tcp_reset(struct tcp *tcp);

/** True if both directions have ended and no process has a descriptor. */
bool tcp_is_done(const struct tcp *tcp);

/** Appends bytes; drops the first ones. */
void tcp_bytes_add(struct bytes *bytes, const void *data, size_t size);
void tcp_bytes_drop(struct bytes *bytes, size_t size);

#endif
