/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh check`. */
#ifndef MESH_FI_UTILS_CHECK_COMMAND_H
#define MESH_FI_UTILS_CHECK_COMMAND_H

/** fi_mesh check [--quiet] [--json] [--only ID[,ID...]] [--nccl FILE], or --peer ADDR... */
int command_check(int argc, char **argv);

#endif
