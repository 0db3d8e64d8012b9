/* SPDX-License-Identifier: Apache-2.0 */
/* host_memory.h - the host program's memory and code, which libfabric must not harm. */
#ifndef MESH_FABRIC_HOST_MEMORY_H
#define MESH_FABRIC_HOST_MEMORY_H

/**
 * Makes libfabric leave libc's code as it is. Call it before the process's first call of
 * fi_getinfo(), where libfabric reads its variables; later it has no effect. A process that sets
 * FI_MR_CACHE_MONITOR or FI_MR_CACHE_MAX_COUNT keeps its own choice.
 */
void mesh_memory_hooks_prevent(void);

/** Protects registered memory if the host program forks. Call it before the first registration. */
void mesh_verbs_fork_protect(void);

#endif
