/* SPDX-License-Identifier: Apache-2.0 */
/* test_floods.c - messages that unknown clients can cause at any rate are limited. */
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "setup/listener.h"
#include "setup/net.h"
#include "setup/nics.h"
#include "setup/setup.h"

#include "log_capture.h"
#include "stranger_fixture.h"

TESTS_USE(stranger_setup, stranger_teardown);

/* While the engine may log. */
static int lines_of(enum mesh_log_level level)
{
	int count;

	mesh_lock_take(&stranger.net->process->lock);
	count = log_captured_lines(level);
	mesh_lock_release(&stranger.net->process->lock);
	return count;
}

/* A port scanner: some lines, and the rest is counted. */
TEST(many_strangers_are_quiet)
{
	struct mesh_log_limit *limit = &stranger.net->process->limits.strangers;
	unsigned int held = 0;

	for (int i = 0; i < 40; i++) {
		stranger_dial();
		close(stranger.fd);
		stranger.fd = -1;
	}
	while (held < 40 - 8) {
		mesh_lock_take(&stranger.net->process->lock);
		held = limit->held;
		mesh_lock_release(&stranger.net->process->lock);
	}
	assert_int_equal(held, 40 - 8);
	assert_int_equal(lines_of(MESH_LOG_INFO), 8);
}

/* How often accept() has failed, as long as the engine works under a lock. */
static uint64_t pauses_await(int num)
{
	struct mesh_process *process = stranger.net->process;
	uint64_t last = 0, until;

	while (num) {
		mesh_lock_take(&process->lock);
		until = process->controls[0].pause.due_ms;
		mesh_lock_release(&process->lock);
		if (until && until != last) {
			last = until;
			num--;
		}
	}
	return last;
}

/* It is retried every 250 ms, and reported once. */
TEST(descriptors_run_out)
{
	const struct sockaddr_in to = stranger_loopback(stranger.handle.control_port);
	struct rlimit limit, none;
	int fd;

	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	pauses_await(4);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	mesh_lock_take(&stranger.net->process->lock);
	assert_int_equal(log_captured_times(MESH_LOG_WARN, "cannot accept"), 1);
	mesh_lock_release(&stranger.net->process->lock);
	close(fd);
}

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_PROVIDER", "tcp", 1);
}
