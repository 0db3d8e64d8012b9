/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relayed.h - `fi_mesh serve` as one side of a measurement over relays. It joins the mesh as a
 * guest for that, which a process does once: a child takes the connection over, `fi_mesh
 * serve-relayed`.
 */
#ifndef MESH_FI_UTILS_SERVE_RELAYED_H
#define MESH_FI_UTILS_SERVE_RELAYED_H

#include <stdbool.h>
#include <stdint.h>

#include "peer/wire.h"
#include "serve/state.h"

/** True while such a child runs. */
bool serve_relayed_runs(struct serve *serve);

/**
 * Hands the connection that has asked RELAYED_BEGIN over to a child, which answers.
 *
 * Returns 0: the caller closes its end. A negative errno: nothing has changed.
 */
int serve_relayed_begin(struct serve *serve, const struct serve_client *client,
			const struct mesh_check_frame *asked);

#endif
