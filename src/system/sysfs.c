/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs.c - reads files below /sys, and the facts there about a network interface. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "system/sysfs.h"

#define _GNU_SOURCE /* scandirat, versionsort */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

/* A VLAN on a bond on a port is two steps down; a longer chain is a loop or invalid. */
#define LOWER_STEPS 4

int mesh_sysfs_open(const char *root, struct mesh_sysfs *sysfs)
{
	memset(sysfs, 0, sizeof(*sysfs));
	sysfs->fd = -1;
	if (!realpath(root, sysfs->root))
		return -errno;
	sysfs->fd = open(sysfs->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return sysfs->fd < 0 ? -errno : 0;
}

void mesh_sysfs_close(struct mesh_sysfs *sysfs)
{
	if (sysfs->fd >= 0)
		close(sysfs->fd);
	sysfs->fd = -1;
}

/* Writes a path of PATH_MAX bytes; -ENOENT without a sysfs. */
__attribute__((format(printf, 3, 0))) static int
path_make(const struct mesh_sysfs *sysfs, char *path, const char *format, va_list args)
{
	int len = vsnprintf(path, PATH_MAX, format, args);

	if (len < 0 || len >= PATH_MAX)
		return -ENAMETOOLONG;
	return sysfs->fd < 0 ? -ENOENT : 0;
}

/* Reads until the end of the file, but no more than @size bytes. */
static ssize_t read_all(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size) {
		n = read(fd, text + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

/* Reads the whole file without its last newline; the newline may be at @size - 1. */
static ssize_t text_read(int fd, char *text, size_t size)
{
	ssize_t len = read_all(fd, text, size);
	char more;

	if (len < 0)
		return len;
	if ((size_t)len == size && (text[len - 1] != '\n' || read_all(fd, &more, 1)))
		return -EOVERFLOW;
	if (len && text[len - 1] == '\n')
		len--;
	return memchr(text, '\0', (size_t)len) ? -EINVAL : len;
}

static int file_read(const struct mesh_sysfs *sysfs, const char *path, char *text, size_t size)
{
	ssize_t len;
	int fd;

	*text = '\0';
	fd = openat(sysfs->fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = text_read(fd, text, size);
	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	return len < 0 ? (int)len : 0;
}

int mesh_sysfs_read(const struct mesh_sysfs *sysfs, char *text, size_t size, const char *format,
		    ...)
{
	char path[PATH_MAX];
	va_list args;
	int ret;

	va_start(args, format);
	ret = path_make(sysfs, path, format, args);
	va_end(args);
	*text = '\0';
	return ret ? ret : file_read(sysfs, path, text, size);
}

int mesh_sysfs_read_number(const struct mesh_sysfs *sysfs, uint64_t max, uint64_t *value,
			   const char *format, ...)
{
	char path[PATH_MAX], text[32];
	va_list args;
	int ret;

	va_start(args, format);
	ret = path_make(sysfs, path, format, args);
	va_end(args);
	if (!ret)
		ret = file_read(sysfs, path, text, sizeof(text));
	return ret ? ret : mesh_sysfs_number_parse(text, max, value);
}

bool mesh_sysfs_exists(const struct mesh_sysfs *sysfs, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int ret;

	va_start(args, format);
	ret = path_make(sysfs, path, format, args);
	va_end(args);
	return !ret && !faccessat(sysfs->fd, path, F_OK, 0);
}

static int name_wanted(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

int mesh_sysfs_list(const struct mesh_sysfs *sysfs, const char *path, char ***names)
{
	struct dirent **entries;
	int num, i, ret = 0;
	char **result;

	if (sysfs->fd < 0)
		return -ENOENT;
	num = scandirat(sysfs->fd, path, &entries, name_wanted, versionsort);
	if (num < 0)
		return -errno;
	result = calloc((size_t)num + 1, sizeof(*result));
	for (i = 0; i < num; i++) {
		if (result)
			result[i] = strdup(entries[i]->d_name);
		if (!result || !result[i])
			ret = -ENOMEM;
		free(entries[i]);
	}
	free(entries);
	if (ret || !result) {
		mesh_sysfs_names_free(result, num);
		return -ENOMEM;
	}
	*names = result;
	return num;
}

void mesh_sysfs_names_free(char **names, int num)
{
	int i;

	for (i = 0; names && i < num; i++)
		free(names[i]);
	free(names);
}

/* True when the device folder @path belongs to the PCI bus and is a function of it. */
static bool is_pci_function(const char *path)
{
	char link[PATH_MAX], subsystem[PATH_MAX];
	const char *name = strrchr(path, '/');
	ssize_t len;

	if (!name || !mesh_sysfs_is_pci_function(name + 1) ||
	    snprintf(link, sizeof(link), "%s/subsystem", path) >= (int)sizeof(link))
		return false;
	len = readlink(link, subsystem, sizeof(subsystem));
	return len >= 4 && len < (ssize_t)sizeof(subsystem) &&
	       !memcmp(subsystem + len - 4, "/pci", 4);
}

void mesh_sysfs_pci_path(const struct mesh_sysfs *sysfs, const char *path, char *pci_path)
{
	size_t root_len = strlen(sysfs->root);
	char link[PATH_MAX], real[PATH_MAX];
	char *slash;

	*pci_path = '\0';
	if (sysfs->fd < 0 ||
	    snprintf(link, sizeof(link), "%s/%s", sysfs->root, path) >= (int)sizeof(link) ||
	    !realpath(link, real))
		return;
	while (!strncmp(real, sysfs->root, root_len) && real[root_len] == '/') {
		if (is_pci_function(real)) {
			memcpy(pci_path, real, strlen(real) + 1);
			return;
		}
		slash = strrchr(real, '/');
		*slash = '\0';
	}
}

int mesh_sysfs_numa_node(const char *pci_path)
{
	struct mesh_sysfs folder;
	uint64_t node;
	int found = -1;

	if (!*pci_path)
		return -1;
	/* The kernel writes -1 for a machine without NUMA nodes, which is no number here. */
	if (!mesh_sysfs_open(pci_path, &folder) &&
	    !mesh_sysfs_read_number(&folder, INT_MAX, &node, "numa_node"))
		found = (int)node;
	mesh_sysfs_close(&folder);
	return found;
}

/* False if class/net/X is not the interface that netlink reported. */
static bool netdev_is_same(const struct mesh_sysfs *sysfs, const struct mesh_nic *nic)
{
	uint64_t ifindex;
	uint8_t mac[8];
	char text[128];

	if (!mesh_sysfs_read_number(sysfs, UINT32_MAX, &ifindex, "class/net/%s/ifindex",
				    nic->netdev) &&
	    ifindex != nic->ifindex)
		return false;
	return mesh_sysfs_read(sysfs, text, sizeof(text), "class/net/%s/address", nic->netdev) ||
	       mesh_sysfs_mac_parse(text, mac) || !memcmp(mac, nic->mac, sizeof(mac));
}

/* The first "lower_X" of @netdev, for which X is written to @lower (IF_NAMESIZE bytes). */
static bool lower_find(const struct mesh_sysfs *sysfs, const char *netdev, char *lower)
{
	static const char prefix[] = "lower_";
	char path[64], **names = NULL;
	bool found = false;
	int num, i;

	snprintf(path, sizeof(path), "class/net/%s", netdev);
	num = mesh_sysfs_list(sysfs, path, &names);
	for (i = 0; i < num && !found; i++) {
		found = !strncmp(names[i], prefix, sizeof(prefix) - 1) &&
			strlen(names[i]) - (sizeof(prefix) - 1) < IF_NAMESIZE;
		if (found)
			strcpy(lower, names[i] + sizeof(prefix) - 1);
	}
	mesh_sysfs_names_free(names, num);
	return found;
}

/* A VLAN or bond has no device of its own: use that of the first interface below it. */
static void netdev_pci_path(const struct mesh_sysfs *sysfs, const char *netdev, char *pci_path)
{
	char name[IF_NAMESIZE], path[64];
	int step;

	snprintf(name, sizeof(name), "%s", netdev);
	for (step = 0; step < LOWER_STEPS; step++) {
		snprintf(path, sizeof(path), "class/net/%s/device", name);
		if (mesh_sysfs_exists(sysfs, "%s", path)) {
			mesh_sysfs_pci_path(sysfs, path, pci_path);
			return;
		}
		if (!lower_find(sysfs, name, name))
			return;
	}
}

bool mesh_sysfs_netdev_load(const struct mesh_sysfs *sysfs, struct mesh_nic *nic)
{
	char text[32];

	if (!mesh_sysfs_exists(sysfs, "class/net/%s", nic->netdev))
		return false;
	if (!netdev_is_same(sysfs, nic)) {
		mesh_trace("%s/class/net/%s belongs to another network namespace", sysfs->root,
			   nic->netdev);
		return false;
	}
	netdev_pci_path(sysfs, nic->netdev, nic->pci_path);
	/* The kernel fails to read the speed of a link that is down. */
	if (!mesh_sysfs_read(sysfs, text, sizeof(text), "class/net/%s/speed", nic->netdev))
		mesh_sysfs_speed_parse(text, &nic->speed_mbps);
	if (mesh_sysfs_exists(sysfs, "class/net/%s/wireless", nic->netdev) ||
	    mesh_sysfs_exists(sysfs, "class/net/%s/phy80211", nic->netdev))
		nic->kind = MESH_NIC_WIRELESS;
	return true;
}

/* Above the rate of any port; keeps the sum within an int. */
#define RATE_GBPS_MAX 100000
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
