/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs_fixture.c - makes folders that look like /sys of machines that we know. */
#define _GNU_SOURCE /* nftw */
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysfs_fixture.h"

#define ZERO_GID "0000:0000:0000:0000:0000:0000:0000:0000"

static void die(const char *what, const char *path)
{
	fprintf(stderr, "sysfs_fixture: %s %s: %s\n", what, path, strerror(errno));
	exit(1);
}

void sysfs_fixture_make(struct sysfs_fixture *fixture)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(fixture->root, sizeof(fixture->root), "%s/mesh-sysfs-XXXXXX",
		 tmp && *tmp && strlen(tmp) < 200 ? tmp : "/tmp");
	if (!mkdtemp(fixture->root))
		die("mkdtemp", fixture->root);
}

static int entry_remove(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	return remove(path);
}

void sysfs_fixture_remove(struct sysfs_fixture *fixture)
{
	if (nftw(fixture->root, entry_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT))
		die("remove", fixture->root);
}

/* Makes all folders above @path. */
static void parents_make(char *path)
{
	char *slash;

	for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			die("mkdir", path);
		*slash = '/';
	}
}

__attribute__((format(printf, 3, 0))) static void
path_make(const struct sysfs_fixture *fixture, char *path, const char *format, va_list args)
{
	int len = snprintf(path, PATH_MAX, "%s/", fixture->root);

	vsnprintf(path + len, (size_t)(PATH_MAX - len), format, args);
	parents_make(path);
}

void sysfs_fixture_file(const struct sysfs_fixture *fixture, const char *text, const char *format,
			...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;

	va_start(args, format);
	path_make(fixture, path, format, args);
	va_end(args);
	if (!text) { /* read() of a folder fails, as read() of such a file does */
		if (mkdir(path, 0755))
			die("mkdir", path);
		return;
	}
	file = fopen(path, "w");
	if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file))
		die("write", path);
}

__attribute__((format(printf, 3, 4))) static void
link_make(const struct sysfs_fixture *fixture, const char *target, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	path_make(fixture, path, format, args);
	va_end(args);
	if (symlink(target, path) && errno != EEXIST) /* two devices share what is above */
		die("symlink", path);
}

/* Makes "../" as often as @path below the root is deep. */
static const char *way_up(const char *path, char *up)
{
	*up = '\0';
	for (; *path; path++)
		if (*path == '/')
			strcat(up, "../");
	return up;
}

static void subsystem_make(const struct sysfs_fixture *fixture, const char *device, const char *bus)
{
	char path[512], up[256], target[300];

	snprintf(path, sizeof(path), "devices/%s/subsystem", device);
	snprintf(target, sizeof(target), "%sbus/%s", way_up(path, up), bus);
	link_make(fixture, target, "%s", path);
}

void sysfs_fixture_device(const struct sysfs_fixture *fixture, const char *device, const char *bus)
{
	char above[256], *slash;

	subsystem_make(fixture, device, bus);
	snprintf(above, sizeof(above), "%s", device);
	while ((slash = strrchr(above, '/'))) {
		*slash = '\0';
		if ((slash = strrchr(above, '/'))) /* the root complex belongs to no bus */
			subsystem_make(fixture, above, strchr(slash, '.') ? "pci" : bus);
	}
}

/* class/CLASS/NAME, a link to the folder in which the files are, as sysfs has it. */
static void class_make(const struct sysfs_fixture *fixture, const char *class, const char *name,
		       const char *device)
{
	char folder[512], target[600];

	if (device)
		snprintf(folder, sizeof(folder), "devices/%s/%s/%s", device, class, name);
	else
		snprintf(folder, sizeof(folder), "devices/virtual/%s/%s", class, name);
	sysfs_fixture_file(fixture, "", "%s/uevent", folder);
	snprintf(target, sizeof(target), "../../%s", folder);
	link_make(fixture, target, "class/%s/%s", class, name);
	if (!device)
		return;
	snprintf(target, sizeof(target), "../../../%s", strrchr(device, '/') + 1);
	link_make(fixture, target, "%s/device", folder);
}

void sysfs_fixture_netdev(const struct sysfs_fixture *fixture, const char *name, const char *device,
			  const char *mac, const char *speed)
{
	class_make(fixture, "net", name, device);
	sysfs_fixture_file(fixture, mac, "class/net/%s/address", name);
	sysfs_fixture_file(fixture, speed, "class/net/%s/speed", name);
}

void sysfs_fixture_rdma(const struct sysfs_fixture *fixture, const char *name, const char *device,
			const char *node_guid)
{
	class_make(fixture, "infiniband", name, device);
	sysfs_fixture_file(fixture, node_guid, "class/infiniband/%s/node_guid", name);
	sysfs_fixture_file(fixture, "1: CA", "class/infiniband/%s/node_type", name);
}

void sysfs_fixture_port(const struct sysfs_fixture *fixture, const char *name, int port,
			const char *link_layer, const char *state, const char *rate)
{
	sysfs_fixture_file(fixture, link_layer, "class/infiniband/%s/ports/%d/link_layer", name,
			   port);
	sysfs_fixture_file(fixture, state, "class/infiniband/%s/ports/%d/state", name, port);
	sysfs_fixture_file(fixture, rate, "class/infiniband/%s/ports/%d/rate", name, port);
}

void sysfs_fixture_gid(const struct sysfs_fixture *fixture, const char *name, int port, int index,
		       const char *gid, const char *type, const char *netdev)
{
	sysfs_fixture_file(fixture, gid ? gid : ZERO_GID, "class/infiniband/%s/ports/%d/gids/%d",
			   name, port, index);
	sysfs_fixture_file(fixture, type, "class/infiniband/%s/ports/%d/gid_attrs/types/%d", name,
			   port, index);
	sysfs_fixture_file(fixture, netdev, "class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d", name,
			   port, index);
}

/* One RoCE port of a ConnectX: GIDs of the MAC and of an IPv4 address, each as v1 and v2. */
static void roce_port(const struct sysfs_fixture *fixture, const char *name, int port,
		      const char *mac_gid, const char *ip_gid, const char *netdev)
{
	int index;

	for (index = 0; index < 4; index++)
		sysfs_fixture_gid(fixture, name, port, index, index < 2 ? mac_gid : ip_gid,
				  index % 2 ? "RoCE v2" : "IB/RoCE v1", netdev);
	for (; index < 8; index++)
		sysfs_fixture_gid(fixture, name, port, index, NULL, NULL, NULL);
}

void sysfs_fixture_connectx3(const struct sysfs_fixture *fixture)
{
	const char *device = "pci0000:00/0000:00:01.0/0000:01:00.0";

	sysfs_fixture_device(fixture, device, "pci");
	sysfs_fixture_netdev(fixture, "ib0", device,
			     "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:ef:12:35", NULL);
	sysfs_fixture_netdev(fixture, "enp1s0d1", device, "00:02:c9:ef:12:36", "40000");
	sysfs_fixture_file(fixture, "0", "class/net/ib0/dev_port");
	sysfs_fixture_file(fixture, "1", "class/net/enp1s0d1/dev_port");
	sysfs_fixture_rdma(fixture, "mlx4_0", device, "0002:c903:00ef:1234");
	sysfs_fixture_port(fixture, "mlx4_0", 1, "InfiniBand", "4: ACTIVE", "56 Gb/sec (4X FDR)");
	sysfs_fixture_port(fixture, "mlx4_0", 2, "Ethernet", "4: ACTIVE", "40 Gb/sec (4X QDR)");
	sysfs_fixture_gid(fixture, "mlx4_0", 1, 0, "fe80:0000:0000:0000:0002:c903:00ef:1235",
			  "IB/RoCE v1", NULL);
	roce_port(fixture, "mlx4_0", 2, "fe80:0000:0000:0000:0202:c9ff:feef:1236",
		  "0000:0000:0000:0000:0000:ffff:0a03:0001", "enp1s0d1");
}

/*
 * Both ports InfiniBand, each with its own IPoIB and its own cable: the first has a subnet
 * manager, the second has none. Old mlx4: one device, the port in dev_port and dev_id.
 */
void sysfs_fixture_connectx3_infiniband(const struct sysfs_fixture *fixture)
{
	static const struct {
		const char *netdev, *mac, *gid, *state, *rate, *dev_port, *dev_id;
	} ports[] = {
		{"ib0", "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:ef:12:35",
		 "fe80:0000:0000:0000:0002:c903:00ef:1235", "4: ACTIVE", "56 Gb/sec (4X FDR)", "0",
		 "0x0"},
		{"ib1", "80:00:02:09:fe:80:00:00:00:00:00:00:00:02:c9:03:00:ef:12:36",
		 "fe80:0000:0000:0000:0002:c903:00ef:1236", "2: INIT", "10 Gb/sec (4X SDR)", "1",
		 "0x1"},
	};
	const char *device = "pci0000:00/0000:00:01.0/0000:01:00.0";

	sysfs_fixture_device(fixture, device, "pci");
	sysfs_fixture_rdma(fixture, "mlx4_0", device, "0002:c903:00ef:1234");
	for (int i = 0; i < 2; i++) {
		sysfs_fixture_netdev(fixture, ports[i].netdev, device, ports[i].mac, NULL);
		sysfs_fixture_file(fixture, ports[i].dev_port, "class/net/%s/dev_port",
				   ports[i].netdev);
		sysfs_fixture_file(fixture, ports[i].dev_id, "class/net/%s/dev_id",
				   ports[i].netdev);
		sysfs_fixture_port(fixture, "mlx4_0", i + 1, "InfiniBand", ports[i].state,
				   ports[i].rate);
		sysfs_fixture_gid(fixture, "mlx4_0", i + 1, 0, ports[i].gid, "IB/RoCE v1", NULL);
		sysfs_fixture_gid(fixture, "mlx4_0", i + 1, 1, NULL, NULL, NULL);
	}
	/* Another device came first, so the numbers differ. */
	sysfs_fixture_file(fixture, "mlx5_9", "class/infiniband_verbs/uverbs0/ibdev");
	sysfs_fixture_file(fixture, "mlx4_0", "class/infiniband_verbs/uverbs1/ibdev");
	sysfs_fixture_file(fixture, "6", "class/infiniband_verbs/abi_version");
}

void sysfs_fixture_dgx_spark(const struct sysfs_fixture *fixture)
{
	static const struct {
		const char *device, *netdev, *rdma, *mac, *guid, *mac_gid, *ip_gid;
	} functions[] = {
		{"pci0000:00/0000:00:00.0/0000:01:00.0", "enp1s0f0np0", "rocep1s0f0",
		 "4c:bb:47:00:00:01", "4cbb:4703:0000:0001",
		 "fe80:0000:0000:0000:4ebb:47ff:fe00:0001",
		 "0000:0000:0000:0000:0000:ffff:0a01:0001"},
		{"pci0000:00/0000:00:00.0/0000:01:00.1", "enp1s0f1np1", "rocep1s0f1",
		 "4c:bb:47:00:00:02", "4cbb:4703:0000:0002",
		 "fe80:0000:0000:0000:4ebb:47ff:fe00:0002",
		 "0000:0000:0000:0000:0000:ffff:0a02:0001"},
		{"pci0002:00/0002:00:00.0/0002:01:00.0", "enP2p1s0f0np0", "roceP2p1s0f0",
		 "4c:bb:47:00:00:05", "4cbb:4703:0000:0005",
		 "fe80:0000:0000:0000:4ebb:47ff:fe00:0005",
		 "0000:0000:0000:0000:0000:ffff:0a03:0001"},
		{"pci0002:00/0002:00:00.0/0002:01:00.1", "enP2p1s0f1np1", "roceP2p1s0f1",
		 "4c:bb:47:00:00:06", "4cbb:4703:0000:0006",
		 "fe80:0000:0000:0000:4ebb:47ff:fe00:0006",
		 "0000:0000:0000:0000:0000:ffff:0a04:0001"},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		sysfs_fixture_device(fixture, functions[i].device, "pci");
		sysfs_fixture_netdev(fixture, functions[i].netdev, functions[i].device,
				     functions[i].mac, "200000");
		sysfs_fixture_rdma(fixture, functions[i].rdma, functions[i].device,
				   functions[i].guid);
		sysfs_fixture_port(fixture, functions[i].rdma, 1, "Ethernet", "4: ACTIVE",
				   "200 Gb/sec (4X HDR)");
		roce_port(fixture, functions[i].rdma, 1, functions[i].mac_gid, functions[i].ip_gid,
			  functions[i].netdev);
	}
}

void sysfs_fixture_e810(const struct sysfs_fixture *fixture)
{
	const char *first = "pci0000:00/0000:00:01.1/0000:02:00.0";
	const char *second = "pci0000:00/0000:00:01.1/0000:02:00.1";

	sysfs_fixture_device(fixture, first, "pci");
	sysfs_fixture_device(fixture, second, "pci");
	sysfs_fixture_netdev(fixture, "ens1f0", first, "b4:96:91:00:00:10", "100000");
	sysfs_fixture_netdev(fixture, "ens1f1", second, "b4:96:91:00:00:11", "100000");
	sysfs_fixture_rdma(fixture, "irdma0", first, "b696:91ff:fe00:0010");
	sysfs_fixture_rdma(fixture, "irdma1", second, "b696:91ff:fe00:0011");
	sysfs_fixture_port(fixture, "irdma0", 1, "Ethernet", "4: ACTIVE", "100 Gb/sec (4X EDR)");
	sysfs_fixture_port(fixture, "irdma1", 1, "Ethernet", "4: ACTIVE", "100 Gb/sec (4X EDR)");
	sysfs_fixture_gid(fixture, "irdma0", 1, 0, "fe80:0000:0000:0000:b696:91ff:fe00:0010",
			  "RoCE v2", "ens1f0");
	sysfs_fixture_gid(fixture, "irdma0", 1, 1, "0000:0000:0000:0000:0000:ffff:0a04:0001",
			  "RoCE v2", "ens1f0");
	sysfs_fixture_gid(fixture, "irdma0", 1, 2, NULL, NULL, NULL);
	/* iWARP: one GID, the MAC, and the kernel does not say whose it is. */
	sysfs_fixture_file(fixture, "4: RNIC", "class/infiniband/irdma1/node_type");
	sysfs_fixture_gid(fixture, "irdma1", 1, 0, "b496:9100:0011:0000:0000:0000:0000:0000", NULL,
			  NULL);
}

void sysfs_fixture_bond_pod(const struct sysfs_fixture *fixture)
{
	const char *device = "pci0000:80/0000:80:01.0/0000:81:00.0";

	sysfs_fixture_device(fixture, device, "pci");
	sysfs_fixture_netdev(fixture, "net1", NULL, "9a:01:02:03:04:05", "400000");
	sysfs_fixture_rdma(fixture, "mlx5_bond_0", device, "b83f:d203:0010:2030");
	sysfs_fixture_port(fixture, "mlx5_bond_0", 1, "Ethernet", "4: ACTIVE",
			   "200 Gb/sec (4X HDR)");
	for (int index = 0; index < 16; index++)
		if (index == 3) /* a gap, and the host's own entry */
			sysfs_fixture_gid(fixture, "mlx5_bond_0", 1, index,
					  "0000:0000:0000:0000:0000:ffff:0a14:0001", "RoCE v2",
					  "bond0");
		else if (index == 8 || index == 9)
			sysfs_fixture_gid(fixture, "mlx5_bond_0", 1, index,
					  "0000:0000:0000:0000:0000:ffff:0a14:0005",
					  index == 9 ? "RoCE v2" : "IB/RoCE v1", "net1");
		else if (index > 4)
			sysfs_fixture_gid(fixture, "mlx5_bond_0", 1, index, NULL, NULL, NULL);
}

void sysfs_fixture_soft_roce(const struct sysfs_fixture *fixture)
{
	static const struct {
		const char *netdev, *rdma, *mac, *guid, *mac_gid, *ip_gid;
	} nodes[] = {
		{"n0p0", "rxe_n0p0", "02:00:00:00:00:01", "0000:00ff:fe00:0001",
		 "fe80:0000:0000:0000:0000:00ff:fe00:0001",
		 "0000:0000:0000:0000:0000:ffff:0a01:0001"},
		{"n1p1", "rxe_n1p1", "02:00:00:00:00:02", "0000:00ff:fe00:0002",
		 "fe80:0000:0000:0000:0000:00ff:fe00:0002",
		 "0000:0000:0000:0000:0000:ffff:0a01:0002"},
	};

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		sysfs_fixture_netdev(fixture, nodes[i].netdev, NULL, nodes[i].mac, "10000");
		sysfs_fixture_rdma(fixture, nodes[i].rdma, NULL, nodes[i].guid);
		sysfs_fixture_file(fixture, nodes[i].netdev, "class/infiniband/%s/parent",
				   nodes[i].rdma);
		sysfs_fixture_port(fixture, nodes[i].rdma, 1, "Ethernet", "4: ACTIVE",
				   "10 Gb/sec (1X FDR10)");
		sysfs_fixture_gid(fixture, nodes[i].rdma, 1, 0, nodes[i].mac_gid, "RoCE v2",
				  nodes[i].netdev);
		sysfs_fixture_gid(fixture, nodes[i].rdma, 1, 1, nodes[i].ip_gid, "RoCE v2",
				  nodes[i].netdev);
		sysfs_fixture_gid(fixture, nodes[i].rdma, 1, 2, NULL, NULL, NULL);
	}
}

void sysfs_fixture_plain(const struct sysfs_fixture *fixture)
{
	const char *virtio = "pci0000:00/0000:00:03.0/virtio2";
	const char *function = "pci0000:00/0000:00:04.0/0000:05:10.2";
	const char *usb = "pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0";

	sysfs_fixture_device(fixture, virtio, "virtio");
	sysfs_fixture_netdev(fixture, "eth0", virtio, "52:54:00:00:00:01", "-1");
	sysfs_fixture_device(fixture, function, "pci");
	sysfs_fixture_netdev(fixture, "eth1", function, "52:54:00:00:00:02", "4294967295");
	sysfs_fixture_device(fixture, usb, "usb");
	sysfs_fixture_netdev(fixture, "usb0", usb, "52:54:00:00:00:03", "480");
	sysfs_fixture_netdev(fixture, "veth0", NULL, "52:54:00:00:00:04", "10000");
	sysfs_fixture_netdev(fixture, "lo", NULL, "00:00:00:00:00:00", NULL);
}
