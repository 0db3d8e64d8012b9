/* SPDX-License-Identifier: Apache-2.0 */
/* ipv4_setting.h - the kernel's settings for IPv4 on one NIC. */
#ifndef MESH_FI_UTILS_COMMON_IPV4_SETTING_H
#define MESH_FI_UTILS_COMMON_IPV4_SETTING_H

#include "system/sysfs.h"

/**
 * What the kernel uses of net.ipv4.conf.*.NAME: the larger of "all" and the NIC's own
 * (ip-sysctl.rst); -1 if it cannot be read.
 *
 * @files: opened at "/"
 */
int check_ipv4_setting(const struct mesh_sysfs *files, const char *netdev, const char *name);

#endif
