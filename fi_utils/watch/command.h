/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh watch`. */
#ifndef MESH_FI_UTILS_WATCH_COMMAND_H
#define MESH_FI_UTILS_WATCH_COMMAND_H

/** fi_mesh watch [OPTION...] */
int command_watch(int argc, char **argv);

#endif
