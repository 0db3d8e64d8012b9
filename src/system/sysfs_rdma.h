/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs_rdma.h - finds the RDMA port behind each NIC. */
#ifndef MESH_SYSTEM_SYSFS_RDMA_H
#define MESH_SYSTEM_SYSFS_RDMA_H

#include "nic/nic.h"
#include "system/sysfs.h"

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
