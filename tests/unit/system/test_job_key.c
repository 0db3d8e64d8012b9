/* SPDX-License-Identifier: Apache-2.0 */
/* test_job_key.c - ranks of one job have one key, those of another job another one. */
#include "system/job_key.h"

#include "unit.h"

/* Pairs of name and value, ended by NULL. */
static const char *lookup(void *arg, const char *name)
{
	const char *const *pairs = arg;

	for (; *pairs; pairs += 2) {
		if (!strcmp(pairs[0], name))
			return pairs[1];
	}
	return NULL;
}

#define KEY(...) mesh_job_key(lookup, (void *)(const char *const[]){__VA_ARGS__, NULL})

TEST(none)
{
	assert_true(KEY("RANK", "3") == 0);
	assert_true(KEY("MASTER_ADDR", "") == 0);
}

TEST(launchers)
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
