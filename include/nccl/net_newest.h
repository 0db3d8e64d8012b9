/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_newest.h - names the newest version of the net ABI, here only. plugin.c fills its properties,
 * and the older tables derive theirs from them. A new version changes the number here.
 */
#ifndef MESH_NCCL_NET_NEWEST_H
#define MESH_NCCL_NET_NEWEST_H

#include <nccl/net_v12.h>

#define nccl_net_newest nccl_net_v12
#define nccl_net_properties_newest nccl_net_properties_v12

/* The table's symbol, for dlsym(). */
#define NCCL_NET_SYMBOL_NEWEST "ncclNetPlugin_v12"

#endif
