/* SPDX-License-Identifier: Apache-2.0 */
/* provider_sockets.h - operations on the TCP sockets that libfabric does not expose. */
#ifndef MESH_FABRIC_PROVIDER_SOCKETS_H
#define MESH_FABRIC_PROVIDER_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/remote.h"
#include "system/tcp_look.h"

/* A TCP connection of this process; others than the provider open some, too. */
struct mesh_socket_entry {
	int fd; /* its owner may close it at any time */
	uint64_t cookie;
	struct mesh_addr local, peer; /* without a scope */
	uint16_t local_port, peer_port;
};

/*
 * All of them; what could not be visited is missing. To make it takes a millisecond for each
 * thousand of descriptors, so it is made again only when it is this old. Zeros: empty.
 */
#define MESH_SOCKETS_MS 250
struct mesh_socket_table {
	struct mesh_socket_entry *entries;
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

void mesh_socket_table_free(struct mesh_socket_table *table);

/* One connection opened by each side, and the remains of two earlier ones. */
#define MESH_REMOTE_SOCKETS_MAX 4

struct mesh_remote_socket {
	int fd; /* owned by the provider, which may close it at any time */
	uint64_t cookie;
	uint64_t received; /* bytes, ever, when mesh_sockets_unread() found it */
};

struct mesh_remote_sockets {
	int num;
	struct mesh_remote_socket sockets[MESH_REMOTE_SOCKETS_MAX];
};

/*
 * What one fence may have to cut: also connections of other processes at the remote's address that
 * have not said which ports they use.
 */
#define MESH_FOUND_SOCKETS_MAX 64

struct mesh_found_sockets {
	int num; /* also those that there was no room for */
	struct mesh_remote_socket sockets[MESH_FOUND_SOCKETS_MAX];
};

/**
 * Finds those of the provider's connections with the remote that hold bytes which the provider has
 * not read. Takes domain->transmit_lock.
 */
void mesh_sockets_unread(struct mesh_domain *domain, struct mesh_remote *remote,
			 struct mesh_found_sockets *unread);

/** True if the provider has read from them what was there then, or closed them. */
bool mesh_unread_is_read(const struct mesh_found_sockets *unread);

/**
 * The fence of one remote on tcp: disconnects the provider's sockets with the remote. Takes
 * domain->lock. Returns their number, or a negative errno.
 *
 * @cut: those sockets; the provider may hold bytes that it has read from them before
 */
int mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote,
		       struct mesh_found_sockets *cut);

/**
 * True if the provider has closed all of these: it writes nothing more that came from them. Never
 * true if there are more than can be looked at.
 */
bool mesh_cut_sockets_are_closed(const struct mesh_found_sockets *cut);

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
 * Finds the provider's connections with @remote in @table; none on verbs. Takes
 * domain->transmit_lock.
 */
void mesh_remote_sockets_find(struct mesh_socket_table *table, struct mesh_domain *domain,
			      const struct mesh_remote *remote, struct mesh_remote_sockets *sockets,
			      uint64_t now_ms);

/**
 * Reads the state of those sockets that are still open and unchanged. Returns the number of @looks
 * written, at most MESH_REMOTE_SOCKETS_MAX.
 */
int mesh_remote_sockets_look(const struct mesh_remote_sockets *sockets,
			     struct mesh_tcp_look *looks);

#endif
