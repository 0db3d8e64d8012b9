/* SPDX-License-Identifier: Apache-2.0 */
/*
 * this_process.h - the job of this process, a number that all of its ranks have in common, and
 * which rank it is, as its launcher has numbered them; how much memory it may lock.
 */
#ifndef MESH_SYSTEM_THIS_PROCESS_H
#define MESH_SYSTEM_THIS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Computes the key of this process's job from what its launcher gives to all ranks: Slurm's job and
 * step, PMIx's namespace (Open MPI), torchrun's run, or MASTER_ADDR with MASTER_PORT; the first of
 * these that is set decides. It distinguishes jobs; it is no secret.
 *
 * Returns the key; 0 if none of these is set.
 */
uint64_t mesh_job_key(void);

/* NCCL numbers the ranks of its first communicator in the same way. */
struct mesh_job_rank {
	uint32_t rank, size;	   /* in the job */
	uint32_t local_rank, each; /* on this node, of so many; 0 of 1 where it is not known */
};

/**
 * Reads the rank from what launchers give: torchrun's RANK and WORLD_SIZE, Open MPI, MPICH's PMI,
 * Slurm; the first of them that has both numbers decides.
 *
 * Returns false if none has: @rank is zeroed.
 */
bool mesh_job_rank(struct mesh_job_rank *rank);

/* The limit of locked memory: RDMA needs more than the usual default. */
#define MESH_MEMLOCK_HINT_MAX 256

/**
 * Writes "; is the limit of 8192 KiB of locked memory ...", with the remedy, into @text
 * (MESH_MEMLOCK_HINT_MAX bytes), or "" if there is no limit. A privileged process may exceed it:
 * this is for a failure that a limit explains best. Returns @text.
 */
const char *mesh_memlock_hint(char *text);

#endif
