/* SPDX-License-Identifier: Apache-2.0 */
/* nic_named.h - makes and finds NICs by name, for tests of lists and tables of NICs. */
#ifndef MESH_TESTS_NIC_NAMED_H
#define MESH_TESTS_NIC_NAMED_H

#include "nic/nic.h"

/** The NIC called @netdev; fails the test if there is none. */
const struct mesh_nic *nic_named(const struct mesh_nic *nics, int num_nics, const char *netdev);

/**
 * The next NIC of @table, whose array has room: up, with a carrier, an ifindex from 1 on and a MAC
 * that ends in it. @addrs: separated by blanks; "": none.
 */
struct mesh_nic *nic_add(struct mesh_nic_table *table, const char *netdev, const char *addrs);

#endif
