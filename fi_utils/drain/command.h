/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - the subcommands `fi_mesh drain` and `fi_mesh undrain`. */
#ifndef MESH_FI_UTILS_DRAIN_COMMAND_H
#define MESH_FI_UTILS_DRAIN_COMMAND_H

/** Runs the subcommand; argv[0] is its name. Returns an exit status. */
int command_drain(int argc, char **argv);
int command_undrain(int argc, char **argv);

#endif
