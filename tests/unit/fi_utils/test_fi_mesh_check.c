/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_check.c - the checks of RDMA hardware, on recorded trees. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "check/checks.h"
#include "nccl/plugin.h"
#include "nic/nic.h"

#include "child.h"
#include "machine_fixture.h"

#define NIC machine.context.table.nics

TESTS_USE(machine_setup, machine_teardown);

TEST(all_well)
{
	static const char *const ids[] = {"speed", "mtu",  "pcie",	   "subnets", "carrier",
					  "ports", "gids", "device-files", "memlock", "modules"};

	machine_spark_make();
	FOR_EACH(i, ids)
		assert_well(ids[i]);
}

TEST(nothing_there)
{
	const struct check *check;

	machine_nic_add("eth0", "02:00:00:00:00:01", "10.1.0.1/24")->speed_mbps = 10000;
	for (check = checks; check->id; check++)
		if (strcmp(check->id, "libfabric") && strcmp(check->id, "plugin") &&
		    strcmp(check->id, "firewall") && strcmp(check->id, "neighbours"))
			assert_well(check->id);
}

TEST(modules)
{
	machine_spark_make();
	sys_remove("module/rdma_ucm/refcnt");
	sys_remove("module/rdma_ucm");
	assert_says("modules", CHECK_FAIL, "the module rdma_ucm is not loaded",
		    "do:   modprobe rdma_ucm");
	sys_file("", "class/misc/rdma_cm/dev"); /* built into the kernel */
	assert_well("modules");
}

TEST(rdma_half_missing)
{
	sysfs_fixture_device(&machine.sysfs, "pci0000:00/0000:00:01.0/0000:01:00.0", "pci");
	sysfs_fixture_netdev(&machine.sysfs, "ens1", "pci0000:00/0000:00:01.0/0000:01:00.0",
			     "00:02:c9:ef:12:36", "40000");
	assert_int_equal(
		symlink("../../../../bus/pci/drivers/mlx4_core",
			strcat(strcpy(machine.said, machine.sysfs.root), "/" MODEL "/driver")),
		0);
	sys_file("", "bus/pci/drivers/mlx4_core/bind");
	machine_nic_add("ens1", "00:02:c9:ef:12:36", "10.1.0.1/24");
	machine_load();
	assert_says("modules", CHECK_WARN,
		    "ens1 has an RDMA card (mlx4_core), but the module "
		    "mlx4_ib is not loaded",
		    "do:   modprobe mlx4_ib");
	sys_file("", "module/mlx4_ib/refcnt");
	assert_says("modules", CHECK_WARN, "it has no RDMA device", "dmesg");
	tree_file("", ".dockerenv");
	assert_says("modules", CHECK_WARN, "do:   pass the RDMA device of ens1 into the container");
}

TEST(card_without_driver)
{
	sys_file("0x028000", "bus/pci/devices/0000:01:00.0/class");
	sys_file("0x15b3", "bus/pci/devices/0000:01:00.0/vendor");
	sys_file("0x1003", "bus/pci/devices/0000:01:00.0/device");
	sys_file("0x030000", "bus/pci/devices/0000:02:00.0/class"); /* a display */
	assert_says("modules", CHECK_WARN,
		    "the network card in 0000:01:00.0 (15b3:1003) has no "
		    "driver",
		    "modprobe mlx4_core");
	assert_null(strstr(machine.said, "0000:02"));
	sys_file("", "bus/pci/devices/0000:01:00.0/driver/x");
	assert_well("modules");
}

TEST(device_files)
{
	machine_spark_make();
	tree_remove("dev/infiniband/uverbs1");
	assert_says("device-files", CHECK_FAIL,
		    "/dev/infiniband/uverbs1 is missing: no RDMA over rocep1s0f1",
		    "modprobe -a ib_uverbs rdma_ucm");
	tree_remove("dev/infiniband/rdma_cm");
	tree_file("", "run/.containerenv");
	assert_says("device-files", CHECK_FAIL, "/dev/infiniband/rdma_cm is missing",
		    "--device /dev/infiniband");
}

/* In a process of its own, as an unprivileged user. Status 77: not possible here. */
static int forbidden_child(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/dev/infiniband/uverbs0", machine.tree.root);
	if (geteuid() || chmod(path, 0660) || chown(path, 0, 4) || chmod(machine.tree.root, 0755) ||
	    setgid(65534) || setuid(65534))
		return 77;
	return machine_check("device-files") == CHECK_FAIL &&
			       strstr(machine.said, "you may not open /dev/infiniband/uverbs0") &&
			       strstr(machine.said, "mode 660") &&
			       strstr(machine.said, "do:   sudo usermod -aG")
		       ? 0
		       : 1;
}

TEST(device_files_forbidden)
{
	int status;

	machine_spark_make();
	status = child_run(forbidden_child);
	if (status == 77)
		skip();
	assert_int_equal(status, 0);
}

TEST(ports)
{
	machine_connectx3_make("10.1.0.1/24");
	machine_load();
	assert_well("ports");
	sys_file("2: INIT", "class/infiniband/mlx4_0/ports/1/state");
	assert_says("ports", CHECK_FAIL, "port 1 of mlx4_0 waits for a subnet manager",
		    "opensm -B -g 0x0002c90300ef1235");
	sys_file("1: DOWN", "class/infiniband/mlx4_0/ports/1/state");
	sys_file("2: Polling", "class/infiniband/mlx4_0/ports/1/phys_state");
	assert_says("ports", CHECK_FAIL, "port 1 of mlx4_0 (ib0) is down: no signal");
	sys_file("3: Disabled", "class/infiniband/mlx4_0/ports/1/phys_state");
	assert_says("ports", CHECK_FAIL, "is down: it is disabled");
	sys_file("4: ACTIVE", "class/infiniband/mlx4_0/ports/1/state");
	sys_file("14 Gb/sec (1X FDR)", "class/infiniband/mlx4_0/ports/1/rate");
	assert_says("ports", CHECK_WARN, "port 1 of mlx4_0 runs on one lane of four");
}

/* A port that has no interface; and one without an address, which may be down. */
TEST(ports_unused)
{
	machine_connectx3_make(NULL);
	machine_load();
	sys_file("1: DOWN", "class/infiniband/mlx4_0/ports/1/state");
	assert_well("ports");
	sys_file("4: ACTIVE", "class/infiniband/mlx4_0/ports/1/state");
	machine.context.table.num_nics = machine.context.table.num_taken = 0;
	assert_says("ports", CHECK_WARN, "port 1 of mlx4_0 has no IPoIB interface");
}

TEST(gids)
{
	machine_spark_make();
	assert_says("gids", CHECK_PASS,
		    "10.1.0.1 of enp1s0f0np0 is GID 3 of rocep1s0f0 port 1, "
		    "RoCE v2",
		    "export NCCL_IB_HCA==rocep1s0f0:1,rocep1s0f1:1 "
		    "NCCL_IB_GID_INDEX=3");
	NIC[1].rdma.gids[3].index = 5;
	assert_says("gids", CHECK_PASS, "no NCCL_IB_GID_INDEX fits");
	NIC[1].rdma.gids[3].type = MESH_GID_UNKNOWN;
	NIC[1].rdma.gids[2].type = MESH_GID_UNKNOWN;
	assert_says("gids", CHECK_UNKNOWN, "its RoCE version cannot be read");
	NIC[1].rdma.gids[3].type = MESH_GID_ROCE_V1;
	NIC[1].rdma.num_gids = 4;
	NIC[1].rdma.gids[2] = NIC[1].rdma.gids[3];
	assert_says("gids", CHECK_WARN, "10.2.0.1 of enp1s0f1np1 has a RoCE v1 GID only");
	NIC[1].rdma.num_gids = 2;
	assert_says("gids", CHECK_FAIL, "rocep1s0f1 port 1 has no GID for 10.2.0.1",
		    "ip address del 10.2.0.1/24 dev enp1s0f1np1 && ip address add "
		    "10.2.0.1/24 dev enp1s0f1np1");
}

TEST(pcie)
{
	machine_connectx3_make("10.1.0.1/24");
	machine_load();
	/* The card's full link, but slower than the port: not wrong, but reported. */
	assert_says("pcie", CHECK_PASS, "which carries 31.5 Gb/s of the port's 56 Gb/s");
	sys_file("8", MODEL "/max_link_width");
	machine_load();
	assert_says("pcie", CHECK_WARN,
		    "the card of ib0 runs on PCIe x4 at 8.0 GT/s, but could do x8 at 8.0 GT/s",
		    "at most 31.5 Gb/s, less than the port's 56 Gb/s", "do:   reseat the card");
	sys_file("4", MODEL "/../max_link_width");
	machine_load();
	assert_says("pcie", CHECK_WARN, "do:   the slot has 4 lanes: move the card to one with 8");
	sys_file("8", MODEL "/current_link_width");
	machine_load();
	assert_well("pcie");
	sys_file("2.5 GT/s PCIe", MODEL "/current_link_speed");
	machine_load();
	assert_says("pcie", CHECK_WARN, "runs on PCIe x8 at 2.5 GT/s");
}

TEST(congestion)
{
	machine_spark_make();
	tree_file("bbr", CONGESTION);
	assert_says("congestion", CHECK_PASS, "no NIC carries messages over TCP");
	strcpy(machine.context.config.provider, "tcp");
	assert_says("congestion", CHECK_WARN, "such as that of enp1s0f0np0");
	*machine.context.config.provider = '\0';
	*NIC[1].rdma.device = '\0';
	assert_says("congestion", CHECK_WARN, "such as that of enp1s0f1np1, can cost half",
		    "do:   sysctl -w net.ipv4.tcp_congestion_control=cubic");
	tree_file("reno bbr", "proc/sys/net/ipv4/tcp_available_congestion_control");
	assert_says("congestion", CHECK_WARN, "such as that of enp1s0f1np1",
		    "do:   sysctl -w net.ipv4.tcp_congestion_control=reno");
	tree_file("cubic", CONGESTION);
	assert_well("congestion");
	tree_remove(CONGESTION);
	assert_says("congestion", CHECK_UNKNOWN, "tcp_congestion_control cannot be read");
}

TEST(mtu)
{
	machine_spark_make();
	NIC[0].mtu = NIC[1].mtu = 1500;
	assert_says("mtu", CHECK_WARN, "enp1s0f0np0 has MTU 1500: RoCE then sends packets of 1024");
	*NIC[0].rdma.device = *NIC[1].rdma.device = '\0';
	assert_says("mtu", CHECK_WARN, "enp1s0f0np0 has MTU 1500 at 200 Gb/s",
		    "by hand: ip link set enp1s0f0np0 mtu 9000");
	NIC[0].speed_mbps = NIC[1].speed_mbps = 10000;
	assert_well("mtu");
	NIC[1].mtu = 9000;
	assert_says("mtu", CHECK_WARN,
		    "different MTUs: enp1s0f0np0 has 1500, enp1s0f1np1 has 9000");
	NIC[0].kind = MESH_NIC_INFINIBAND; /* IPoIB's MTU does not limit RDMA */
	assert_well("mtu");
}

TEST(speed)
{
	machine_spark_make();
	sys_file("half", "class/net/enp1s0f0np0/duplex");
	assert_says("speed", CHECK_FAIL, "enp1s0f0np0 runs at half duplex");
	sys_file("full", "class/net/enp1s0f0np0/duplex");
	NIC[1].speed_mbps = 25000;
	assert_well("speed"); /* two kinds of card, as far as the check can see */
	sys_file("0x15b3", "class/net/enp1s0f0np0/device/vendor");
	sys_file("0x1021", "class/net/enp1s0f0np0/device/device");
	sys_file("0x15b3", "class/net/enp1s0f1np1/device/vendor");
	sys_file("0x1021", "class/net/enp1s0f1np1/device/device");
	assert_says("speed", CHECK_WARN,
		    "enp1s0f1np1 runs at 25 Gb/s, while enp1s0f0np0, a port of "
		    "the same kind of card, runs at 200 Gb/s");
	NIC[1].speed_mbps = 0;
	assert_says("speed", CHECK_UNKNOWN, "enp1s0f1np1 does not report its speed");
}

/* A NIC with RDMA that gets TCP would go unnoticed. */
TEST(silent_fallback)
{
	struct mesh_nic *nic = machine_nic_add("lo", "00:00:00:00:00:00", "127.0.0.1/8");

	assert_says("libfabric", CHECK_PASS, "lo (127.0.0.1) uses tcp");
	strcpy(nic->rdma.device, "mlx5_0");
	assert_says("libfabric", CHECK_FAIL, "lo uses tcp instead of RDMA: ",
		    "for the source address 127.0.0.1 libfabric offers: ");
	strcpy(machine.context.config.provider, "verbs");
	assert_says("libfabric", CHECK_FAIL, "NCCL_MESH_PROVIDER=verbs is not a provider");
	strcpy(machine.context.config.provider, "verbs;ofi_rxm");
	assert_says("libfabric", CHECK_FAIL, "libfabric has no provider for lo: ");
}

/* A bond's port, and what a VLAN stands on, need no address. */
TEST(below)
{
	struct mesh_nic *nic = machine_nic_add("eth0", "02:00:00:00:00:01", NULL);

	assert_says("carrier", CHECK_WARN, "eth0 has a carrier but no address");
	nic->master = 7;
	assert_well("carrier");
	nic->master = 0;
	sys_file("", "class/net/eth0/upper_eth0.100/ifindex");
	assert_well("carrier");
}

/* A NIC that was forgotten after `fi_mesh drain`. */
TEST(drained)
{
	struct mesh_drain_marks *drained = &machine.context.drained;

	machine_nic_add("eth0", "02:00:00:00:00:01", "10.1.0.1/24");
	strcpy(drained->netdevs[drained->num++], "eth1");
	assert_well("carrier");
	strcpy(drained->netdevs[drained->num++], "eth0");
	assert_says("carrier", CHECK_WARN, "eth0 is drained", "fi_mesh undrain eth0");
}

/* What the user excludes is not looked at. */
TEST(not_wanted)
{
	machine_nic_add("eth0", "02:00:00:00:00:01", "10.1.0.1/24")->speed_mbps = 10000;
	NIC[0].state = MESH_NIC_NO_CARRIER;
	assert_says("carrier", CHECK_FAIL, "eth0 has the address 10.1.0.1/24 but no carrier");
	assert_int_equal(mesh_nic_filter_parse("^eth0", &machine.context.filter), 0);
	assert_well("carrier");
}

/* The name that NCCL_NET must have is the plugin's. */
TEST(name)
{
	setenv("NCCL_NET", MESH_PLUGIN_NAME, 1);
	assert_well("environment");
	setenv("NCCL_NET", "IB", 1);
	assert_says("environment", CHECK_FAIL, "NCCL_NET=IB");
	unsetenv("NCCL_NET");
}

TEST(conf_file)
{
	char text[20000];

	unsetenv("NCCL_CONF_FILE");
	tree_file("NCCL_NET_PLUGIN=none", "etc/nccl.conf");
	assert_says("environment", CHECK_FAIL, "NCCL load no plugin at all",
		    "/etc/nccl.conf: NCCL_NET_PLUGIN=none");
	memset(text, '#', sizeof(text)); /* a long file */
	strcpy(text + sizeof(text) - 32, "\nNCCL_NET_PLUGIN=none");
	tree_file(text, "etc/nccl.conf");
	assert_says("environment", CHECK_FAIL, "NCCL load no plugin at all");
	setenv("NCCL_NET_PLUGIN", "mesh", 1); /* goes before the file */
	assert_well("environment");
	unsetenv("NCCL_NET_PLUGIN");
}

/* Of nccl-mesh-plugin, in the environment and in a file. */
TEST(old_settings)
{
	unsetenv("NCCL_CONF_FILE");
	assert_well("environment");
	setenv("NCCL_MESH_TIMEOUT_MS", "5000", 1);
	assert_says("environment", CHECK_WARN, "the setting is now NCCL_MESH_CONNECT_TIMEOUT, in");
	unsetenv("NCCL_MESH_TIMEOUT_MS");
	tree_file("NCCL_MESH_GID_INDEX=3", "etc/nccl.conf");
	assert_says("environment", CHECK_WARN, "the GID is found by the address",
		    "remove the line NCCL_MESH_GID_INDEX= from /etc/nccl.conf");
}

void tests_begin(void)
{
	unsetenv("NCCL_NET");
	unsetenv("NCCL_NET_PLUGIN");
	setenv("HOME", "/nonexistent", 1);
}
