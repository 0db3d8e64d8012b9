/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain_marks.h - which NICs a user has taken out of use: `fi_mesh drain` and `undrain`.
 *
 * A mark is an empty file drain-<netdev> in the folder of the counters (stats_file.h), where only
 * its user and root can write. It stays until it is removed, or until the next boot.
 */
#ifndef MESH_SYSTEM_DRAIN_MARKS_H
#define MESH_SYSTEM_DRAIN_MARKS_H

#include <net/if.h>
#include <stdbool.h>

/* The marked NICs. More than these are not read. */
#define MESH_DRAIN_MARKS_MAX 32

struct mesh_drain_marks {
	char netdevs[MESH_DRAIN_MARKS_MAX][IF_NAMESIZE];
	int num;
};

/** True if the NIC is marked. */
bool mesh_drain_marks_have(const struct mesh_drain_marks *marks, const char *netdev);

/** True if this may be the name of a NIC: it fits, and it is no path. */
bool mesh_drain_netdev_is_valid(const char *netdev);

/**
 * Reads the marks of an open folder. Returns 0, or a negative errno, and then @marks is unchanged.
 */
int mesh_drain_marks_read(int folder_fd, struct mesh_drain_marks *marks);

/** Makes or removes the mark of a NIC in an open folder. Returns 0 or a negative errno. */
int mesh_drain_mark_set(int folder_fd, const char *netdev, bool marked);

/**
 * Opens a descriptor that becomes readable when a mark in a folder is made or removed that
 * mesh_drain_watch_add() has added; mesh_drain_watch_clear() reads what it has. Both return 0 or
 * more, or a negative errno.
 */
int mesh_drain_watch_open(void);
int mesh_drain_watch_add(int fd, int folder_fd);
void mesh_drain_watch_clear(int fd);

#endif
