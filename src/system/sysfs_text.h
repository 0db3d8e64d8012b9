/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs_text.h - parses the texts of sysfs files. Pure functions; the texts are not trusted. */
#ifndef MESH_SYSTEM_SYSFS_TEXT_H
#define MESH_SYSTEM_SYSFS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/nic.h"

/* Each takes the whole text without its newline, refuses trailing characters, and returns 0 or
 * -EINVAL; outputs are written on success only. */

/** Reads a decimal, or after 0x a hexadecimal, number from 0 to @max. */
int mesh_sysfs_number_parse(const char *text, uint64_t max, uint64_t *value);

/** Reads "12.5 Gb/sec (4X EDR)" of an RDMA port's rate file into Mb/s. */
int mesh_sysfs_rate_parse(const char *text, int *mbps);

/** Reads a speed file: Mb/s. "-1", also printed as unsigned by old kernels, is 0: unknown. */
int mesh_sysfs_speed_parse(const char *text, int *mbps);

/**
 * Reads a current_link_speed or max_link_speed file, "8.0 GT/s PCIe", into MT/s. "Unknown" is 0;
 * old kernels print "8 GT/s".
 */
int mesh_sysfs_pci_speed_parse(const char *text, int *mts);

/** Reads "fe80:0000:0000:0000:0202:c9ff:feef:1234" (all zeros written out). */
int mesh_sysfs_gid_parse(const char *text, uint8_t bytes[16]);

/** Reads "0002:c903:00ef:1234" of a node_guid file. */
int mesh_sysfs_guid_parse(const char *text, uint64_t *guid);

/**
 * Reads a gid_attrs/types file: "IB/RoCE v1" or "RoCE v2". The first means IB on a port whose
 * @link_layer is InfiniBand.
 */
int mesh_sysfs_gid_type_parse(const char *text, enum mesh_link_layer link_layer,
			      enum mesh_gid_type *type);

/**
 * Reads a hardware address "02:00:00:aa:bb:cc" of 1 to 32 bytes (MAX_ADDR_LEN of the kernel) into
 * @mac as struct mesh_nic holds it: the last 8 bytes, or all and zeros behind them.
 */
int mesh_sysfs_mac_parse(const char *text, uint8_t mac[8]);

/**
 * True for the name of a PCI function, "0000:01:00.0", of at most 15 characters: NCCL copies it
 * into char[16] (nvmlwrap.h, NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE).
 */
bool mesh_sysfs_is_pci_function(const char *name);

#endif
