/* SPDX-License-Identifier: Apache-2.0 */
/*
 * properties.h - fills an older version's properties from the newest's. Macros, because the
 * members have the same names in structs of different types; each adds its version's members.
 */
#ifndef MESH_NCCL_PROPERTIES_H
#define MESH_NCCL_PROPERTIES_H

#include <string.h>

#define MESH_PROPERTIES_V6(older, newest)                                                          \
	do {                                                                                       \
		memset((older), 0, sizeof(*(older))); /* padding too */                            \
		(older)->identity = (newest)->identity;                                            \
		(older)->pointer_support = (newest)->pointer_support;                              \
		(older)->link = (newest)->link;                                                    \
	} while (0)

#define MESH_PROPERTIES_V7(older, newest)                                                          \
	do {                                                                                       \
		MESH_PROPERTIES_V6(older, newest);                                                 \
		(older)->device = (newest)->device;                                                \
	} while (0)

#define MESH_PROPERTIES_V8(older, newest)                                                          \
	do {                                                                                       \
		MESH_PROPERTIES_V7(older, newest);                                                 \
		(older)->registration_is_global = (newest)->registration_is_global;                \
	} while (0)

/* At most one member: this plugin makes no virtual devices. */
#define MESH_PROPERTIES_V9(older, newest)                                                          \
	do {                                                                                       \
		MESH_PROPERTIES_V8(older, newest);                                                 \
		(older)->force_flush = (newest)->force_flush;                                      \
		(older)->members.num_devs = (newest)->members.num_devs;                            \
		(older)->members.devs[0] = (newest)->members.devs[0];                              \
		(older)->limits = (newest)->limits;                                                \
	} while (0)

#define MESH_PROPERTIES_V11(older, newest)                                                         \
	do {                                                                                       \
		MESH_PROPERTIES_V9(older, newest);                                                 \
		(older)->max_multi_request_size = (newest)->max_multi_request_size;                \
	} while (0)

#endif
