/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - the slots that several of NCCL's tables fill alike. These slots are NULL on purpose, in
 * all versions that have them:
 *   reg_mr_dmabuf   GPU memory is not offered, so NCCL never calls it
 *   get_device_mr, irecv_consumed   for code on the GPU; the second would be called on every step
 *   make_vdevice    NCCL must not fuse NICs: in a mesh they lead to different neighbours
 *   set_attributes  hints that the plugin does not use
 */
#ifndef MESH_NCCL_TABLE_H
#define MESH_NCCL_TABLE_H

#include "nccl/compat.h"
#include "nccl/plugin.h"
#include "nccl/properties.h"

/* In every version. */
#define MESH_TABLE_SLOTS                                                                           \
	.name = MESH_PLUGIN_NAME, .devices = mesh_plugin_devices,                                  \
	.dereg_mr = mesh_plugin_dereg_mr, .iflush = mesh_plugin_iflush,                            \
	.close_send = mesh_plugin_close_comm, .close_receive = mesh_plugin_close_comm,             \
	.close_listen = mesh_plugin_close_listen

/* v6 to v8: sizes are int. */
#define MESH_TABLE_SLOTS_INT_SIZES                                                                 \
	.init = mesh_compat_init_v6, .listen = mesh_compat_listen_v6,                              \
	.isend = mesh_compat_isend_v6, .irecv = mesh_compat_irecv_v6, .test = mesh_compat_test_v6

/* Since v11: the newest signatures. */
#define MESH_TABLE_SLOTS_CONTEXT                                                                   \
	.init = mesh_plugin_init, .listen = mesh_plugin_listen, .connect = mesh_plugin_connect,    \
	.accept = mesh_plugin_accept, .reg_mr = mesh_plugin_reg_mr, .isend = mesh_plugin_isend,    \
	.irecv = mesh_plugin_irecv, .test = mesh_plugin_test, .finalize = mesh_plugin_finalize

#endif
