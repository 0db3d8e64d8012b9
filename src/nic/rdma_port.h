/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma_port.h - what an RDMA port's state, link layer, GIDs and errors mean for the mesh, and how
 * to fix them.
 */
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

/** True for the GID that RoCE derives from @addr: IPv4-mapped, or the IPv6 address itself. */
bool mesh_gid_is_addr(const uint8_t gid[16], const struct mesh_addr *addr);

/**
 * Finds the GID that the kernel's connection manager uses for @addr. On Ethernet it is the one
 * derived from the address, as RoCE v2 if the port has that (CMA_PREFERRED_ROCE_GID_TYPE of
 * drivers/infiniband/core/cma.c); on InfiniBand the port's own, index 0.
 *
 * Returns it, or NULL if there is none.
 */
const struct mesh_gid *mesh_gid_find(const struct mesh_rdma_port *rdma,
				     const struct mesh_addr *addr);

/*
 * How a work request ended: enum ibv_wc_status of infiniband/verbs.h, an ABI. libfabric's verbs
 * passes it on as prov_errno. Values without an entry in the table of explanations are not listed.
 */
enum mesh_rdma_status {
	MESH_RDMA_LOCAL_PROTECTION = 4,
	MESH_RDMA_FLUSHED = 5, /* the connection had failed before, or was closed */
	MESH_RDMA_REMOTE_REQUEST = 9,
	MESH_RDMA_REMOTE_ACCESS = 10,
	MESH_RDMA_REMOTE_OPERATION = 11,
	MESH_RDMA_RETRIES_EXCEEDED = 12,
	MESH_RDMA_RECEIVER_NOT_READY = 13,
};

#define MESH_RDMA_ERROR_MAX 512

/**
 * The nearest negative errno: -ETIMEDOUT if the peer does not answer.
 *
 * @status: of enum ibv_wc_status, not trusted
 */
int mesh_rdma_status_errno(int status);

/**
 * Writes cause and remedy of a failed work request into @text (MESH_RDMA_ERROR_MAX bytes): "the
 * peer's NIC did not acknowledge (...): check the cable, ...". Returns @text.
 */
const char *mesh_rdma_status_explain(int status, enum mesh_link_layer layer, char *text);

/**
 * Writes into @text (MESH_RDMA_ERROR_MAX bytes) what may block RDMA messages to a peer that TCP
 * reaches on the same link; returns @text.
 */
const char *mesh_rdma_silence_explain(enum mesh_link_layer layer, char *text);

#endif
