/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - a check of a fixture fails the unit test that runs. */
#include "check.h"
#include "unit.h"

void check_failed(const char *what, const char *file, int line)
{
	print_error("%s is false\n", what);
	_fail(file, line);
	abort(); /* cmocka does not return */
}

void check_are_equal(long long a, long long b, const char *what, const char *file, int line)
{
	if (a == b)
		return;
	print_error("%lld != %lld\n", a, b);
	check_failed(what, file, line);
}
