/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_error.h - what an RDMA device's errors mean, and how to fix them. */
#ifndef MESH_NIC_RDMA_ERROR_H
#define MESH_NIC_RDMA_ERROR_H

#include <stddef.h>

#include "nic/nic.h"

/*
 * How a work request ended: enum ibv_wc_status of infiniband/verbs.h, an ABI. libfabric's verbs
 * passes it on as prov_errno. Values without an entry in the table of explanations are not listed.
 */
enum mesh_rdma_status {
	MESH_RDMA_LOCAL_LENGTH = 1,
	MESH_RDMA_LOCAL_OPERATION = 2,
	MESH_RDMA_LOCAL_PROTECTION = 4,
	MESH_RDMA_FLUSHED = 5, /* the connection had failed before, or was closed */
	MESH_RDMA_LOCAL_ACCESS = 8,
	MESH_RDMA_REMOTE_REQUEST = 9,
	MESH_RDMA_REMOTE_ACCESS = 10,
	MESH_RDMA_REMOTE_OPERATION = 11,
	MESH_RDMA_RETRIES_EXCEEDED = 12,
	MESH_RDMA_RECEIVER_NOT_READY = 13,
};

/* The known facts about the two ends of a link. */
struct mesh_rdma_ends {
	enum mesh_link_layer link_layer;
	int mtu;      /* bytes, of our netdev; 0: unknown */
	int peer_mtu; /* bytes, of the peer's netdev; 0: unknown */
};

#define MESH_RDMA_ERROR_MAX 512

/**
 * The nearest negative errno: -ETIMEDOUT if the peer does not answer.
 *
 * @status: of enum ibv_wc_status, not trusted
 */
int mesh_rdma_status_errno(int status);

/** The cause of a failed work request, without the remedy; NULL if @status is not in the table. */
const char *mesh_rdma_status_cause(int status);

/**
 * Writes cause and remedy of a failed work request into @text (MESH_RDMA_ERROR_MAX bytes): "the
 * peer's NIC did not acknowledge (...): check the cable, ...". Returns @text.
 */
const char *mesh_rdma_status_explain(int status, const struct mesh_rdma_ends *ends, char *text);

/**
 * Writes into @text (MESH_RDMA_ERROR_MAX bytes) what may block RDMA messages to a peer that TCP
 * reaches on the same link; returns @text.
 */
const char *mesh_rdma_silence_explain(const struct mesh_rdma_ends *ends, char *text);

#endif
