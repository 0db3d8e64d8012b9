/* SPDX-License-Identifier: Apache-2.0 */
/* namespace.h - puts the test program into an empty network namespace of its own. */
#ifndef MESH_TESTS_NAMESPACE_H
#define MESH_TESTS_NAMESPACE_H

#include <stdbool.h>

/**
 * Moves the process into a new network and mount namespace; can be called again for an empty one.
 *
 * Returns false, with a line on stderr, where that is not permitted or `ip` is not installed:
 * skip with exit status 77.
 */
bool namespace_enter(void);

/** Runs `ip` with these arguments in the namespace; ends the program with a message if it fails. */
void namespace_ip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * Makes @count NICs n0, n1 and so on, with the addresses 10.1.0.1/24, 10.2.0.1/24 ..., each with a
 * cable to x0, x1 ..., which has no address.
 */
void namespace_nics(int count);

/**
 * Mounts the namespace's own sysfs on the folder @path.
 *
 * Returns false where that is not permitted.
 */
bool namespace_mount_sysfs(const char *path);

void namespace_unmount_sysfs(const char *path);

#endif
