/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - what the tables of the net and of the tuner have in common. */
#ifndef MESH_NCCL_PLUGIN_H
#define MESH_NCCL_PLUGIN_H

#include <nccl/net_abi.h>

/* The name in every table: what users put into NCCL_NET. NCCL compares it without case. */
#define MESH_PLUGIN_NAME "Mesh"

/**
 * Sends all later log lines to @logger, which must stay callable from any thread for the life of
 * the process. NULL: to stderr.
 */
void mesh_nccl_log_set(nccl_logger logger);

#endif
