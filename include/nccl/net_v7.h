/* SPDX-License-Identifier: Apache-2.0 */
/* net_v7.h - version 7 of the net ABI: adds device handles (NCCL 2.19). */
#ifndef MESH_NCCL_NET_V7_H
#define MESH_NCCL_NET_V7_H

#include <nccl/functions.h>

struct nccl_net_properties_v7 {
	struct nccl_net_identity identity;
	int pointer_support;
	struct nccl_net_link link;
	struct nccl_net_device device;
};
NCCL_ASSERT_PROPERTIES_V7(struct nccl_net_properties_v7, 28);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v7, 56);

struct nccl_net_v7 {
	NCCL_SLOTS_V6(nccl_init_v6, struct nccl_net_properties_v7, nccl_listen_v6, nccl_connect_v7,
		      nccl_accept_v7, nccl_register_v6, nccl_isend_v6, nccl_irecv_v6);
	NCCL_SLOTS_V7;
};
NCCL_ASSERT_SLOTS_V7(struct nccl_net_v7);
NCCL_ASSERT_SIZE(struct nccl_net_v7, 152);

NCCL_EXPORT(nccl_net_v7, ncclNetPlugin_v7);

#endif
