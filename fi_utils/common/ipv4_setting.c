/* SPDX-License-Identifier: Apache-2.0 */
/* ipv4_setting.c - reads the kernel's settings for IPv4 on one NIC. */
#include <stdint.h>

#include "common/ipv4_setting.h"

int check_ipv4_setting(const struct mesh_sysfs *files, const char *netdev, const char *name)
{
	uint64_t all, own;

	if (mesh_sysfs_read_number(files, 255, &all, "proc/sys/net/ipv4/conf/all/%s", name) ||
	    mesh_sysfs_read_number(files, 255, &own, "proc/sys/net/ipv4/conf/%s/%s", netdev, name))
		return -1;
	return (int)(all > own ? all : own);
}
