/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - a check of a fixture ends the fuzz target, which keeps its input. */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

void check_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s is false\n", file, line, what);
	abort();
}

void check_are_equal(long long a, long long b, const char *what, const char *file, int line)
{
	if (a == b)
		return;
	fprintf(stderr, "%lld != %lld\n", a, b);
	check_failed(what, file, line);
}
