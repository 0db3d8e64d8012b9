/* SPDX-License-Identifier: Apache-2.0 */
/* net_v12.c - the table of version 12 of NCCL's net-plugin ABI. */
#include <nccl/net_v12.h>

#include "nccl/table.h"

const struct nccl_net_v12 ncclNetPlugin_v12 = {
	MESH_TABLE_SLOTS,
	MESH_TABLE_SLOTS_CONTEXT,
	.get_properties = mesh_plugin_get_properties,
};
