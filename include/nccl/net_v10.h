/* SPDX-License-Identifier: Apache-2.0 */
/* net_v10.h - version 10 of the net ABI: v9's properties, a profiler, a config (NCCL 2.26). */
#ifndef MESH_NCCL_NET_V10_H
#define MESH_NCCL_NET_V10_H

#include <nccl/net_v9.h>

struct nccl_net_v10 {
	NCCL_SLOTS_V6(nccl_init_v10, struct nccl_net_properties_v9, nccl_listen_v6,
		      nccl_connect_v10, nccl_accept_v7, nccl_register_v8, nccl_isend_v10,
		      nccl_irecv_v10);
	NCCL_SLOTS_V7;
	NCCL_SLOTS_V9(nccl_make_vdevice_v9);
};
NCCL_ASSERT_SLOTS_V9(struct nccl_net_v10);
NCCL_ASSERT_SIZE(struct nccl_net_v10, 160);

NCCL_EXPORT(nccl_net_v10, ncclNetPlugin_v10);

#endif
