/* SPDX-License-Identifier: Apache-2.0 */
/* provider_sockets.h - what is done to, and known of, the TCP sockets that libfabric hides. */
#ifndef MESH_FABRIC_PROVIDER_SOCKETS_H
#define MESH_FABRIC_PROVIDER_SOCKETS_H

#include <stdint.h>

#include "fabric/remote.h"
#include "system/tcp_look.h"

/* One that we dialled, one that the peer did, and the remains of two. */
#define MESH_REMOTE_SOCKETS_MAX 4

struct mesh_remote_socket {
	int fd; /* the provider's own, which closes it when it likes */
	uint64_t cookie;
};

struct mesh_remote_sockets {
	int num;
	struct mesh_remote_socket sockets[MESH_REMOTE_SOCKETS_MAX];
};

/**
 * mesh_remotes_fence() of one on tcp: disconnects the provider's sockets with the remote. Takes
 * domain->lock. Returns how many, or a negative errno.
 */
int mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote);

/** Our TCP port of the provider's connection that we dialled to the remote; 0 if there is none. */
uint16_t mesh_remote_dialled_port(struct mesh_domain *domain, struct mesh_remote *remote);

/** The remote says that it dialled from this port of its own. */
void mesh_remote_dialled_from(struct mesh_domain *domain, struct mesh_remote *remote,
			      uint16_t port);

/** Bounds the time that a stranger's handshake can hold up the endpoint. */
void mesh_handshakes_limit(struct mesh_domain *domain);

/**
 * Finds the provider's connections with @remote; none on verbs. Lists all descriptors of the
 * process; to look at them again costs little. Takes domain->transmit_lock.
 */
void mesh_remote_sockets_find(struct mesh_domain *domain, const struct mesh_remote *remote,
			      struct mesh_remote_sockets *sockets);

/**
 * Looks at those that still are what they were. Returns how many @looks it wrote, of
 * MESH_REMOTE_SOCKETS_MAX at most.
 */
int mesh_remote_sockets_look(const struct mesh_remote_sockets *sockets,
			     struct mesh_tcp_look *looks);

#endif
