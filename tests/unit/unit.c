/* SPDX-License-Identifier: Apache-2.0 */
/* unit.c - the main function of unit test programs: runs the tests that registered themselves. */
#include "unit.h"

#define TESTS_MAX 64

static struct unit_test {
	const char *name;
	int line;
	void (*run)(void);
	struct unit_fixture fixture;
} tests[TESTS_MAX];
static size_t num_tests;

void unit_test_add(const char *name, int line, void (*run)(void), unit_fixture_fn setup,
		   unit_fixture_fn teardown)
{
	size_t i;

	assert_true(num_tests < TESTS_MAX);
	for (i = num_tests++; i > 0 && tests[i - 1].line > line; i--)
		tests[i] = tests[i - 1];
	tests[i] = (struct unit_test){name, line, run, {setup, teardown, true}};
}

static void test_run(void **state)
{
	const struct unit_test *test = *state;

	test->run();
}

static int test_setup(void **state)
{
	const struct unit_test *test = *state;

	if (test->fixture.setup)
		test->fixture.setup();
	return 0;
}

/* Only programs that look at the log are linked with it. */
void log_capture_stop(void) __attribute__((weak));

static int test_teardown(void **state)
{
	const struct unit_test *test = *state;

	if (test->fixture.teardown)
		test->fixture.teardown();
	if (log_capture_stop)
		log_capture_stop();
	return 0;
}

__attribute__((weak)) void tests_setup(void)
{
}

__attribute__((weak)) void tests_teardown(void)
{
}

__attribute__((weak)) void tests_begin(void)
{
}

__attribute__((weak)) void tests_end(void)
{
}

int main(void)
{
	struct CMUnitTest group[TESTS_MAX];
	int failed;

	for (size_t i = 0; i < num_tests; i++)
		group[i] = (struct CMUnitTest){tests[i].name, test_run, test_setup, test_teardown,
					       &tests[i]};
	tests_begin();
	failed = _cmocka_run_group_tests("tests", group, num_tests, NULL, NULL);
	tests_end();
	return failed;
}
