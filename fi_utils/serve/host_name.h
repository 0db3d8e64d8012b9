/* SPDX-License-Identifier: Apache-2.0 */
/* host_name.h - which names of this node a browser may ask the page for. */
#ifndef MESH_FI_UTILS_SERVE_HOST_NAME_H
#define MESH_FI_UTILS_SERVE_HOST_NAME_H

#include <stdbool.h>

/**
 * True if a request for @host comes from a page of this node. A page elsewhere may let a name of
 * its own lead to our address, and read with the browser of somebody who reaches us (DNS
 * rebinding). It owns all names of its domain, NODE.ITS.DOMAIN as well. So @host, without its port,
 * must be an address, localhost, @node, the first label of @node, that with ".local" (which no
 * name server delegates), or what full() returns.
 *
 * @host: the value of the request's header; NULL: it has none
 * @full: this node's name with its domain, as the resolver has it, or ""; called only if nothing
 * else decides
 */
bool serve_host_is_ours(const char *host, const char *node, const char *(*full)(void));

/**
 * This host's name with its domain, as `hostname --fqdn` prints it; "" if it has none. The first
 * call asks the resolver and may wait for it. Thread-safe.
 */
const char *serve_host_full_name(void);

#endif
