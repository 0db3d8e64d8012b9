/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_judge.h - what becomes of the dials that a connection makes together: one rule. All with
 * process->lock held.
 */
#ifndef MESH_SETUP_CONNECT_JUDGE_H
#define MESH_SETUP_CONNECT_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "setup/connecting.h"

/*
 * How long a dial is waited for, from the start of the try and from the moment when another one is
 * up. The second time is for one of which little is to be expected; it also paces the tries.
 */
#define MESH_TRY_DOUBT_MS 500

enum mesh_verdict {
	MESH_VERDICT_WAIT,    /* one may still come up */
	MESH_VERDICT_READY,   /* one is up, and those that may follow had time to */
	MESH_VERDICT_REFUSED, /* each one refuses, and more time will not change it */
	MESH_VERDICT_NEXT,    /* none of this try will be up soon: the next candidates */
};

/** Looks at the dials of the current try, of which there is one, and judges it. */
MESH_HOLDS(process)
enum mesh_verdict mesh_connect_judge(struct mesh_connect *connect, uint64_t now_ms);

/** True if a dial of the current try is up. */
MESH_HOLDS(process)
bool mesh_connect_is_up(const struct mesh_connect *connect);

/**
 * Since when each attempt of any of the try's dials was refused because no process listens
 * there, in milliseconds of mesh_clock_ms(); 0 if one was not.
 */
MESH_HOLDS(process)
uint64_t mesh_connect_refused_since(const struct mesh_connect *connect);

/**
 * True if the peer's kernel sends the answers by another NIC, or ours cannot be opened: to try this
 * pair again is no use.
 */
MESH_HOLDS(process)
bool mesh_connect_is_dead_end(const struct mesh_dial *dial);

/**
 * True if the domain of candidate @k is opened for longer than connections wait. It is not tried
 * before it is open.
 */
MESH_HOLDS(process)
bool mesh_connect_candidate_is_slow(const struct mesh_connect *connect, int k);

#endif
