/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_lanes.h - several TCP connections for a long line.
 *
 * One TCP connection moves its buffer in each round trip, and libfabric has one for each pair of
 * endpoints. So two NICs that a long line joins have several endpoints each: lane N of the one NIC
 * is connected with lane N of the other. Each lane is a path of its own, with a peer, a link and a
 * pace of its own. Further lanes are added once the first ones are up, because only then the round
 * trip is known. All pairs of NICs of a connection have as many: a cable counts once, however many
 * lanes it has.
 */
#ifndef MESH_SETUP_CONNECT_LANES_H
#define MESH_SETUP_CONNECT_LANES_H

#include <stdint.h>

#include "base/lock.h"
#include "setup/connect_try.h"
#include "setup/connecting.h"

/**
 * Judges the current try as mesh_connect_judge() does. Once that is READY, adds the lanes of the
 * pairs that need some, and is READY again when they are up, or had time for that. A lane that does
 * not come up is left out. process->lock held.
 */
MESH_HOLDS(process)
enum mesh_verdict mesh_connect_lanes_judge(struct mesh_connect *connect, uint64_t now_ms);

#endif
