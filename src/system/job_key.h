/* SPDX-License-Identifier: Apache-2.0 */
/* job_key.h - a number that all ranks of a job have in common. */
#ifndef MESH_SYSTEM_JOB_KEY_H
#define MESH_SYSTEM_JOB_KEY_H

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

#endif
