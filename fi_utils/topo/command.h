/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh topo`. */
#ifndef MESH_FI_UTILS_TOPO_COMMAND_H
#define MESH_FI_UTILS_TOPO_COMMAND_H

/** fi_mesh topo [--dot | --json | --svg] [--pair A,B] FILE... */
int command_topo(int argc, char **argv);

#endif
