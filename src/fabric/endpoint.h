/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h - opens the endpoint of a domain, and reports what of a domain cannot be opened. */
#ifndef MESH_FABRIC_ENDPOINT_H
#define MESH_FABRIC_ENDPOINT_H

#include "base/config.h"
#include "fabric/domain.h"

/**
 * Opens the endpoint of a domain whose other objects are open, and reads its name and port.
 *
 * @ports: those that it may listen on; without effect on verbs
 *
 * Returns 0, or a negative errno after a WARN line with the cause and the remedy.
 */
int mesh_endpoint_open(struct mesh_domain *domain, const struct mesh_port_range *ports);

/** Warns that a step of opening has failed with @error, a negative errno, and returns that. */
int mesh_domain_fail(const struct mesh_domain *domain, const char *what, int error);

#endif
