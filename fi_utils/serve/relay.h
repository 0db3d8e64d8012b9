/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - `fi_mesh serve --relay`: relays for jobs on a node that runs no rank of theirs. */
#ifndef MESH_FI_UTILS_SERVE_RELAY_H
#define MESH_FI_UTILS_SERVE_RELAY_H

#include "setup/net.h"

/**
 * Begins to relay, in threads of the plugin's own, and says for whom.
 *
 * Returns 0; then mesh_net_close() ends it, within 2 s. A negative errno (reported).
 */
int serve_relay_open(struct mesh_net **relay);

#endif
