/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nic_text.c - texts of users and sysfs: NCCL_MESH_NICS, NCCL_MESH_ADDRESSES, sysfs files. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/user_lists.h"
#include "nic/nic_select.h"
#include "system/sysfs.h"

#include "fuzz_text.h"

static void ignore(enum mesh_log_level level, const char *file, int line, const char *text)
{
}

static void sysfs_texts(const char *text)
{
	uint8_t bytes[16];
	uint64_t number;

	if (!mesh_sysfs_number_parse(text, 1000, &number) && number > 1000)
		abort();
	mesh_sysfs_gid_parse(text, bytes);
	mesh_sysfs_mac_parse(text, bytes);
}

static void settings(const char *text)
{
	struct mesh_nic nic = {.netdev = "eth0", .state = MESH_NIC_RUNS, .num_addrs = 1};
	struct mesh_nic_table table = {.nics = &nic, .num_nics = 1};
	struct mesh_nic_filter filter;

	if (!mesh_nic_filter_parse(text, &filter))
		mesh_nic_filter_names(&filter, &nic);
	mesh_addr_parse("10.1.0.1/24", &nic.addrs[0]);
	mesh_nic_select(text, "", &table);
	mesh_nic_select("", text, &table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	if (!text)
		return 0;
	mesh_log_sink_set(ignore);
	sysfs_texts(text);
	settings(text);
	free(text);
	return 0;
}
