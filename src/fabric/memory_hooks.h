/* SPDX-License-Identifier: Apache-2.0 */
/* memory_hooks.h - libfabric's changes to libc's code, which this plugin does without. */
#ifndef MESH_FABRIC_MEMORY_HOOKS_H
#define MESH_FABRIC_MEMORY_HOOKS_H

/**
 * Makes libfabric leave libc's code as it is. Call it before the process's first call of
 * fi_getinfo(), where libfabric reads its variables; later it has no effect. A process that sets
 * FI_MR_CACHE_MONITOR or FI_MR_CACHE_MAX_COUNT keeps its own choice.
 */
void mesh_memory_hooks_prevent(void);

#endif
