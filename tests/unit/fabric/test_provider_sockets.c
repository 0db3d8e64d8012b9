/* SPDX-License-Identifier: Apache-2.0 */
/* test_provider_sockets.c - which sockets of the provider a fence on tcp cuts, and its report. */
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "fabric/domain.h"
#include "fabric/provider_sockets.h"

#include "domain_fixture.h"
#include "namespace.h"

#define LIMIT 64

static struct rlimit before;
static int fds[LIMIT], num_fds;
static int connection;

void tests_setup(void)
{
	fake_setup();
	domain = fake_domain_open(MESH_PROVIDER_TCP);
	remote = fake_remote_open(domain, 4321);
	connection = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(connection >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	num_fds = 0;
}

void tests_teardown(void)
{
	while (num_fds)
		close(fds[--num_fds]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(connection);
	domain_teardown();
}

/* Takes all file descriptors but @left. */
static void descriptors_take(int left)
{
	struct rlimit low = before;

	low.rlim_cur = LIMIT;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (num_fds < LIMIT && (fds[num_fds] = eventfd(0, 0)) >= 0)
		num_fds++;
	assert_true(num_fds >= left);
	while (left--)
		close(fds[--num_fds]);
}

static int fence(void)
{
	return mesh_sockets_fence(domain, remote);
}

TEST(nothing_to_cut)
{
	assert_int_equal(fence(), 0);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_true(log_captured(MESH_LOG_INFO, "cut 0 connections with 10.7.0.2"));
}

/* The network of a connection that is never made. False: the test cannot run here. */
static bool silent_network(void)
{
	if (!namespace_enter())
		return false;
	namespace_ip("link add x0 type veth peer name x1");
	namespace_ip("address add 10.7.0.1/24 dev x0");
	namespace_ip("link set x0 up");
	namespace_ip("link set x1 up");
	return true;
}

/* A socket that is connecting with the remote; -1 where no call says so (qemu). */
static int connecting(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_storage name;
	struct mesh_addr addr;
	socklen_t len;

	mesh_addr_parse("10.7.0.2", &addr);
	len = mesh_addr_to_sockaddr(&addr, 4321, &name);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, len), -1);
	assert_int_equal(errno, EINPROGRESS);
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERNAME, &name, &len)) /* it wants the very length */
		return fd;
	close(fd);
	print_message("skipped: no SO_PEERNAME here\n");
	return -1;
}

static int error_take(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

/* Their owner: closes those that were cut, from the last one on, with the lock of its polls. */
static void *close_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	while (num_fds) {
		while (!error_take(fds[num_fds - 1]))
			nanosleep(&pause, NULL);
		mesh_domain_lock(domain);
		close(fds[--num_fds]);
		mesh_domain_unlock(domain);
	}
	return NULL;
}

/* What waits for a connection that is being made is dropped, too. */
TEST(connection_being_made)
{
	int making = -1;

	if (!silent_network() || (making = connecting()) < 0)
		skip();
	assert_int_equal(fence(), 0);
	assert_true(log_captured(MESH_LOG_INFO, "cut 1 connection with 10.7.0.2"));
	assert_int_equal(error_take(making), ECONNRESET);
	/* Its owner has not closed it. */
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "has not closed the connection with 10.7.0.2"));
	close(making);
}

/* All that was cut is waited for, however much it is. */
TEST(many_connections)
{
	pthread_t owner;
	int left;

	if (!silent_network())
		skip();
	for (; num_fds < 6; num_fds++) {
		fds[num_fds] = connecting();
		if (fds[num_fds] < 0)
			skip();
	}
	assert_int_equal(pthread_create(&owner, NULL, close_main, NULL), 0);
	assert_int_equal(fence(), 0);
	mesh_domain_lock(domain);
	left = num_fds;
	mesh_domain_unlock(domain);
	assert_int_equal(left, 0);
	pthread_join(owner, NULL);
	assert_true(log_captured(MESH_LOG_INFO, "cut 6 connections"));
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

/* ---- without descriptors --------------------------------------------------------------------- */

/* A fence needs none that it does not have. */
static void fence_without_descriptors(int making)
{
	assert_int_equal(fence(), 0);
	assert_true(log_captured(MESH_LOG_INFO, "cut 1 connection with 10.7.0.2"));
	assert_int_equal(error_take(making), ECONNRESET);
	close(making);
}

TEST(no_descriptor)
{
	int making = -1;

	if (!silent_network() || (making = connecting()) < 0)
		skip();
	descriptors_take(0);
	fence_without_descriptors(making);
}

/* The program lowers its limit below what is open. */
TEST(limit_lowered)
{
	struct rlimit none = before;
	int making = -1;

	if (!silent_network() || (making = connecting()) < 0)
		skip();
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	fence_without_descriptors(making);
}

/* Without descriptors to reserve, a NIC is not used at all. */
TEST(nothing_to_reserve)
{
	struct mesh_domain_options options = {
		.nic = fake_nic(), .provider = MESH_PROVIDER_TCP, .payload_max = 1024};
	struct mesh_domain *none = NULL;

	domain_close();
	descriptors_take(0);
	assert_int_equal(mesh_domain_open(&options, &none), -EMFILE);
	assert_null(none);
	assert_true(log_captured(MESH_LOG_WARN, "ulimit -n"));
	while (num_fds)
		close(fds[--num_fds]);
}
