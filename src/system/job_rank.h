/* SPDX-License-Identifier: Apache-2.0 */
/* job_rank.h - which rank of its job this process is, as its launcher has numbered them. */
#ifndef MESH_SYSTEM_JOB_RANK_H
#define MESH_SYSTEM_JOB_RANK_H

#include <stdbool.h>
#include <stdint.h>

/* NCCL numbers the ranks of its first communicator in the same way. */
struct mesh_job_rank {
	uint32_t rank, size;	   /* in the job */
	uint32_t local_rank, each; /* on this node, of so many; 0 of 1 where it is not known */
};

/**
 * Reads the rank from what launchers give: torchrun's RANK and WORLD_SIZE, Open MPI, MPICH's PMI,
 * Slurm; the first of them that has both numbers decides.
 *
 * @lookup: as getenv(), with @arg; NULL: the environment
 *
 * Returns false if none has: @rank is zeroed.
 */
bool mesh_job_rank(const char *(*lookup)(void *arg, const char *name), void *arg,
		   struct mesh_job_rank *rank);

#endif
