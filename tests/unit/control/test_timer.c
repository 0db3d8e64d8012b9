/* SPDX-License-Identifier: Apache-2.0 */
/* test_timer.c - deadlines come in order, whatever was set and cancelled before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/container.h"
#include "control/timer.h"

#define OBJECTS 300
#define STEPS 20000
#define SPAN_MS 1000

struct object {
	struct mesh_timer timer;
	uint64_t expected_ms; /* 0: not set */
	int expired;
};

static struct mesh_timers timers;
static struct object objects[OBJECTS];
static uint64_t last_ms;

static void expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct object *object = mesh_container_of(timer, struct object, timer);

	assert_false(timer->set);
	assert_true(object->expected_ms && object->expected_ms <= now_ms);
	assert_true(object->expected_ms >= last_ms);
	last_ms = object->expected_ms;
	object->expected_ms = 0;
	object->expired++;
}

static int setup(void **state)
{
	int i;

	(void)state;
	memset(&timers, 0, sizeof(timers));
	memset(objects, 0, sizeof(objects));
	last_ms = 0;
	for (i = 0; i < OBJECTS; i++)
		objects[i].timer.expired = expired;
	return 0;
}

static void run(uint64_t now_ms)
{
	int i;

	last_ms = 0;
	mesh_timers_run(&timers, now_ms);
	for (i = 0; i < OBJECTS; i++)
		assert_true(!objects[i].expected_ms || objects[i].expected_ms > now_ms);
}

static uint64_t earliest_ms(void)
{
	uint64_t first_ms = UINT64_MAX;
	int i;

	for (i = 0; i < OBJECTS; i++) {
		if (objects[i].expected_ms && objects[i].expected_ms < first_ms)
			first_ms = objects[i].expected_ms;
	}
	return first_ms;
}

static void test_order_holds(void **state)
{
	uint64_t now_ms = 1;
	int step;

	(void)state;
	srandom(1);
	for (step = 0; step < STEPS; step++) {
		struct object *object = &objects[random() % OBJECTS];

		if (random() % 4) {
			object->expected_ms = now_ms + (uint64_t)random() % SPAN_MS;
			mesh_timers_set(&timers, &object->timer, object->expected_ms);
		} else {
			object->expected_ms = 0;
			mesh_timers_cancel(&timers, &object->timer);
		}
		assert_int_equal(timers.first ? timers.first->due_ms : UINT64_MAX, earliest_ms());
		if (!(random() % 50))
			run(now_ms += (uint64_t)random() % 100);
	}
	run(now_ms + SPAN_MS);
	assert_null(timers.first);
}

static void repeat(struct mesh_timer *timer, uint64_t now_ms)
{
	mesh_container_of(timer, struct object, timer)->expired++;
	mesh_timers_set(&timers, timer, now_ms);
}

/* One that always wants to be called at once cannot keep the engine. */
static void test_one_run_calls_each_once(void **state)
{
	(void)state;
	objects[0].timer.expired = repeat;
	mesh_timers_set(&timers, &objects[0].timer, 5);
	mesh_timers_run(&timers, 10);
	assert_int_equal(objects[0].expired, 1);
	assert_int_equal(objects[0].timer.due_ms, 11);
	mesh_timers_run(&timers, 10);
	assert_int_equal(objects[0].expired, 1);
	mesh_timers_run(&timers, 11);
	assert_int_equal(objects[0].expired, 2);
	mesh_timers_cancel(&timers, &objects[0].timer);
	assert_null(timers.first);
}

static void chain(struct mesh_timer *timer, uint64_t now_ms)
{
	struct object *object = mesh_container_of(timer, struct object, timer);

	object->expired++;
	object[1].expected_ms = now_ms;
	mesh_timers_set(&timers, &object[1].timer, now_ms);
	mesh_timers_cancel(&timers, &object[2].timer);
}

/* What one of them sets for now comes in the same run, and what it cancels does not. */
static void test_a_run_sees_changes(void **state)
{
	int i;

	(void)state;
	objects[0].timer.expired = chain;
	for (i = 0; i < 3; i += 2)
		mesh_timers_set(&timers, &objects[i].timer, 7);
	mesh_timers_cancel(&timers, &objects[2].timer);
	mesh_timers_set(&timers, &objects[2].timer, 8);
	mesh_timers_run(&timers, 9);
	assert_int_equal(objects[0].expired, 1);
	assert_int_equal(objects[1].expired, 1);
	assert_int_equal(objects[2].expired, 0);
	assert_null(timers.first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_order_holds, setup),
		cmocka_unit_test_setup(test_one_run_calls_each_once, setup),
		cmocka_unit_test_setup(test_a_run_sees_changes, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
