/* SPDX-License-Identifier: Apache-2.0 */
/* nic_skipped.h - the NICs that were skipped and might have been a path to a peer, in words. */
#ifndef MESH_NIC_NIC_SKIPPED_H
#define MESH_NIC_NIC_SKIPPED_H

#include <stddef.h>

#include "nic/endpoint_addr.h"
#include "nic/nic.h"

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
