/* SPDX-License-Identifier: Apache-2.0 */
/* test_sysfs.c - sysfs readers, against folders that look like /sys of machines that we know. */
#include <net/if_arp.h>
#include <sys/stat.h>

#include "common/pci_link.h"
#include "system/sysfs.h"

#include "sysfs_fixture.h"
#include "unit.h"

#define NICS_MAX 8

/* A machine, and the NICs that netlink would have listed on it. */
static struct {
	struct sysfs_fixture fixture;
	struct mesh_sysfs sysfs;
	struct mesh_nic nics[NICS_MAX];
	int num_nics;
} machine;

static void machine_setup(void)
{
	memset(&machine, 0, sizeof(machine));
	sysfs_fixture_make(&machine.fixture);
	assert_int_equal(mesh_sysfs_open(machine.fixture.root, &machine.sysfs), 0);
}

static void machine_teardown(void)
{
	mesh_sysfs_close(&machine.sysfs);
	sysfs_fixture_remove(&machine.fixture);
}

TESTS_USE(machine_setup, machine_teardown);

static struct mesh_nic *nic_add(const char *netdev, const char *mac, const char *addr)
{
	struct mesh_nic *nic = &machine.nics[machine.num_nics++];

	snprintf(nic->netdev, sizeof(nic->netdev), "%s", netdev);
	nic->ifindex = (unsigned int)machine.num_nics;
	nic->link_type = ARPHRD_ETHER;
	assert_int_equal(mesh_sysfs_mac_parse(mac, nic->mac), 0);
	if (addr)
		assert_int_equal(mesh_addr_parse(addr, &nic->addrs[nic->num_addrs++]), 0);
	return nic;
}

static void machine_load(void)
{
	for (int i = 0; i < machine.num_nics; i++)
		assert_true(mesh_sysfs_netdev_load(&machine.sysfs, &machine.nics[i]));
	assert_int_equal(mesh_sysfs_rdma_load(&machine.sysfs, machine.nics, machine.num_nics), 0);
}

/*
 * Loads the machine, and fails the test unless this is what the NICs have, a line for each: speed,
 * PCI function, RDMA device and port, its state and GIDs.
 */
static void machine_is(const char *wanted)
{
	static const char *const types[] = {[MESH_GID_UNKNOWN] = "?",
					    [MESH_GID_IB] = "ib",
					    [MESH_GID_ROCE_V1] = "v1",
					    [MESH_GID_ROCE_V2] = "v2"};
	static const char *const layers[] = {[MESH_LINK_LAYER_NONE] = "?",
					     [MESH_LINK_LAYER_ETHERNET] = "ethernet",
					     [MESH_LINK_LAYER_INFINIBAND] = "infiniband",
					     [MESH_LINK_LAYER_IWARP] = "iwarp"};
	size_t root = strlen(machine.sysfs.root) + strlen("/devices/"), size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	machine_load();
	for (int i = 0; i < machine.num_nics; i++) {
		const struct mesh_nic *nic = &machine.nics[i];

		fprintf(file, "%s%s %d%s", i ? "\n" : "", nic->netdev, nic->speed_mbps,
			nic->kind == MESH_NIC_WIRELESS ? " wireless" : "");
		if (*nic->pci_path) {
			assert_memory_equal(nic->pci_path, machine.sysfs.root, root - 9);
			assert_memory_equal(nic->pci_path + root - 9, "/devices/", 9);
			fprintf(file, " %s", nic->pci_path + root);
		}
		if (!*nic->rdma.device)
			continue;
		fprintf(file, " %s:%d %s '%s'%s", nic->rdma.device, nic->rdma.port,
			layers[nic->rdma.link_layer], nic->rdma.state,
			mesh_rdma_port_is_active(&nic->rdma) ? "" : " inactive");
		for (int k = 0; k < nic->rdma.num_gids; k++)
			fprintf(file, " %d%s", nic->rdma.gids[k].index,
				types[nic->rdma.gids[k].type]);
	}
	fclose(file);
	assert_string_equal(text, wanted);
	free(text);
}

/* --- files */

TEST(read)
{
	const struct mesh_sysfs *sysfs = &machine.sysfs;
	char text[8], page[6000];

	memset(page, 'x', sizeof(page) - 1);
	page[sizeof(page) - 1] = '\0';
	sysfs_fixture_file(&machine.fixture, page, "a/page");
	sysfs_fixture_file(&machine.fixture, "1234567", "a/fits");
	sysfs_fixture_file(&machine.fixture, "12345678", "a/too_long");
	sysfs_fixture_file(&machine.fixture, NULL, "a/unreadable");
	sysfs_fixture_file(&machine.fixture, "", "a/empty");
	assert_int_equal(mesh_sysfs_read(sysfs, text, sizeof(text), "a/%s", "fits"), 0);
	assert_string_equal(text, "1234567");
	assert_int_equal(mesh_sysfs_read(sysfs, text, sizeof(text), "a/too_long"), -EOVERFLOW);
	assert_string_equal(text, "");
	assert_int_equal(mesh_sysfs_read(sysfs, text, sizeof(text), "a/page"), -EOVERFLOW);
	assert_int_equal(mesh_sysfs_read(sysfs, text, sizeof(text), "a/unreadable"), -EISDIR);
	assert_int_equal(mesh_sysfs_read(sysfs, text, sizeof(text), "a/missing"), -ENOENT);
	assert_int_equal(mesh_sysfs_read(sysfs, text, sizeof(text), "a/empty"), 0);
	assert_string_equal(text, "");
	assert_true(mesh_sysfs_exists(sysfs, "a/%s", "fits"));
	assert_false(mesh_sysfs_exists(sysfs, "a/%s", "missing"));
}

TEST(read_nul)
{
	char path[PATH_MAX], text[32];
	FILE *file;

	snprintf(path, sizeof(path), "%s/nul", machine.fixture.root);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite("ab\0cd\n", 1, 6, file), 6);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(mesh_sysfs_read(&machine.sysfs, text, sizeof(text), "nul"), -EINVAL);
	assert_string_equal(text, "");
}

TEST_BARE(no_sysfs)
{
	struct mesh_nic nic = {.netdev = "eth0"};
	struct mesh_sysfs sysfs;
	struct dirent **entries;
	char text[8];

	assert_int_equal(mesh_sysfs_open("/nonexistent/sys", &sysfs), -ENOENT);
	assert_int_equal(mesh_sysfs_read(&sysfs, text, sizeof(text), "class"), -ENOENT);
	assert_int_equal(mesh_sysfs_list(&sysfs, "class", &entries), -ENOENT);
	assert_false(mesh_sysfs_netdev_load(&sysfs, &nic));
	assert_int_equal(mesh_sysfs_rdma_load(&sysfs, &nic, 1), 0);
	assert_string_equal(nic.pci_path, "");
	mesh_sysfs_close(&sysfs);
}

/* --- machines */

TEST(plain)
{
	nic_add("eth0", "52:54:00:00:00:01", "10.0.0.1/24");
	nic_add("eth1", "52:54:00:00:00:02", NULL);
	nic_add("usb0", "52:54:00:00:00:03", NULL);
	nic_add("veth0", "52:54:00:00:00:04", NULL);
	nic_add("lo", "00:00:00:00:00:00", "127.0.0.1/8");
	sysfs_fixture_plain(&machine.fixture);
	machine_is("eth0 0 pci0000:00/0000:00:03.0\n"
		   "eth1 0 pci0000:00/0000:00:04.0/0000:05:10.2\n"
		   "usb0 480 pci0000:00/0000:00:14.0\n"
		   "veth0 10000\n"
		   "lo 0");
}

/* A machine without NUMA nodes writes -1. */
TEST(numa_node)
{
	const char *device = "pci0000:00/0000:00:01.0/0000:01:00.0";
	char path[PATH_MAX];

	sysfs_fixture_device(&machine.fixture, device, "pci");
	snprintf(path, sizeof(path), "%s/devices/%s", machine.fixture.root, device);
	assert_int_equal(mesh_sysfs_numa_node(&machine.sysfs, path), -1);
	assert_int_equal(mesh_sysfs_numa_node(&machine.sysfs, ""), -1);
	sysfs_fixture_file(&machine.fixture, "-1", "devices/%s/numa_node", device);
	assert_int_equal(mesh_sysfs_numa_node(&machine.sysfs, path), -1);
	sysfs_fixture_file(&machine.fixture, "1", "devices/%s/numa_node", device);
	assert_int_equal(mesh_sysfs_numa_node(&machine.sysfs, path), 1);
}

/* A ConnectX-3 in an M.2 slot; and a link that is down, as the kernel writes it. */
TEST(pci_link)
{
	const char *device = "pci0000:00/0000:00:01.0/0000:01:00.0";
	struct mesh_nic nic = {.netdev = "eth0"};
	struct mesh_nic_table table = {.nics = &nic, .num_nics = 1};

	sysfs_fixture_device(&machine.fixture, device, "pci");
	sysfs_fixture_file(&machine.fixture, "4", "devices/%s/current_link_width", device);
	sysfs_fixture_file(&machine.fixture, "8", "devices/%s/max_link_width", device);
	sysfs_fixture_file(&machine.fixture, "5.0 GT/s PCIe", "devices/%s/current_link_speed",
			   device);
	sysfs_fixture_file(&machine.fixture, "8.0 GT/s PCIe", "devices/%s/max_link_speed", device);
	sysfs_fixture_file(&machine.fixture, "4", "devices/%s/../max_link_width", device);
	sysfs_fixture_file(&machine.fixture, "255", "devices/%s/../current_link_width", device);
	snprintf(nic.pci_path, sizeof(nic.pci_path), "%s/devices/%s", machine.fixture.root, device);
	mesh_pci_links_load(&table);
	assert_int_equal(nic.pci_link.width, 4);
	assert_int_equal(nic.pci_link.max_width, 8);
	assert_int_equal(nic.pci_link.speed_mts, 5000);
	assert_int_equal(nic.pci_link.max_speed_mts, 8000);
	assert_int_equal(nic.pci_link.slot_width, 4);
	assert_int_equal(nic.pci_link.slot_speed_mts, 0);
	*strrchr(nic.pci_path, '/') = '\0';
	mesh_pci_links_load(&table);
	assert_int_equal(nic.pci_link.width, 0);
	*nic.pci_path = '\0';
	mesh_pci_links_load(&table);
	assert_int_equal(nic.pci_link.max_width, 0);
}

TEST(wireless)
{
	nic_add("eth0", "52:54:00:00:00:01", NULL);
	sysfs_fixture_plain(&machine.fixture);
	sysfs_fixture_file(&machine.fixture, "0", "class/net/eth0/phy80211/index");
	machine_is("eth0 0 wireless pci0000:00/0000:00:03.0");
}

/* sysfs shows the interfaces of the namespace in which it was mounted. */
TEST(other_namespace)
{
	struct mesh_nic *by_mac = nic_add("eth1", "52:54:00:00:00:99", NULL);
	struct mesh_nic *by_index = nic_add("usb0", "52:54:00:00:00:03", NULL);

	sysfs_fixture_plain(&machine.fixture);
	sysfs_fixture_file(&machine.fixture, "17", "class/net/usb0/ifindex");
	assert_false(mesh_sysfs_netdev_load(&machine.sysfs, by_mac));
	assert_string_equal(by_mac->pci_path, "");
	by_index->ifindex = 16;
	assert_false(mesh_sysfs_netdev_load(&machine.sysfs, by_index));
	by_index->ifindex = 17;
	assert_true(mesh_sysfs_netdev_load(&machine.sysfs, by_index));
}

/* Ports that have no GIDs (yet) are distinguished by their numbers. */
TEST(dual_port_by_number)
{
	static const char device[] = "pci0000:00/0000:00:01.0/0000:01:00.0";
	const struct sysfs_fixture *fixture = &machine.fixture;

	nic_add("eth0", "00:02:c9:00:00:01", NULL);
	nic_add("eth1", "00:02:c9:00:00:02", NULL);
	sysfs_fixture_device(fixture, device, "pci");
	sysfs_fixture_netdev(fixture, "eth0", device, "00:02:c9:00:00:01", NULL);
	sysfs_fixture_netdev(fixture, "eth1", device, "00:02:c9:00:00:02", NULL);
	sysfs_fixture_file(fixture, "0", "class/net/eth0/dev_port");
	sysfs_fixture_file(fixture, "1", "class/net/eth1/dev_port");
	sysfs_fixture_rdma(fixture, "mlx4_0", device, "0002:c903:00ef:1234");
	sysfs_fixture_port(fixture, "mlx4_0", 1, "Ethernet", "1: DOWN", "10 Gb/sec (1X QDR)");
	sysfs_fixture_port(fixture, "mlx4_0", 2, "Ethernet", "4: ACTIVE", "40 Gb/sec (4X QDR)");
	machine_is("eth0 0 pci0000:00/0000:00:01.0/0000:01:00.0 mlx4_0:1 ethernet '1: DOWN' "
		   "inactive\n"
		   "eth1 40000 pci0000:00/0000:00:01.0/0000:01:00.0 mlx4_0:2 ethernet '4: ACTIVE'");
}

TEST(soft_roce)
{
	nic_add("n0p0", "02:00:00:00:00:01", "10.1.0.1/24");
	nic_add("n1p1", "02:00:00:00:00:02", NULL);
	sysfs_fixture_soft_roce(&machine.fixture);
	machine_is("n0p0 10000 rxe_n0p0:1 ethernet '4: ACTIVE' 0v2 1v2\n"
		   "n1p1 10000 rxe_n1p1:1 ethernet '4: ACTIVE' 0v2 1v2");
}

TEST(soft_roce_without_gids)
{
	const struct sysfs_fixture *fixture = &machine.fixture;
	char gids[PATH_MAX];

	nic_add("n0p0", "02:00:00:00:00:01", NULL);
	sysfs_fixture_netdev(fixture, "n0p0", NULL, "02:00:00:00:00:01", "10000");
	sysfs_fixture_rdma(fixture, "rxe0", NULL, "0000:00ff:fe00:0001");
	sysfs_fixture_port(fixture, "rxe0", 1, "Ethernet", "1: DOWN", "2.5 Gb/sec (1X SDR)");
	sysfs_fixture_file(fixture, "n0p0", "class/infiniband/rxe0/parent");
	snprintf(gids, sizeof(gids), "%s/class/infiniband/rxe0/ports/1/gids", fixture->root);
	assert_int_equal(mkdir(gids, 0755), 0);
	machine_is("n0p0 10000 rxe0:1 ethernet '1: DOWN' inactive");
}

/* A container's eth0 is not the host's eth0, whose RDMA device the container sees too. */
TEST(same_name_elsewhere)
{
	nic_add("n0p0", "02:42:ac:11:00:02", "172.17.0.2/16");
	sysfs_fixture_soft_roce(&machine.fixture);
	sysfs_fixture_file(&machine.fixture, "02:42:ac:11:00:02", "class/net/n0p0/address");
	machine_is("n0p0 10000");
}

/* A representor sits on the same function, but the GIDs say that they are another netdev's. */
TEST(representor)
{
	static const char device[] = "pci0000:00/0000:00:00.0/0000:01:00.0";

	nic_add("pf0vf0", "4c:bb:47:00:00:77", NULL);
	sysfs_fixture_dgx_spark(&machine.fixture);
	sysfs_fixture_netdev(&machine.fixture, "pf0vf0", device, "4c:bb:47:00:00:77", "200000");
	machine_is("pf0vf0 200000 pci0000:00/0000:00:00.0/0000:01:00.0");
}

/* One address on two cards (moved by hand): the card that the netdev sits on is the right one. */
TEST(other_card)
{
	static const char device[] = "pci0000:00/0000:00:07.0/0000:07:00.0";
	const struct sysfs_fixture *fixture = &machine.fixture;

	nic_add("ens1f0", "b4:96:91:00:00:10", "10.4.0.1/24");
	sysfs_fixture_e810(fixture);
	sysfs_fixture_device(fixture, device, "pci");
	sysfs_fixture_rdma(fixture, "a0", device, "0000:0000:0000:0001");
	sysfs_fixture_port(fixture, "a0", 1, "Ethernet", "4: ACTIVE", "100 Gb/sec");
	sysfs_fixture_gid(fixture, "a0", 1, 0, "0000:0000:0000:0000:0000:ffff:0a04:0001", "RoCE v2",
			  "ens1f0");
	machine_is("ens1f0 100000 pci0000:00/0000:00:01.1/0000:02:00.0 irdma0:1 ethernet '4: "
		   "ACTIVE' 0v2 1v2");
}

/* One address on two netdevs (of two namespaces): the GID says whose it is. */
TEST(other_netdev)
{
	nic_add("eth0", "02:42:ac:11:00:02", "10.1.0.1/24");
	sysfs_fixture_soft_roce(&machine.fixture);
	sysfs_fixture_netdev(&machine.fixture, "eth0", NULL, "02:42:ac:11:00:02", NULL);
	machine_is("eth0 0");
}

/* siw: iWARP without hardware; nothing but the GID says whose it is. Two devices: the first. */
TEST(soft_iwarp)
{
	const struct sysfs_fixture *fixture = &machine.fixture;
	static const char *const names[] = {"siw2", "siw10"};

	nic_add("n0p0", "02:00:00:00:00:01", NULL);
	sysfs_fixture_netdev(fixture, "n0p0", NULL, "02:00:00:00:00:01", NULL);
	for (int i = 0; i < 2; i++) {
		sysfs_fixture_rdma(fixture, names[i], NULL, "0200:0000:0001:0000");
		sysfs_fixture_file(fixture, "4: RNIC\n", "class/infiniband/%s/node_type", names[i]);
		sysfs_fixture_port(fixture, names[i], 1, "Ethernet", "4: ACTIVE", "10 Gb/sec");
		sysfs_fixture_gid(fixture, names[i], 1, 0,
				  "0200:0000:0001:0000:0000:0000:0000:0000", NULL, NULL);
	}
	machine_is("n0p0 10000 siw2:1 iwarp '4: ACTIVE' 0?");
}

/* An InfiniBand port is nothing for an Ethernet netdev, whatever else fits. */
TEST(other_link_layer)
{
	static const char device[] = "pci0000:00/0000:00:01.0/0000:01:00.0";
	const struct sysfs_fixture *fixture = &machine.fixture;

	nic_add("eth0", "00:02:c9:00:00:01", NULL);
	sysfs_fixture_device(fixture, device, "pci");
	sysfs_fixture_netdev(fixture, "eth0", device, "00:02:c9:00:00:01", NULL);
	sysfs_fixture_rdma(fixture, "mlx4_0", device, "0002:c903:00ef:1234");
	sysfs_fixture_port(fixture, "mlx4_0", 1, "InfiniBand", "1: DOWN", "10 Gb/sec");
	machine_is("eth0 0 pci0000:00/0000:00:01.0/0000:01:00.0");
}

TEST(many_gids)
{
	struct mesh_nic *nic = nic_add("n0p0", "02:00:00:00:00:01", "10.1.0.1/24");
	char gid[64];

	sysfs_fixture_soft_roce(&machine.fixture);
	for (int i = 3; i < 60; i++) {
		snprintf(gid, sizeof(gid), "fd00:0000:0000:0000:0000:0000:0000:%04x", i);
		sysfs_fixture_gid(&machine.fixture, "rxe_n0p0", 1, i, gid, "RoCE v2", "n0p0");
	}
	machine_is("n0p0 10000 rxe_n0p0:1 ethernet '4: ACTIVE' 0v2 1v2 3v2 4v2 5v2 6v2 7v2 8v2 "
		   "9v2 10v2 11v2 12v2 13v2 14v2 15v2 16v2 17v2 18v2 19v2 20v2 21v2 22v2 23v2 "
		   "24v2 25v2 26v2 27v2 28v2 29v2 30v2 31v2 32v2");
	assert_int_equal(nic->num_addrs, 1); /* what lies behind the GIDs is as it was */
	assert_int_equal(nic->addrs[0].bytes[0], 10);
}

/* If every file has invalid text, the NIC has no RDMA, and the reader ends normally. */
TEST(nonsense)
{
	const struct sysfs_fixture *fixture = &machine.fixture;

	nic_add("eth0", "52:54:00:00:00:01", "10.0.0.1/24");
	sysfs_fixture_netdev(fixture, "eth0", NULL, "not a MAC", "fast");
	sysfs_fixture_rdma(fixture, "x0", NULL, "guid");
	sysfs_fixture_port(fixture, "x0", 1, "Token Ring", "?", "?");
	sysfs_fixture_port(fixture, "x0", 2, "Ethernet", "a state that is far too long to be kept",
			   "1e9");
	sysfs_fixture_port(fixture, "x0", 256, "Ethernet", "4: ACTIVE", "1 Gb/sec");
	sysfs_fixture_file(fixture, "", "class/infiniband/x0/ports/junk");
	sysfs_fixture_file(fixture, "", "class/infiniband/x0/ports/2/gids/junk");
	sysfs_fixture_gid(fixture, "x0", 2, 0, "0000:0000:0000:0000:0000:ffff:0a00:0001", "v9",
			  "a-name-longer-than-any-netdev");
	/* The GID's address is ours, so the port is; what could not be read is unknown. */
	machine_is("eth0 0 x0:2 ethernet '' inactive 0?");
}
