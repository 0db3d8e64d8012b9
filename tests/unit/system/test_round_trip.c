/* SPDX-License-Identifier: Apache-2.0 */
/* test_round_trip.c - the kernel's round-trip time of a TCP connection. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "system/round_trip.h"

/* Both ends know it from the handshake. */
static void test_connected(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), ends[2], i;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(mesh_socket_round_trip_ns(ends[0]), 0);
	assert_int_equal(connect(ends[0], (struct sockaddr *)&address, len), 0);
	ends[1] = accept(listener, NULL, NULL);
	for (i = 0; i < 2; i++) {
		assert_in_range(mesh_socket_round_trip_ns(ends[i]), 1, 1000000000);
		close(ends[i]);
	}
	close(listener);
}

static void test_no_connection(void **state)
{
	int ends[2];

	(void)state;
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

	return cmocka_run_group_tests(tests, NULL, NULL);
}
