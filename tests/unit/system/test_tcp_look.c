/* SPDX-License-Identifier: Apache-2.0 */
/* test_tcp_look.c - the kernel's state and round-trip time of connections over lo. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "system/tcp_look.h"

#include "namespace.h"
#include "tcp_pair.h"
#include "unit.h"

static int ends[2];

void tests_setup(void)
{
	tcp_pair_open(ends);
}

void tests_teardown(void)
{
	close(ends[0]);
	close(ends[1]);
}

static struct mesh_tcp_look look(int fd)
{
	struct mesh_tcp_look look = {.data = true};

	assert_int_equal(mesh_tcp_look(fd, &look), 0);
	assert_true(look.data);
	return look;
}

TEST(counts)
{
	uint64_t deadline = mesh_clock_ms() + 10000;
	struct mesh_tcp_look before = look(ends[0]), after;
	static char bytes[1000];

	assert_int_equal(before.queued, 0);
	assert_true(before.cookie && before.cookie == mesh_socket_cookie(ends[0]));
	assert_true(before.cookie != look(ends[1]).cookie);
	assert_int_equal(send(ends[0], bytes, sizeof(bytes), 0), sizeof(bytes));
	do
		after = look(ends[0]);
	while (after.queued && mesh_clock_ms() < deadline);
	assert_int_equal(after.bytes_acked - before.bytes_acked, sizeof(bytes));
	assert_true(after.segments_in > before.segments_in);
	assert_int_equal(after.data_segments_in, before.data_segments_in);
	assert_int_equal(look(ends[1]).data_segments_in, 1);
}

/* The reader does not read: what is queued stays, and nothing of it is in flight in the end. */
TEST(closed_window)
{
	uint64_t deadline = mesh_clock_ms() + 10000;
	static char bytes[1 << 20];
	struct mesh_tcp_look now;

	while (send(ends[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	do
		now = look(ends[0]);
	while (now.unacked && mesh_clock_ms() < deadline);
	assert_int_equal(now.unacked, 0);
	assert_true(now.queued > 0);
}

/* A connection that has been silent for longer than idle_s is asked at once. */
TEST(asks_at_once)
{
	const struct mesh_tcp_keepalive keepalive = {.idle_s = 1, .interval_s = 60, .count = 9};
	uint64_t deadline = mesh_clock_ms() + 10000;
	struct mesh_tcp_look before, after;

	do
		before = look(ends[0]);
	while (before.heard_ago_ms < 1200 && mesh_clock_ms() < deadline);
	mesh_tcp_keepalive_set(ends[0], &keepalive);
	deadline = mesh_clock_ms() + 900;
	do
		after = look(ends[0]);
	while (after.segments_in == before.segments_in && mesh_clock_ms() < deadline);
	assert_int_equal(after.segments_in, before.segments_in + 1);
	assert_int_equal(after.probes, 0); /* answered */
	assert_true(after.heard_ago_ms < before.heard_ago_ms);
}

/* Both ends know it from the handshake. */
TEST(round_trip)
{
	int pair[2];

	assert_in_range(mesh_socket_round_trip_ns(ends[0]), 1, 1000000000);
	assert_in_range(mesh_socket_round_trip_ns(ends[1]), 1, 1000000000);
	assert_int_equal(mesh_socket_round_trip_ns(-1), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(mesh_socket_round_trip_ns(pair[0]), 0);
	close(pair[0]);
	close(pair[1]);
}

TEST(no_connection)
{
	struct mesh_tcp_look none;
	int fd = socket(AF_INET, SOCK_STREAM, 0), pair[2];

	assert_int_equal(mesh_tcp_look(fd, &none), -ENOTCONN);
	assert_int_equal(mesh_socket_round_trip_ns(fd), 0);
	close(fd);
	assert_int_equal(mesh_socket_round_trip_ns(fd), 0);
	assert_int_equal(mesh_tcp_look(fd, &none), -ENOTCONN);
	assert_int_equal(mesh_socket_cookie(fd), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(mesh_tcp_look(pair[0], &none), -ENOTCONN);
	close(pair[0]);
	close(pair[1]);
}

/*
 * What the kernel met without ending the connection; it is reported once. The last test, because it
 * enters another namespace.
 */
TEST(error)
{
	int pair[2];

	assert_int_equal(mesh_tcp_error_take(ends[0]), 0);
	assert_int_equal(mesh_tcp_error_take(-1), 0);
	if (!namespace_enter()) {
		skip();
		return;
	}
	namespace_ip("link set lo up");
	tcp_pair_open(pair);
	tcp_pair_cut_off(pair);
	assert_int_equal(mesh_tcp_error_take(pair[0]), -ENETUNREACH);
	assert_int_equal(mesh_tcp_error_take(pair[0]), 0);
	close(pair[0]);
	close(pair[1]);
}

void tests_begin(void)
{
	if (!tcp_pair_has_info())
		exit(77);
}
