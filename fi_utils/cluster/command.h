/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh up`, `fi_mesh down`, `fi_mesh check --all`: other nodes, over ssh. */
#ifndef MESH_FI_UTILS_CLUSTER_COMMAND_H
#define MESH_FI_UTILS_CLUSTER_COMMAND_H

#include <stdbool.h>

/**
 * Replaces this process by the program in Python that these commands are, with the same arguments.
 * @argv[0] is not used.
 *
 * Returns only if that program cannot be started (reported): COMMAND_PROBLEM.
 */
int command_up(int argc, char **argv);
int command_down(int argc, char **argv);
int command_check_all(int argc, char **argv);

/** Whether the arguments of `fi_mesh check` have --all. */
bool check_all_is_wanted(int argc, char **argv);

#endif
