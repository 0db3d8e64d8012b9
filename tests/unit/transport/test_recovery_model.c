/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_recovery_model.c - a sending comm against a model of its receiver, step by random step: one
 * of its two paths is lost and joins again, writes end in any order and with any result, answers to
 * RESUME come late, twice, or in another order; the receiver may close at any moment.
 *
 * What must hold: a segment that has arrived is not written again; a request is done only when the
 * receiver has all of it; in the end everything has arrived, or a receiver that closes has said
 * what has: that is done, and every other request has ended; nothing is posted with an id of an
 * earlier life of the path.
 */
#include "receiver_model.h"

#define SEEDS 500
#define STEPS 150

static void turn_end(void)
{
	receiver_learn();
	receiver_recover();
	receiver_learn();
}

static void step(void)
{
	switch (receiver_roll(12)) {
	case 0:
	case 1:
		receiver_step_post();
		break;
	case 2:
	case 3:
		receiver_step_grant();
		break;
	case 4:
	case 5:
	case 6:
		receiver_step_end(true);
		break;
	case 7:
		if (!receiver_roll(3))
			receiver_step_lose();
		break;
	case 8:
		receiver_step_question(true);
		break;
	case 9:
		receiver_step_answer(true);
		break;
	case 10:
		receiver_step_join();
		break;
	default:
		receiver_step_join_answer();
		break;
	}
	turn_end();
}

/* ---- a run --------------------------------------------------------------------------------- */

/* No more faults: all that was posted arrives. */
static void run_end(void)
{
	int turn;

	for (turn = 0; turn < 2000 && !receiver_is_over(); turn++) {
		receiver_socket_read();
		receiver_step_grant();
		receiver_step_end(false);
		receiver_step_question(false);
		receiver_step_answer(false);
		if (receiver.closing)
			receiver_step_close();
		turn_end();
	}
	assert_true(receiver_is_over());
}

/* NCCL closes the receiver in the midst of it. */
static void run_close(void)
{
	int i;

	receiver_step_close();
	for (i = 0; i < STEPS / 3 && fake.writes.num < FAKE_POSTS_MAX / 2; i++) {
		step();
		if (!receiver_roll(20))
			receiver_step_close();
	}
}

static void test_sender(void **state)
{
	int seed, i, resumes = 0, joins = 0, closed_in_doubt = 0;

	for (seed = 0; seed < SEEDS; seed++) {
		receiver_begin(state, seed);
		for (i = 0; i < STEPS && fake.writes.num < FAKE_POSTS_MAX / 2; i++)
			step();
		if (seed % 3 == 0)
			run_close();
		run_end();
		resumes += receiver.resumes;
		joins += receiver.joins;
		closed_in_doubt += receiver.closed_in_doubt;
		receiver_clean(state);
	}
	/* The steps do what they are for. */
	assert_true(resumes > SEEDS);
	assert_true(joins > SEEDS);
	assert_true(closed_in_doubt > SEEDS / 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
