/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - reports which paths lead to a peer, and why the other NICs have none. */
#ifndef MESH_FI_UTILS_PEER_PATHS_H
#define MESH_FI_UTILS_PEER_PATHS_H

#include <jansson.h>

#include "common/finding.h"
#include "peer/checker.h"

/**
 * Reports which paths lead to the peer, which of them is used first, and why other NICs have none.
 */
void peer_paths_check(const struct peer_checker *checker, struct peer *peer,
		      struct check_result *result);

/** The same paths for --json: {"paths": [...]}; NULL if memory is short. */
json_t *peer_paths_json(const struct peer_checker *checker, const struct peer *peer);

#endif
