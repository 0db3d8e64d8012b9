/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs.h - reads files below /sys, and the facts there about a network interface. */
#ifndef MESH_SYSTEM_SYSFS_H
#define MESH_SYSTEM_SYSFS_H

#include <dirent.h>
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
 * @entries: receives an array to be freed with mesh_sysfs_list_free(); untouched on failure
 *
 * Returns the number of entries, or a negative errno.
 */
int mesh_sysfs_list(const struct mesh_sysfs *sysfs, const char *path, struct dirent ***entries);

/** Frees such an array of @num entries; does nothing for an error in place of the number. */
void mesh_sysfs_list_free(struct dirent **entries, int num);

/**
 * Finds the PCI function of a device, or the one that it is attached to: a USB or virtio device has
 * its parent's, a virtual function has its own.
 *
 * @path: below the root, usually a symbolic link: "class/net/eth0/device"
 * @pci_path: PATH_MAX bytes; the real path, or "" if there is none that NCCL could use
 */
void mesh_sysfs_pci_path(const struct mesh_sysfs *sysfs, const char *path, char *pci_path);

/**
 * Reads the NUMA node of a PCI function; -1 where it is unknown.
 *
 * @pci_path: as mesh_sysfs_pci_path() gives it, "" for none
 */
int mesh_sysfs_numa_node(const struct mesh_sysfs *sysfs, const char *pci_path);

/**
 * Adds to @nic the facts of class/net: pci_path (of a VLAN or bond: ""), speed_mbps,
 * MESH_NIC_WIRELESS. Nothing is added if
 * sysfs shows another network namespace's interface under this name: sysfs shows the namespace of
 * the process that mounted it.
 *
 * Returns true if sysfs knows the interface.
 */
bool mesh_sysfs_netdev_load(const struct mesh_sysfs *sysfs, struct mesh_nic *nic);

/* Each takes the whole text without its newline, refuses trailing characters, and returns 0 or
 * -EINVAL; outputs are written on success only. */

/** Reads a decimal, or after 0x a hexadecimal, number from 0 to @max. */
int mesh_sysfs_number_parse(const char *text, uint64_t max, uint64_t *value);

/** Reads "fe80:0000:0000:0000:0202:c9ff:feef:1234" (all zeros written out). */
int mesh_sysfs_gid_parse(const char *text, uint8_t bytes[16]);

/**
 * Reads a hardware address "02:00:00:aa:bb:cc" of 1 to 32 bytes (MAX_ADDR_LEN of the kernel) into
 * @mac as struct mesh_nic holds it: the last 8 bytes, or all and zeros behind them.
 */
int mesh_sysfs_mac_parse(const char *text, uint8_t mac[8]);

/**
 * Fills in rdma of each NIC that has an RDMA port, and the facts that only the port has: pci_path
 * if the netdev has none (bond), speed_mbps if it has none (InfiniBand: always the port's).
 *
 * class/infiniband lists the devices of all network namespaces, whose interfaces may have equal
 * names; so ports are matched to NICs by unique properties. The strongest evidence wins:
 * - InfiniBand: the hardware address of IPoIB ends with the port's GUID; else (no GID is visible)
 *   the same PCI function and the port's number (dev_port);
 * - Ethernet: a GID of this netdev that is derived from one of the NIC's addresses or MAC; else
 *   the same PCI function and a GID of this netdev; else the same PCI function, the port's number
 *   and no GID that names a netdev; else a port without GIDs whose parent file names the netdev
 *   (soft-RoCE).
 *
 * @nics: with netdev, mac, link_type, addrs, pci_path and speed_mbps filled in
 *
 * Returns 0, also where there is no RDMA at all; -ENOMEM.
 */
int mesh_sysfs_rdma_load(const struct mesh_sysfs *sysfs, struct mesh_nic *nics, int num_nics);

#endif
