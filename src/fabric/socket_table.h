/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket_table.h - all TCP connections of this process, also those that others opened: a list that
 * takes long to make, and is quick to search.
 */
#ifndef MESH_FABRIC_SOCKET_TABLE_H
#define MESH_FABRIC_SOCKET_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/addr.h"

struct mesh_socket_entry {
	int fd; /* its owner may close it at any time */
	uint64_t cookie;
	struct mesh_addr local, peer; /* without a scope */
	uint16_t local_port, peer_port;
};

/* Zeros: empty. */
struct mesh_socket_table {
	struct mesh_socket_entry *entries; /* by peer and peer's port */
	size_t num;
	uint64_t taken_ms; /* when they were listed; 0: never */
};

/**
 * Opens the two descriptors that the functions below need, unless another user has; each user calls
 * mesh_sockets_release() at its end.
 *
 * Returns 0, or a negative errno: there is no descriptor, or no /proc.
 */
int mesh_sockets_reserve(void);
void mesh_sockets_release(void);

/**
 * Calls @look for every socket of the process, each time with its number and with a duplicate, so
 * that @look examines and changes the same socket even if its owner closes it meanwhile. It needs
 * no further descriptor, and no memory. Threads wait for each other; @look visits nothing.
 *
 * Returns how often @look returned true, or a negative errno if it could not visit all sockets.
 */
int mesh_sockets_visit(bool (*look)(void *arg, int number, int copy), void *arg);

/** The local address of a socket, or that of its peer; false if it has none. */
bool mesh_socket_name(int fd, bool peer, struct mesh_addr *address, uint16_t *port);

/** The same for the other end of a TCP socket, also while the connection is being made. */
bool mesh_socket_destination(int fd, struct mesh_addr *address, uint16_t *port);

/** Replaces the table's content; what could not be visited is missing. */
void mesh_socket_table_take(struct mesh_socket_table *table, uint64_t now_ms);
void mesh_socket_table_free(struct mesh_socket_table *table);

/**
 * The connections with @peer: the first one, and how many follow in @num. @port: only those with
 * this port of the peer; 0: with any.
 */
const struct mesh_socket_entry *mesh_socket_table_find(const struct mesh_socket_table *table,
						       const struct mesh_addr *peer, uint16_t port,
						       size_t *num);

#endif
