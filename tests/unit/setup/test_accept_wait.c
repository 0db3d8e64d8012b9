/* SPDX-License-Identifier: Apache-2.0 */
/* test_accept_wait.c - the waits of accept() and its messages, by the clock. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/peer_index.h"
#include "setup/accept_wait.h"
#include "setup/listener.h"
#include "setup/setup.h"

#include "log_capture.h"

static struct mesh_setup setup_state;
static struct mesh_net net = {.setup = &setup_state, .process = &setup_state.process};
static struct mesh_listener listener;
static struct mesh_nic nic;
static struct mesh_peer peers[2];
static uint64_t start; /* of the first accept() */

static int setup(void **state)
{
	int i;

	(void)state;
	memset(&setup_state, 0, sizeof(setup_state));
	memset(&listener, 0, sizeof(listener));
	memset(peers, 0, sizeof(peers));
	mesh_lock_init(&setup_state.process.lock);
	strcpy(setup_state.process.name, "a");
	strcpy(nic.netdev, "ab0");
	setup_state.process.config.accept_timeout_s = 600;
	setup_state.process.config.connect_timeout_s = 60;
	setup_state.process.nics[0] = &nic;
	setup_state.process.num_endpoints = 1;
	mesh_addr_parse("10.7.0.1", &setup_state.process.endpoints[0].addr);
	setup_state.process.endpoints[0].addr.prefix_len = 24;
	listener.net = &net;
	listener.wait.process = &setup_state.process;
	LIST_INSERT_HEAD(&setup_state.listeners, &listener, entry);
	for (i = 0; i < 2; i++) {
		peers[i].process = &setup_state.process;
		peers[i].state = MESH_PEER_UP;
		strcpy(peers[i].name, "b");
		strcpy(peers[i].reason, "its process ended");
		mesh_addr_parse("10.7.0.2", &peers[i].address.addr);
		LIST_INSERT_HEAD(&setup_state.process.peers, &peers[i], entry);
	}
	mesh_lock_take(&setup_state.process.lock);
	for (i = 0; i < 2; i++)
		mesh_peer_process_set(&peers[i], 5);
	start = mesh_clock_ms();
	log_capture_start();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	log_capture_stop();
	mesh_lock_release(&setup_state.process.lock);
	mesh_lock_destroy(&setup_state.process.lock);
	return 0;
}

/* What accept() does so long after the first. */
static int check(uint64_t after_ms)
{
	return mesh_accept_wait_check(&listener.wait, listener.num_left, start + after_ms);
}

static void lose(int i, bool missed)
{
	mesh_listener_peer_lost(&peers[i], missed);
	peers[i].state = MESH_PEER_LOST;
}

/*
 * Ranks may start minutes apart: one line after 10 s, which explains this, and an error after 600
 * s.
 */
static void test_no_connector(void **state)
{
	(void)state;
	assert_int_equal(check(0), 0);
	assert_int_equal(check(9999), 0);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_int_equal(check(10000), 0);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "node a has waited 10 s for another rank"));
	assert_true(log_captured(MESH_LOG_WARN, "10.7.0.1/24 (ab0)"));
	assert_true(log_captured(MESH_LOG_WARN, "If that rank starts later, this is normal"));
	assert_true(log_captured(MESH_LOG_WARN, "in 590 s (NCCL_MESH_ACCEPT_TIMEOUT)"));
	assert_int_equal(check(599999), 0);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_int_equal(check(600000), -ETIMEDOUT);
	assert_true(log_captured(MESH_LOG_WARN, "no rank connected within 600 s"));
}

/* It sent the cookie and is still connecting: its name is known. */
static void test_connector_does_not_finish(void **state)
{
	(void)state;
	mesh_accept_wait_heard(&listener.wait, &peers[0]);
	assert_int_equal(check(0), 0);
	assert_int_equal(check(10000), 0);
	assert_true(log_captured(MESH_LOG_WARN, "node b (10.7.0.2) has begun to connect"));
	assert_int_equal(check(600000), -ETIMEDOUT);
	assert_true(log_captured(MESH_LOG_WARN, "did not finish"));
}

/* All of its connections are gone: another one may come within a moment. */
static void test_process_is_gone(void **state)
{
	(void)state;
	mesh_accept_wait_heard(&listener.wait, &peers[0]);
	assert_int_equal(check(0), 0);
	lose(0, false);
	assert_int_equal(listener.wait.gone_ms, 0); /* there is another one */
	lose(1, false);
	assert_true(listener.wait.gone_ms >= start);
	listener.wait.gone_ms = start + 1000;
	assert_int_equal(check(5999), 0);
	assert_int_equal(check(6000), -ECONNRESET);
	assert_true(log_captured(MESH_LOG_WARN, "node b (10.7.0.2) was connecting"));
	assert_true(log_captured(MESH_LOG_WARN, "is gone: its process ended"));
	/* It comes again. */
	mesh_accept_wait_heard(&listener.wait, &peers[0]);
	assert_int_equal(check(6000), 0);
}

/* A comm that was never complete may be tried again for as long as a connect lasts. */
static void test_attempt_fails(void **state)
{
	(void)state;
	peers[0].state = peers[1].state = MESH_PEER_GREETING;
	mesh_accept_wait_heard(&listener.wait, &peers[0]);
	lose(0, false);
	lose(1, false);
	listener.wait.gone_ms = start;
	assert_int_equal(check(0), 0);
	assert_int_equal(check(59999), 0);
	assert_true(log_captured(MESH_LOG_WARN, "began to connect, and its connection ended"));
	assert_int_equal(check(60000), -ECONNRESET);
}

/* Other processes connect and disconnect: accept() does not wait for them. */
static void test_others_are_lost(void **state)
{
	(void)state;
	assert_int_equal(check(0), 0);
	assert_int_equal(check(10000), 0);
	lose(0, false);
	assert_int_equal(check(20000), 0);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	lose(1, true); /* comms of ours used it */
	assert_int_equal(check(30000), 0);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 2);
	assert_true(log_captured(MESH_LOG_WARN, "This rank has lost node b (10.7.0.2)"));
	assert_int_equal(check(599999), 0);
}

/*
 * It has reported this; the time of an attempt that it gave up before accept() was called counts
 * from that call on.
 */
static void test_peer_gives_up(void **state)
{
	(void)state;
	mesh_accept_wait_given_up(&listener.wait, &peers[0]);
	lose(0, false);
	lose(1, false);
	listener.wait.gone_ms = start - 100000;
	assert_int_equal(check(0), 0);
	assert_int_equal(check(4999), 0);
	assert_int_equal(check(5000), -ECONNRESET);
	assert_true(log_captured(MESH_LOG_WARN, "reports that it has given up"));
	/* After accept() has taken a comm, the wait for the next one starts again. */
	mesh_accept_wait_end(&listener.wait);
	start += 700000;
	assert_int_equal(check(0), 0);
	assert_int_equal(check(9999), 0);
}

/* While a comm waits for its path the process is not gone; 5 s later it is, unless it gave up. */
static void test_comm_waits_for_its_path(void **state)
{
	(void)state;
	mesh_accept_wait_heard(&listener.wait, &peers[0]);
	mesh_accept_wait_hold(&listener.wait, start + 100);
	assert_int_equal(listener.wait.gone_ms, 0); /* it is there */
	lose(0, false);
	lose(1, false);
	listener.wait.gone_ms = start;
	listener.wait.was_up = true;
	assert_int_equal(check(0), 0);
	mesh_accept_wait_hold(&listener.wait, start + 20000);
	assert_int_equal(check(24999), 0);
	assert_int_equal(check(25000), -ECONNRESET);
	mesh_accept_wait_given_up(&listener.wait, &peers[0]);
	listener.wait.gone_ms = start;
	mesh_accept_wait_hold(&listener.wait, start + 25000);
	assert_int_equal(check(25000), -ECONNRESET);
}

/* No other attempt can succeed: accept() fails at once, and the message names both versions. */
static void test_other_version(void **state)
{
	struct mesh_frame_hello hello = {.cookie = 6, .listen_id = 3};

	(void)state;
	listener.id = 3;
	listener.cookie = 7;
	mesh_listener_foreign(&peers[0], &hello, "it runs 1, and we run 2");
	assert_int_equal(check(0), 0); /* it was another listener's */
	hello.cookie = 7;
	mesh_listener_foreign(&peers[0], &hello, "it runs 1, and we run 2");
	assert_int_equal(check(1), -EPROTONOSUPPORT);
	assert_true(log_captured(MESH_LOG_WARN, "node a refused node b (10.7.0.2), which connected "
						"to the listener on 10.7.0.1/24 (ab0): it runs 1, "
						"and we run 2"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_connector),
		TEST(test_connector_does_not_finish),
		TEST(test_process_is_gone),
		TEST(test_attempt_fails),
		TEST(test_others_are_lost),
		TEST(test_peer_gives_up),
		TEST(test_comm_waits_for_its_path),
		TEST(test_other_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
