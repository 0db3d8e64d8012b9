/* SPDX-License-Identifier: Apache-2.0 */
/* net_v8.c - the table of version 8 of NCCL's net-plugin ABI. */
#include <nccl/net_v8.h>

#include "nccl/table.h"

static enum nccl_result get_properties(int dev, struct nccl_net_properties_v8 *properties)
{
	struct nccl_net_properties_newest newest;
	enum nccl_result result = mesh_plugin_get_properties(dev, &newest);

	if (!result)
		MESH_PROPERTIES_V8(properties, &newest);
	return result;
}

const struct nccl_net_v8 ncclNetPlugin_v8 = {
	MESH_TABLE_SLOTS,
	MESH_TABLE_SLOTS_INT_SIZES,
	.get_properties = get_properties,
	.connect = mesh_compat_connect_v7,
	.accept = mesh_plugin_accept,
	.reg_mr = mesh_plugin_reg_mr,
};
