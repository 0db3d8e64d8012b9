/* SPDX-License-Identifier: Apache-2.0 */
/* test_job.c - the job's key and the rank that launchers give, and what is none. */
#include "system/this_process.h"

#include "unit.h"

/* The environment has these and nothing else. @variables: "NAME", "value", ..., NULL */
static void launch(const char *const *variables)
{
	clearenv();
	for (; *variables; variables += 2)
		setenv(variables[0], variables[1], true);
}

static struct mesh_job_rank rank;

#define READ(...) rank_read((const char *const[]){__VA_ARGS__, NULL})

static bool rank_read(const char *const *variables)
{
	launch(variables);
	return mesh_job_rank(&rank);
}

static void rank_is(uint32_t number, uint32_t size, uint32_t local, uint32_t each)
{
	assert_int_equal(rank.rank, number);
	assert_int_equal(rank.size, size);
	assert_int_equal(rank.local_rank, local);
	assert_int_equal(rank.each, each);
}

TEST(ranks)
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

TEST(no_rank)
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

#define KEY(...) key_of((const char *const[]){__VA_ARGS__, NULL})

static uint64_t key_of(const char *const *variables)
{
	launch(variables);
	return mesh_job_key();
}

TEST(no_key)
{
	assert_true(KEY("RANK", "3") == 0);
	assert_true(KEY("MASTER_ADDR", "") == 0);
}

/* Ranks of one job have one key, those of another job another one. */
TEST(keys)
{
	uint64_t key = KEY("MASTER_ADDR", "10.0.0.1", "MASTER_PORT", "29500");

	assert_true(key != 0);
	assert_true(key == KEY("MASTER_PORT", "29500", "MASTER_ADDR", "10.0.0.1", "RANK", "1"));
	assert_true(key != KEY("MASTER_ADDR", "10.0.0.1", "MASTER_PORT", "29501"));
	assert_true(key != KEY("MASTER_ADDR", "10.0.0.12", "MASTER_PORT", "9500"));
	key = KEY("TORCHELASTIC_RUN_ID", "none", "MASTER_ADDR", "a", "MASTER_PORT", "1");
	assert_true(key !=
		    KEY("TORCHELASTIC_RUN_ID", "none", "MASTER_ADDR", "b", "MASTER_PORT", "1"));
	/* Slurm's step decides, whatever the ranks were given besides. */
	key = KEY("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "MASTER_ADDR", "a");
	assert_true(key == KEY("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0"));
	assert_true(key != KEY("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "1"));
	assert_true(KEY("PMIX_NAMESPACE", "1.1") != KEY("PMIX_NAMESPACE", "1.2"));
}
