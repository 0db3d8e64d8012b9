/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint.h - opens the endpoint of a domain, closes it and opens another one in its place, and
 * reports what of a domain cannot be opened.
 */
#ifndef MESH_FABRIC_ENDPOINT_H
#define MESH_FABRIC_ENDPOINT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/config.h"
#include "fabric/domain.h"
#include "fabric/remote.h"

/**
 * Opens the endpoint of a domain whose other objects are open, and reads its name and port.
 *
 * @ports: those that it may listen on; without effect on verbs
 *
 * Returns 0, or a negative errno after a WARN line with the cause and the remedy.
 */
int mesh_endpoint_open(struct mesh_domain *domain, const struct mesh_port_range *ports);

/** Warns that a step of opening has failed with @error, a negative errno, and returns that. */
int mesh_domain_fail(const struct mesh_domain *domain, const char *what, int error);

/*
 * Another endpoint.
 *
 * On verbs this is the fence of a link on which comms go on: with the endpoint all of its queue
 * pairs end, at once and also while the link is down, when no NIC at the other end could refuse
 * anything, and when the NIC here would repeat for seconds what is not acknowledged. After it no
 * write of a peer can arrive, and none of ours leaves. Before libfabric 1.20 it is also the only
 * means to connect again after a connection between two living processes has broken: the name of
 * the new endpoint is another one, and HELLO of the next attempt has it.
 *
 * fi_close() takes seconds while a NIC repeats what nobody answers. So the connector's thread calls
 * it, with no lock held: whoever gives the endpoint up goes on, and looks later whether it is
 * closed.
 *
 * It ends the connections of all peers on that NIC: mesh_endpoints_check().
 */

/**
 * What is connected stays, but the next HELLO needs another endpoint: mesh_endpoint_is_open()
 * closes this one. No lock held.
 */
void mesh_endpoint_spend(struct mesh_domain *domain);

/**
 * Gives the endpoint up: from now on its remotes are lost, and nothing more is posted there. The
 * connector's thread closes it: then all that is in flight on it ends with an error, here. After
 * that it opens another one. Idempotent until it is open again. Verbs only; process->lock held, so
 * that a HELLO names the endpoint that it has found open.
 */
void mesh_endpoint_close(struct mesh_domain *domain);

/**
 * The connector's thread, no lock held: closes the endpoint if it was given up, and opens another
 * one. What cannot be done now is done in a later turn.
 */
void mesh_endpoint_renew(struct mesh_domain *domain);

/**
 * Waits while the endpoint is being closed, up to some seconds: until then operations end, whose
 * owners must not be freed. No lock held.
 */
void mesh_endpoint_close_await(const struct mesh_domain *domain);

/**
 * True if a HELLO may name the endpoint: false from mesh_endpoint_close() on until another one is
 * open. Wakes the connector, and closes a spent one. process->lock held.
 */
bool mesh_endpoint_is_open(struct mesh_domain *domain);

/** True from mesh_endpoint_close() on until it is closed: something may still arrive over it. */
static inline bool mesh_endpoint_is_closing(const struct mesh_domain *domain)
{
	return atomic_load_explicit(&domain->endpoint_state, memory_order_acquire) ==
	       MESH_ENDPOINT_CLOSING;
}

/**
 * True if the remote was opened for an endpoint that was given up since. Nothing of it arrives,
 * unless mesh_endpoint_is_closing(), which is to be asked after this.
 */
static inline bool mesh_remote_is_outdated(const struct mesh_domain *domain,
					   const struct mesh_remote *remote)
{
	return remote->generation !=
	       atomic_load_explicit(&domain->generation, memory_order_acquire);
}

#endif
