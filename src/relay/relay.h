/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - this process as a relay: for whom it relays, and what all circuits share. */
#ifndef MESH_RELAY_RELAY_H
#define MESH_RELAY_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "control/process.h"
#include "relay/thread.h"

struct mesh_circuit;
struct mesh_frame_hello;
struct mesh_neighbours;

struct mesh_relay {
	struct mesh_process *process;
	uint64_t job; /* mesh_job_key(); 0 where unknown */
	/* Set-up's; NULL: there are no answers, and only the last relay of a route can be found. */
	struct mesh_neighbours *neighbours MESH_GUARDED_BY(process);
	LIST_HEAD(, mesh_circuit) circuits MESH_GUARDED_BY(process);
	_Atomic(uint64_t) memory; /* bytes that circuits have */
	_Atomic(bool) news;	  /* a circuit is broken, or may be at its end */
	struct mesh_relay_thread thread;
};

/**
 * Makes process->relay. No thread runs until the first circuit opens. process->lock held.
 *
 * Returns 0 or -ENOMEM.
 */
MESH_HOLDS(process)
int mesh_relay_open(struct mesh_process *process, uint64_t job);

/** Stops the thread. The process->lock must not be held. Does nothing without a relay. */
void mesh_relay_stop(struct mesh_process *process);

/** Frees process->relay, which has no circuit. process->lock held. */
MESH_HOLDS(process)
void mesh_relay_close(struct mesh_process *process);

/** Has circuits that are broken, or at their end, looked at. Any lock may be held. */
void mesh_relay_wake(struct mesh_relay *relay);

/** True while circuits lead through this process. process->lock held. */
MESH_HOLDS(process)
bool mesh_relay_is_used(const struct mesh_process *process);

/** True if a HELLO asks for this process as a relay, and it relays. process->lock held. */
MESH_HOLDS(process)
bool mesh_relay_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello);

/**
 * True if the processes of @job relay for each other here: NCCL_MESH_RELAY. process->lock held.
 */
MESH_HOLDS(process)
bool mesh_relay_serves(const struct mesh_process *process, uint64_t job);

#endif
