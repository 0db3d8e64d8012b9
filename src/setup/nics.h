/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nics.h - opens the NICs' domains, each in a thread of its own, without process->lock; and reads
 * the NICs again when a link or an address has changed.
 *
 */
#ifndef MESH_SETUP_NICS_H
#define MESH_SETUP_NICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/engine.h"
#include "control/process.h"
#include "nic/nic.h"

/* ---- openings.c ------------------------------------------------------------------------------ */

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
 * Starts to open a domain, if that was not tried yet, or if it has failed a second ago: memory or
 * descriptors may be free now. process->lock held.
 *
 * @index: of one of a NIC's domains (control/process.h)
 *
 * Returns true while it is being opened; afterwards it is open, or has failed
 * (logged, unless it had failed for the same reason).
 */
MESH_HOLDS(process)
bool mesh_opening_need(struct mesh_process *process, int index);

/**
 * At init: starts to open the NICs that have a carrier, if they are few and that is cheap, so that
 * the first connections do not wait for it. Most processes connect soon after; one that only lists
 * devices loses little. process->lock held.
 */
MESH_HOLDS(process)
void mesh_openings_early(struct mesh_process *process);

/* ---- nic_watch.c ----------------------------------------------------------------------------- */

enum mesh_nic_watch_state {
	MESH_NIC_WATCH_RESTS,
	MESH_NIC_WATCH_MISSED, /* something may have changed before the engine runs */
	MESH_NIC_WATCH_READS,  /* a thread does */
};

struct mesh_nic_watch {
	struct mesh_watch watch; /* the netlink socket; fd -1: there is none */
	struct mesh_process *process;
	enum mesh_nic_watch_state state MESH_GUARDED_BY(process);
	struct mesh_timer timer;		   /* of the next reading: something has changed */
	uint64_t read_ms MESH_GUARDED_BY(process); /* when the last reading began */
	/* What the last reading found: owned; num_links, as system/node.h lists them. */
	struct mesh_nic *links MESH_GUARDED_BY(process);
	int num_links MESH_GUARDED_BY(process);
	struct mesh_nic_table table MESH_GUARDED_BY(process); /* empty before the first reading */
};

/**
 * Makes setup->nic_watch and opens its socket; without it (logged) no NIC joins. No other thread
 * runs yet.
 *
 * @missed: something may have changed since the NICs were last read
 */
void mesh_nic_watch_open(struct mesh_process *process, bool missed);

/** Watches the NICs, and which of them a user drains. process->lock held. */
MESH_HOLDS(process)
void mesh_nic_watch_start(struct mesh_process *process);

/** Frees setup->nic_watch, and ends draining. The engine and the threads no longer run. */
void mesh_nic_watch_close(struct mesh_process *process);

/** The NICs as they were read last. process->lock held. */
MESH_HOLDS(process)
const struct mesh_nic_table *mesh_nic_watch_table(struct mesh_process *process);

/** Neighbours learn of the NICs as they were read last, and of drained ones. process->lock held. */
MESH_HOLDS(process)
void mesh_nic_watch_publish(struct mesh_process *process);

/** Removes the NICs that have joined, after the domains are closed. process->lock held. */
MESH_HOLDS(process)
void mesh_nics_forget(struct mesh_process *process);

#endif
