/* SPDX-License-Identifier: Apache-2.0 */
/* net_v9.h - version 9 of the net ABI: size_t messages, virtual devices (NCCL 2.24). */
#ifndef MESH_NCCL_NET_V9_H
#define MESH_NCCL_NET_V9_H

#include <nccl/functions.h>

struct nccl_net_properties_v9 {
	struct nccl_net_identity identity;
	int pointer_support;
	int registration_is_global;
	int force_flush;
	struct nccl_net_link link;
	struct nccl_net_device device;
	struct nccl_net_vdevice_v9 members;
	struct nccl_net_limits limits;
};
NCCL_ASSERT_PROPERTIES_V7(struct nccl_net_properties_v9, 36);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v9, registration_is_global, 28, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v9, force_flush, 32, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v9, members, 64, 20);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v9, limits.max_p2p_bytes, 88, 8);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v9, limits.max_coll_bytes, 96, 8);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v9, 104);

struct nccl_net_v9 {
	NCCL_SLOTS_V6(nccl_init_v6, struct nccl_net_properties_v9, nccl_listen_v6, nccl_connect_v7,
		      nccl_accept_v7, nccl_register_v8, nccl_isend_v9, nccl_irecv_v9);
	NCCL_SLOTS_V7;
	NCCL_SLOTS_V9(nccl_make_vdevice_v9);
};
NCCL_ASSERT_SLOTS_V9(struct nccl_net_v9);
NCCL_ASSERT_SIZE(struct nccl_net_v9, 160);

NCCL_EXPORT(nccl_net_v9, ncclNetPlugin_v9);

#endif
