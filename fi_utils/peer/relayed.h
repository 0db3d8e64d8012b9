/* SPDX-License-Identifier: Apache-2.0 */
/* relayed.h - latency and bandwidth over relays, to a peer without a link or route of its own. */
#ifndef MESH_FI_UTILS_PEER_RELAYED_H
#define MESH_FI_UTILS_PEER_RELAYED_H

#include <jansson.h>

#include "common/finding.h"
#include "peer/checker.h"

/**
 * Measures to a peer that peer->routes lead to, with connections of the plugin over relays, and
 * judges the figures.
 *
 * Returns the figures for --json; NULL if memory is short.
 */
json_t *peer_relayed_check(const struct peer_checker *checker, const struct peer *peer,
			   struct check_result *result);

#endif
