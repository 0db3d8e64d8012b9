/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_join.c - NICs that come up while the plugin runs, in a network namespace. */
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "setup/nic_watch.h"
#include "setup/setup.h"

#include "log_capture.h"
#include "namespace.h"
#include "nic_named.h"

#define LIMIT_MS 60000

static struct mesh_net *net;
static struct mesh_process *process;
static struct mesh_listener *listener;
static uint8_t handle[MESH_HANDLE_BYTES];

/* A veth pair; its other end is x@name. */
static void pair_make(const char *name)
{
	namespace_ip("link add %s type veth peer name x%s", name, name);
	namespace_ip("link set %s addrgenmode none up", name);
	namespace_ip("link set x%s addrgenmode none up", name);
}

static int setup(void **state)
{
	(void)state;
	log_capture_start();
	assert_int_equal(mesh_net_open(&net), 0);
	process = net->process;
	assert_int_equal(mesh_net_listen(net, 0, handle, &listener), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mesh_listener_close(listener);
	mesh_net_close(net);
	log_capture_stop();
	return 0;
}

/* True once dev @dev is in this state. */
static bool dev_is(int dev, enum mesh_dev_state state)
{
	bool is;

	mesh_lock_take(&process->lock);
	is = dev < process->num_devs && process->dev_states[dev] == state;
	mesh_lock_release(&process->lock);
	return is;
}

static void dev_await(int dev, enum mesh_dev_state state)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS;

	while (!dev_is(dev, state) && mesh_clock_ms() < deadline_ms)
		poll(NULL, 0, 1);
	assert_true(dev_is(dev, state));
}

static bool is_reserve(int dev)
{
	bool is;

	mesh_lock_take(&process->lock);
	is = process->dev_reserves[dev];
	mesh_lock_release(&process->lock);
	return is;
}

/* Until the NICs have been read since this call's caller changed something. */
static void reserve_await(int dev, bool reserve)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS;

	while (is_reserve(dev) != reserve && mesh_clock_ms() < deadline_ms)
		poll(NULL, 0, 1);
	assert_int_equal(is_reserve(dev), reserve);
}

/* The netdevs that peers learn of, in the order of the handle. */
static void assert_offered(const char *wanted)
{
	struct mesh_listener *other;
	struct mesh_handle offered;
	char got[128] = "";
	int i;

	assert_int_equal(mesh_net_listen(net, 0, handle, &other), 0);
	mesh_listener_close(other);
	assert_int_equal(mesh_handle_decode(handle, &offered), 0);
	for (i = 0; i < offered.num_endpoints; i++) {
		strcat(got, i ? " " : "");
		strcat(got, process->nics[offered.endpoints[i].nic]->netdev);
	}
	assert_string_equal(got, wanted);
}

static void test_address_later(void **state)
{
	(void)state;
	pair_make("n1p0");
	namespace_ip("addr add 10.2.0.1/24 dev n1p0");
	dev_await(1, MESH_DEV_OPEN);
	assert_string_equal(process->nics[1]->netdev, "n1p0");
	assert_non_null(process->domains[1]);
	assert_true(process->controls[1].watch.fd >= 0);
	assert_int_equal(mesh_net_num_nics(), 1); /* NCCL's */
	assert_null(mesh_net_nic(1));
	assert_offered("n0p0 n1p0");
	namespace_ip("link del n1p0");
}

/* What has joined ends with the last user, and joins again for the next one. */
static void test_opened_again(void **state)
{
	pair_make("n1p0");
	namespace_ip("addr add 10.2.0.1/24 dev n1p0");
	dev_await(1, MESH_DEV_OPEN);
	teardown(state);
	assert_int_equal(process->num_devs, 1);
	assert_null(process->domains[1]);
	setup(state);
	dev_await(1, MESH_DEV_OPEN);
	assert_string_equal(process->nics[1]->netdev, "n1p0");
	namespace_ip("link del n1p0");
}

/* The port is the same for all NICs. A NIC where it is taken is not offered, and tried again. */
static void test_port_is_taken(void **state)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(process->control_port),
		.sin_addr.s_addr = htonl(0x0a020001),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	(void)state;
	/* Before the address is there. */
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	pair_make("n1p0");
	namespace_ip("addr add 10.2.0.1/24 dev n1p0");
	dev_await(1, MESH_DEV_FAILED);
	assert_offered("n0p0");
	close(fd);
	namespace_ip("addr add 10.3.0.1/24 dev n1p0");
	dev_await(1, MESH_DEV_OPEN);
	assert_offered("n0p0 n1p0");
	assert_int_equal(process->num_devs, 2);
	assert_true(log_captured(MESH_LOG_INFO, "n1p0 cannot join: TCP port"));
	namespace_ip("link del n1p0");
}

/* A NIC with another address joins with it; the old one is used where nothing else is. */
static void test_address_changes(void **state)
{
	(void)state;
	pair_make("n1p0");
	namespace_ip("addr add 10.2.0.1/24 dev n1p0");
	dev_await(1, MESH_DEV_OPEN);
	reserve_await(1, false);
	namespace_ip("addr del 10.2.0.1/24 dev n1p0");
	namespace_ip("addr add 10.2.0.9/24 dev n1p0");
	dev_await(2, MESH_DEV_OPEN);
	reserve_await(1, true);
	assert_false(is_reserve(2));
	assert_int_equal(process->num_devs, 3);
	namespace_ip("addr flush dev n1p0");
	namespace_ip("addr add 10.2.0.1/24 dev n1p0");
	reserve_await(1, false);
	assert_true(is_reserve(2));
	assert_int_equal(process->num_devs, 3);
	namespace_ip("link del n1p0");
}

static bool is_remembered(void)
{
	bool remembered;

	mesh_lock_take(&process->lock);
	remembered = net->setup->dead_routes.nodes[0].node_id != 0;
	mesh_lock_release(&process->lock);
	return remembered;
}

/* Enters a node once the NICs were read after the latest change. */
static bool remember(void)
{
	const struct mesh_nic_watch *watch = net->setup->nic_watch;
	bool quiet;

	mesh_lock_take(&process->lock);
	quiet = !watch->reading && !watch->changed;
	if (quiet)
		net->setup->dead_routes.nodes[0].node_id = 7;
	mesh_lock_release(&process->lock);
	return quiet;
}

/* Routes that let nothing through may lead elsewhere when a link or an address has changed. */
static void test_dead_routes_are_forgotten(void **state)
{
	static const char *const changes[] = {"addr add 10.3.0.1/24 dev n1p0", "link del n1p0"};
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS;
	size_t i;

	(void)state;
	pair_make("n1p0");
	namespace_ip("addr add 10.2.0.1/24 dev n1p0");
	dev_await(1, MESH_DEV_OPEN);
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		while (!remember() && mesh_clock_ms() < deadline_ms)
			poll(NULL, 0, 1);
		assert_true(is_remembered());
		namespace_ip("%s", changes[i]);
		while (is_remembered() && mesh_clock_ms() < deadline_ms)
			poll(NULL, 0, 1);
		assert_false(is_remembered());
	}
}

/* True once the NICs were read while this one could not be used. */
static bool was_read_unusable(const char *netdev)
{
	const struct mesh_nic_watch *watch = net->setup->nic_watch;
	const struct mesh_nic *nic = NULL;

	mesh_lock_take(&process->lock);
	if (!watch->reading && watch->num_links)
		nic = nic_named(watch->links, watch->num_links, netdev);
	mesh_lock_release(&process->lock);
	return nic && !mesh_nic_is_usable(nic);
}

/* Without a carrier, a NIC of the process still keeps worse ones out: here, loopback. */
static void test_cable_is_pulled(void **state)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS;

	(void)state;
	namespace_ip("link set xn0p0 down");
	while (!was_read_unusable("n0p0") && mesh_clock_ms() < deadline_ms)
		poll(NULL, 0, 1);
	pair_make("n1p0");
	namespace_ip("addr add 10.2.0.1/24 dev n1p0");
	dev_await(1, MESH_DEV_OPEN);
	assert_string_equal(process->nics[1]->netdev, "n1p0");
	namespace_ip("link del n0p0");
	pair_make("n2p0");
	namespace_ip("addr add 10.3.0.1/24 dev n2p0");
	dev_await(2, MESH_DEV_OPEN);
	assert_string_equal(process->nics[2]->netdev, "n2p0");
	assert_false(process->dev_reserves[0]);
	assert_int_equal(process->num_devs, 3);
}

#define JOIN_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	/* All in one process, whose first NIC stays NCCL's device. The last one removes it. */
	const struct CMUnitTest tests[] = {
		JOIN_TEST(test_address_later),
		JOIN_TEST(test_opened_again),
		JOIN_TEST(test_port_is_taken),
		JOIN_TEST(test_address_changes),
		JOIN_TEST(test_dead_routes_are_forgotten),
		JOIN_TEST(test_cable_is_pulled),
	};

	if (!namespace_enter())
		return 77;
	namespace_ip("link set lo up");
	pair_make("n0p0");
	namespace_ip("addr add 10.1.0.1/24 dev n0p0");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
