/* SPDX-License-Identifier: Apache-2.0 */
/* port_range.h - a range of TCP ports, as NCCL_MESH_PORTS names it. */
#ifndef MESH_BASE_PORT_RANGE_H
#define MESH_BASE_PORT_RANGE_H

#include <stdint.h>

struct mesh_port_range {
	uint16_t first, last; /* both 0: any port, the kernel chooses */
};

/**
 * Reads "40000-40100" or "40000"; "" is any port.
 *
 * Returns 0, or -EINVAL: not that, a port below 1 or above 65535, or the last before the first;
 * @range is any port then.
 */
int mesh_port_range_parse(const char *text, struct mesh_port_range *range);

/** How many ports the range has; 1 for any port, which one attempt gets. */
unsigned int mesh_port_range_size(const struct mesh_port_range *range);

/**
 * The port to try at attempt @number, from 0: each port of the range once. Processes begin at
 * different ones, so that they seldom try the same. 0 for any port.
 */
uint16_t mesh_port_range_get(const struct mesh_port_range *range, unsigned int number);

#endif
