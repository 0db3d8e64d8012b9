/* SPDX-License-Identifier: Apache-2.0 */
/* test_provider_sockets.c - a fence on tcp that cannot read the provider's sockets reports it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "fabric/fence.h"
#include "fabric/provider_sockets.h"

#include "fake_fabric.h"
#include "log_capture.h"

#define LIMIT 64

static struct mesh_domain *domain;
static struct mesh_remote *remote;
static struct rlimit before;
static int fds[LIMIT], num_fds;
static int connection;

static int setup(void **state)
{
	struct sockaddr_storage name;
	struct mesh_addr addr;
	size_t len;

	(void)state;
	fake_reset();
	log_capture_start();
	domain = fake_domain_open(MESH_PROVIDER_TCP);
	mesh_addr_parse("10.7.0.2", &addr);
	len = mesh_addr_to_sockaddr(&addr, 4321, &name);
	assert_int_equal(mesh_remote_open(domain, &name, len, &remote), 0);
	connection = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(connection >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	num_fds = 0;
	return 0;
}

static int teardown(void **state)
{
	while (num_fds)
		close(fds[--num_fds]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(connection);
	mesh_remote_close(domain, remote);
	mesh_domain_close(domain);
	log_capture_stop();
	return fake_teardown(state);
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

static void fence(void)
{
	struct mesh_fence one = {.domain = domain, .remote = remote};

	mesh_remotes_fence(&one, 1);
}

static void test_nothing_to_cut(void **state)
{
	(void)state;
	fence();
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_true(log_captured(MESH_LOG_INFO, "cut 0 connections with 10.7.0.2"));
}

/* One descriptor is enough to list the sockets, and not to look at one of them. */
static void test_no_descriptors(void **state)
{
	(void)state;
	descriptors_take(1);
	fence();
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "cannot cut the connection with 10.7.0.2: Too many "
						"open files"));
}

/* None at all. */
static void test_no_descriptor(void **state)
{
	(void)state;
	descriptors_take(0);
	fence();
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_to_cut),
		TEST(test_no_descriptors),
		TEST(test_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
