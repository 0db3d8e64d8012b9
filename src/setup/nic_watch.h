/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic_watch.h - reads the NICs again when a link or an address has changed, so that NICs which
 * could not be used before join, and links whose cable is out are lost or watched. A NIC that joins
 * gets a number behind NCCL's devices, which stay as they are, a domain and a control listener, and
 * carries paths of the comms that are made from then on.
 *
 * A NIC that a user has marked with `fi_mesh drain` carries nothing that has another path.
 *
 * The engine sleeps on a netlink socket, and on the folder of the marks. A thread does the reading,
 * which takes milliseconds; while changes continue, it reads every 100 ms. Nothing runs while
 * nothing changes.
 */
#ifndef MESH_SETUP_NIC_WATCH_H
#define MESH_SETUP_NIC_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/engine.h"
#include "nic/nic.h"

struct mesh_process;

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
