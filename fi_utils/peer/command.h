/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh check --peer`. */
#ifndef MESH_FI_UTILS_PEER_COMMAND_H
#define MESH_FI_UTILS_PEER_COMMAND_H

#include <stdbool.h>

/** True if the arguments of `fi_mesh check` ask for peers. */
bool peer_check_is_wanted(int argc, char **argv);

/** fi_mesh check --peer ADDR... [--port PORT] [--quiet] [--json] */
int peer_check_command(int argc, char **argv);

#endif
