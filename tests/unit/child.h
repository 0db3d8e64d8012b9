/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - parts of tests that run in a process of their own. */
#ifndef MESH_TESTS_CHILD_H
#define MESH_TESTS_CHILD_H

#include <sys/wait.h>

#include "unit.h"

/* Runs it in a child, because what it changes does not come back. Returns the exit status. */
static inline int child_run(int (*run)(void))
{
	int status = -1;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(run());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#endif
