/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - `fi_mesh plan`. */
#ifndef MESH_FI_UTILS_PLAN_COMMAND_H
#define MESH_FI_UTILS_PLAN_COMMAND_H

/** fi_mesh plan [OPTION...] SHAPE NODE... */
int command_plan(int argc, char **argv);

#endif
