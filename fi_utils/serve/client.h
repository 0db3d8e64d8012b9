/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - one connection of a checking node. */
#ifndef MESH_FI_UTILS_SERVE_CLIENT_H
#define MESH_FI_UTILS_SERVE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"
#include "serve/state.h"

/** Takes an accepted socket into a free slot; closes it if there is no memory. */
void serve_client_open(struct serve *serve, int fd, const struct mesh_addr *local,
		       const struct mesh_addr *remote);

void serve_client_close(struct serve *serve, struct serve_client *client);

/** Reads, answers and measures as far as possible without waiting. */
void serve_client_advance(struct serve *serve, struct serve_client *client);

/** True while a measurement of the client must be polled all the time. */
bool serve_client_is_busy(const struct serve_client *client);

/** Closes the client if it has exceeded a time limit. */
void serve_client_tick(struct serve *serve, struct serve_client *client, uint64_t now_ms);

#endif
