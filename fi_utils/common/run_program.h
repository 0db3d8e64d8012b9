/* SPDX-License-Identifier: Apache-2.0 */
/* run_program.h - runs another program and reads what it prints. */
#ifndef MESH_FI_UTILS_COMMON_RUN_PROGRAM_H
#define MESH_FI_UTILS_COMMON_RUN_PROGRAM_H

#include "common/child.h"

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
