/* SPDX-License-Identifier: Apache-2.0 */
/* breakage.h - why a connection broke, or never came to be, as far as the NICs' facts say. */
#ifndef MESH_FABRIC_BREAKAGE_H
#define MESH_FABRIC_BREAKAGE_H

#include "fabric/op.h"
#include "fabric/remote.h"

/**
 * Writes why the first message to a remote that TCP reaches did not come through into @text
 * (MESH_RDMA_ERROR_MAX bytes); returns @text.
 *
 * @port: of the endpoint
 * @error: how the message ended, a negative errno; 0 if there was just no answer
 */
const char *mesh_remote_silence_explain(struct mesh_domain *domain, struct mesh_remote *remote,
					uint16_t port, int error, char *text);

/**
 * Says why a connection of verbs broke; its other operations are only flushed.
 *
 * @op: the send or write that told, NULL for a receive
 * @status: of enum ibv_wc_status
 */
void mesh_breakage_report(struct mesh_domain *domain, const struct mesh_op *op, int status);

#endif
