/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - sends the log to NCCL. */
#ifndef MESH_NCCL_LOG_H
#define MESH_NCCL_LOG_H

#include <nccl/types.h>

/**
 * Sends all later log lines to @logger, which must stay callable from any thread for the life of
 * the process. NULL: to stderr.
 */
void mesh_nccl_log_set(nccl_logger logger);

#endif
