/* SPDX-License-Identifier: Apache-2.0 */
/* provider_sockets.h - operations on the TCP sockets that libfabric does not expose. */
#ifndef MESH_FABRIC_PROVIDER_SOCKETS_H
#define MESH_FABRIC_PROVIDER_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/remote.h"
#include "system/tcp_look.h"

/* A socket of this process; others than the provider open some, too. */
struct mesh_socket_entry;

/*
 * All of them. To make it takes a millisecond for each thousand of descriptors, so it is made again
 * only when it is this old; but for a fence. Zeros: empty.
 */
#define MESH_SOCKETS_MS 250
struct mesh_socket_table {
	struct mesh_socket_entry *entries;
	size_t num;
	uint64_t taken_ms; /* when they were listed; 0: never */
};

/**
 * Opens the descriptor that the functions below need, unless another user has; each user calls
 * mesh_sockets_release() at its end.
 *
 * Returns 0, or a negative errno: there is no descriptor, or no /proc.
 */
int mesh_sockets_reserve(void);
void mesh_sockets_release(void);

void mesh_socket_table_free(struct mesh_socket_table *table);

/* One connection opened by each side, and the remains of two earlier ones. */
#define MESH_REMOTE_SOCKETS_MAX 4

/**
 * The fence of one remote on tcp: no operation of it can read or write this process's memory
 * afterwards. Closing a registration is not enough: the provider checks the key only when a write
 * begins, and continues to write. So this disconnects the provider's sockets with the remote; the
 * provider opens new ones on demand.
 *
 * Before that it polls until the provider has read what the kernel has of the remote, for
 * MESH_FENCE_MS at most: the sender's kernel knows that ours has it, so its process may have ended
 * in order, and cannot send it again. After that it polls until the provider has nothing left of
 * what was cut, for 0.5 s at most; a WARN reports that it has. A thread that holds the poll may add
 * 2.5 s. No lock of the domain held.
 *
 * Returns 0; a negative errno, after a WARN, if nothing could be cut.
 */
int mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote);

/**
 * The local TCP port of the connection that the provider opened to the remote; 0 if @table has
 * none, and on verbs.
 */
uint16_t mesh_remote_dialled_port(struct mesh_socket_table *table, const struct mesh_domain *domain,
				  const struct mesh_remote *remote, uint64_t now_ms);

/** Stores the TCP port that the remote reports for the connection that its provider opened. */
void mesh_remote_dialled_from(struct mesh_domain *domain, struct mesh_remote *remote,
			      uint16_t port);

/** Bounds the time that the handshake of an unknown client can block the endpoint. */
void mesh_handshakes_limit(struct mesh_domain *domain);

/**
 * Reads the state of the provider's connections with @remote that are in @table and still open; on
 * verbs there are none. Takes domain->transmit_lock.
 *
 * Returns the number of @looks written, at most MESH_REMOTE_SOCKETS_MAX.
 */
int mesh_remote_sockets_look(struct mesh_socket_table *table, struct mesh_domain *domain,
			     const struct mesh_remote *remote, struct mesh_tcp_look *looks,
			     uint64_t now_ms);

#endif
