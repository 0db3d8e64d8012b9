/* SPDX-License-Identifier: Apache-2.0 */
/* checks.c - the table of checks. */
#include "check/checks.h"

/* One row for each check. */
const struct check checks[] = {
	{"libfabric", "libfabric has a provider for each NIC", check_libfabric},
	{"carrier", "NICs with addresses are up and have a carrier", check_carrier},
	{"speed", "links run at full speed and full duplex", check_speed},
	{"mtu", "MTUs are large and the same", check_mtu},
	{"congestion", "TCP does not pace itself on direct cables", check_congestion},
	{"pcie", "PCIe links are as wide and fast as the cards can do", check_pcie},
	{"subnets", "each NIC has a subnet of its own", check_subnets},
	{"shared-subnet", "NICs that share a subnet keep to their own cable", check_shared_subnet},
	{"modules", "kernel modules for the hardware that is there", check_modules},
	{"ports", "RDMA ports are active, with a subnet manager on InfiniBand", check_ports},
	{"gids", "each IPv4 address has a RoCE v2 GID", check_gids},
	{"device-files", "/dev/infiniband can be used", check_device_files},
	{"memlock", "enough memory may be locked", check_memlock},
	{"firewall", "no firewall rule drops the ports", check_firewall},
	{"neighbours", "the other end of each link fits, if it answers", check_neighbours},
	{"environment", "the environment does not bypass the plugin", check_environment},
	{"plugin", "NCCL finds, loads and supports the plugin", check_plugin},
	{NULL, NULL, NULL},
};

_Static_assert(sizeof(checks) / sizeof(checks[0]) <= 33, "--only keeps a bit for each check");
