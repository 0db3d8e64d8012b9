/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - the job of this process: a number that all of its ranks have in common, and which rank
 * it is, as its launcher has numbered them.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "system/job.h"

/* What a launcher sets alike on all ranks; the first must be set, the others may be. */
static const char *const key_variables[][3] = {
	{"SLURM_JOB_ID", "SLURM_STEP_ID", NULL},
	{"PMIX_NAMESPACE", NULL, NULL},
	{"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"},
	{"MASTER_ADDR", "MASTER_PORT", NULL},
};

static const char *environment_lookup(void *arg, const char *name)
{
	(void)arg;
	return getenv(name);
}

/* With the zero byte at the end. */
static uint64_t text_add(uint64_t hash, const char *text)
{
	return mesh_hash_add(hash, text, strlen(text) + 1);
}

uint64_t mesh_job_key(const char *(*lookup)(void *arg, const char *name), void *arg)
{
	uint64_t hash = MESH_HASH_START;
	const char *value;
	size_t i, k;

	if (!lookup)
		lookup = environment_lookup;
	for (i = 0; i < sizeof(key_variables) / sizeof(key_variables[0]); i++) {
		value = lookup(arg, key_variables[i][0]);
		if (value && *value)
			break;
	}
	if (i == sizeof(key_variables) / sizeof(key_variables[0]))
		return 0;
	for (k = 0; k < 3 && key_variables[i][k]; k++) {
		value = lookup(arg, key_variables[i][k]);
		hash = text_add(text_add(hash, key_variables[i][k]), value ? value : "");
	}
	return hash ? hash : 1;
}

/* More ranks than any job has. */
#define RANKS_MAX 10000000

/* Rank and number of ranks, in the job and on the node. */
static const char *const rank_variables[][4] = {
	{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
	 "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

/* Reads a decimal number and nothing else. */
static bool number_read(const char *text, uint32_t *number)
{
	char *end;
	unsigned long value;

	if (!text || !isdigit((unsigned char)*text))
		return false;
	value = strtoul(text, &end, 10);
	if (*end || value > RANKS_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

/* Reads "which of how many". */
static bool pair_read(const char *which, const char *of, uint32_t *rank, uint32_t *size)
{
	return number_read(which, rank) && number_read(of, size) && *rank < *size;
}

bool mesh_job_rank(const char *(*lookup)(void *arg, const char *name), void *arg,
		   struct mesh_job_rank *rank)
{
	size_t i;

	if (!lookup)
		lookup = environment_lookup;
	for (i = 0; i < sizeof(rank_variables) / sizeof(rank_variables[0]); i++) {
		if (!pair_read(lookup(arg, rank_variables[i][0]), lookup(arg, rank_variables[i][1]),
			       &rank->rank, &rank->size))
			continue;
		if (!pair_read(lookup(arg, rank_variables[i][2]), lookup(arg, rank_variables[i][3]),
			       &rank->local_rank, &rank->each) ||
		    rank->local_rank > rank->rank) {
			rank->local_rank = 0;
			rank->each = 1;
		}
		return true;
	}
	memset(rank, 0, sizeof(*rank));
	return false;
}
