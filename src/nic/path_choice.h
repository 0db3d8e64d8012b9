/* SPDX-License-Identifier: Apache-2.0 */
/* path_choice.h - which local NIC reaches which NIC of the peer: the heart of the plugin. */
#ifndef MESH_NIC_PATH_CHOICE_H
#define MESH_NIC_PATH_CHOICE_H

#include <stdbool.h>

#include "nic/endpoint_addr.h"

#define MESH_PATH_CANDIDATES_MAX (MESH_NICS_MAX * MESH_NICS_MAX)

/* A direct path: two NICs on one subnet that use the same provider. Indices into the arrays. */
struct mesh_path_candidate {
	uint8_t local;
	uint8_t remote;
};

/* What guides the choice where several paths exist. */
struct mesh_path_hints {
	int local_nic;	 /* NCCL's dev on this side */
	int remote_nic;	 /* NCCL's dev on the listening side */
	uint32_t spread; /* any number: equal choices rotate with it */
	bool same_node;	 /* both processes are on one node: loopback addresses may be used */
};

struct mesh_path_choice {
	int num_candidates;
	struct mesh_path_candidate candidates[MESH_PATH_CANDIDATES_MAX]; /* the best first */
	/* For the message if there is no candidate: a pair that only differs in its provider. */
	bool provider_differs;
	struct mesh_path_candidate differing;
};

/**
 * Finds all direct paths between @local and @remote, best first.
 *
 * A path exists if each address lies in the other's subnet by their real prefix lengths.
 * Order: in rounds. Each round has as many paths as possible without a NIC in common, so that the
 * first k candidates use k different cables. Within a round: routable addresses before link-local
 * ones (every link has the same fe80::/64), then the NICs that NCCL chose, then @hints->spread.
 */
void mesh_path_choose(const struct mesh_endpoint_addr *local, int num_local,
		      const struct mesh_endpoint_addr *remote, int num_remote,
		      const struct mesh_path_hints *hints, struct mesh_path_choice *choice);

#endif
