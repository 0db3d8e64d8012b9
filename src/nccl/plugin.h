/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.h - the plugin's operations with the newest ABI's signatures. The tables since v11 hold
 * these functions directly; compat.c wraps them in the older signatures.
 *
 * All of them return NCCL_RESULT_SUCCESS, or the result that matches the errno of the layer below.
 */
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

/**
 * Opens the plugin for one communicator. *context is NULL on any failure. The communicator's id
 * and configuration (a traffic class) and the profiler are not used.
 */
nccl_init_v11 mesh_plugin_init;

/** Closes the context of mesh_plugin_init(); NULL is allowed. Always succeeds. */
nccl_finalize_v11 mesh_plugin_finalize;

/** Writes the number of NICs. */
nccl_devices_v6 mesh_plugin_devices;

/**
 * Writes every byte of @properties: NCCL passes memory that is not zeroed. The strings live as
 * long as the process. Returns NCCL_RESULT_INVALID_ARGUMENT for a NIC that does not exist.
 */
enum nccl_result mesh_plugin_get_properties(int dev, struct nccl_net_properties_newest *properties);

/** Writes a listener, or NULL on failure. @handle: NCCL_HANDLE_SIZE bytes, any alignment. */
nccl_listen_v11 mesh_plugin_listen;

/**
 * Writes a comm, or NULL if it is not ready (success: call again) or has failed. The last argument
 * may be NULL and is not written: the plugin runs no code on the GPU.
 */
nccl_connect_v11 mesh_plugin_connect;
nccl_accept_v7 mesh_plugin_accept;

/** Writes a registration, or NULL on failure. @type must be NCCL_POINTER_HOST. */
nccl_register_v8 mesh_plugin_reg_mr;

/** Always succeeds: NCCL stops freeing other connections if one of these fails. */
nccl_deregister_v6 mesh_plugin_dereg_mr;
nccl_close_v6 mesh_plugin_close_comm;
nccl_close_v6 mesh_plugin_close_listen;

/**
 * Writes a request, or NULL if nothing was started; NULL with success means: call again. The tag
 * and the profiler's handles are not used; @n of a receive must be 1.
 */
nccl_isend_v10 mesh_plugin_isend;
nccl_irecv_v10 mesh_plugin_irecv;

/** Nothing to flush: data is received in host memory only. Writes a NULL request. */
nccl_iflush_v6 mesh_plugin_iflush;

/** Always writes *done, and *sizes (may be NULL) when done. */
nccl_test_v6 mesh_plugin_test;

#endif
