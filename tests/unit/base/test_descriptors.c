/* SPDX-License-Identifier: Apache-2.0 */
/* test_descriptors.c - the lack of file descriptors is noticed, and its end as well. */
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "base/descriptors.h"

#include "unit.h"

#define LIMIT 64

TEST(exhausted)
{
	struct rlimit before, low;
	int fds[LIMIT], n = 0;

	assert_false(mesh_descriptors_exhausted());
	assert_string_equal(mesh_descriptors_hint(), "");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = LIMIT;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (n < LIMIT && (fds[n] = eventfd(0, 0)) >= 0)
		n++;
	errno = EDOM;
	assert_true(mesh_descriptors_exhausted());
	assert_int_equal(errno, EDOM); /* the caller is explaining another error */
	assert_string_not_equal(mesh_descriptors_hint(), "");
	while (n--)
		close(fds[n]);
	/* It gave back what it tried with. */
	assert_false(mesh_descriptors_exhausted());
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}
