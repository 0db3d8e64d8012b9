/* SPDX-License-Identifier: Apache-2.0 */
/* nic_named.h - finds a NIC by its name, for tests of lists and tables of NICs. */
#ifndef MESH_TESTS_NIC_NAMED_H
#define MESH_TESTS_NIC_NAMED_H

#include "nic/nic.h"

/** The NIC called @netdev; fails the test if there is none. */
const struct mesh_nic *nic_named(const struct mesh_nic *nics, int num_nics, const char *netdev);

#endif
