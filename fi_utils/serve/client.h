/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - one connection of a checking node. */
#ifndef MESH_FI_UTILS_SERVE_CLIENT_H
#define MESH_FI_UTILS_SERVE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"
#include "serve/state.h"

/** Takes an accepted socket into a free place; closes it without memory. */
void serve_client_open(struct serve *serve, int fd, const struct mesh_addr *local,
		       const struct mesh_addr *remote);

void serve_client_close(struct serve *serve, struct serve_client *client);

/** Reads, answers, measures: whatever can be done now. */
void serve_client_advance(struct serve *serve, struct serve_client *client);

/** True while the client's measurement must not wait for a file descriptor. */
bool serve_client_is_busy(const struct serve_client *client);

/** Closes the client if its time is over. */
void serve_client_tick(struct serve *serve, struct serve_client *client, uint64_t now_ms);

#endif
