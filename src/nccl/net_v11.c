/* SPDX-License-Identifier: Apache-2.0 */
/* net_v11.c - the table of version 11 of NCCL's net-plugin ABI. */
#include <nccl/net_v11.h>

#include "nccl/table.h"

static enum nccl_result get_properties(int dev, struct nccl_net_properties_v11 *properties)
{
	struct nccl_net_properties_newest newest;
	enum nccl_result result = mesh_plugin_get_properties(dev, &newest);

	if (!result)
		MESH_PROPERTIES_V11(properties, &newest);
	return result;
}

const struct nccl_net_v11 ncclNetPlugin_v11 = {
	MESH_TABLE_SLOTS,
	MESH_TABLE_SLOTS_CONTEXT,
	.get_properties = get_properties,
};
