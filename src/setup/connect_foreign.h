/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_foreign.h - a connection to a listener of another protocol version: it fails, and the
 * listener's accept() learns why.
 */
#ifndef MESH_SETUP_CONNECT_FOREIGN_H
#define MESH_SETUP_CONNECT_FOREIGN_H

#include "base/lock.h"
#include "setup/connecting.h"

/**
 * Dials the listener, and exchanges HELLO with it, in which each end names its version.
 *
 * Returns 0 while this goes on: for some seconds with each candidate that does not answer, and not
 * beyond connect->deadline_ms. Then -EPROTONOSUPPORT.
 */
MESH_HOLDS(process)
int mesh_connect_foreign_advance(struct mesh_connect *connect, uint64_t now_ms);

#endif
