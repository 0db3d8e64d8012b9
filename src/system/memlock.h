/* SPDX-License-Identifier: Apache-2.0 */
/* memlock.h - the limit of locked memory: RDMA needs more than the usual default. */
#ifndef MESH_SYSTEM_MEMLOCK_H
#define MESH_SYSTEM_MEMLOCK_H

#include <stdbool.h>

#define MESH_MEMLOCK_HINT_MAX 256

/**
 * True if a limit applies to this process: one is set, and the process lacks the privilege to
 * exceed it. In a container root may lack it, too.
 *
 * @kib: the limit in KiB, written only if the result is true
 */
bool mesh_memlock_limited(unsigned long *kib);

/**
 * True in the kernel's first user namespace: the kernel honours the privilege only there.
 *
 * @uid_map: /proc/PID/uid_map; in that namespace it maps every id
 */
bool mesh_uid_map_is_first(const char *uid_map);

/**
 * Writes "; this process may lock only 8192 KiB ...", with the remedy, into @text
 * (MESH_MEMLOCK_HINT_MAX bytes), or "" if there is no limit. Returns @text.
 */
const char *mesh_memlock_hint(char *text);

#endif
