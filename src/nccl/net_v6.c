/* SPDX-License-Identifier: Apache-2.0 */
/* net_v6.c - the table of version 6 of NCCL's net-plugin ABI. */
#include <nccl/net_v6.h>

#include "nccl/table.h"

static enum nccl_result get_properties(int dev, struct nccl_net_properties_v6 *properties)
{
	struct nccl_net_properties_newest newest;
	enum nccl_result result = mesh_plugin_get_properties(dev, &newest);

	if (!result)
		MESH_PROPERTIES_V6(properties, &newest);
	return result;
}

const struct nccl_net_v6 ncclNetPlugin_v6 = {
	MESH_TABLE_SLOTS,
	MESH_TABLE_SLOTS_INT_SIZES,
	.get_properties = get_properties,
	.connect = mesh_compat_connect_v6,
	.accept = mesh_compat_accept_v6,
	.reg_mr = mesh_compat_reg_mr_v6,
};
