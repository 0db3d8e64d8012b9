/* SPDX-License-Identifier: Apache-2.0 */
/* test_round_trip.c - the kernel's round-trip time of a TCP connection. */
#include <sys/socket.h>

#include "system/round_trip.h"

#include "tcp_pair.h"
#include "unit.h"

/* Both ends know it from the handshake. */
TEST(connected)
{
	int ends[2], i;

	tcp_pair_open(ends);
	for (i = 0; i < 2; i++) {
		assert_in_range(mesh_socket_round_trip_ns(ends[i]), 1, 1000000000);
		close(ends[i]);
	}
}

TEST(no_connection)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), ends[2];

	assert_int_equal(mesh_socket_round_trip_ns(fd), 0);
	close(fd);
	assert_int_equal(mesh_socket_round_trip_ns(fd), 0);
	assert_int_equal(mesh_socket_round_trip_ns(-1), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(mesh_socket_round_trip_ns(ends[0]), 0);
	close(ends[0]);
	close(ends[1]);
}

void tests_begin(void)
{
	if (!tcp_pair_has_info())
		exit(77);
}
