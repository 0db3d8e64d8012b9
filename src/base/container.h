/* SPDX-License-Identifier: Apache-2.0 */
/* container.h - from a member back to the struct that it is embedded in. */
#ifndef MESH_BASE_CONTAINER_H
#define MESH_BASE_CONTAINER_H

#include <stddef.h>

/** The struct of @type whose @member is at @pointer. */
#define mesh_container_of(pointer, type, member)                                                   \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
