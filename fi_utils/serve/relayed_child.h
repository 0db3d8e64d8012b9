/* SPDX-License-Identifier: Apache-2.0 */
/* relayed_child.h - `fi_mesh serve-relayed`, the child of serve/relayed.h. */
#ifndef MESH_FI_UTILS_SERVE_RELAYED_CHILD_H
#define MESH_FI_UTILS_SERVE_RELAYED_CHILD_H

/**
 * Measures with one checking node.
 *
 * @argv: behind the command the descriptor of its connection, the number of its question, and the
 * key of its job
 *
 * Returns an exit status.
 */
int command_serve_relayed(int argc, char **argv);

#endif
