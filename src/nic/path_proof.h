/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_proof.h - orders the candidates of a connection by what neighbours have answered. It only
 * decides which are tried first: an answer may be false, and an old one wrong.
 */
#ifndef MESH_NIC_PATH_PROOF_H
#define MESH_NIC_PATH_PROOF_H

#include <stdbool.h>

#include "nic/path_choice.h"

/* What is known of a candidate's link. */
enum mesh_path_proof {
	MESH_PROOF_NONE,  /* no node has answered on our NIC */
	MESH_PROOF_THERE, /* the candidate's remote NIC has answered on our NIC */
	MESH_PROOF_OTHER, /* other nodes have answered there, and the listener's has not */
};

/** True if one of the candidates joins link-local addresses: any two NICs have these in common. */
bool mesh_path_is_guess(const struct mesh_endpoint_addr *local,
			const struct mesh_path_choice *choice);

/**
 * Moves the unlikely candidates to a class of their own, which is tried last: those where other
 * nodes have answered, and, if any candidate is likely, link-local ones without an answer. Likely
 * are addresses of one subnet, and link-local ones whose remote NIC has answered. The order stays
 * as it was, but for NICs that share a wire: the first of ours goes with the first of theirs.
 *
 * @local, @remote: what the candidates are indices into
 * @proofs: beside the candidates
 */
void mesh_path_order(const struct mesh_endpoint_addr *local,
		     const struct mesh_endpoint_addr *remote, const enum mesh_path_proof *proofs,
		     struct mesh_path_choice *choice);

#endif
