/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic_order.h - the order of the NIC table, the numbers by which NCCL distinguishes NICs, and the
 * NICs that are skipped.
 */
#ifndef MESH_NIC_NIC_ORDER_H
#define MESH_NIC_NIC_ORDER_H

#include <stddef.h>

#include "nic/endpoint_addr.h"
#include "nic/nic.h"

/**
 * Sorts the table into an order that is the same after each boot, and sets num_taken: taken NICs
 * first; by PCI path (none: last), RDMA port of that PCI function, netdev in natural order (eth2
 * before eth10).
 */
void mesh_nic_table_sort(struct mesh_nic_table *table);

/**
 * Sets guid and port of all NICs: node GUID and port of the RDMA device, else derived from the MAC.
 * NCCL treats NICs with the same pair as one; so a second NIC on the same port (a VLAN) gets a GUID
 * of its own, derived from its name, and no GUID is 0. Call it once the table is in order: the
 * first NIC of a port keeps the port's own GUID.
 */
void mesh_nic_table_identify(struct mesh_nic_table *table);

/** Marks @nic as skipped with the reason @format (without "skipped: "); the order stays. */
void mesh_nic_leave(struct mesh_nic *nic, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** The reason without "skipped: ", for use below a heading with that word. */
const char *mesh_nic_bare_reason(const struct mesh_nic *nic);

/**
 * Moves the taken NIC @index to the skipped ones; later taken ones move up by one. Pointers to NICs
 * of the table become invalid.
 *
 * @format: the reason, without "skipped: "
 */
void mesh_nic_table_leave(struct mesh_nic_table *table, int index, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Writes "eth1 (10.2.0.1/24): no carrier (cable or peer down); ..." into @text of @size bytes: each
 * NIC that has an address and was skipped because of its link or because it has no provider, and
 * each other skipped NIC that has an address in a subnet of the peer's. "" if there is none.
 *
 * @remote: the peer's addresses, @num_remote of them
 *
 * Returns @text.
 */
const char *mesh_nics_skipped_text(const struct mesh_nic_table *table,
				   const struct mesh_endpoint_addr *remote, int num_remote,
				   char *text, size_t size);

#endif
