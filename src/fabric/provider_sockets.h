/* SPDX-License-Identifier: Apache-2.0 */
/* provider_sockets.h - what is done to the TCP sockets that libfabric keeps to itself. */
#ifndef MESH_FABRIC_PROVIDER_SOCKETS_H
#define MESH_FABRIC_PROVIDER_SOCKETS_H

#include "fabric/remote.h"

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

#endif
