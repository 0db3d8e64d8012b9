/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_proof.c - what neighbours have answered decides which candidates are tried first. */
#include "nic/path_proof.h"

#include "unit.h"

static struct mesh_endpoint_addr local[MESH_NICS_MAX], remote[MESH_NICS_MAX];
static struct mesh_path_choice choice;
static enum mesh_path_proof proofs[MESH_PATH_CANDIDATES_MAX];

static int setup(void)
{
	int i;

	memset(&choice, 0, sizeof(choice));
	memset(proofs, 0, sizeof(proofs));
	for (i = 0; i < MESH_NICS_MAX; i++) {
		assert_int_equal(mesh_addr_parse("fe80::1/64", &local[i].addr), 0);
		local[i].nic = remote[i].nic = (uint8_t)i;
	}
	return 0;
}

TESTS_USE(setup, NULL);

static void configure(int nic)
{
	assert_int_equal(mesh_addr_parse("10.1.0.1/24", &local[nic].addr), 0);
}

static void pair_add(int l, int r, enum mesh_path_class class, enum mesh_path_proof proof)
{
	proofs[choice.num_candidates] = proof;
	choice.candidates[choice.num_candidates++] = (struct mesh_path_candidate){
		.local = (uint8_t)l, .remote = (uint8_t)r, .class = class};
}

static void is_at(int index, int l, int r, enum mesh_path_class class)
{
	assert_int_equal(choice.candidates[index].local, l);
	assert_int_equal(choice.candidates[index].remote, r);
	assert_int_equal(choice.candidates[index].class, class);
}

static void order(void)
{
	mesh_path_order(local, remote, proofs, &choice);
}

/* Each of our two NICs could reach each of theirs; one cable is known. */
TEST(link_local)
{
	pair_add(0, 0, MESH_PATH_DIRECT, MESH_PROOF_OTHER);
	pair_add(1, 1, MESH_PATH_DIRECT, MESH_PROOF_OTHER);
	pair_add(0, 1, MESH_PATH_DIRECT, MESH_PROOF_OTHER);
	pair_add(1, 0, MESH_PATH_DIRECT, MESH_PROOF_THERE);
	assert_true(mesh_path_is_guess(local, &choice));
	order();
	assert_true(choice.proven);
	assert_int_equal(choice.num_candidates, 4);
	is_at(0, 1, 0, MESH_PATH_DIRECT);
	is_at(1, 0, 0, MESH_PATH_UNLIKELY);
	is_at(2, 1, 1, MESH_PATH_UNLIKELY);
	is_at(3, 0, 1, MESH_PATH_UNLIKELY);
}

/* Nothing is known: all stay as they are, and are tried together. */
TEST(no_answers)
{
	pair_add(0, 0, MESH_PATH_DIRECT, MESH_PROOF_NONE);
	pair_add(1, 1, MESH_PATH_DIRECT, MESH_PROOF_NONE);
	order();
	assert_false(choice.proven);
	is_at(0, 0, 0, MESH_PATH_DIRECT);
	is_at(1, 1, 1, MESH_PATH_DIRECT);
	/* A NIC on which another node has answered comes later. */
	proofs[0] = MESH_PROOF_OTHER;
	order();
	assert_false(choice.proven);
	is_at(0, 1, 1, MESH_PATH_DIRECT);
	is_at(1, 0, 0, MESH_PATH_UNLIKELY);
}

/* A subnet counts without an answer; a cable that leads to another node does not. */
TEST(configured)
{
	configure(0);
	configure(1);
	assert_false(mesh_path_is_guess(local, &choice));
	pair_add(0, 0, MESH_PATH_DIRECT, MESH_PROOF_OTHER);
	pair_add(1, 1, MESH_PATH_DIRECT, MESH_PROOF_NONE);
	pair_add(2, 2, MESH_PATH_DIRECT, MESH_PROOF_NONE);
	order();
	is_at(0, 1, 1, MESH_PATH_DIRECT);
	is_at(1, 0, 0, MESH_PATH_UNLIKELY);
	is_at(2, 2, 2, MESH_PATH_UNLIKELY);
}

/* Two halves of a port hear both halves of the other: the first goes with the first. */
TEST(halves)
{
	pair_add(0, 1, MESH_PATH_DIRECT, MESH_PROOF_THERE);
	pair_add(1, 0, MESH_PATH_DIRECT, MESH_PROOF_THERE);
	pair_add(1, 1, MESH_PATH_DIRECT, MESH_PROOF_THERE);
	pair_add(0, 0, MESH_PATH_DIRECT, MESH_PROOF_THERE);
	order();
	is_at(0, 1, 1, MESH_PATH_DIRECT);
	is_at(1, 0, 0, MESH_PATH_DIRECT);
	is_at(2, 0, 1, MESH_PATH_DIRECT);
	is_at(3, 1, 0, MESH_PATH_DIRECT);
}
