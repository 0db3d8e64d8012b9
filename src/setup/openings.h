/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openings.h - opens the NICs' domains, each in a thread of its own, without process->lock.
 *
 * A domain takes milliseconds on tcp and up to seconds on ofi_rxm, where it costs 70 to 134 MB. A
 * few of tcp are opened at init; others when a connection first needs one: one of ours, or one that
 * arrives at the NIC's control listener, where its HELLO waits until the domain is open. A handle
 * needs none, nor does a stranger. Neither listen nor connect waits: connect is "not ready"
 * meanwhile.
 */
#ifndef MESH_SETUP_OPENINGS_H
#define MESH_SETUP_OPENINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/process.h"

/** Makes each NIC a possible end of connections. No connection exists yet. process->lock held. */
MESH_HOLDS(process)
void mesh_openings_start(struct mesh_process *process);

/**
 * Starts to open the domain of one more NIC, while others may be in use, and listens on its
 * address. Connections use it when it is open. process->lock held.
 *
 * @dev: below num_devs; its domain is not open and not being opened
 *
 * Returns 0; -EADDRINUSE if another process has the control port on that address; another negative
 * errno of the kernel.
 */
MESH_HOLDS(process)
int mesh_opening_join(struct mesh_process *process, int dev);

/**
 * Starts to open a domain, if that was not tried yet, or if it has failed: memory or descriptors
 * may be free now. process->lock held.
 *
 * @index: of one of a NIC's domains (control/process.h)
 * @again: also if it has failed less than a second ago: the caller has not asked for it before
 *
 * Returns true while it is being opened; afterwards it is open, or has failed
 * (logged, unless it had failed for the same reason).
 */
MESH_HOLDS(process)
bool mesh_opening_need(struct mesh_process *process, int index, bool again);

/**
 * At init: starts to open the NICs that have a carrier, if they are few and that is cheap, so that
 * the first connections do not wait for it. Most processes connect soon after; one that only lists
 * devices loses little. process->lock held.
 */
MESH_HOLDS(process)
void mesh_openings_early(struct mesh_process *process);

#endif
