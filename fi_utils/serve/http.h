/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - `fi_mesh serve --http`: a read-only page over HTTP. The protocol is libmicrohttpd's,
 * which is loaded only here: fi_mesh needs it for nothing else.
 */
#ifndef MESH_FI_UTILS_SERVE_HTTP_H
#define MESH_FI_UTILS_SERVE_HTTP_H

#include <stdint.h>

#include "peer/self.h"

struct serve_http;

/**
 * Listens on @addr, with threads of its own.
 *
 * @self: an address of its mesh NICs is refused, because the page belongs to the management network
 *
 * Returns NULL if it cannot (reported).
 */
struct serve_http *serve_http_open(const struct mesh_addr *addr, uint16_t port,
				   const struct peer_self *self);

/** Ends all requests. NULL is allowed. */
void serve_http_close(struct serve_http *http);

#endif
