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

TEST(rate)
{
	static const char *const bad[] = {"",
					  "100",
					  "100 Gb/s",
					  "Gb/sec",
					  "-1 Gb/sec",
					  "100 Gb/sec4X",
					  "100 Gb/sec (",
					  "100 Gb/sec ()",
					  "100 Gb/sec (4X) x",
					  "2.55 Gb/sec",
					  "2. Gb/sec",
					  "100001 Gb/sec",
					  "99999999999999999999 Gb/sec"};
	int mbps = 0;

	PARSES(mesh_sysfs_rate_parse("100 Gb/sec (4X EDR)", &mbps), mbps, 100000);
	PARSES(mesh_sysfs_rate_parse("2.5 Gb/sec (1X SDR)", &mbps), mbps, 2500);
	PARSES(mesh_sysfs_rate_parse("10 Gb/sec (1X FDR10)", &mbps), mbps, 10000);
	PARSES(mesh_sysfs_rate_parse("40 Gb/sec", &mbps), mbps, 40000);
	FOR_EACH(i, bad)
		assert_int_equal(mesh_sysfs_rate_parse(bad[i], &mbps), -EINVAL);
	assert_int_equal(mbps, 40000);
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

TEST(speed)
{
	int mbps = 1;

	PARSES(mesh_sysfs_speed_parse("-1", &mbps), mbps, 0);
	PARSES(mesh_sysfs_speed_parse("200000", &mbps), mbps, 200000);
	assert_int_equal(mesh_sysfs_speed_parse("4294967295", &mbps), -EINVAL);
	assert_int_equal(mesh_sysfs_speed_parse("-2", &mbps), -EINVAL);
	assert_int_equal(mesh_sysfs_speed_parse("fast", &mbps), -EINVAL);
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
	uint64_t guid = 0;

	assert_int_equal(mesh_sysfs_gid_parse("fe80:0000:0000:0000:0202:c9ff:feef:1234", bytes), 0);
	assert_memory_equal(bytes, wanted, 16);
	FOR_EACH(i, bad)
		assert_int_equal(mesh_sysfs_gid_parse(bad[i], bytes), -EINVAL);
	assert_memory_equal(bytes, wanted, 16);
	assert_int_equal(mesh_sysfs_guid_parse("0002:c903:00ef:1234", &guid), 0);
	assert_true(guid == 0x0002c90300ef1234u);
	assert_int_equal(mesh_sysfs_guid_parse("0x0002c90300ef1234", &guid), -EINVAL);
}

TEST(gid_type)
{
	enum mesh_gid_type type = MESH_GID_UNKNOWN;

	PARSES(mesh_sysfs_gid_type_parse("RoCE v2", MESH_LINK_LAYER_ETHERNET, &type), type,
	       MESH_GID_ROCE_V2);
	PARSES(mesh_sysfs_gid_type_parse("IB/RoCE v1", MESH_LINK_LAYER_ETHERNET, &type), type,
	       MESH_GID_ROCE_V1);
	PARSES(mesh_sysfs_gid_type_parse("IB/RoCE v1", MESH_LINK_LAYER_INFINIBAND, &type), type,
	       MESH_GID_IB);
	assert_int_equal(mesh_sysfs_gid_type_parse("RoCE v3", MESH_LINK_LAYER_ETHERNET, &type),
			 -EINVAL);
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

TEST(pci_name)
{
	static const char *const bad[] = {"",
					  "virtio2",
					  "pci0000:00",
					  "0000:01:00",
					  "0000:01:00.8",
					  "000:01:00.0",
					  "0000:01:00.0x",
					  "00000000:01:00.0",
					  "0000:1:00.0",
					  "0000-01:00.0",
					  "mlx5_core.sf.4",
					  "000g:01:00.0"};

	assert_true(mesh_sysfs_is_pci_function("0000:01:00.0"));
	assert_true(mesh_sysfs_is_pci_function("10000:e1:00.7"));
	assert_true(mesh_sysfs_is_pci_function("1000000:e1:00.7")); /* 15 characters */
	FOR_EACH(i, bad)
		assert_false(mesh_sysfs_is_pci_function(bad[i]));
}
