/* SPDX-License-Identifier: Apache-2.0 */
/* test_memlock.c - the hint about a limit of locked memory: in a child process, for real. */
#include <sys/resource.h>

#include "system/this_process.h"

#include "child.h"

static int names_the_limit(void)
{
	char text[MESH_MEMLOCK_HINT_MAX];
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return 1;
	limit.rlim_cur = 64 << 10;
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return 1;
	return !strstr(mesh_memlock_hint(text), "limit of 64 KiB of locked memory (ulimit -l)") ||
	       !strstr(text, "podman");
}

TEST(limited)
{
	assert_int_equal(child_run(names_the_limit), 0);
}
