/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh neighbours`. */
#ifndef MESH_FI_UTILS_NEIGHBOURS_COMMAND_H
#define MESH_FI_UTILS_NEIGHBOURS_COMMAND_H

/** fi_mesh neighbours [--json] */
int command_neighbours(int argc, char **argv);

#endif
