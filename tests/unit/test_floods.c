/* SPDX-License-Identifier: Apache-2.0 */
/* test_floods.c - what strangers can cause as often as they like is written seldom. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/listener.h"
#include "transport/node.h"
#include "transport/openings.h"

#include "log_capture.h"

static struct mesh_net *net;
static struct mesh_listener *listener;
static int stranger; /* our end of a control connection */

static struct sockaddr_in control_address(void)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(net->node->control_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static void dial(void)
{
	const struct sockaddr_in to = control_address();

	stranger = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(stranger >= 0);
	assert_int_equal(connect(stranger, (const struct sockaddr *)&to, sizeof(to)), 0);
}

static int setup(void **state)
{
	uint8_t bytes[MESH_HANDLE_BYTES];

	(void)state;
	assert_int_equal(mesh_net_open(&net), 0);
	assert_int_equal(mesh_net_listen(net, 0, bytes, &listener), 0);
	mesh_openings_await();
	mesh_lock_take(&net->node->lock);
	memset(&net->node->limits, 0, sizeof(net->node->limits)); /* the node outlives a test */
	mesh_lock_release(&net->node->lock);
	log_capture_start();
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

/* While the engine may log. */
static int lines_of(enum mesh_log_level level)
{
	int count;

	mesh_lock_take(&net->node->lock);
	count = log_captured_lines(level);
	mesh_lock_release(&net->node->lock);
	return count;
}

/* A port scanner: some lines, and the rest is counted. */
static void test_many_strangers_are_quiet(void **state)
{
	struct mesh_log_limit *limit = &net->node->limits.strangers;
	unsigned int held = 0;
	int i;

	(void)state;
	for (i = 0; i < 40; i++) {
		dial();
		close(stranger);
	}
	while (held < 40 - 8) {
		mesh_lock_take(&net->node->lock);
		held = limit->held;
		mesh_lock_release(&net->node->lock);
	}
	assert_int_equal(held, 40 - 8);
	assert_int_equal(lines_of(MESH_LOG_INFO), 8);
}

/* How often accept() has failed, as long as the engine works under a lock. */
static uint64_t pauses_await(int num)
{
	struct mesh_node *node = net->node;
	uint64_t last = 0, until;

	while (num) {
		mesh_lock_take(&node->lock);
		until = node->controls[0].paused_until_ms;
		mesh_lock_release(&node->lock);
		if (until && until != last) {
			last = until;
			num--;
		}
	}
	return last;
}

/* It is tried every 200 ms, and said once. */
static void test_descriptors_run_out(void **state)
{
	const struct sockaddr_in to = control_address();
	struct rlimit limit, none;
	int fd;

	(void)state;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	pauses_await(4);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(lines_of(MESH_LOG_WARN), 1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many_strangers_are_quiet, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descriptors_run_out, setup, teardown),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_PROVIDER", "tcp", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
