/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint_renew.h - closes the endpoint of a domain, and opens another one in its place.
 *
 * On verbs this is the fence of a link on which comms go on: with the endpoint all of its queue
 * pairs end, at once and also while the link is down, when no NIC at the other end could refuse
 * anything, and when the NIC here would repeat for seconds what is not acknowledged. After it no
 * write of a peer can arrive, and none of ours leaves. Before libfabric 1.20 it is also the only
 * means to connect again after a connection between two living processes has broken: the name of
 * the new endpoint is another one, and HELLO of the next attempt has it.
 *
 * It ends the connections of all peers on that NIC: control/endpoints.h.
 */
#ifndef MESH_FABRIC_ENDPOINT_RENEW_H
#define MESH_FABRIC_ENDPOINT_RENEW_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fabric/domain.h"
#include "fabric/remote.h"

/**
 * Closes the endpoint: all that is in flight on it ends with an error, here, and its remotes are
 * lost. The connector's thread opens another one. Verbs only. No lock of the domain held; takes
 * domain->lock. It waits while a thread connects, up to 2 s.
 */
void mesh_endpoint_close(struct mesh_domain *domain);

/** The connector's thread: opens an endpoint if there is none. If that fails, it tries later. */
void mesh_endpoint_reopen(struct mesh_domain *domain);

/** False while it is closed: then its name is not known. Wakes the connector. */
bool mesh_endpoint_is_open(struct mesh_domain *domain);

/** True if the remote was opened for an endpoint that was closed since: nothing of it arrives. */
static inline bool mesh_remote_is_outdated(const struct mesh_domain *domain,
					   const struct mesh_remote *remote)
{
	return remote->generation !=
	       atomic_load_explicit(&domain->generation, memory_order_relaxed);
}

#endif
