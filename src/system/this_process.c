/* SPDX-License-Identifier: Apache-2.0 */
/*
 * this_process.c - the job of this process and its rank there, as its launcher has numbered them;
 * how much memory it may lock.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/random.h"
#include "system/this_process.h"

/* ---- job ------------------------------------------------------------------------------------ */

/* What a launcher sets alike on all ranks; the first must be set, the others may be. */
static const char *const key_variables[][3] = {
	{"SLURM_JOB_ID", "SLURM_STEP_ID", NULL},
	{"PMIX_NAMESPACE", NULL, NULL},
	{"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"},
	{"MASTER_ADDR", "MASTER_PORT", NULL},
};

/* With the zero byte at the end. */
static uint64_t text_add(uint64_t hash, const char *text)
{
	return mesh_hash_add(hash, text, strlen(text) + 1);
}

uint64_t mesh_job_key(void)
{
	uint64_t hash = MESH_HASH_START;
	const char *value;
	size_t i, k;

	for (i = 0; i < sizeof(key_variables) / sizeof(key_variables[0]); i++) {
		value = getenv(key_variables[i][0]);
		if (value && *value)
			break;
	}
	if (i == sizeof(key_variables) / sizeof(key_variables[0]))
		return 0;
	for (k = 0; k < 3 && key_variables[i][k]; k++) {
		value = getenv(key_variables[i][k]);
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

bool mesh_job_rank(struct mesh_job_rank *rank)
{
	size_t i;

	for (i = 0; i < sizeof(rank_variables) / sizeof(rank_variables[0]); i++) {
		if (!pair_read(getenv(rank_variables[i][0]), getenv(rank_variables[i][1]),
			       &rank->rank, &rank->size))
			continue;
		if (!pair_read(getenv(rank_variables[i][2]), getenv(rank_variables[i][3]),
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

/* ---- locked memory -------------------------------------------------------------------------- */

const char *mesh_memlock_hint(char *text)
{
	struct rlimit limit;

	text[0] = '\0';
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		snprintf(text, MESH_MEMLOCK_HINT_MAX,
			 "; is the limit of %lu KiB of locked memory (ulimit -l) too low? Set "
			 "memlock to unlimited in /etc/security/limits.conf and log in again, or "
			 "LimitMEMLOCK=infinity for a service, or --ulimit memlock=-1 for docker "
			 "and podman",
			 (unsigned long)(limit.rlim_cur >> 10));
	return text;
}
