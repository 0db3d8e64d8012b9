/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - the checks of fixtures that unit tests and fuzz targets share. What a check that fails
 * does is for each of the two to say: unit/check.c fails the test, fuzz/check.c ends the program.
 */
#ifndef MESH_TESTS_CHECK_H
#define MESH_TESTS_CHECK_H

#include <stdbool.h>
#include <stdnoreturn.h>

noreturn void check_failed(const char *what, const char *file, int line);

/** Fails unless @expression is true, or not NULL. */
#define check(expression) ((expression) ? (void)0 : check_failed(#expression, __FILE__, __LINE__))

/** Fails unless two integers are equal, and prints both. */
#define check_equal(a, b)                                                                          \
	check_are_equal((long long)(a), (long long)(b), #a " == " #b, __FILE__, __LINE__)

void check_are_equal(long long a, long long b, const char *what, const char *file, int line);

#endif
