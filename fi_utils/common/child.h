/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - runs something, or another program, in a child process and reads what it writes. */
#ifndef MESH_FI_UTILS_COMMON_CHILD_H
#define MESH_FI_UTILS_COMMON_CHILD_H

#include <stddef.h>

/* A child that writes more is killed. */
#define CHILD_OUTPUT_MAX (16u << 20)
/* Of standard error only the first line is kept; the rest is read and dropped. */
#define CHILD_COMPLAINT_MAX 160

struct child_result {
	char *output; /* its standard output and a zero byte; to be freed; NULL on failure */
	size_t size;  /* of the output */
	int status;   /* of waitpid(2) */
	char complaint[CHILD_COMPLAINT_MAX]; /* set on failure, too */
};

/**
 * Calls @body in a child process, without standard input, and waits until it ends, at most
 * @timeout_ms. The child also ends if this process ends, for example by Ctrl-C.
 *
 * @body: may end the process, or return, which ends it with status 0
 *
 * Returns 0 however it ended; -ETIMEDOUT and -EOVERFLOW: it was killed; another negative errno.
 */
int child_run(void (*body)(void *arg), void *arg, int timeout_ms, struct child_result *result);

#define RUN_PROGRAM_COMPLAINT_MAX CHILD_COMPLAINT_MAX

/**
 * Runs @argv (argv[0] is looked for in PATH, /usr/sbin and /sbin) without standard input, and waits
 * for it, at most @timeout_ms.
 *
 * @output: receives what it printed, at most CHILD_OUTPUT_MAX bytes, to be freed; set on success
 * only
 * @complaint: RUN_PROGRAM_COMPLAINT_MAX bytes: the first line of its standard error, or else why it
 * failed
 *
 * Returns 0 if it ended with status 0; -ENOENT if there is no such program; -ETIMEDOUT (it was
 * killed); -EOVERFLOW; -ECHILD if it ended otherwise; another negative errno.
 */
int run_program(char *const argv[], int timeout_ms, char **output, char *complaint);

#endif
