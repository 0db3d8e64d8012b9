/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_peer.c - `check --peer`: questions on a stream, waits, and what figures mean. */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "common/finding.h"
#include "common/interrupt.h"
#include "peer/figures.h"
#include "peer/stream.h"
#include "peer/wire.h"

#include "unit.h"

/* Whatever takes longer than this has failed. */
#define LIMIT_MS 20000

/* ---- streams ------------------------------------------------------------------------------ */

static struct {
	struct peer_stream here, there;
} ends;

static void ends_open(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(peer_stream_open(&ends.here, fds[0]), 0);
	assert_int_equal(peer_stream_open(&ends.there, fds[1]), 0);
}

static void ends_close(void)
{
	peer_stream_close(&ends.here);
	peer_stream_close(&ends.there);
}

static void udp_frame_send(enum mesh_check_type type, uint32_t number)
{
	struct mesh_check_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.udp.port = 4791;
	assert_int_equal(peer_stream_send(&ends.there, &frame, type, number), 0);
}

static void error_send(uint32_t error, uint32_t number)
{
	struct mesh_check_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.error.error = error;
	strcpy(frame.error.text, "no");
	assert_int_equal(peer_stream_send(&ends.there, &frame, MESH_CHECK_ERROR, number), 0);
}

static int udp_ask(uint32_t ms, struct mesh_check_frame *frame, char *text)
{
	memset(frame, 0, sizeof(*frame));
	frame->udp.token = 77;
	return peer_stream_ask(&ends.here, frame, MESH_CHECK_UDP_OPEN, MESH_CHECK_UDP_READY, ms,
			       text);
}

TEST_WITH(ask, ends_open, ends_close)
{
	struct mesh_check_frame asked, frame;
	char text[MESH_CHECK_TEXT_MAX];

	/* The answer waits already: it follows a datagram that is not expected. */
	udp_frame_send(MESH_CHECK_UDP_GOT, 5);
	udp_frame_send(MESH_CHECK_UDP_READY, 1);
	assert_int_equal(udp_ask(LIMIT_MS, &frame, text), 0);
	assert_int_equal(frame.udp.port, 4791);
	assert_string_equal(text, "");
	assert_int_equal(peer_stream_next(&ends.there, &asked), 0);
	assert_int_equal(asked.header.type, MESH_CHECK_UDP_OPEN);
	assert_int_equal(asked.header.number, 1);
	assert_true(asked.udp.token == 77);
}

TEST_WITH(ask_is_refused, ends_open, ends_close)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];

	error_send(EBUSY, 1);
	assert_int_equal(udp_ask(LIMIT_MS, &frame, text), -EBUSY);
	assert_string_equal(text, "no");
	error_send(0, 2);
	assert_int_equal(udp_ask(LIMIT_MS, &frame, text), -EPROTO);
	error_send(UINT32_MAX, 3);
	assert_int_equal(udp_ask(LIMIT_MS, &frame, text), -EPROTO);
	error_send(EINTR, 4); /* no frame may pass for our user's Ctrl-C */
	assert_int_equal(udp_ask(LIMIT_MS, &frame, text), -EPROTO);
	udp_frame_send(MESH_CHECK_UDP_READY, 99); /* not the answer to this */
	assert_int_equal(udp_ask(LIMIT_MS, &frame, text), -EPROTO);
}

TEST_WITH(ask_in_vain, ends_open, ends_close)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];

	assert_int_equal(udp_ask(20, &frame, text), -ETIMEDOUT);
	peer_stream_close(&ends.there);
	assert_true(udp_ask(LIMIT_MS, &frame, text) < 0);
}

/* Three times nothing, then what the test wants. */
struct polling {
	int calls, then;
};

static int few_times(void *arg)
{
	struct polling *polling = arg;

	return ++polling->calls < 4 ? -EAGAIN : polling->then;
}

TEST_WITH(poll_ends_a_wait, ends_open, ends_close)
{
	struct polling fails = {.then = -ENETDOWN}, waits = {.then = 0};
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];

	assert_int_equal(peer_stream_await_polling(&ends.here, MESH_CHECK_MEASURE_MET, 1,
						   mesh_clock_ms() + LIMIT_MS, few_times, &fails,
						   &frame, text),
			 -ENETDOWN);
	assert_int_equal(fails.calls, 4);
	assert_int_equal(peer_stream_await_polling(&ends.here, MESH_CHECK_MEASURE_MET, 1,
						   mesh_clock_ms() + 20, few_times, &waits, &frame,
						   text),
			 -ETIMEDOUT);
	assert_true(waits.calls > 4);
	memset(&frame, 0, sizeof(frame));
	assert_int_equal(peer_stream_send(&ends.there, &frame, MESH_CHECK_MEASURE_MET, 1), 0);
	fails.calls = 0;
	assert_int_equal(peer_stream_await_polling(&ends.here, MESH_CHECK_MEASURE_MET, 1,
						   mesh_clock_ms() + LIMIT_MS, few_times, &fails,
						   &frame, text),
			 0);
}

/* A frame of another version is answered with both versions, in a frame that its sender reads. */
TEST_WITH(version_is_refused, ends_open, ends_close)
{
	struct mesh_check_header asked;
	struct mesh_check_frame frame;
	char bytes[512];

	mesh_check_header_fill(&asked, MESH_CHECK_HELLO, 7, 80);
	asked.version = 1;
	assert_int_equal(send(ends.here.fd, &asked, sizeof(asked), 0), sizeof(asked));
	assert_int_equal(peer_stream_version(&ends.there), 0);
	assert_int_equal(peer_stream_next(&ends.there, &frame), -EPROTONOSUPPORT);
	assert_int_equal(peer_stream_version(&ends.there), 1);
	peer_stream_refuse_version(&ends.there);
	assert_int_equal(recv(ends.here.fd, bytes, sizeof(bytes), 0),
			 sizeof(asked) + sizeof(frame.error));
	assert_int_equal(mesh_check_version_of(bytes, sizeof(bytes)), 1);
	assert_true(mesh_check_decode(bytes, sizeof(bytes), &frame) > 0);
	assert_int_equal(frame.header.number, 7);
	assert_int_equal(frame.error.error, EPROTONOSUPPORT);
	assert_non_null(strstr(frame.error.text, "version 4"));
	assert_non_null(strstr(frame.error.text, "version 1"));
}

/* ---- waits -------------------------------------------------------------------------------- */

TEST(wait)
{
	uint64_t started = mesh_clock_ms();
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(interrupt_wait(fds[0], POLLIN, started + 30), -ETIMEDOUT);
	assert_true(mesh_clock_ms() >= started + 30);
	assert_int_equal(interrupt_wait(-1, 0, started), -ETIMEDOUT);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(interrupt_wait(fds[0], POLLIN, mesh_clock_ms() + LIMIT_MS), 0);
	/* A flood does not extend the wait. */
	assert_int_equal(interrupt_wait(fds[0], POLLIN, mesh_clock_ms()), -ETIMEDOUT);
	close(fds[1]);
	close(fds[0]);
}

/* In a child: what a signal has done cannot be undone. */
TEST(wait_ends_with_a_signal)
{
	int status, fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		interrupt_catch();
		if (write(fds[1], "x", 1) != 1)
			_exit(2);
		_exit(interrupt_wait(-1, 0, mesh_clock_ms() + LIMIT_MS) == -EINTR ? 0 : 1);
	}
	assert_int_equal(interrupt_wait(fds[0], POLLIN, mesh_clock_ms() + LIMIT_MS), 0);
	kill(pid, SIGTERM);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(fds[1]);
	close(fds[0]);
}

/* ---- figures ------------------------------------------------------------------------------ */

TEST(half_rtt)
{
	uint64_t times[20], i;

	for (i = 0; i < 20; i++)
		times[i] = 1000 * (20 - i);		  /* 1000 to 20000, in reverse */
	assert_int_equal(peer_half_rtt(times, 20), 1500); /* two of them are shorter than 3000 */
	times[0] = 42;
	assert_int_equal(peer_half_rtt(times, 1), 21);
	assert_true(peer_gbps(1000, 8) > 999.9 && peer_gbps(1000, 8) < 1000.1);
	assert_true(peer_gbps(1000, 0) == 0);
}

TEST(verdicts)
{
	assert_int_equal(peer_latency_verdict(20, 1), CHECK_PASS);
	assert_int_equal(peer_latency_verdict(20000, 1), CHECK_WARN);
	assert_int_equal(peer_latency_verdict(20000, 0.5), CHECK_UNKNOWN); /* the nodes are busy */
	assert_int_equal(peer_latency_verdict(20, 0.5), CHECK_PASS);
	/* RDMA fills a link. */
	assert_int_equal(peer_bandwidth_verdict(90, 100, true, 1), CHECK_PASS);
	assert_int_equal(peer_bandwidth_verdict(70, 100, true, 1), CHECK_WARN);
	assert_int_equal(peer_bandwidth_verdict(70, 100, true, 0.1), CHECK_WARN);
	/* TCP: a quarter of 10 Gbit/s at most, and of the processor that it had. */
	/* 2 % of a link's rate is no pass, whatever the reason. */
	assert_int_equal(peer_bandwidth_verdict(4, 200, false, 1), CHECK_UNKNOWN);
	assert_int_equal(peer_bandwidth_verdict(0.2, 10, false, 0.05), CHECK_UNKNOWN);
	assert_int_equal(peer_bandwidth_verdict(15, 100, false, 1), CHECK_PASS);
	assert_int_equal(peer_bandwidth_verdict(2, 100, false, 1), CHECK_WARN);
	assert_int_equal(peer_bandwidth_verdict(2, 100, false, 0.7), CHECK_UNKNOWN);
	assert_int_equal(peer_bandwidth_verdict(2, 10, false, 0.7), CHECK_UNKNOWN);
	assert_int_equal(peer_bandwidth_verdict(0.3, 1, false, 1), CHECK_PASS);
	assert_int_equal(peer_bandwidth_verdict(0.1, 100, false, 0.2), CHECK_UNKNOWN);
	assert_int_equal(peer_bandwidth_verdict(0, 0, true, 1), CHECK_PASS); /* rate unknown */
}

/* A port that negotiates 200 Gb/s and carries a tenth; not a slow link, and not TCP. */
TEST(faulty_port)
{
	assert_true(peer_port_is_faulty(8, 200, true));
	assert_true(peer_port_is_faulty(25, 200, true));
	assert_false(peer_port_is_faulty(40, 200, true)); /* a narrow slot */
	assert_false(peer_port_is_faulty(98, 100, true));
	assert_false(peer_port_is_faulty(1, 40, true));
	assert_false(peer_port_is_faulty(8, 200, false));
	assert_false(peer_port_is_faulty(8, 0, true)); /* rate unknown */
}
