/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_fixture.h - runs tests of the plugin's top layer through the table of every version, over
 * a fake transport. For test programs only.
 */
#ifndef TEST_PLUGIN_FIXTURE_H
#define TEST_PLUGIN_FIXTURE_H

#include "base/log.h"

#include "fake_net.h"
#include "nccl_versions.h"
#include "unit.h"

/* What NCCL leaves in outputs: a request that was completed long ago. */
#define STALE ((void *)0x5a5a5a5a)
#define OPTIONAL_COMPLETION ((void *)NCCL_REQUEST_OPTIONAL_COMPLETION)

/* Of the test that runs; NULL before v11. */
static void *context;

/* The last line that NCCL got, and how many were warnings. */
static struct {
	enum nccl_level level;
	unsigned long flags;
	char text[1024];
	int warnings;
} logged;

static void __attribute__((format(printf, 5, 6)))
logger(enum nccl_level level, unsigned long flags, const char *file, int line, const char *format,
       ...)
{
	va_list args;

	(void)file;
	(void)line;
	va_start(args, format);
	vsnprintf(logged.text, sizeof(logged.text), format, args);
	va_end(args);
	logged.level = level;
	logged.flags = flags;
	if (level == NCCL_LEVEL_WARN)
		logged.warnings++;
}

static int plugin_setup(void **state)
{
	const struct version *v = *state;

	fake_net_reset();
	mesh_log_sink_set(NULL); /* init must set it */
	context = NULL;
	if (v && v->init(logger, &context))
		return -1;
	fake.calls = 0;
	memset(&logged, 0, sizeof(logged));
	return 0;
}

static int plugin_teardown(void **state)
{
	const struct version *v = *state;

	fake.error = 0;
	return v && v->finalize ? (int)v->finalize(context) : 0;
}

static void assert_refused_in_words(enum nccl_result result)
{
	assert_int_equal(result, NCCL_RESULT_INVALID_ARGUMENT);
	assert_int_equal(logged.warnings, 1);
	assert_int_equal(fake.calls, 0);
}

/* Runs each of @tests with every version as its state; returns the number of failures. */
static int plugin_run(const struct CMUnitTest *tests, size_t num_tests)
{
	struct CMUnitTest versioned[40];
	struct version versions[VERSIONS];
	char group[32];
	int failed = 0;
	size_t i, v;

	assert_true(num_tests <= sizeof(versioned) / sizeof(versioned[0]));
	versions_get(versions);
	memcpy(versioned, tests, num_tests * sizeof(*tests));
	for (v = 0; v < VERSIONS; v++) {
		for (i = 0; i < num_tests; i++) {
			versioned[i].setup_func = plugin_setup;
			versioned[i].teardown_func = plugin_teardown;
			versioned[i].initial_state = &versions[v];
		}
		snprintf(group, sizeof(group), "table v%d", versions[v].number);
		failed += _cmocka_run_group_tests(group, versioned, num_tests, NULL, NULL);
	}
	return failed;
}

#endif
