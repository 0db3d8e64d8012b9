/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_look.h - the kernel's state of a TCP connection, its round trip, what it may have in flight,
 * and keep-alive.
 */
#ifndef MESH_SYSTEM_TCP_LOOK_H
#define MESH_SYSTEM_TCP_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel's state of a socket at one moment. */
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
	bool data;	       /* true for a connection of the provider, false for a control one */
};

/** The socket's identity, unique on this machine, also over time. 0 if @fd is not a socket. */
uint64_t mesh_socket_cookie(int fd);

/**
 * Reads the state of a connection into @look; @look->data is left to the caller. The cookie is read
 * last: if it is the expected one, all values belong to that socket, even if it was closed during
 * the call.
 *
 * Returns 0; -ENOTCONN if @fd is not a connection, or it has ended.
 */
int mesh_tcp_look(int fd, struct mesh_tcp_look *look);

/**
 * Bytes that have come over a connection so far, also one that has ended: @received ever, of which
 * nobody has read @unread yet. The kernel counts the end of the stream, too.
 *
 * Returns false if @fd is no TCP socket.
 */
bool mesh_tcp_received(int fd, uint64_t *received, uint32_t *unread);

/**
 * The error that the kernel met when it last sent on a connection, which did not end it, such as
 * -ENETUNREACH. The kernel forgets it. Returns 0 if there was none.
 */
int mesh_tcp_error_take(int fd);

/** How the kernel keeps a connection alive. */
struct mesh_tcp_keepalive {
	int idle_s;	/* silence before the first probe */
	int interval_s; /* between two probes */
	int count;	/* unanswered probes that end the connection */
};

/**
 * Sets the kernel's keep-alive to @keepalive. Only probes end the connection; data that is not
 * acknowledged does not. If the connection has been silent for idle_s, a probe leaves at once.
 */
void mesh_tcp_keepalive_set(int fd, const struct mesh_tcp_keepalive *keepalive);

/**
 * The shortest round trip of a connected TCP socket in the last minutes, in ns. It starts with the
 * handshake, so it is known once the socket is connected.
 *
 * Returns 0 if it is unknown, or @fd is not a TCP socket.
 */
uint64_t mesh_socket_round_trip_ns(int fd);

/**
 * Bytes of data that one TCP connection has in flight at most, as the kernel's limits allow: half
 * of the smaller one of its two buffers (tcp_wmem, tcp_rmem), because the kernel counts what its
 * structures take as well. The peer is assumed to have the same limits.
 *
 * @root: of the file system, "" for the machine's own
 *
 * Returns 0 if the kernel does not say.
 */
uint64_t mesh_tcp_window_bytes(const char *root);

#endif
