/* SPDX-License-Identifier: Apache-2.0 */
/* test_job_rank.c - the rank that launchers give, and what is no rank. */
#include "system/job_rank.h"

#include "unit.h"

/* @arg: "NAME", "value", ..., NULL */
static const char *lookup(void *arg, const char *name)
{
	const char *const *at;

	for (at = arg; *at; at += 2) {
		if (!strcmp(*at, name))
			return at[1];
	}
	return NULL;
}

static struct mesh_job_rank rank;

#define READ(...) mesh_job_rank(lookup, (void *)(const char *const[]){__VA_ARGS__, NULL}, &rank)

static void rank_is(uint32_t number, uint32_t size, uint32_t local, uint32_t each)
{
	assert_int_equal(rank.rank, number);
	assert_int_equal(rank.size, size);
	assert_int_equal(rank.local_rank, local);
	assert_int_equal(rank.each, each);
}

TEST(launchers)
{
	assert_true(READ("RANK", "9", "WORLD_SIZE", "16", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE",
			 "8", "SLURM_PROCID", "1", "SLURM_NTASKS", "2"));
	rank_is(9, 16, 1, 8);
	assert_true(READ("OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "3"));
	rank_is(2, 3, 0, 1);
	assert_true(READ("PMI_RANK", "0", "PMI_SIZE", "1"));
	rank_is(0, 1, 0, 1);
	/* "2(x4)" and the like: it is not known how many share the node. */
	assert_true(READ("SLURM_PROCID", "3", "SLURM_NTASKS", "4", "SLURM_LOCALID", "1",
			 "SLURM_NTASKS_PER_NODE", "2(x2)"));
	rank_is(3, 4, 0, 1);
}

TEST(none)
{
	assert_false(READ("RANK", "1"));
	rank_is(0, 0, 0, 0);
	assert_false(READ("RANK", "2", "WORLD_SIZE", "2"));
	assert_false(READ("RANK", "-1", "WORLD_SIZE", "2"));
	assert_false(READ("RANK", "1x", "WORLD_SIZE", "2"));
	assert_false(READ("RANK", " 1", "WORLD_SIZE", "2"));
	assert_false(READ("RANK", "", "WORLD_SIZE", "2"));
	assert_false(READ("RANK", "1", "WORLD_SIZE", "99999999999999999999"));
	/* Local numbers that cannot be are not known. */
	assert_true(
		READ("RANK", "1", "WORLD_SIZE", "4", "LOCAL_RANK", "2", "LOCAL_WORLD_SIZE", "4"));
	rank_is(1, 4, 0, 1);
}
