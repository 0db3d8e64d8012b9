/* SPDX-License-Identifier: Apache-2.0 */
/* breakage.h - explains why a connection broke or failed to start, from the facts of the NICs. */
#ifndef MESH_FABRIC_BREAKAGE_H
#define MESH_FABRIC_BREAKAGE_H

#include "fabric/op.h"
#include "fabric/remote.h"

/**
 * Writes into @text (MESH_RDMA_ERROR_MAX bytes) why the first message to a remote that TCP reaches
 * failed; returns @text.
 *
 * @port: of the endpoint
 * @error: how the message ended, a negative errno; 0 if the remote did not answer
 */
const char *mesh_remote_silence_explain(struct mesh_domain *domain, struct mesh_remote *remote,
					uint16_t port, int error, char *text);

/**
 * Logs why a connection of verbs broke. Call it for the operation that failed: the other operations
 * of the connection are only flushed.
 *
 * @op: the send or write that failed, NULL for a receive
 * @status: of enum ibv_wc_status
 */
void mesh_breakage_report(struct mesh_domain *domain, const struct mesh_op *op, int status);

#endif
