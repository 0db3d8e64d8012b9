/* SPDX-License-Identifier: Apache-2.0 */
/* test_memlock.c - whether a limit of locked memory holds: in child processes, for real. */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "system/this_process.h"

#include "child.h"

static bool is_root(void)
{
	return geteuid() == 0;
}

static void privileges_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	memset(none, 0, sizeof(none));
	if (syscall(SYS_capset, &header, none))
		_exit(2);
}

static bool limit_set(rlim_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return false;
	limit.rlim_cur = bytes;
	return !setrlimit(RLIMIT_MEMLOCK, &limit);
}

static int holds_without_privilege(void)
{
	char text[MESH_MEMLOCK_HINT_MAX];

	if (!limit_set(64 << 10))
		return 1;
	if (is_root())
		privileges_drop(); /* root in a container has none of it either */
	return !strstr(mesh_memlock_hint(text), "only 64 KiB of memory (ulimit -l)") ||
	       !strstr(text, "podman");
}

static int does_not_hold_for_privileged(void)
{
	char text[MESH_MEMLOCK_HINT_MAX];

	return !limit_set(64 << 10) || *mesh_memlock_hint(text);
}

TEST(limited)
{
	assert_int_equal(child_run(holds_without_privilege), 0);
}

TEST(privileged)
{
	if (!is_root())
		skip();
	else
		assert_int_equal(child_run(does_not_hold_for_privileged), 0);
}
