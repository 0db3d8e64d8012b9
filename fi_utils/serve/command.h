/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh serve`. */
#ifndef MESH_FI_UTILS_SERVE_COMMAND_H
#define MESH_FI_UTILS_SERVE_COMMAND_H

/** fi_mesh serve [--listen ADDR]... [--port PORT] */
int command_serve(int argc, char **argv);

#endif
