/* SPDX-License-Identifier: Apache-2.0 */
/* net_v6.h - version 6 of the net ABI: NCCL 2.14 and later look for it. */
#ifndef MESH_NCCL_NET_V6_H
#define MESH_NCCL_NET_V6_H

#include <nccl/functions.h>

struct nccl_net_properties_v6 {
	struct nccl_net_identity identity;
	int pointer_support;
	struct nccl_net_link link;
};
NCCL_ASSERT_PROPERTIES(struct nccl_net_properties_v6, 28);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v6, 48);

struct nccl_net_v6 {
	NCCL_SLOTS_V6(nccl_init_v6, struct nccl_net_properties_v6, nccl_listen_v6, nccl_connect_v6,
		      nccl_accept_v6, nccl_register_v6, nccl_isend_v6, nccl_irecv_v6);
};
NCCL_ASSERT_SLOTS_V6(struct nccl_net_v6);
NCCL_ASSERT_SIZE(struct nccl_net_v6, 136);

NCCL_EXPORT(nccl_net_v6, ncclNetPlugin_v6);

#endif
