/* SPDX-License-Identifier: Apache-2.0 */
/* carrier.h - whether a NIC has a carrier now. */
#ifndef MESH_SYSTEM_CARRIER_H
#define MESH_SYSTEM_CARRIER_H

#include <stdbool.h>

#include "nic/nic.h"

/** False only if the kernel says that the NIC is down, has no carrier, or is gone. */
bool mesh_carrier_is_up(const struct mesh_nic *nic);

#endif
