/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh enable` and `fi_mesh disable`. */
#ifndef MESH_FI_UTILS_ENABLE_COMMAND_H
#define MESH_FI_UTILS_ENABLE_COMMAND_H

/** fi_mesh enable [--system | --user] [--rccl] [--strict] [--ifname NAME] */
int command_enable(int argc, char **argv);

/** fi_mesh disable [--system | --user] [--rccl] */
int command_disable(int argc, char **argv);

#endif
