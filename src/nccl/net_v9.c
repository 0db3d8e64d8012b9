/* SPDX-License-Identifier: Apache-2.0 */
/* net_v9.c - the table of version 9 of NCCL's net-plugin ABI. */
#include <nccl/net_v9.h>

#include "nccl/table.h"

const struct nccl_net_v9 ncclNetPlugin_v9 = {
	MESH_TABLE_SLOTS,
	.init = mesh_compat_init_v6,
	.get_properties = mesh_compat_get_properties_v9,
	.listen = mesh_compat_listen_v6,
	.connect = mesh_compat_connect_v7,
	.accept = mesh_plugin_accept,
	.reg_mr = mesh_plugin_reg_mr,
	.isend = mesh_compat_isend_v9,
	.irecv = mesh_compat_irecv_v9,
	.test = mesh_compat_test_v6,
};
