/* SPDX-License-Identifier: Apache-2.0 */
/* net_v11.h - version 11 of the net ABI: a context for each communicator (NCCL 2.28). */
#ifndef MESH_NCCL_NET_V11_H
#define MESH_NCCL_NET_V11_H

#include <nccl/functions.h>

struct nccl_net_properties_v11 {
	struct nccl_net_identity identity;
	int pointer_support;
	int registration_is_global;
	int force_flush;
	struct nccl_net_link link;
	struct nccl_net_device device;
	struct nccl_net_vdevice_v9 members;
	struct nccl_net_limits limits;
	int max_multi_request_size;
};
NCCL_ASSERT_PROPERTIES_V7(struct nccl_net_properties_v11, 36);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v11, registration_is_global, 28, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v11, force_flush, 32, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v11, members, 64, 20);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v11, limits.max_p2p_bytes, 88, 8);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v11, limits.max_coll_bytes, 96, 8);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v11, max_multi_request_size, 104, 4);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v11, 112);

struct nccl_net_v11 {
	NCCL_SLOTS_V6(nccl_init_v11, struct nccl_net_properties_v11, nccl_listen_v11,
		      nccl_connect_v11, nccl_accept_v7, nccl_register_v8, nccl_isend_v10,
		      nccl_irecv_v10);
	NCCL_SLOTS_V7;
	NCCL_SLOTS_V9(nccl_make_vdevice_v9);
	NCCL_SLOTS_V11;
};
NCCL_ASSERT_SLOTS_V11(struct nccl_net_v11);
NCCL_ASSERT_SIZE(struct nccl_net_v11, 176);

NCCL_EXPORT(nccl_net_v11, ncclNetPlugin_v11);

#endif
