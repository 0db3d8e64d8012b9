/* SPDX-License-Identifier: Apache-2.0 */
/* run_program.c - runs another program and reads what it prints. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/run_program.h"

#define NOT_FOUND_STATUS 127

/* In the child. */
static void program_become(void *arg)
{
	static const char *const folders[] = {"/usr/sbin", "/sbin"};
	char *const *argv = arg;
	char path[256];
	size_t i;

	execvp(argv[0], argv);
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], argv[0]);
		execv(path, argv);
	}
	_exit(NOT_FOUND_STATUS);
}

static int status_judge(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND_STATUS)
		return -ENOENT;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

static const char *error_words(int error)
{
	if (error == -ENOENT)
		return "not installed";
	return error == -ECHILD ? "it failed" : strerror(-error);
}

int run_program(char *const argv[], int timeout_ms, char **output, char *complaint)
{
	struct child_result result;
	int ret = child_run(program_become, (void *)argv, timeout_ms, &result);

	if (!ret)
		ret = status_judge(result.status);
	snprintf(complaint, RUN_PROGRAM_COMPLAINT_MAX, "%s",
		 ret && !*result.complaint ? error_words(ret) : result.complaint);
	if (ret)
		free(result.output);
	else
		*output = result.output;
	return ret;
}
