/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_port.h - what an RDMA port's state, link layer and GID mean for the mesh. */
#ifndef MESH_NIC_RDMA_PORT_H
#define MESH_NIC_RDMA_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/nic.h"

#define MESH_RDMA_PORT_TEXT_MAX 128

/**
 * Writes the RDMA protocol of the NIC's source address: "RoCE v2, GID 3", "RoCE v1, GID 2 (no RoCE
 * v2: the peer must have v1, too)", "InfiniBand", "iWARP". @text: MESH_RDMA_PORT_TEXT_MAX bytes;
 * returned.
 */
const char *mesh_rdma_protocol_text(const struct mesh_nic *nic, char *text);

/**
 * Writes why a port is not ACTIVE, and what to do: "no subnet manager on this link (2: INIT);
 * start one: opensm -g 0x0002c90300ef1235". @text: MESH_RDMA_PORT_TEXT_MAX bytes; returned.
 */
const char *mesh_rdma_state_explain(const struct mesh_rdma_port *port, char *text);

#endif
