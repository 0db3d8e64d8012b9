/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - why a peer does not answer. */
#ifndef MESH_FI_UTILS_PEER_EXPLAIN_H
#define MESH_FI_UTILS_PEER_EXPLAIN_H

#include "common/finding.h"
#include "nic/addr.h"
#include "peer/checker.h"

/** Reports why @addr does not answer, with what this node knows. */
void peer_explain(const struct peer_checker *checker, const struct mesh_addr *addr, int error,
		  const char *text, struct check_result *result);

#endif
