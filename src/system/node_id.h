/* SPDX-License-Identifier: Apache-2.0 */
/* node_id.h - the identity of this node: this boot of this kernel, and the network namespace. */
#ifndef MESH_SYSTEM_NODE_ID_H
#define MESH_SYSTEM_NODE_ID_H

#include <stddef.h>
#include <stdint.h>

/**
 * A number that is equal for all processes that share the NICs, and different for all other
 * processes.
 */
uint64_t mesh_node_id(void);

/**
 * Writes this node's name for messages into @name of @size bytes, cut if too long; returns @name.
 *
 * @setting: NCCL_MESH_NODE_NAME; "": the host name
 */
const char *mesh_node_name(const char *setting, char *name, size_t size);

#endif
