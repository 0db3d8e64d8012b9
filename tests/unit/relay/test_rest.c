/* SPDX-License-Identifier: Apache-2.0 */
/* test_rest.c - when the thread that relays polls, and how much of its time that takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "relay/rest.h"

/* One poll that finds nothing. */
#define POLL_NS 1000
#define SECOND_NS 1000000000ull
/* After this the thread sleeps at the latest. */
#define QUIET_NS 300000

static struct mesh_rest rest;
static uint64_t now_ns;

static int setup(void **state)
{
	(void)state;
	now_ns = 12345678;
	mesh_rest_init(&rest, now_ns);
	return 0;
}

/* @what moves every @period_ns for a second; returns how long polls that found nothing took. */
static uint64_t traffic(enum mesh_rest_moved what, uint64_t period_ns, bool bounded)
{
	uint64_t end_ns = now_ns + SECOND_NS, next_ns = now_ns, vain_ns = 0;
	bool moved;

	while (now_ns < end_ns) {
		moved = now_ns >= next_ns;
		if (moved)
			next_ns += period_ns;
		if (!mesh_rest_polls(&rest, now_ns, moved ? what : MESH_REST_NOTHING, bounded)) {
			now_ns = next_ns; /* the descriptor wakes the thread */
			continue;
		}
		now_ns += POLL_NS;
		vain_ns += POLL_NS;
	}
	return vain_ns;
}

static void test_quiet(void **state)
{
	uint64_t start_ns = now_ns;

	(void)state;
	assert_true(mesh_rest_polls(&rest, now_ns, MESH_REST_MESSAGE, true));
	while (mesh_rest_polls(&rest, now_ns, MESH_REST_NOTHING, true))
		now_ns += POLL_NS;
	assert_in_range(now_ns - start_ns, 1, QUIET_NS);
	now_ns += 10 * SECOND_NS;
	assert_false(mesh_rest_polls(&rest, now_ns, MESH_REST_NOTHING, true));
	assert_true(mesh_rest_polls(&rest, now_ns, MESH_REST_MESSAGE, true));
}

/* Rare traffic costs little, frequent traffic half of the time, without a bound all of it. */
static void test_share(void **state)
{
	uint64_t period_ns;

	(void)state;
	assert_in_range(traffic(MESH_REST_MESSAGE, SECOND_NS / 100, true), 1, SECOND_NS / 20);
	for (period_ns = 20000; period_ns <= 500000; period_ns *= 5)
		assert_in_range(traffic(MESH_REST_MESSAGE, period_ns, true), 1,
				SECOND_NS * 55 / 100);
	assert_true(traffic(MESH_REST_MESSAGE, 100000, false) > SECOND_NS * 9 / 10);
}

/* A stream of segments: the thread sleeps between them, unless nothing would wake it. */
static void test_segments(void **state)
{
	(void)state;
	assert_in_range(traffic(MESH_REST_SEGMENT, 100000, true), 1, SECOND_NS * 12 / 100);
	assert_true(traffic(MESH_REST_SEGMENT, 100000, false) > SECOND_NS * 9 / 10);
}

/* A segment behind a small message does not shorten the polls that follow the message. */
static void test_segment_behind_message(void **state)
{
	uint64_t start_ns = now_ns;

	(void)state;
	assert_true(mesh_rest_polls(&rest, now_ns, MESH_REST_MESSAGE, true));
	now_ns += POLL_NS;
	assert_true(mesh_rest_polls(&rest, now_ns, MESH_REST_SEGMENT, true));
	while (mesh_rest_polls(&rest, now_ns, MESH_REST_NOTHING, true))
		now_ns += POLL_NS;
	assert_in_range(now_ns - start_ns, 150000, QUIET_NS);
}

/* Each poll finds something: the thread does not stop, whatever it has polled in vain before. */
static void test_busy(void **state)
{
	int i;

	(void)state;
	traffic(MESH_REST_MESSAGE, 100000, true);
	for (i = 0; i < 100000; i++) {
		now_ns += 20 * POLL_NS;
		mesh_rest_polls(&rest, now_ns, MESH_REST_MESSAGE, true);
	}
	assert_true(rest.polls);
}

static void test_pause(void **state)
{
	(void)state;
	assert_int_equal(mesh_rest_pause_ns(&rest, now_ns), 20000);
	assert_int_equal(mesh_rest_pause_ns(&rest, now_ns + 1600000), 100000);
	assert_int_equal(mesh_rest_pause_ns(&rest, now_ns + SECOND_NS), 1000000);
	rest.vain = true;
	mesh_rest_polls(&rest, now_ns, MESH_REST_NOTHING, true);
	assert_true(rest.vain);
	mesh_rest_polls(&rest, now_ns, MESH_REST_MESSAGE, true);
	assert_false(rest.vain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_quiet, setup),
		cmocka_unit_test_setup(test_share, setup),
		cmocka_unit_test_setup(test_segments, setup),
		cmocka_unit_test_setup(test_segment_behind_message, setup),
		cmocka_unit_test_setup(test_busy, setup),
		cmocka_unit_test_setup(test_pause, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
