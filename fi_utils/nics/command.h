/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh nics`. */
#ifndef MESH_FI_UTILS_NICS_COMMAND_H
#define MESH_FI_UTILS_NICS_COMMAND_H

/** fi_mesh nics [--json] [--sysfs DIR] */
int command_nics(int argc, char **argv);

#endif
