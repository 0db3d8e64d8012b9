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

	va_start(args, format);
	vsnprintf(logged.text, sizeof(logged.text), format, args);
	va_end(args);
	logged.level = level;
	logged.flags = flags;
	if (level == NCCL_LEVEL_WARN)
		logged.warnings++;
}

static struct version versions[VERSIONS];
static const struct version *v; /* of the test that runs */

void tests_begin(void)
{
	versions_get(versions);
}

/* Before init. */
static void bare_setup(void)
{
	v = NULL;
	fake_net_reset();
	mesh_log_sink_set(NULL); /* init must set it */
	context = NULL;
	memset(&logged, 0, sizeof(logged));
}

static void version_say(void)
{
	if (v)
		print_error("with the table of v%d\n", v->number);
}

static void each_version_run(void (*run)(void))
{
	for (int i = 0; i < VERSIONS; i++) {
		bare_setup();
		v = &versions[i];
		assert_int_equal(v->init(logger, &context), NCCL_RESULT_SUCCESS);
		fake.calls = 0;
		memset(&logged, 0, sizeof(logged));
		run();
		fake.error = 0;
		if (v->finalize)
			assert_int_equal(v->finalize(context), NCCL_RESULT_SUCCESS);
	}
	v = NULL;
}

static void assert_refused_in_words(enum nccl_result result)
{
	assert_int_equal(result, NCCL_RESULT_INVALID_ARGUMENT);
	assert_int_equal(logged.warnings, 1);
	assert_int_equal(fake.calls, 0);
}

/* A TEST is without a version, and before init. */
TESTS_USE(bare_setup, version_say);

/** A test that runs with the table of each version, @v. */
#define TEST_EACH(name)                                                                            \
	static void each_##name(void);                                                             \
	TEST(name)                                                                                 \
	{                                                                                          \
		each_version_run(each_##name);                                                     \
	}                                                                                          \
	static void each_##name(void)

#endif
