/* SPDX-License-Identifier: Apache-2.0 */
/* test_round_trip.c - the kernel's round-trip time of a TCP connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "system/round_trip.h"

#include "tcp_pair.h"

/* Both ends know it from the handshake. */
static void test_connected(void **state)
{
	int ends[2], i;

	(void)state;
	tcp_pair_open(ends);
	for (i = 0; i < 2; i++) {
		assert_in_range(mesh_socket_round_trip_ns(ends[i]), 1, 1000000000);
		close(ends[i]);
	}
}

static void test_no_connection(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), ends[2];

	(void)state;
	assert_int_equal(mesh_socket_round_trip_ns(fd), 0);
	close(fd);
	assert_int_equal(mesh_socket_round_trip_ns(fd), 0);
	assert_int_equal(mesh_socket_round_trip_ns(-1), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(mesh_socket_round_trip_ns(ends[0]), 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connected),
		cmocka_unit_test(test_no_connection),
	};

	if (!tcp_pair_has_info())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
