/* SPDX-License-Identifier: Apache-2.0 */
/* path_proof.c - orders the candidates of a connection by what neighbours have answered. */
#include <string.h>

#include "nic/path_proof.h"

/* The ends of all candidates, and what is known of them. */
struct ordering {
	const struct mesh_endpoint_addr *local, *remote;
	const enum mesh_path_proof *proofs;
	const struct mesh_path_choice *choice;
	bool any_likely;
};

static bool is_link_local(const struct mesh_endpoint_addr *local,
			  const struct mesh_path_candidate *pair)
{
	return mesh_addr_is_link_local(&local[pair->local].addr);
}

bool mesh_path_is_guess(const struct mesh_endpoint_addr *local,
			const struct mesh_path_choice *choice)
{
	int i;

	for (i = 0; i < choice->num_candidates; i++) {
		if (is_link_local(local, &choice->candidates[i]))
			return true;
	}
	return false;
}

static bool is_likely(const struct ordering *ordering, int index)
{
	const struct mesh_path_candidate *pair = &ordering->choice->candidates[index];

	if (ordering->proofs[index] == MESH_PROOF_NONE)
		return !is_link_local(ordering->local, pair); /* the subnet is what joins them */
	return ordering->proofs[index] == MESH_PROOF_THERE;
}

static enum mesh_path_class class_of(const struct ordering *ordering, int index)
{
	const struct mesh_path_candidate *pair = &ordering->choice->candidates[index];

	if (is_likely(ordering, index))
		return pair->class;
	if (ordering->any_likely || ordering->proofs[index] == MESH_PROOF_OTHER)
		return MESH_PATH_UNLIKELY;
	return pair->class;
}

/* What an answer adds to the reason for a candidate's place. */
static enum mesh_path_reason reason_of(const struct ordering *ordering, int index)
{
	const struct mesh_path_candidate *pair = &ordering->choice->candidates[index];

	if (class_of(ordering, index) == MESH_PATH_UNLIKELY)
		return MESH_PATH_WHY_UNLIKELY;
	if (pair->reason == MESH_PATH_WHY_LINK_LOCAL && ordering->proofs[index] == MESH_PROOF_THERE)
		return MESH_PATH_WHY_CABLE;
	return pair->reason;
}

/*
 * Two halves of one port hear both halves of the other port. True if as many of our NICs before
 * this one share its wire as of theirs before the other.
 */
static bool is_in_order(const struct ordering *ordering, int index)
{
	const struct mesh_path_candidate *pair = &ordering->choice->candidates[index], *other;
	const struct mesh_endpoint_addr *local = ordering->local, *remote = ordering->remote;
	int i, ours = 0, theirs = 0;

	if (ordering->proofs[index] != MESH_PROOF_THERE || !is_link_local(local, pair))
		return true;
	for (i = 0; i < ordering->choice->num_candidates; i++) {
		other = &ordering->choice->candidates[i];
		if (ordering->proofs[i] != MESH_PROOF_THERE || other->class != pair->class)
			continue;
		ours += other->remote == pair->remote &&
			local[other->local].nic < local[pair->local].nic;
		theirs += other->local == pair->local &&
			  remote[other->remote].nic < remote[pair->remote].nic;
	}
	return ours == theirs;
}

void mesh_path_order(const struct mesh_endpoint_addr *local,
		     const struct mesh_endpoint_addr *remote, const enum mesh_path_proof *proofs,
		     struct mesh_path_choice *choice)
{
	struct ordering ordering = {local, remote, proofs, choice, false};
	struct mesh_path_choice ordered = *choice;
	int keys[MESH_PATH_CHOICE_MAX], i, key, num = 0;

	for (i = 0; i < choice->num_candidates; i++) {
		if (choice->candidates[i].class <= MESH_PATH_FAR)
			ordering.any_likely |= is_likely(&ordering, i);
	}
	for (i = 0; i < choice->num_candidates; i++)
		keys[i] = 2 * (int)class_of(&ordering, i) + !is_in_order(&ordering, i);
	for (key = 0; key <= 2 * MESH_PATH_UNLIKELY + 1; key++) {
		for (i = 0; i < choice->num_candidates; i++) {
			if (keys[i] != key)
				continue;
			ordered.candidates[num] = choice->candidates[i];
			ordered.candidates[num].reason = reason_of(&ordering, i);
			ordered.candidates[num++].class = (enum mesh_path_class)(key / 2);
		}
	}
	ordered.proven = ordering.any_likely;
	*choice = ordered;
}
