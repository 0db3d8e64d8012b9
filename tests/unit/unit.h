/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - the frame of a unit test program. Each test registers itself, and the main function in
 * unit.c runs them with cmocka in the order of the file:
 *
 *	void tests_setup(void)		runs before each TEST, and tests_teardown() after it
 *	{
 *		...
 *	}
 *
 *	TEST(name)
 *	{
 *		assert_true(...);
 *	}
 *
 * A check that fails in a setup or teardown fails its test. A program that defines main() itself
 * gives cmocka tests of cmocka's own form.
 */
#ifndef MESH_TESTS_UNIT_H
#define MESH_TESTS_UNIT_H

/* What most tests use; cmocka.h needs some of them before it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

typedef void (*unit_fixture_fn)(void);

/** Run before and after each TEST, where a program defines them. */
void tests_setup(void);
void tests_teardown(void);

/* Of the file that includes this. */
struct unit_fixture {
	unit_fixture_fn setup, teardown;
	bool named; /* by TESTS_USE */
};
static const struct unit_fixture unit_fixture __attribute__((unused));

/** In place of tests_setup() and tests_teardown(); NULL is none. */
#define TESTS_USE(setup, teardown)                                                                 \
	static const struct unit_fixture unit_fixture = {setup, teardown, true}

/** A test with the setup and teardown of all tests. */
#define TEST(name)                                                                                 \
	UNIT_TEST(test_##name, #name, unit_fixture.named ? unit_fixture.setup : tests_setup,       \
		  unit_fixture.named ? unit_fixture.teardown : tests_teardown)

/** A test without setup and teardown. */
#define TEST_BARE(name) UNIT_TEST(test_##name, #name, NULL, NULL)

/** A test with a setup and teardown of its own. */
#define TEST_WITH(name, setup, teardown) UNIT_TEST(test_##name, #name, setup, teardown)

/** The block behind it runs for each index @i of @array. */
#define FOR_EACH(i, array) for (size_t i = 0; i < sizeof(array) / sizeof((array)[0]); i++)

/* The line, because the order of constructors in a file is the compiler's choice. */
#define UNIT_TEST(function, name, setup, teardown)                                                 \
	static void function(void);                                                                \
	static void __attribute__((constructor)) function##_add(void)                              \
	{                                                                                          \
		unit_test_add(name, __LINE__, function, setup, teardown);                          \
	}                                                                                          \
	static void function(void)

/** For UNIT_TEST. */
void unit_test_add(const char *name, int line, void (*run)(void), unit_fixture_fn setup,
		   unit_fixture_fn teardown);

/**
 * A program may define these: they run before its first test and after its last one. A failed
 * assertion ends the program. exit(77) in tests_begin() skips all tests; the last line that was
 * printed is the reason.
 */
void tests_begin(void);
void tests_end(void);

#endif
