/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_table.c - from the kernel's data to the verdicts, in network namespaces. */
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "nic/nic.h"
#include "system/nic_table.h"

#include "log_capture.h"
#include "namespace.h"
#include "nic_named.h"
#include "sysfs_fixture.h"
#include "unit.h"

static struct sysfs_fixture fixture;
static struct mesh_nic_table table;

void tests_setup(void)
{
	log_capture_start();
	memset(&table, 0, sizeof(table));
	sysfs_fixture_make(&fixture);
	assert_true(namespace_enter());
}

void tests_teardown(void)
{
	mesh_nic_table_free(&table);
	sysfs_fixture_remove(&fixture);
}

static int load(const char *root, const char *nics, const char *addresses)
{
	struct mesh_config config = {.connect_timeout_s = 60};

	snprintf(config.nics, sizeof(config.nics), "%s", nics);
	snprintf(config.addresses, sizeof(config.addresses), "%s", addresses);
	mesh_nic_table_free(&table);
	return mesh_nic_table_load(root, &config, &table);
}

static void pair_make(const char *name, const char *mac, const char *addr)
{
	namespace_ip("link add %s address %s type veth peer name x%s", name, mac, name);
	namespace_ip("link set %s addrgenmode none up", name);
	namespace_ip("link set x%s addrgenmode none up", name);
	if (addr)
		namespace_ip("addr add %s dev %s", addr, name);
}

/* The kernel reports a new bridge as running up to 1 s after its first port, or later if busy. */
static void running_await(const char *name)
{
	uint64_t deadline_ms = mesh_clock_ms() + 60000;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_flags = 0};

	assert_true(fd >= 0);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	while (!ioctl(fd, SIOCGIFFLAGS, &request) && !(request.ifr_flags & IFF_RUNNING) &&
	       mesh_clock_ms() < deadline_ms)
		poll(NULL, 0, 1);
	close(fd);
	assert_true(request.ifr_flags & IFF_RUNNING);
}

static const struct mesh_nic *find(const char *netdev)
{
	return nic_named(table.nics, table.num_nics, netdev);
}

static void assert_taken(const char *wanted)
{
	char got[256] = "";

	for (int i = 0; i < table.num_taken; i++) {
		assert_true(mesh_nic_is_taken(&table.nics[i]));
		strcat(strcat(got, i ? " " : ""), table.nics[i].netdev);
	}
	assert_string_equal(got, wanted);
}

static void takes(const char *root, const char *setting, const char *wanted)
{
	assert_int_equal(load(root, setting, ""), 0);
	assert_taken(wanted);
}

/* A VLAN or the like has no device of its own; the interface below it has. */
TEST(lower)
{
	static const char device[] = "pci0000:00/0000:00:04.0";

	pair_make("eth1", "02:00:00:00:00:01", "10.1.0.1/24");
	namespace_ip("link add upper link eth1 address 02:00:00:00:00:02 type macvlan");
	sysfs_fixture_device(&fixture, device, "pci");
	sysfs_fixture_netdev(&fixture, "eth1", device, "02:00:00:00:00:01", NULL);
	sysfs_fixture_netdev(&fixture, "upper", NULL, "02:00:00:00:00:02", "1000");
	assert_int_equal(load(fixture.root, "", ""), 0);
	assert_non_null(strstr(find("eth1")->pci_path, device));
	assert_string_equal(find("upper")->pci_path, find("eth1")->pci_path);
	assert_string_equal(find("xeth1")->pci_path, "");
}

/* A node of the functional tests: two cables, and a management network with the default route. */
TEST(veth_mesh)
{
	namespace_ip("link set lo up");
	pair_make("n0p0", "02:00:00:00:00:01", "10.1.0.1/24");
	pair_make("n0p1", "02:00:00:00:00:02", "10.2.0.1/24");
	pair_make("mgmt", "02:00:00:00:00:03", "192.168.99.1/24");
	namespace_ip("route add default via 192.168.99.254");
	if (!namespace_mount_sysfs(fixture.root)) {
		skip();
		return;
	}
	assert_int_equal(load(fixture.root, "", ""), 0);
	namespace_unmount_sysfs(fixture.root);
	assert_taken("n0p0 n0p1");
	assert_int_equal(table.num_nics, 7);
	assert_int_equal(find("n0p0")->speed_mbps, 10000); /* what veth reports */
	assert_string_equal(find("n0p0")->reason, "taken: 10 Gb/s, 10.1.0.1/24");
	assert_string_equal(find("n0p0")->name, "mesh-n0p0");
	assert_true(find("n0p0")->guid == 0x020000fffe000001u);
	assert_int_equal(find("n0p0")->kind, MESH_NIC_VIRTUAL);
	assert_non_null(strstr(find("mgmt")->reason, "default route"));
	assert_string_equal(find("xn0p0")->reason, "skipped: no address");
	assert_string_equal(find("lo")->reason, "skipped: loopback");
	mesh_nic_table_log(&table);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_true(log_captured(MESH_LOG_INFO, "NIC n0p1 taken: 10 Gb/s, 10.2.0.1/24"));
	assert_true(log_captured(MESH_LOG_INFO, "NIC lo skipped: loopback"));
}

/* The host's view: the bridge has the address, the veth of a container is in it. */
TEST(bridge)
{
	namespace_ip("link add br0 address 02:00:00:00:00:10 type bridge");
	namespace_ip("link set br0 addrgenmode none up");
	namespace_ip("addr add 172.17.0.1/16 dev br0");
	pair_make("eth9", "02:00:00:00:00:01", "10.9.0.1/24");
	namespace_ip("link set eth9 master br0");
	running_await("br0");
	pair_make("n0p0", "02:00:00:00:00:02", "10.1.0.1/24");
	takes("/nonexistent", "", "n0p0");
	assert_int_equal(find("br0")->kind, MESH_NIC_BRIDGE);
	assert_int_equal(find("eth9")->kind, MESH_NIC_CONTAINER);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1); /* that there is no sysfs */
	assert_true(log_captured(MESH_LOG_WARN, "/nonexistent"));
	/* Named, the bridge is a NIC like any other. */
	takes("/nonexistent", "br0", "br0");
}

TEST(rdma)
{
	pair_make("n0p0", "02:00:00:00:00:01", "10.1.0.1/24");
	pair_make("n1p1", "02:00:00:00:00:02", "10.2.0.1/24");
	pair_make("mgmt", "02:00:00:00:00:03", "192.168.99.1/24");
	sysfs_fixture_soft_roce(&fixture);
	takes(fixture.root, "", "n0p0 n1p1");
	assert_string_equal(find("n0p0")->reason, "taken: 10 Gb/s, rxe_n0p0 port 1, 10.1.0.1/24");
	assert_true(find("n0p0")->guid == 0xfffe000001u);
	assert_non_null(strstr(find("mgmt")->reason, "no RDMA"));
	takes(fixture.root, "rxe_n1p1:1", "n1p1");
	mesh_nic_leave(&table.nics[0], MESH_NIC_NO_PROVIDER, "no provider");
	mesh_nic_table_sort(&table);
	assert_int_equal(table.num_taken, 0);
}

TEST(addresses)
{
	char text[MESH_ADDR_TEXT_MAX];

	pair_make("n0p0", "02:00:00:00:00:01", "10.1.0.1/24");
	namespace_ip("addr add fd00::1/64 nodad dev n0p0");
	assert_int_equal(load("/nonexistent", "", "fd00::/8"), 0);
	assert_string_equal(mesh_addr_text_prefix(&find("n0p0")->source, text), "fd00::1/64");
}

/* Right after link up the kernel does not report a NIC as running: it is waited for. */
TEST(link_just_up)
{
	const struct mesh_config config = {.connect_timeout_s = 60};

	pair_make("n0p0", "02:00:00:00:00:01", "10.1.0.1/24");
	mesh_nic_table_free(&table);
	assert_int_equal(mesh_nic_table_load_running("/nonexistent", &config, 60000, &table), 0);
	assert_taken("n0p0");
	assert_int_equal(find("n0p0")->state, MESH_NIC_RUNS);
}

/* No link is starting: no wait, although one has no carrier. */
TEST(no_wait)
{
	const struct mesh_config config = {.connect_timeout_s = 60};
	uint64_t start_ms;

	test_link_just_up();
	namespace_ip("link add n1p0 type veth peer name xn1p0");
	namespace_ip("link set n1p0 addrgenmode none up");
	namespace_ip("addr add 10.2.0.1/24 dev n1p0");
	mesh_nic_table_free(&table);
	start_ms = mesh_clock_ms();
	assert_int_equal(mesh_nic_table_load_running("/nonexistent", &config, 60000, &table), 0);
	assert_true(mesh_clock_ms() - start_ms < 30000);
	assert_taken("n0p0");
	assert_string_equal(find("n1p0")->reason, "skipped: no carrier (cable or peer down)");
	assert_string_equal(find("xn1p0")->reason, "skipped: link is down (ip link set xn1p0 up)");
	assert_int_equal(log_captured_times(MESH_LOG_INFO, "waiting up to 60000 ms for n1p0"), 0);
}

TEST(nothing_usable)
{
	assert_int_equal(load("/nonexistent", "", ""), 0);
	assert_int_equal(table.num_taken, 0);
	mesh_nic_table_log(&table); /* reports it at WARN */
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 3);
	assert_true(log_captured(MESH_LOG_WARN, "no NIC of this node"));
	assert_true(log_captured(MESH_LOG_WARN, "NIC lo skipped: loopback"));
}

TEST(bad_setting)
{
	struct mesh_nic_table before;

	assert_int_equal(load("/nonexistent", "", ""), 0);
	before = table;
	memset(&table, 0, sizeof(table));
	assert_int_equal(load("/nonexistent", "a:b:c", ""), -EINVAL);
	assert_null(table.nics); /* outputs are set on success only */
	mesh_nic_table_free(&before);
}

void tests_begin(void)
{
	if (!namespace_enter())
		exit(77);
}
