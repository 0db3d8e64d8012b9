/* SPDX-License-Identifier: Apache-2.0 */
/* test_retry.c - the schedule of attempts, against a model, in random histories. */
#include "base/retry.h"

#include "unit.h"

#define HISTORIES 200
#define STEPS 200

static uint64_t seed;

static uint64_t random_below(uint64_t limit)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % limit;
}

/* The model: how many attempts in a row were in vain, and since when it works. */
static int fails;
static uint64_t works_ms;

static void model_lose(bool was_of_use, uint64_t now_ms)
{
	if (works_ms && was_of_use && now_ms - works_ms >= 30000)
		fails = 0;
	else if (works_ms || fails)
		fails++;
	works_ms = 0;
}

/* The pause is 250 ms times 2 for each further attempt, up to 10 s, and due moments are shared. */
static void assert_due(struct mesh_retry *retry, uint64_t before_ms, uint64_t now_ms)
{
	uint64_t pause_ms = 250, due_ms = mesh_retry_due_ms(retry, now_ms);

	for (int i = 1; i < fails && pause_ms < 10000; i++)
		pause_ms = pause_ms * 2 > 10000 ? 10000 : pause_ms * 2;
	if (!fails) {
		assert_int_equal(due_ms, 0);
		return;
	}
	assert_int_equal(retry->pause_ms, pause_ms);
	assert_int_equal(due_ms % pause_ms, 0);
	if (due_ms == before_ms)
		return; /* no attempt since */
	assert_true(due_ms > now_ms + pause_ms / 2 - 1);
	assert_true(due_ms <= now_ms + pause_ms + pause_ms / 2);
}

static void history(void)
{
	struct mesh_retry retry = {0};
	uint64_t now_ms = 1000000, before_ms;
	bool was_of_use;

	fails = 0;
	works_ms = 0;
	for (int i = 0; i < STEPS; i++) {
		before_ms = retry.not_before_ms;
		now_ms += 1 + random_below(40000);
		was_of_use = random_below(4);
		if (!works_ms && random_below(2)) {
			retry.up_ms = works_ms = now_ms;
			continue;
		}
		if (works_ms && random_below(2))
			was_of_use = true; /* the loss is found by the question when it is due */
		else if (works_ms)
			mesh_retry_lost(&retry, was_of_use, now_ms);
		else
			mesh_retry_later(&retry, now_ms);
		if (works_ms)
			model_lose(was_of_use, now_ms);
		else
			fails++;
		assert_due(&retry, before_ms, now_ms);
	}
}

TEST(histories)
{
	for (seed = 1; seed <= HISTORIES; seed++) {
		uint64_t first = seed;

		history();
		seed = first;
	}
}

TEST(first_is_at_once)
{
	struct mesh_retry retry = {0};

	assert_int_equal(mesh_retry_due_ms(&retry, 5), 0);
	mesh_retry_lost(&retry, true, 5); /* of a first life */
	assert_int_equal(mesh_retry_due_ms(&retry, 5), 0);
}
