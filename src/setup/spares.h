/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares.h - NICs that carry data only between nodes that no other NICs connect: those without RDMA
 * beside others that have it, and, if NCCL_MESH_ROUTED says so, those of the management network.
 */
#ifndef MESH_SETUP_SPARES_H
#define MESH_SETUP_SPARES_H

#include <stddef.h>

#include "control/process.h"

/**
 * Adds these NICs behind NCCL's devices, as reserves. No other thread runs yet. Their memory is
 * never freed, as that of the table.
 */
void mesh_spares_add(struct mesh_process *process);

/**
 * For the error of two nodes without a path: which NICs the setting would add. Empty if it is set,
 * or if there are none.
 *
 * @text: @size bytes; returned
 */
const char *mesh_spares_hint(const struct mesh_process *process, const struct mesh_nic_table *table,
			     char *text, size_t size);

#endif
