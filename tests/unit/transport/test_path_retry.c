/* SPDX-License-Identifier: Apache-2.0 */
/* test_path_retry.c - how often a path that has lost its circuit looks for another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/path_retry.h"

#define START_MS 123456

/* At once; then ever more seldom, within bounds. */
static void test_pauses(void **state)
{
	static const uint64_t pauses_ms[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
	struct mesh_path_retry retry = {0};
	uint64_t now_ms = START_MS, due_ms;
	unsigned int i;

	(void)state;
	assert_true(mesh_path_retry_due_ms(&retry, now_ms) <= now_ms);
	for (i = 0; i < sizeof(pauses_ms) / sizeof(*pauses_ms); i++) {
		mesh_path_retry_later(&retry, now_ms);
		due_ms = mesh_path_retry_due_ms(&retry, now_ms);
		assert_true(due_ms - now_ms >= pauses_ms[i] / 2);
		assert_true(due_ms - now_ms <= pauses_ms[i] * 3 / 2);
		now_ms = due_ms;
	}
}

/* Paths that were lost at different times are due together: one search serves them. */
static void test_together(void **state)
{
	struct mesh_path_retry retries[20] = {{0}};
	uint64_t due_ms[20], now_ms = START_MS;
	int i, k, same = 0;

	(void)state;
	for (k = 0; k < 8; k++) {
		for (i = 0; i < 20; i++)
			mesh_path_retry_later(&retries[i], now_ms + (uint64_t)i * 50);
		now_ms += 100000;
	}
	for (i = 0; i < 20; i++) {
		due_ms[i] = mesh_path_retry_due_ms(&retries[i], now_ms);
		assert_int_equal(due_ms[i] % MESH_RETRY_MAX_MS, 0);
		same += due_ms[i] == due_ms[0];
	}
	assert_true(same >= 10);
}

/* A circuit that breaks soon counts as a look in vain; one that has held ends the pauses. */
static void test_held(void **state)
{
	struct mesh_path_retry retry = {0};
	uint64_t now_ms = START_MS;
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		mesh_path_retry_up(&retry, now_ms);
		now_ms += MESH_RETRY_STEADY_MS - 1;
		assert_true(mesh_path_retry_due_ms(&retry, now_ms) > now_ms);
		assert_int_equal(retry.pause_ms, MESH_RETRY_MIN_MS << i);
		/* It is judged once. */
		assert_int_equal(mesh_path_retry_due_ms(&retry, now_ms + 1), retry.not_before_ms);
		assert_int_equal(retry.pause_ms, MESH_RETRY_MIN_MS << i);
	}
	mesh_path_retry_up(&retry, now_ms);
	now_ms += MESH_RETRY_STEADY_MS;
	assert_true(mesh_path_retry_due_ms(&retry, now_ms) <= now_ms);
	assert_int_equal(retry.pause_ms, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
