/* SPDX-License-Identifier: Apache-2.0 */
/* net_v12.h - version 12 of the net ABI: rails, planes and wider virtual devices (NCCL 2.30). */
#ifndef MESH_NCCL_NET_V12_H
#define MESH_NCCL_NET_V12_H

#include <nccl/functions.h>

struct nccl_net_vdevice_v12 {
	int num_devs;
	int devs[8]; /* NCCL_NET_MAX_DEVS_PER_NIC */
};
NCCL_ASSERT_MEMBER(struct nccl_net_vdevice_v12, num_devs, 0, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_vdevice_v12, devs, 4, 32);
NCCL_ASSERT_SIZE(struct nccl_net_vdevice_v12, 36);

struct nccl_net_properties_v12 {
	struct nccl_net_identity identity;
	int pointer_support; /* NCCL_POINTER_* */
	int registration_is_global;
	int force_flush;
	struct nccl_net_link link;
	struct nccl_net_device device;
	struct nccl_net_vdevice_v12 members;
	struct nccl_net_limits limits;
	int max_multi_request_size;
	int16_t rail_id; /* NCCL_UNDEFINED, or a number that NICs on one rail share */
	int16_t plane_id;
};
NCCL_ASSERT_PROPERTIES_V7(struct nccl_net_properties_v12, 36);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, registration_is_global, 28, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, force_flush, 32, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, members, 64, 36);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, limits.max_p2p_bytes, 104, 8);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, limits.max_coll_bytes, 112, 8);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, max_multi_request_size, 120, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, rail_id, 124, 2);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, plane_id, 126, 2);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v12, 128);

struct nccl_net_v12 {
	NCCL_SLOTS_V6(nccl_init_v11, struct nccl_net_properties_v12, nccl_listen_v11,
		      nccl_connect_v11, nccl_accept_v7, nccl_register_v8, nccl_isend_v10,
		      nccl_irecv_v10);
	NCCL_SLOTS_V7;
	NCCL_SLOTS_V9(nccl_make_vdevice_v12);
	NCCL_SLOTS_V11;
};
NCCL_ASSERT_SLOTS_V11(struct nccl_net_v12);
NCCL_ASSERT_SIZE(struct nccl_net_v12, 176);

NCCL_EXPORT(nccl_net_v12, ncclNetPlugin_v12);

#endif
