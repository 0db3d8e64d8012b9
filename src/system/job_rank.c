/* SPDX-License-Identifier: Apache-2.0 */
/* job_rank.c - which rank of its job this process is. */
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "system/job_rank.h"

/* More ranks than any job has. */
#define RANKS_MAX 10000000

/* Rank and number of ranks, in the job and on the node. */
static const char *const launchers[][4] = {
	{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
	 "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

static const char *environment_lookup(void *arg, const char *name)
{
	(void)arg;
	return getenv(name);
}

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
	for (i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		if (!pair_read(lookup(arg, launchers[i][0]), lookup(arg, launchers[i][1]),
			       &rank->rank, &rank->size))
			continue;
		if (!pair_read(lookup(arg, launchers[i][2]), lookup(arg, launchers[i][3]),
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
