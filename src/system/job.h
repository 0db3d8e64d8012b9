/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - the job of this process: a number that all of its ranks have in common, and which rank
 * it is, as its launcher has numbered them.
 */
#ifndef MESH_SYSTEM_JOB_H
#define MESH_SYSTEM_JOB_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Computes the key of this process's job from what its launcher gives to all ranks: Slurm's job and
 * step, PMIx's namespace (Open MPI), torchrun's run, or MASTER_ADDR with MASTER_PORT; the first of
 * these that is set decides. It distinguishes jobs; it is no secret.
 *
 * @lookup: as getenv(), with @arg; NULL: the environment
 *
 * Returns the key; 0 if none of these is set.
 */
uint64_t mesh_job_key(const char *(*lookup)(void *arg, const char *name), void *arg);

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
