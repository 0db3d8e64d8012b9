/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs.h - reads files below /sys, and the facts there about a network interface. */
#ifndef MESH_SYSTEM_SYSFS_H
#define MESH_SYSTEM_SYSFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/nic.h"

/* A mounted sysfs, or a folder that looks like one. */
struct mesh_sysfs {
	int fd;		     /* of the folder; -1 if there is none: all files read as missing */
	char root[PATH_MAX]; /* its real path */
};

/**
 * Opens the folder @root, "/sys" for the real one.
 *
 * Returns 0; -ENOENT and the like if there is no such folder (not logged). @sysfs can be used in
 * both cases, and must be closed.
 */
int mesh_sysfs_open(const char *root, struct mesh_sysfs *sysfs);

void mesh_sysfs_close(struct mesh_sysfs *sysfs);

/**
 * Reads a file below the root into @text of @size bytes, without its last newline.
 *
 * Returns 0; -ENOENT if it is missing; -EOVERFLOW if it does not fit, @text is never cut; -EINVAL
 * for a NUL inside, or from the kernel; another negative errno. @text is "" on failure.
 */
int mesh_sysfs_read(const struct mesh_sysfs *sysfs, char *text, size_t size, const char *format,
		    ...) __attribute__((format(printf, 4, 5)));

/** As mesh_sysfs_read, for a number from 0 to @max (decimal, or hexadecimal after 0x). */
int mesh_sysfs_read_number(const struct mesh_sysfs *sysfs, uint64_t max, uint64_t *value,
			   const char *format, ...) __attribute__((format(printf, 4, 5)));

/** True when there is such a file or folder below the root. */
bool mesh_sysfs_exists(const struct mesh_sysfs *sysfs, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * Lists a folder below the root in natural order (eth2 before eth10), without "." and "..".
 *
 * @names: receives an array to be freed with mesh_sysfs_names_free(); untouched on failure
 *
 * Returns the number of names, or a negative errno.
 */
int mesh_sysfs_list(const struct mesh_sysfs *sysfs, const char *path, char ***names);

/** Frees such an array; NULL is allowed with any @num. */
void mesh_sysfs_names_free(char **names, int num);

/**
 * Finds the PCI function of a device, or the one that it is attached to: a USB or virtio device has
 * its parent's, a virtual function has its own.
 *
 * @path: below the root, usually a symbolic link: "class/net/eth0/device"
 * @pci_path: PATH_MAX bytes; the real path, or "" if there is none that NCCL could use
 */
void mesh_sysfs_pci_path(const struct mesh_sysfs *sysfs, const char *path, char *pci_path);

/**
 * Reads the PCIe link of a PCI function from its folder and the one above; a value that is missing
 * there (virtual functions, other buses) is 0.
 *
 * @pci_path: as mesh_sysfs_pci_path() gives it, "" for none
 */
void mesh_sysfs_pci_link_load(const char *pci_path, struct mesh_pci_link *link);

/** Reads the NUMA node of a PCI function; -1 where it is unknown. @pci_path: as above. */
int mesh_sysfs_numa_node(const char *pci_path);

/**
 * Adds to @nic the facts of class/net: pci_path, speed_mbps, wireless. Nothing is added if sysfs
 * shows another network namespace's interface under this name: sysfs shows the namespace of the
 * process that mounted it.
 *
 * Returns true if sysfs knows the interface.
 */
bool mesh_sysfs_netdev_load(const struct mesh_sysfs *sysfs, struct mesh_nic *nic);

#endif
