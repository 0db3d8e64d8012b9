/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs.c - reads files below /sys, and the facts there about a network interface. */
#define _GNU_SOURCE /* scandirat, versionsort */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "system/sysfs.h"

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

/* Opens a file, or with O_PATH whatever is there. Returns its descriptor or a negative errno. */
__attribute__((format(printf, 3, 0))) static int
path_open(const struct mesh_sysfs *sysfs, int flags, const char *format, va_list args)
{
	char path[PATH_MAX];
	int len = vsnprintf(path, sizeof(path), format, args), fd;

	if (len < 0 || len >= PATH_MAX)
		return -ENAMETOOLONG;
	if (sysfs->fd < 0)
		return -ENOENT;
	fd = openat(sysfs->fd, path, flags | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

/* Reads the whole file without its last newline, for which @text needs no room, and closes it. */
static int file_read(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;
	char more;
	int ret;

	*text = '\0';
	if (fd < 0)
		return fd;
	while ((n = read(fd, text + len, size - len)) > 0)
		len += (size_t)n;
	ret = n < 0 ? -errno : 0;
	if (!ret && len == size && (text[len - 1] != '\n' || read(fd, &more, 1)))
		ret = -EOVERFLOW;
	close(fd);
	len -= len && text[len - 1] == '\n';
	if (!ret && memchr(text, '\0', len))
		ret = -EINVAL;
	text[ret ? 0 : len] = '\0';
	return ret;
}

int mesh_sysfs_read(const struct mesh_sysfs *sysfs, char *text, size_t size, const char *format,
		    ...)
{
	va_list args;
	int fd;

	va_start(args, format);
	fd = path_open(sysfs, O_RDONLY, format, args);
	va_end(args);
	return file_read(fd, text, size);
}

int mesh_sysfs_read_number(const struct mesh_sysfs *sysfs, uint64_t max, uint64_t *value,
			   const char *format, ...)
{
	char text[32];
	va_list args;
	int ret;

	va_start(args, format);
	ret = file_read(path_open(sysfs, O_RDONLY, format, args), text, sizeof(text));
	va_end(args);
	return ret ? ret : mesh_sysfs_number_parse(text, max, value);
}

bool mesh_sysfs_exists(const struct mesh_sysfs *sysfs, const char *format, ...)
{
	va_list args;
	int fd;

	va_start(args, format);
	fd = path_open(sysfs, O_PATH, format, args);
	va_end(args);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int name_wanted(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

int mesh_sysfs_list(const struct mesh_sysfs *sysfs, const char *path, struct dirent ***entries)
{
	int num;

	if (sysfs->fd < 0)
		return -ENOENT;
	num = scandirat(sysfs->fd, path, entries, name_wanted, versionsort);
	return num < 0 ? -errno : num;
}

void mesh_sysfs_list_free(struct dirent **entries, int num)
{
	int i;

	for (i = 0; i < num; i++)
		free(entries[i]);
	if (num >= 0)
		free(entries);
}

/* NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE, which NCCL copies the name into, without its NUL. */
#define PCI_FUNCTION_NAME_MAX 15

/* True for the name of a PCI function that NCCL has room for: "0000:01:00.0". */
static bool is_pci_function(const char *name)
{
	size_t domain = strspn(name, "0123456789abcdef");

	return domain >= 4 && strlen(name) <= PCI_FUNCTION_NAME_MAX &&
	       !fnmatch(":[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f].[0-7]", name + domain, 0);
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
		slash = strrchr(real, '/');
		if (is_pci_function(slash + 1)) {
			memcpy(pci_path, real, strlen(real) + 1);
			return;
		}
		*slash = '\0';
	}
}

int mesh_sysfs_numa_node(const struct mesh_sysfs *sysfs, const char *pci_path)
{
	uint64_t node;

	/* For a machine without NUMA nodes the kernel writes -1. */
	return *pci_path && !mesh_sysfs_read_number(sysfs, INT_MAX, &node, "%s/numa_node", pci_path)
		       ? (int)node
		       : -1;
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

bool mesh_sysfs_netdev_load(const struct mesh_sysfs *sysfs, struct mesh_nic *nic)
{
	uint64_t speed_mbps;
	char path[64];

	if (!mesh_sysfs_exists(sysfs, "class/net/%s", nic->netdev))
		return false;
	if (!netdev_is_same(sysfs, nic)) {
		mesh_trace("%s/class/net/%s belongs to another network namespace", sysfs->root,
			   nic->netdev);
		return false;
	}
	snprintf(path, sizeof(path), "class/net/%s/device", nic->netdev);
	mesh_sysfs_pci_path(sysfs, path, nic->pci_path);
	/* The kernel fails to read the speed of a link that is down, and writes -1 if unknown. */
	if (!mesh_sysfs_read_number(sysfs, INT_MAX, &speed_mbps, "class/net/%s/speed", nic->netdev))
		nic->speed_mbps = (int)speed_mbps;
	if (mesh_sysfs_exists(sysfs, "class/net/%s/wireless", nic->netdev) ||
	    mesh_sysfs_exists(sysfs, "class/net/%s/phy80211", nic->netdev))
		nic->kind = MESH_NIC_WIRELESS;
	return true;
}

int mesh_sysfs_number_parse(const char *text, uint64_t max, uint64_t *value)
{
	bool hex = text[0] == '0' && text[1] == 'x';
	const char *digits = hex ? text + 2 : text;
	unsigned long long result;
	char *end;

	errno = 0;
	result = strtoull(digits, &end, hex ? 16 : 10);
	if (!isxdigit((unsigned char)*digits) || *end || errno || result > max)
		return -EINVAL;
	*value = result;
	return 0;
}

int mesh_sysfs_gid_parse(const char *text, uint8_t bytes[16])
{
	/* It is written like an IPv6 address with all zeros. */
	return strlen(text) == strlen("fe80:0000:0000:0000:0202:c9ff:feef:1234") &&
			       inet_pton(AF_INET6, text, bytes) == 1
		       ? 0
		       : -EINVAL;
}

int mesh_sysfs_mac_parse(const char *text, uint8_t mac[8])
{
	uint8_t bytes[32] = {0};
	size_t num = 0;

	do {
		text += num && *text == ':';
		if (num == sizeof(bytes) || sscanf(text, "%2hhx", &bytes[num]) != 1 ||
		    strspn(text, "0123456789abcdef") != 2)
			return -EINVAL;
		num++;
		text += 2;
	} while (*text);
	memcpy(mac, num > 8 ? bytes + num - 8 : bytes, 8);
	return 0;
}
