/* SPDX-License-Identifier: Apache-2.0 */
/* net_v7.c - the table of version 7 of NCCL's net-plugin ABI. */
#include <nccl/net_v7.h>

#include "nccl/table.h"

static enum nccl_result get_properties(int dev, struct nccl_net_properties_v7 *properties)
{
	struct nccl_net_properties_newest newest;
	enum nccl_result result = mesh_plugin_get_properties(dev, &newest);

	if (!result)
		MESH_PROPERTIES_V7(properties, &newest);
	return result;
}

const struct nccl_net_v7 ncclNetPlugin_v7 = {
	MESH_TABLE_SLOTS,
	MESH_TABLE_SLOTS_INT_SIZES,
	.get_properties = get_properties,
	.connect = mesh_compat_connect_v7,
	.accept = mesh_plugin_accept,
	.reg_mr = mesh_compat_reg_mr_v6,
};
