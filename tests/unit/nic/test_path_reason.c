/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_reason.c - each candidate of a choice has the reason for its place. */
#include "nic/path_choice.h"
#include "nic/user_lists.h"

#include "path_sides.h"
#include "unit.h"

static struct path_side local, remote;

static void choose(const char *a, const char *b, mesh_path_leads *leads,
		   const struct mesh_path_hints *hints)
{
	local = path_side(a);
	remote = path_side(b);
	paths_choose(&local, &remote, leads, hints);
}

#define THREE_A "10.1.0.1/24 10.2.0.1/24 fe80::1/64"
#define THREE_B "10.1.0.3/24 10.2.0.3/24 fe80::2/64"
#define RAIL_A "10.1.0.1/31 10.2.0.1/31"
#define RAIL_B "10.3.0.1/31 10.4.0.1/31"

TEST(reasons)
{
	static const struct {
		const char *a, *b;
		mesh_path_leads *leads;
		struct mesh_path_hints hints;
		const char *reasons;
		int known; /* so many of them; -1: all */
	} cases[] = {
		/* NCCL's NICs, then the pair without a NIC in common, then those that share one. */
		{"10.1.0.1/24 10.1.0.2/24",
		 "10.1.0.3/24 10.1.0.4/24",
		 NULL,
		 {.local_nic = 4, .remote_nic = 3},
		 "1-0:nccl 0-1:subnet 1-1:shares 0-0:shares",
		 -1},
		{THREE_A,
		 THREE_B,
		 NULL,
		 {.local_nic = 3, .remote_nic = 8},
		 "0-0:nccl-here 1-1:subnet 2-2:link-local",
		 -1},
		{THREE_A, THREE_B, NULL, {.local_nic = 8, .remote_nic = 4}, "1-1:nccl-there", 1},
		/* With neither, equal choices keep their order. */
		{THREE_A,
		 THREE_B,
		 NULL,
		 {.local_nic = 8, .remote_nic = 8},
		 "0-0:subnet 1-1:subnet",
		 2},
		{RAIL_A,
		 RAIL_B,
		 paths_lead_all,
		 {.local_nic = -1, .remote_nic = -1, .same_count = true},
		 "0-0r:number 1-1r:number 0-1r:shares",
		 3},
		{RAIL_A,
		 RAIL_B,
		 paths_lead_all,
		 {.local_nic = -1, .remote_nic = -1},
		 "0-0r:route",
		 1},
		{"10.1.0.1/24+",
		 "10.1.0.3/24+",
		 NULL,
		 {.local_nic = -1, .remote_nic = -1, .fallback = true},
		 "0+0:subnet 0-0f:fallback",
		 -1},
	};

	FOR_EACH(i, cases) {
		choose(cases[i].a, cases[i].b, cases[i].leads, &cases[i].hints);
		path_reasons_are(cases[i].reasons, cases[i].known);
	}
}

TEST(rails)
{
	struct mesh_rails rails;
	const struct mesh_path_hints hints = {
		.local_nic = -1, .remote_nic = -1, .same_count = true, .rails = &rails};

	assert_int_equal(
		mesh_rails_parse("10.1.0.0/16+10.4.0.0/16,10.2.0.0/16+10.3.0.0/16", &rails), 0);
	choose(RAIL_A, RAIL_B, paths_lead_all, &hints);
	path_reasons_are("0-1r:rail", 1);
}

TEST(near)
{
	const struct mesh_path_hints hints = {.local_nic = 3, .remote_nic = 3};
	const struct mesh_near_rule rule = {
		.local = 0x3 << PATH_SIDE_FIRST, .remote = 0x3 << PATH_SIDE_FIRST, .num_nics = 4};

	choose("10.1.0.1/24 10.1.0.2/24 10.1.0.3/24 10.1.0.4/24",
	       "10.1.0.5/24 10.1.0.6/24 10.1.0.7/24 10.1.0.8/24", NULL, &hints);
	assert_true(mesh_path_near_first(local.nics, remote.nics, &hints, &rule, &chosen));
	path_reasons_are("0-0:nccl", 1);
	for (int i = 1; i < 4; i++)
		assert_true(chosen.candidates[i].reason == MESH_PATH_WHY_NEAR ||
			    chosen.candidates[i].reason == MESH_PATH_WHY_SHARES);
	for (int i = 4; i < 16; i++)
		assert_int_equal(chosen.candidates[i].reason, MESH_PATH_WHY_FAR);
}

TEST(answers)
{
	const enum mesh_path_proof proofs[] = {MESH_PROOF_OTHER, MESH_PROOF_THERE};
	const struct mesh_path_hints hints = {.local_nic = -1, .remote_nic = -1};

	choose("fe80::1/64 fe80::2/64", "fe80::3/64", NULL, &hints);
	path_reasons_are("0-0:link-local", 1);
	chosen.candidates[1].reason = MESH_PATH_WHY_LINK_LOCAL;
	mesh_path_order(local.nics, remote.nics, proofs, &chosen);
	path_reasons_are("1-0:cable 0-0u:unlikely", -1);
}

/* Each reason has words, and no two have the same. */
TEST(words)
{
	for (int i = 0; i < MESH_PATH_REASONS; i++) {
		for (int k = 0; k < i; k++)
			assert_string_not_equal(mesh_path_reason_word((enum mesh_path_reason)i),
						mesh_path_reason_word((enum mesh_path_reason)k));
	}
}
