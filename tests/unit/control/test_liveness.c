/* SPDX-License-Identifier: Apache-2.0 */
/* test_liveness.c - a link's verdicts, and when sockets are drained, by a clock of the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "control/liveness.h"

#define START 1000000ull
#define LIMIT 10000
#define STEP 100 /* how often the engine looks */
#define RTO 300	 /* until the kernel has sent again what is lost */

/* One end of a link: what its kernel would report. */
static struct end {
	struct mesh_liveness liveness;
	struct mesh_tcp_look looks[MESH_LIVENESS_SOCKETS];
	uint64_t heard[MESH_LIVENESS_SOCKETS]; /* when; the looks have the age */
	int num;
	uint64_t now;
	enum mesh_liveness_verdict verdict;
} end;

static int setup(void **state)
{
	(void)state;
	memset(&end, 0, sizeof(end));
	mesh_liveness_init(&end.liveness, LIMIT);
	end.now = START;
	return 0;
}

static int add(bool data)
{
	end.looks[end.num].cookie = (uint64_t)end.num + 1;
	end.looks[end.num].data = data;
	end.heard[end.num] = end.now;
	return end.num++;
}

/* A segment arrives that the kernel answers: an acknowledgement or data. */
static void hear(int socket)
{
	struct mesh_tcp_look *look = &end.looks[socket];

	look->segments_in++;
	look->probes = look->retries = 0;
	end.heard[socket] = end.now;
}

static void look(void)
{
	int i;

	for (i = 0; i < end.num; i++)
		end.looks[i].heard_ago_ms = (uint32_t)(end.now - end.heard[i]);
	if (mesh_liveness_is_due(&end.liveness, end.now))
		end.verdict = mesh_liveness_learn(&end.liveness, end.looks, end.num, end.now);
}

/* Time passes while a user waits. @each: called at every look. */
static void pass(uint64_t ms, void (*each)(void))
{
	uint64_t until = end.now + ms;

	while (end.now < until && !end.verdict) {
		end.now += STEP;
		mesh_liveness_want(&end.liveness, end.now + 500);
		if (each)
			each();
		look();
	}
}

/* The kernel's keep-alive on each control connection. */
static void ask(void)
{
	int i;

	for (i = 0; i < end.num; i++) {
		if (!end.looks[i].data && end.now >= end.heard[i] + 1000)
			end.looks[i].probes = 1;
	}
}

static void ask_and_hear(void)
{
	int i;

	ask();
	for (i = 0; i < end.num; i++) {
		if (end.looks[i].probes)
			hear(i);
	}
}

static void test_no_waiter(void **state)
{
	(void)state;
	add(false);
	assert_false(mesh_liveness_is_due(&end.liveness, end.now));
	mesh_liveness_want(&end.liveness, end.now + 500);
	assert_true(mesh_liveness_is_due(&end.liveness, end.now));
	look();
	assert_int_equal(end.liveness.state, MESH_LIVENESS_WATCHED);
	assert_false(mesh_liveness_is_due(&end.liveness, end.now + STEP - 1));
	assert_true(mesh_liveness_is_due(&end.liveness, end.now + STEP));
	assert_false(mesh_liveness_is_due(&end.liveness, end.now + 500));
	assert_int_equal(end.liveness.state, MESH_LIVENESS_IDLE);
}

static void test_alive(void **state)
{
	(void)state;
	add(false);
	pass(100 * LIMIT, ask_and_hear);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
	assert_int_equal(end.liveness.state, MESH_LIVENESS_WATCHED);
}

/* Both ends of a transfer, whenever the cable is pulled between two questions. */
static void test_pulled(void **state)
{
	uint64_t phase, pulled;
	int sending, control, data;

	for (phase = 0; phase < 2000; phase += STEP) {
		for (sending = 0; sending < 2; sending++) {
			setup(state);
			control = add(false);
			data = add(true);
			pass(5000 + phase, ask_and_hear);
			hear(data);
			pulled = end.now;
			if (sending)
				end.looks[data].unacked = 10;
			pass(RTO, ask);
			end.looks[data].retries = (uint32_t)sending;
			pass(2 * LIMIT, ask);
			assert_int_equal(end.verdict, MESH_LIVENESS_NO_ANSWER);
			assert_in_range(end.now - pulled, LIMIT - 600, LIMIT + 500);
			assert_int_equal(end.liveness.state, MESH_LIVENESS_SILENT);
			(void)control;
		}
	}
}

/* A probe of the peer shows as one more segment, and as nothing else. */
static void test_peers_probe(void **state)
{
	int control;

	(void)state;
	control = add(false);
	pass(2000, ask_and_hear);
	/* Our frame was sent just before the cable was pulled: our kernel asks no more. */
	end.looks[control].unacked = end.looks[control].queued = 1;
	end.looks[control].retries = 5;
	pass(9000, NULL);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
	end.looks[control].segments_in++;
	pass(9000, NULL);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
	pass(1100, NULL);
	assert_int_equal(end.verdict, MESH_LIVENESS_NO_ANSWER);
}

static void test_flap(void **state)
{
	int i;

	(void)state;
	add(false);
	add(false);
	for (i = 0; i < 5; i++) {
		pass(3000, ask_and_hear);
		pass(LIMIT - 1000, ask);
		assert_int_equal(end.liveness.state, MESH_LIVENESS_SILENT);
	}
	pass(3000, ask_and_hear);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
	assert_int_equal(end.liveness.state, MESH_LIVENESS_WATCHED);
}

/* Either direction's connection is a sign of life for both. */
static void hear_one(void)
{
	ask();
	if (end.looks[1].probes)
		hear(1);
}

static void test_one_of_two(void **state)
{
	(void)state;
	add(false);
	add(false);
	pass(10 * LIMIT, hear_one);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
}

/* Without a question the peer need not answer. */
static void test_not_asked(void **state)
{
	(void)state;
	add(false);
	pass(10 * LIMIT, NULL);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
}

/* Silence before the first waiter does not count. */
static void test_found_silent(void **state)
{
	uint64_t from;

	(void)state;
	add(false);
	pass(1000, ask_and_hear);
	end.now += 100000;
	look();
	end.looks[0].probes = 7;
	from = end.now;
	pass(2 * LIMIT, ask);
	assert_int_equal(end.verdict, MESH_LIVENESS_NO_ANSWER);
	assert_in_range(end.now - from, LIMIT - 600, LIMIT + 500);
}

/* Nothing waited when it fell silent: the kernel's first question counts. */
static void test_idle(void **state)
{
	const uint64_t heard = START, asked = START + 2000;
	struct mesh_liveness *liveness = &end.liveness;

	(void)state;
	add(false);
	end.now = asked + LIMIT / 2;
	end.looks[0].probes = 5;
	mesh_liveness_unanswered(liveness, heard, asked, end.now);
	pass(2 * LIMIT, ask);
	assert_int_equal(end.verdict, MESH_LIVENESS_NO_ANSWER);
	assert_in_range(end.now - asked, LIMIT, LIMIT + STEP);
	/* It comes back in time. */
	setup(state);
	add(false);
	end.now = asked + LIMIT / 2;
	end.looks[0].probes = 5;
	mesh_liveness_unanswered(liveness, heard, asked, end.now);
	pass(LIMIT / 2 - 2 * STEP, ask);
	assert_int_equal(liveness->state, MESH_LIVENESS_SILENT);
	pass(3 * LIMIT, ask_and_hear);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
}

/* The age of what was last heard is counted in ticks: that it seems younger is no sign of life. */
static void test_ticks(void **state)
{
	uint64_t pulled;

	(void)state;
	add(false);
	pass(3000, ask_and_hear);
	pulled = end.now;
	pass(LIMIT / 2, ask);
	end.heard[0] += 4;
	pass(LIMIT / 4, ask);
	end.heard[0] += 6;
	pass(LIMIT, ask);
	assert_int_equal(end.verdict, MESH_LIVENESS_NO_ANSWER);
	assert_in_range(end.now - pulled, LIMIT - 600, LIMIT + 500);
}

/* ---- slow, stopped, stuck -------------------------------------------------------------------- */

/* The queue is full: no probe gets through, but now and then some data is acknowledged. */
static void crawl(void)
{
	ask();
	end.looks[1].retries = 1;
	if (end.now % 3000)
		return;
	hear(1);
	end.looks[1].bytes_acked += 1448;
}

static void test_slow(void **state)
{
	(void)state;
	add(false);
	add(true);
	end.looks[1].unacked = 100;
	pass(100 * LIMIT, crawl);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
}

/* Its window is closed: nothing is in flight, and the kernel answers probes. */
static void stand(void)
{
	ask_and_hear();
	end.looks[1].probes = 3;
	hear(1);
}

static void test_stopped(void **state)
{
	(void)state;
	add(false);
	add(true);
	end.looks[1].queued = 1 << 20;
	pass(100 * LIMIT, stand);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
}

/* Its kernel has no room, and answers so to each retransmission. */
static void refuse(void)
{
	ask_and_hear();
	if (end.now % 5000)
		return;
	end.looks[1].resent++;
	hear(1);
}

static void test_no_room(void **state)
{
	(void)state;
	add(false);
	add(true);
	end.looks[1].unacked = 5;
	pass(100 * LIMIT, refuse);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
}

/* Large frames vanish; small ones get through, also on the same connection. */
static void vanish(void)
{
	ask_and_hear();
	if (!(end.now % 2000))
		end.looks[1].resent++;
	if (!(end.now % 700)) {
		end.looks[1].segments_in++;
		end.looks[1].data_segments_in++;
	}
}

static void test_black_hole(void **state)
{
	uint64_t from;

	(void)state;
	add(false);
	add(true);
	pass(3000, ask_and_hear);
	end.looks[1].unacked = 10;
	from = end.now;
	pass(2 * LIMIT, vanish);
	assert_int_equal(end.verdict, MESH_LIVENESS_NO_DATA);
	assert_in_range(end.now - from, LIMIT - STEP, LIMIT + STEP);
}

/* The same, while this process gets the CPU every few seconds only: that is no silence. */
static void test_black_hole_seldom_seen(void **state)
{
	const uint64_t seldom = 3000;
	uint64_t from;

	(void)state;
	add(false);
	add(true);
	pass(3000, ask_and_hear);
	end.looks[1].unacked = 10;
	from = end.now;
	while (!end.verdict && end.now < from + 10 * LIMIT) {
		end.now += seldom;
		mesh_liveness_want(&end.liveness, end.now + 500);
		end.looks[1].resent++;
		hear(0); /* 1 s ago, and each second before */
		end.heard[0] -= 1000;
		look();
	}
	assert_int_equal(end.verdict, MESH_LIVENESS_NO_DATA);
	assert_in_range(end.now - from, LIMIT, LIMIT + seldom);
}

/* After a silence the kernel takes as long again to repeat what was lost: that is not stuck. */
static void test_back_after_silence(void **state)
{
	(void)state;
	add(false);
	add(true);
	pass(3000, ask_and_hear);
	end.looks[1].unacked = 10;
	pass(9000, ask);
	pass(9000, ask_and_hear);
	end.looks[1].resent++;
	end.looks[1].bytes_acked += 10;
	pass(9000, ask_and_hear);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
}

/* ---- drained ------------------------------------------------------------------------------- */

static bool drained(uint64_t since)
{
	end.now += STEP;
	mesh_liveness_learn(&end.liveness, end.looks, end.num, end.now);
	return end.liveness.drained_ms >= since;
}

static void test_drained(void **state)
{
	uint64_t asked;

	(void)state;
	add(false);
	add(true);
	assert_true(drained(end.now)); /* nothing is queued */
	end.looks[1].queued = 1000;
	asked = end.now + STEP;
	assert_false(drained(asked));
	/* Others send all the time: the queue is never empty, but what it held is acknowledged. */
	end.looks[1].bytes_acked += 999;
	end.looks[1].queued = 5000;
	assert_false(drained(asked));
	end.looks[1].bytes_acked += 1;
	assert_true(drained(asked));
	assert_false(drained(asked + 2 * STEP));
	/* The connection ends, and with it what it held. */
	asked = end.now;
	end.num = 1;
	assert_true(drained(asked));
}

static void test_nothing_known(void **state)
{
	(void)state;
	assert_true(mesh_liveness_is_fresh(&end.liveness, end.now));
	assert_true(drained(end.now));
	pass(10 * LIMIT, NULL);
	assert_int_equal(end.verdict, MESH_LIVENESS_GOES_ON);
	assert_true(mesh_liveness_is_fresh(&end.liveness, end.now));
	add(false);
	pass(STEP, ask_and_hear);
	assert_true(mesh_liveness_is_fresh(&end.liveness, end.now));
	pass(800, ask_and_hear);
	assert_false(mesh_liveness_is_fresh(&end.liveness, end.now));
	pass(300, ask_and_hear);
	assert_true(mesh_liveness_is_fresh(&end.liveness, end.now));
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_waiter),
		TEST(test_alive),
		TEST(test_pulled),
		TEST(test_peers_probe),
		TEST(test_flap),
		TEST(test_one_of_two),
		TEST(test_not_asked),
		TEST(test_found_silent),
		TEST(test_idle),
		TEST(test_ticks),
		TEST(test_slow),
		TEST(test_stopped),
		TEST(test_no_room),
		TEST(test_black_hole),
		TEST(test_black_hole_seldom_seen),
		TEST(test_back_after_silence),
		TEST(test_drained),
		TEST(test_nothing_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
