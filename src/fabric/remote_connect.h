/* SPDX-License-Identifier: Apache-2.0 */
/* remote_connect.h - what the connector's thread does: it connects with remotes. */
#ifndef MESH_FABRIC_REMOTE_CONNECT_H
#define MESH_FABRIC_REMOTE_CONNECT_H

#include "fabric/remote.h"

/** Connects with each remote that wants it: a turn of the connector. No lock held. */
void mesh_remotes_connect(struct mesh_domain *domain);

#endif
