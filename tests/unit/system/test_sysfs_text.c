/* SPDX-License-Identifier: Apache-2.0 */
/* test_sysfs_text.c - the texts that sysfs files hold, good and bad. */
#include "common/pci_link.h"
#include "system/sysfs.h"

#include "unit.h"

#define PARSES(parse, value, wanted)                                                               \
	do {                                                                                       \
		assert_int_equal(parse, 0);                                                        \
		assert_int_equal(value, wanted);                                                   \
	} while (0)

TEST(number)
{
	uint64_t value = 7;

	PARSES(mesh_sysfs_number_parse("0", 10, &value), value, 0);
	PARSES(mesh_sysfs_number_parse("0x1f", 255, &value), value, 31);
	assert_int_equal(mesh_sysfs_number_parse("18446744073709551615", UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
	value = 7;
	assert_int_equal(mesh_sysfs_number_parse("18446744073709551616", UINT64_MAX, &value),
			 -EINVAL);
	assert_int_equal(mesh_sysfs_number_parse("11", 10, &value), -EINVAL);
	assert_int_equal(mesh_sysfs_number_parse("7", 5, &value), -EINVAL);
	assert_int_equal(mesh_sysfs_number_parse("", 10, &value), -EINVAL);
	assert_int_equal(mesh_sysfs_number_parse("0x", 10, &value), -EINVAL);
	assert_int_equal(mesh_sysfs_number_parse("1 ", 10, &value), -EINVAL);
	assert_int_equal(mesh_sysfs_number_parse("-1", 10, &value), -EINVAL);
	assert_int_equal(mesh_sysfs_number_parse("1f", 100, &value), -EINVAL);
	assert_int_equal(value, 7);
}

TEST(pci_speed)
{
	static const char *const bad[] = {"",	       "GT/s",	    "8.0",	 "8.0 GT/s PCIe x",
					  "-8.0 GT/s", "8.55 GT/s", "1001 GT/s", " 8.0 GT/s"};
	int mts = 1;

	PARSES(mesh_pci_speed_parse("8.0 GT/s PCIe", &mts), mts, 8000);
	PARSES(mesh_pci_speed_parse("2.5 GT/s PCIe", &mts), mts, 2500);
	FOR_EACH(i, bad)
		assert_int_equal(mesh_pci_speed_parse(bad[i], &mts), -EINVAL);
	assert_int_equal(mts, 2500);
	PARSES(mesh_pci_speed_parse("8 GT/s", &mts), mts, 8000);
	PARSES(mesh_pci_speed_parse("Unknown speed", &mts), mts, 0);
}

TEST(gid)
{
	static const uint8_t wanted[16] = {0xfe, 0x80, [8] = 2, 2,    0xc9,
					   0xff, 0xfe, 0xef,	0x12, 0x34};
	static const char *const bad[] = {
		"",
		"fe80::202:c9ff:feef:1234",
		"fe80:0000:0000:0000:0202:c9ff:feef:123",
		"fe80:0000:0000:0000:0202:c9ff:feef:12345",
		"fe80:0000:0000:0000:0202:c9ff:feef:123g",
		"fe80:0000:0000:0000:0202:c9ff:feef-1234",
		"fe80:0000:0000:0000:0202:c9ff:feef:1234\n",
	};
	uint8_t bytes[16] = {0};

	assert_int_equal(mesh_sysfs_gid_parse("fe80:0000:0000:0000:0202:c9ff:feef:1234", bytes), 0);
	assert_memory_equal(bytes, wanted, 16);
	FOR_EACH(i, bad)
		assert_int_equal(mesh_sysfs_gid_parse(bad[i], bytes), -EINVAL);
	assert_memory_equal(bytes, wanted, 16);
}

TEST(mac)
{
	static const uint8_t ethernet[8] = {2, 0, 0, 0xaa, 0xbb, 0xcc, 0, 0};
	static const uint8_t infiniband[8] = {0, 2, 0xc9, 3, 0, 0xef, 0x12, 0x35};
	uint8_t mac[8];

	assert_int_equal(mesh_sysfs_mac_parse("02:00:00:aa:bb:cc", mac), 0);
	assert_memory_equal(mac, ethernet, 8);
	assert_int_equal(
		mesh_sysfs_mac_parse("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:ef:12:35",
				     mac),
		0);
	assert_memory_equal(mac, infiniband, 8);
	assert_int_equal(mesh_sysfs_mac_parse("", mac), -EINVAL);
	assert_int_equal(mesh_sysfs_mac_parse("02:", mac), -EINVAL);
	assert_int_equal(mesh_sysfs_mac_parse("02:00:0", mac), -EINVAL);
	assert_int_equal(mesh_sysfs_mac_parse("02-00", mac), -EINVAL);
	assert_int_equal(mesh_sysfs_mac_parse("02:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:"
					      "00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00",
					      mac),
			 -EINVAL);
}
