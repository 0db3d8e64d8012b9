/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sysfs_text.c - the texts of sysfs files: in range, or refused and nothing written. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/pci_link.h"
#include "system/sysfs.h"

#include "fuzz_text.h"

/* 0 or -EINVAL; on -EINVAL @untouched must hold. */
static void result_check(int ret, int untouched)
{
	fuzz_check(!ret || (ret == -EINVAL && untouched));
}

static void numbers(const char *text)
{
	static const uint64_t limits[] = {0, 1, 9, 255, 1000, UINT32_MAX, UINT64_MAX};
	uint64_t value;
	int mbps, ret;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		value = 0x5a5a;
		ret = mesh_sysfs_number_parse(text, limits[i], &value);
		result_check(ret, value == 0x5a5a);
		fuzz_check(ret || value <= limits[i]);
	}
	mbps = -5;
	ret = mesh_pci_speed_parse(text, &mbps);
	result_check(ret, mbps == -5);
	fuzz_check(ret || mbps >= 0);
}

static void identities(const char *text)
{
	static const uint8_t before[16] = {0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a,
					   0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a};
	uint8_t bytes[16];

	memcpy(bytes, before, sizeof(bytes));
	result_check(mesh_sysfs_gid_parse(text, bytes), !memcmp(bytes, before, 16));
	memcpy(bytes, before, sizeof(bytes));
	result_check(mesh_sysfs_mac_parse(text, bytes), !memcmp(bytes, before, 8));
	fuzz_check(!memcmp(bytes + 8, before, 8)); /* a MAC has eight bytes */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	if (!text)
		return 0;
	numbers(text);
	identities(text);
	free(text);
	return 0;
}
