/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - which paths lead to a peer, and why not the others. */
#ifndef MESH_FI_UTILS_PEER_PATHS_H
#define MESH_FI_UTILS_PEER_PATHS_H

#include "common/finding.h"
#include "peer/checker.h"

/** Says which paths lead to the peer, which is the first choice, and why not the others. */
void peer_paths_check(const struct peer_checker *checker, struct peer *peer,
		      struct check_result *result);

#endif
