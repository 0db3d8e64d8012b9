/* SPDX-License-Identifier: Apache-2.0 */
/* rank_ring.h - whether NCCL's ring follows the cables, and which order of the nodes does. */
#ifndef MESH_SETUP_RANK_RING_H
#define MESH_SETUP_RANK_RING_H

#include <stdint.h>

#include "base/lock.h"

struct mesh_process;

/**
 * This process connects to the node @target over relays. If the two follow each other in NCCL's
 * ring, and another order of the nodes would follow the cables better, one WARN names it: in the
 * process before the ring's first gap, so once in a job, or once in each process of that node that
 * connects to the next one.
 *
 * It looks at what the search for routes has found, and sends nothing. If the ranks of all nodes
 * are not known, it logs nothing.
 */
MESH_HOLDS(process)
void mesh_rank_ring_judge(struct mesh_process *process, uint64_t target);

#endif
