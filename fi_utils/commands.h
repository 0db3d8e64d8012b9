/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the subcommands of fi_mesh, each in its folder's command.c. argv[0] is the name of
 * the subcommand; each returns an exit status (enum command_status).
 */
#ifndef MESH_FI_UTILS_COMMANDS_H
#define MESH_FI_UTILS_COMMANDS_H

#include <stdbool.h>

int command_check(int argc, char **argv);
int command_config(int argc, char **argv);
int command_disable(int argc, char **argv);
int command_down(int argc, char **argv);
int command_drain(int argc, char **argv);
int command_enable(int argc, char **argv);
int command_neighbours(int argc, char **argv);
int command_nics(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_topo(int argc, char **argv);
int command_undrain(int argc, char **argv);
int command_up(int argc, char **argv);
int command_watch(int argc, char **argv);

/** For `fi_mesh serve` only: argv has its descriptor of the connection, a number and the job. */
int command_serve_measure(int argc, char **argv);

/* ---- kinds of `fi_mesh check`, and whether the arguments ask for them --------------------- */

bool check_all_is_wanted(int argc, char **argv);
int command_check_all(int argc, char **argv);

bool check_peer_is_wanted(int argc, char **argv);
int command_check_peer(int argc, char **argv);

#endif
