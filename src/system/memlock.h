/* SPDX-License-Identifier: Apache-2.0 */
/* memlock.h - how much memory the process may lock: RDMA needs more than the usual default. */
#ifndef MESH_SYSTEM_MEMLOCK_H
#define MESH_SYSTEM_MEMLOCK_H

#include <stdbool.h>

#define MESH_MEMLOCK_HINT_MAX 256

/**
 * True if a limit holds for this process: it has one, and not the privilege to pass it. Being
 * root is not enough in a container.
 *
 * @kib: the limit in KiB, written only then
 */
bool mesh_memlock_limited(unsigned long *kib);

/**
 * The kernel grants the privilege in its first user namespace only.
 *
 * @uid_map: /proc/PID/uid_map; in that namespace it holds every id
 */
bool mesh_uid_map_is_first(const char *uid_map);

/**
 * Writes "; only 8192 KiB may be locked ...", with what to do, into @text (MESH_MEMLOCK_HINT_MAX
 * bytes), or "" if there is no limit. Returns @text.
 */
const char *mesh_memlock_hint(char *text);

#endif
