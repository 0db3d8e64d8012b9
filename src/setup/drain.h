/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.h - takes the links of NICs out of use that a user has marked with `fi_mesh drain`, and
 * uses them again after `fi_mesh undrain`.
 *
 * The engine sleeps on the folder of the marks; nothing runs while nothing changes there. All with
 * process->lock held.
 */
#ifndef MESH_SETUP_DRAIN_H
#define MESH_SETUP_DRAIN_H

#include "base/lock.h"
#include "control/process.h"

/**
 * Makes setup->drain, reads the marks, and watches them. Without the folder of the counters
 * (NCCL_MESH_STATS_DIR=none), or without a descriptor (logged), no NIC can be drained.
 */
MESH_HOLDS(process)
void mesh_drain_open(struct mesh_process *process);

/** Frees setup->drain. The engine no longer runs. */
MESH_HOLDS(process)
void mesh_drain_close(struct mesh_process *process);

#endif
