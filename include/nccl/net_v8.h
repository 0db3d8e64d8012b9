/* SPDX-License-Identifier: Apache-2.0 */
/* net_v8.h - version 8 of the net ABI: registers more than 2 GiB (NCCL 2.20). */
#ifndef MESH_NCCL_NET_V8_H
#define MESH_NCCL_NET_V8_H

#include <nccl/functions.h>

struct nccl_net_properties_v8 {
	struct nccl_net_identity identity;
	int pointer_support;
	int registration_is_global;
	struct nccl_net_link link;
	struct nccl_net_device device;
};
NCCL_ASSERT_PROPERTIES_V7(struct nccl_net_properties_v8, 32);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v8, registration_is_global, 28, 4);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v8, 64);

struct nccl_net_v8 {
	NCCL_SLOTS_V6(nccl_init_v6, struct nccl_net_properties_v8, nccl_listen_v6, nccl_connect_v7,
		      nccl_accept_v7, nccl_register_v8, nccl_isend_v6, nccl_irecv_v6);
	NCCL_SLOTS_V7;
};
NCCL_ASSERT_SLOTS_V7(struct nccl_net_v8);
NCCL_ASSERT_SIZE(struct nccl_net_v8, 152);

NCCL_EXPORT(nccl_net_v8, ncclNetPlugin_v8);

#endif
