/* SPDX-License-Identifier: Apache-2.0 */
/* test_controls.c - one control port on all NICs, whatever other programs have. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "control/controls.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "setup/listener.h"
#include "setup/setup.h"

#include "log_capture.h"

#define NICS 2
#define PORT_TRIES 32 /* control.c */

static struct mesh_nic nics[NICS];
static struct mesh_domain domains[NICS];
static struct mesh_process process;

/* On how many ports, one after the other, the second NIC's address cannot be bound, and why. */
static int failures, failure;
static int binds; /* of the second NIC's address */

int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	struct mesh_addr addr;

	assert_int_equal(mesh_addr_from_sockaddr(address, size, &addr, NULL), 0);
	if (!mesh_addr_equal(&addr, &nics[1].source))
		return __real_bind(fd, address, size);
	if (binds++ >= failures)
		return __real_bind(fd, address, size);
	errno = failure;
	return -1;
}

static int setup(void **state)
{
	int i;

	(void)state;
	memset(&process, 0, sizeof(process));
	mesh_lock_init(&process.lock);
	process.num_devs = NICS;
	for (i = 0; i < NICS; i++) {
		assert_int_equal(mesh_addr_parse(i ? "127.0.0.2" : "127.0.0.1", &nics[i].source),
				 0);
		process.nics[i] = domains[i].nic = &nics[i];
		process.domains[i] = &domains[i];
	}
	process.engine.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(process.engine.epoll_fd >= 0);
	binds = failures = 0;
	log_capture_start();
	mesh_lock_take(&process.lock);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	log_capture_stop();
	mesh_controls_close(&process);
	mesh_lock_release(&process.lock);
	close(process.engine.epoll_fd);
	mesh_lock_destroy(&process.lock);
	return 0;
}

static void fail_with(int error, int times)
{
	failure = error;
	failures = times;
}

/* Every NIC listens on the port that the handle names. */
static void assert_one_port(void)
{
	struct sockaddr_storage name;
	struct mesh_addr addr;
	socklen_t size;
	uint16_t port;
	int i;

	assert_int_not_equal(process.control_port, 0);
	for (i = 0; i < NICS; i++) {
		size = sizeof(name);
		assert_int_equal(
			getsockname(process.controls[i].watch.fd, (struct sockaddr *)&name, &size),
			0);
		assert_int_equal(
			mesh_addr_from_sockaddr((struct sockaddr *)&name, size, &addr, &port), 0);
		assert_true(mesh_addr_equal(&addr, &nics[i].source));
		assert_int_equal(port, process.control_port);
	}
}

static void assert_not_open(int error)
{
	int i;

	assert_int_equal(mesh_controls_open(&process), error);
	for (i = 0; i < NICS; i++)
		assert_int_equal(process.controls[i].watch.fd, -1);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, strerror(-error)));
}

/* Another program has the first NIC's port on the second one: both take another. */
static void test_other_port_is_tried(void **state)
{
	(void)state;
	fail_with(EADDRINUSE, PORT_TRIES - 1);
	assert_int_equal(mesh_controls_open(&process), 0);
	assert_int_equal(binds, PORT_TRIES);
	assert_one_port();
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

static void test_no_port_is_free(void **state)
{
	(void)state;
	fail_with(EADDRINUSE, PORT_TRIES);
	assert_not_open(-EADDRINUSE);
	assert_int_equal(binds, PORT_TRIES);
}

/*
 * Makes @size ports the range and returns the first: below those of outgoing connections, and other
 * ones in each process that runs this test.
 */
static unsigned int range_set(unsigned int size)
{
	unsigned int first = 10000 + (unsigned int)getpid() % 200 * 100;

	snprintf(process.config.ports, sizeof(process.config.ports), "%u-%u", first,
		 first + size - 1);
	return first;
}

/* A port of the range, on all NICs; each is tried once, also where others have the first ones. */
static void test_range(void **state)
{
	unsigned int first = range_set(60);

	(void)state;
	fail_with(EADDRINUSE, 39);
	assert_int_equal(mesh_controls_open(&process), 0);
	assert_int_equal(binds, 40);
	assert_one_port();
	assert_in_range(process.control_port, first, first + 59);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

static void test_range_is_used_up(void **state)
{
	(void)state;
	range_set(4);
	fail_with(EADDRINUSE, 4);
	assert_not_open(-EADDRINUSE);
	assert_int_equal(binds, 4);
	assert_true(log_captured(MESH_LOG_WARN, process.config.ports));
	assert_true(log_captured(MESH_LOG_WARN, "needs two ports for each process"));
}

/* Another port would not change that. */
static void test_other_errors_are_final(void **state)
{
	(void)state;
	fail_with(EADDRNOTAVAIL, 1);
	assert_not_open(-EADDRNOTAVAIL);
	assert_int_equal(binds, 1);
}

/* ---- strangers ----------------------------------------------------------------------------- */

#define STRANGERS_MAX 256 /* controls.c */

static void lost(struct mesh_peer *peer, bool missed)
{
	(void)peer;
	(void)missed;
}

static const struct mesh_peer_events events = {.lost = lost};

static void stranger_add(struct mesh_peer *peer, const char *address)
{
	*peer = (struct mesh_peer){
		.process = &process,
		.domain = &domains[0],
		.watch.fd = -1,
		.incoming = true,
		.state = MESH_PEER_HELLO,
	};
	assert_int_equal(mesh_addr_parse(address, &peer->address.addr), 0);
	mesh_peer_stranger_set(peer, true);
	process.num_strangers = STRANGERS_MAX;
}

/* A client connects to a NIC. Returns the other end. */
static int client_connects(int dev)
{
	struct mesh_watch *watch = &process.controls[dev].watch;
	struct sockaddr_storage name;
	socklen_t size = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(getsockname(watch->fd, (struct sockaddr *)&name, &size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, size), 0);
	watch->ready(watch, EPOLLIN);
	return fd;
}

/* Nodes that are connected already are disconnected last. */
static void test_known_nodes_stay(void **state)
{
	struct mesh_peer known = {0}, friend, foreign;
	int fds[2];

	(void)state;
	process.events = &events;
	process.counters = &process.own_counters;
	TAILQ_INIT(&process.strangers);
	assert_int_equal(mesh_controls_open(&process), 0);
	known.process = &process;
	known.incoming = true;
	known.state = MESH_PEER_UP;
	assert_int_equal(mesh_addr_parse("10.7.0.2", &known.address.addr), 0);
	mesh_peer_index_add(&known);
	stranger_add(&friend, "10.7.0.2");
	stranger_add(&foreign, "10.7.0.3");
	fds[0] = client_connects(0);
	assert_int_equal(friend.state, MESH_PEER_HELLO);
	assert_int_equal(foreign.state, MESH_PEER_LOST);
	process.num_strangers = STRANGERS_MAX;
	mesh_peer_free(TAILQ_LAST(&process.strangers, mesh_peer_strangers)); /* the new one */
	process.num_strangers = STRANGERS_MAX;
	fds[1] = client_connects(0);
	assert_int_equal(friend.state, MESH_PEER_LOST);
	mesh_peer_free(TAILQ_LAST(&process.strangers, mesh_peer_strangers));
	close(fds[0]);
	close(fds[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_other_port_is_tried),
		TEST(test_no_port_is_free),
		TEST(test_range),
		TEST(test_range_is_used_up),
		TEST(test_other_errors_are_final),
		TEST(test_known_nodes_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
