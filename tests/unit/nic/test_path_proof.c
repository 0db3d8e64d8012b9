/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_proof.c - what neighbours have answered decides which candidates are tried first. */
#include "nic/path_proof.h"

#include "path_sides.h"
#include "unit.h"

#define THERE MESH_PROOF_THERE
#define OTHER MESH_PROOF_OTHER
#define NONE MESH_PROOF_NONE

static const struct {
	const char *ours; /* theirs have link-local addresses */
	bool guess, proven;
	struct {
		uint8_t local, remote;
		enum mesh_path_proof proof;
	} pairs[4];
	int num;
	const char *paths;
} cases[] = {
	/* Each of our two NICs could reach each of theirs; one cable is known. */
	{"fe80::1/64 fe80::2/64",
	 true,
	 true,
	 {{0, 0, OTHER}, {1, 1, OTHER}, {0, 1, OTHER}, {1, 0, THERE}},
	 4,
	 "1-0 0-0u 1-1u 0-1u"},
	/* Nothing is known: all stay as they are, and are tried together. */
	{"fe80::1/64 fe80::2/64", true, false, {{0, 0, NONE}, {1, 1, NONE}}, 2, "0-0 1-1"},
	/* A NIC on which another node has answered comes later. */
	{"fe80::1/64 fe80::2/64", true, false, {{0, 0, OTHER}, {1, 1, NONE}}, 2, "1-1 0-0u"},
	/* A subnet counts without an answer; a cable to another node does not. */
	{"10.1.0.1/24 10.1.0.1/24 fe80::1/64",
	 true,
	 true,
	 {{0, 0, OTHER}, {1, 1, NONE}, {2, 2, NONE}},
	 3,
	 "1-1 0-0u 2-2u"},
	{"10.1.0.1/24", false, true, {{0, 0, NONE}}, 1, "0-0"},
	/* Two halves of a port hear both of the other: the first goes with the first. */
	{"fe80::1/64 fe80::2/64",
	 true,
	 true,
	 {{0, 1, THERE}, {1, 0, THERE}, {1, 1, THERE}, {0, 0, THERE}},
	 4,
	 "1-1 0-0 0-1 1-0"},
};

TEST(order)
{
	const struct path_side remote = path_side("fe80::5/64 fe80::6/64 fe80::7/64");
	enum mesh_path_proof proofs[MESH_PATH_CANDIDATES_MAX];
	struct path_side local;
	int k;

	FOR_EACH(i, cases) {
		local = path_side(cases[i].ours);
		chosen = (struct mesh_path_choice){.num_candidates = cases[i].num};
		for (k = 0; k < cases[i].num; k++) {
			proofs[k] = cases[i].pairs[k].proof;
			chosen.candidates[k] =
				(struct mesh_path_candidate){.local = cases[i].pairs[k].local,
							     .remote = cases[i].pairs[k].remote,
							     .provider = MESH_PROVIDER_TCP};
		}
		assert_int_equal(mesh_path_is_guess(local.nics, &chosen), cases[i].guess);
		mesh_path_order(local.nics, remote.nics, proofs, &chosen);
		assert_int_equal(chosen.proven, cases[i].proven);
		paths_are(cases[i].paths, -1);
	}
}
