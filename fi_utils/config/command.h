/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh config`. */
#ifndef MESH_FI_UTILS_CONFIG_COMMAND_H
#define MESH_FI_UTILS_CONFIG_COMMAND_H

/** fi_mesh config [--json | --markdown] */
int command_config(int argc, char **argv);

#endif
