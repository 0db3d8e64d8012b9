/* SPDX-License-Identifier: Apache-2.0 */
/* relays.h - the routes over relays to a peer without a link or route of its own. */
#ifndef MESH_FI_UTILS_PEER_RELAYS_H
#define MESH_FI_UTILS_PEER_RELAYS_H

#include <stdbool.h>

#include "common/finding.h"
#include "peer/checker.h"

/**
 * Searches the mesh for routes to the peer, and reports each with the cables of its hops, and what
 * relays on its nodes. peer->relays receives the same for --json, and
 * peer->routes what is needed to measure over them.
 *
 * @replace: only routes for which connections leave routed tcp, the path of the two nodes
 *
 * Returns false if it has reported nothing: no route is known.
 */
bool peer_relays_check(const struct peer_checker *checker, struct peer *peer, bool replace,
		       struct check_result *result);

#endif
