/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs_text.c - parses the texts of sysfs files. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "system/sysfs_text.h"

/* Above the rate of any port; keeps the sum within an int. */
#define RATE_GBPS_MAX 100000
/* PCIe 7.0 has 128. */
#define PCI_GTPS_MAX 1000
/* NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE, which NCCL copies the name into, without its NUL. */
#define PCI_FUNCTION_NAME_MAX 15

/* The value of a hexadecimal digit as the kernel prints it (small letters), or -1. */
static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Reads exactly @digits hexadecimal digits; -1 if there are fewer. */
static long hex_read(const char *text, int digits)
{
	long value = 0;
	int i, digit;

	for (i = 0; i < digits; i++) {
		digit = hex_digit(text[i]);
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* Reads digits of @base up to the first other character; NULL if there is none or over @max. */
static const char *number_read(const char *text, int base, uint64_t max, uint64_t *value)
{
	const char *start = text;
	uint64_t result = 0;
	int digit;

	for (; (digit = hex_digit(*text)) >= 0 && digit < base; text++) {
		if ((uint64_t)digit > max || result > (max - (uint64_t)digit) / (uint64_t)base)
			return NULL;
		result = result * (uint64_t)base + (uint64_t)digit;
	}
	if (text == start)
		return NULL;
	*value = result;
	return text;
}

int mesh_sysfs_number_parse(const char *text, uint64_t max, uint64_t *value)
{
	bool hex = text[0] == '0' && text[1] == 'x';
	const char *end;
	uint64_t result;

	end = number_read(hex ? text + 2 : text, hex ? 16 : 10, max, &result);
	if (!end || *end)
		return -EINVAL;
	*value = result;
	return 0;
}

int mesh_sysfs_rate_parse(const char *text, int *mbps)
{
	static const char unit[] = " Gb/sec";
	uint64_t whole, tenth = 0;
	size_t len;

	text = number_read(text, 10, RATE_GBPS_MAX, &whole);
	if (text && *text == '.')
		text = number_read(text + 1, 10, 9, &tenth);
	if (!text || strncmp(text, unit, sizeof(unit) - 1))
		return -EINVAL;
	text += sizeof(unit) - 1;
	len = strlen(text);
	/* " (4X EDR)": width and generation, not needed. */
	if (len && (len < 4 || strncmp(text, " (", 2) || strchr(text, ')') != text + len - 1))
		return -EINVAL;
	*mbps = (int)(whole * 1000 + tenth * 100);
	return 0;
}

int mesh_sysfs_speed_parse(const char *text, int *mbps)
{
	uint64_t value;

	if (!strcmp(text, "-1")) {
		*mbps = 0;
		return 0;
	}
	/* SPEED_UNKNOWN of linux/ethtool.h is -1; kernels before 4.4 print it unsigned. */
	if (mesh_sysfs_number_parse(text, UINT32_MAX, &value))
		return -EINVAL;
	*mbps = value > INT_MAX ? 0 : (int)value;
	return 0;
}

int mesh_sysfs_pci_speed_parse(const char *text, int *mts)
{
	uint64_t whole, tenth = 0;

	if (!strncmp(text, "Unknown", 7)) { /* "Unknown", "Unknown speed" */
		*mts = 0;
		return 0;
	}
	text = number_read(text, 10, PCI_GTPS_MAX, &whole);
	if (text && *text == '.')
		text = number_read(text + 1, 10, 9, &tenth);
	if (!text || (strcmp(text, " GT/s PCIe") && strcmp(text, " GT/s")))
		return -EINVAL;
	*mts = (int)(whole * 1000 + tenth * 100);
	return 0;
}

/* Reads @groups groups of four hexadecimal digits with ':' between them, and nothing else. */
static int groups_parse(const char *text, int groups, uint8_t *bytes)
{
	long value;
	int i;

	if (strlen(text) != (size_t)(groups * 5 - 1))
		return -EINVAL;
	for (i = 0; i < groups; i++) {
		value = hex_read(text + 5 * i, 4);
		if (value < 0 || (i < groups - 1 && text[5 * i + 4] != ':'))
			return -EINVAL;
		bytes[2 * i] = (uint8_t)(value >> 8);
		bytes[2 * i + 1] = (uint8_t)value;
	}
	return 0;
}

int mesh_sysfs_gid_parse(const char *text, uint8_t bytes[16])
{
	uint8_t result[16];

	if (groups_parse(text, 8, result))
		return -EINVAL;
	memcpy(bytes, result, sizeof(result));
	return 0;
}

int mesh_sysfs_guid_parse(const char *text, uint64_t *guid)
{
	uint8_t bytes[8];
	uint64_t result = 0;
	int i;

	if (groups_parse(text, 4, bytes))
		return -EINVAL;
	for (i = 0; i < 8; i++)
		result = result << 8 | bytes[i];
	*guid = result;
	return 0;
}

int mesh_sysfs_gid_type_parse(const char *text, enum mesh_link_layer link_layer,
			      enum mesh_gid_type *type)
{
	if (!strcmp(text, "RoCE v2"))
		*type = MESH_GID_ROCE_V2;
	else if (strcmp(text, "IB/RoCE v1"))
		return -EINVAL;
	else if (link_layer == MESH_LINK_LAYER_INFINIBAND)
		*type = MESH_GID_IB;
	else
		*type = MESH_GID_ROCE_V1;
	return 0;
}

int mesh_sysfs_mac_parse(const char *text, uint8_t mac[8])
{
	uint8_t bytes[32] = {0};
	size_t len = strlen(text), num = (len + 1) / 3, i;
	long value;

	if (!len || (len + 1) % 3 || num > sizeof(bytes))
		return -EINVAL;
	for (i = 0; i < num; i++) {
		value = hex_read(text + 3 * i, 2);
		if (value < 0 || (i < num - 1 && text[3 * i + 2] != ':'))
			return -EINVAL;
		bytes[i] = (uint8_t)value;
	}
	memcpy(mac, num > 8 ? bytes + num - 8 : bytes, 8);
	return 0;
}

bool mesh_sysfs_is_pci_function(const char *name)
{
	const char *colon = strchr(name, ':');
	size_t len = strlen(name);

	/* The domain has four digits or more; ":01:00.0" always follows it. */
	if (!colon || colon - name < 4 || len > PCI_FUNCTION_NAME_MAX || strlen(colon) != 8)
		return false;
	return hex_read(name, (int)(colon - name)) >= 0 && hex_read(colon + 1, 2) >= 0 &&
	       colon[3] == ':' && hex_read(colon + 4, 2) >= 0 && colon[6] == '.' &&
	       colon[7] >= '0' && colon[7] <= '7';
}
