/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_look.h - what the kernel knows of a TCP connection, and asking the peer's kernel. */
#ifndef MESH_SYSTEM_TCP_LOOK_H
#define MESH_SYSTEM_TCP_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/* What the kernel knows of a socket at one moment. */
struct mesh_tcp_look {
	uint64_t cookie;      /* the socket's identity, SO_COOKIE */
	uint64_t bytes_acked; /* ever */
	uint32_t queued;      /* bytes that the socket still holds: unsent or not acknowledged */
	uint32_t unacked;     /* segments in flight */
	uint32_t segments_in; /* ever, also those without data */
	uint32_t data_segments_in;
	uint32_t resent;       /* segments, ever */
	uint32_t retries;      /* of the oldest segment in flight, without an answer */
	uint32_t probes;       /* of keep-alive or a closed window, without an answer */
	uint32_t heard_ago_ms; /* since the last acknowledgement or data */
	bool data;	       /* the provider's; else a control connection */
};

/** The socket's identity: no other of this machine has or had it. 0 if @fd is no socket. */
uint64_t mesh_socket_cookie(int fd);

/**
 * Looks at a connection; @look->data stays the caller's. Its cookie is read last: if it is the one
 * that the caller expects, all of the look is of that socket, whoever closes it meanwhile.
 *
 * Returns 0; -ENOTCONN if it is none, or has ended; -ENOTSUP if the kernel is too old (before 4.6).
 */
int mesh_tcp_look(int fd, struct mesh_tcp_look *look);

/** How the kernel keeps a connection alive. */
struct mesh_tcp_keepalive {
	int idle_s;	/* of silence, before it asks */
	int interval_s; /* between two questions */
	int count;	/* questions without an answer that end the connection */
};

/**
 * Has the kernel ask as @keepalive says, and as that alone: data that is not acknowledged does not
 * end the connection. If it has been silent for idle_s, the next question leaves at once.
 */
void mesh_tcp_keepalive_set(int fd, const struct mesh_tcp_keepalive *keepalive);

#endif
