/* SPDX-License-Identifier: Apache-2.0 */
/* compat.h - the plugin's operations with the signatures of the older ABI versions. */
#ifndef MESH_NCCL_COMPAT_H
#define MESH_NCCL_COMPAT_H

#include <nccl/functions.h>
#include <nccl/net_v9.h>

/*
 * Up to v10 operations have no context argument. The first successful init opens one context that
 * these functions share; it lives as long as the process, because those versions never finalize.
 */
nccl_init_v6 mesh_compat_init_v6;
nccl_init_v10 mesh_compat_init_v10;
nccl_listen_v6 mesh_compat_listen_v6;
nccl_connect_v6 mesh_compat_connect_v6;
nccl_connect_v7 mesh_compat_connect_v7;
nccl_connect_v10 mesh_compat_connect_v10;

/* Without device handles. */
nccl_accept_v6 mesh_compat_accept_v6;

/* Sizes as int: a negative one is refused. */
nccl_register_v6 mesh_compat_reg_mr_v6;
nccl_isend_v6 mesh_compat_isend_v6;
nccl_irecv_v6 mesh_compat_irecv_v6;

/*
 * These warn about a failed message once and slow retries down: see compat.c. The v9 functions have
 * no profiler handles.
 */
nccl_isend_v10 mesh_compat_isend_v10;
nccl_irecv_v10 mesh_compat_irecv_v10;
nccl_test_v6 mesh_compat_test_v6;
nccl_isend_v9 mesh_compat_isend_v9;
nccl_irecv_v9 mesh_compat_irecv_v9;

/** Writes every byte of @properties. v10 has the same struct, and v11's begins with it. */
enum nccl_result mesh_compat_get_properties_v9(int dev, struct nccl_net_properties_v9 *properties);

#endif
