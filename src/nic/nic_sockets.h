/* SPDX-License-Identifier: Apache-2.0 */
/* nic_sockets.h - the NICs on which NCCL's ranks meet, NCCL_SOCKET_IFNAME. */
#ifndef MESH_NIC_NIC_SOCKETS_H
#define MESH_NIC_NIC_SOCKETS_H

#include "nic/nic.h"

/**
 * Sets socket_named of each NIC that the list names, and clears it of the others. The grammar is
 * that of NCCL (NCCL manual, environment variables): a comma list of prefixes of netdev names; a
 * leading '=' selects exact names. A list with a leading '^' names the NICs that are not used, so
 * it names none here. NCCL reports what it cannot use; this function logs nothing.
 */
void mesh_nic_sockets_mark(const char *list, struct mesh_nic *nics, int num_nics);

#endif
