/* SPDX-License-Identifier: Apache-2.0 */
/* exit_status.h - exit statuses of fi_mesh. */
#ifndef MESH_FI_UTILS_COMMON_EXIT_STATUS_H
#define MESH_FI_UTILS_COMMON_EXIT_STATUS_H

/* Exit statuses of fi_mesh. */
enum command_status {
	COMMAND_FINE = 0,
	COMMAND_PROBLEM = 1, /* a problem was found */
	COMMAND_MISUSE = 2,  /* unknown option or argument */
};

#endif
