/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup.h - what the plugin keeps for NCCL's calls: listeners and connection attempts.
 *
 * Lock: process->lock covers everything here.
 */
#ifndef MESH_SETUP_SETUP_H
#define MESH_SETUP_SETUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "control/process.h"
#include "system/stats_file.h"
#include "system/this_process.h"

struct mesh_comm;
struct mesh_connect;
struct mesh_domain;
struct mesh_handle;
struct mesh_listener;
struct mesh_neighbours;
struct mesh_nic_watch;
struct mesh_path_choice;
struct mesh_seeker;

struct mesh_setup {
	struct mesh_process process;
	pid_t pid;    /* the process that made it; constant */
	uint64_t job; /* that it belongs to, or a guest asks relays for; 0: none; constant */
	struct mesh_job_rank rank;     /* size 0: it has none; constant */
	int users;		       /* open mesh_nets; under net.c's own mutex */
	struct mesh_timer start_timer; /* of what the engine starts: start.c */

	LIST_HEAD(, mesh_listener) listeners MESH_GUARDED_BY(process);
	LIST_HEAD(, mesh_connect) connects MESH_GUARDED_BY(process);
	LIST_HEAD(, mesh_seeker) seekers MESH_GUARDED_BY(process);
	uint32_t next_listen_id MESH_GUARDED_BY(process);
	uint64_t next_connect_id MESH_GUARDED_BY(process);
	uint64_t stalls_ms MESH_GUARDED_BY(process); /* when it last looked for lost messages */
	uint64_t seen_polls[MESH_DOMAINS_MAX];	     /* at the engine's last look */
	/* When it last saw that another thread polls, or was woken; 0: it is not awake. */
	uint64_t busy_ms MESH_GUARDED_BY(process);
	struct mesh_nic_watch *nic_watch;			/* owned; NULL: no NIC can join */
	struct mesh_watch drain_watch MESH_GUARDED_BY(process); /* of the marks: nic_watch.c */
	struct mesh_drain_marks drain_marks MESH_GUARDED_BY(process);
	/* Owned; NULL: NCCL_MESH_NEIGHBOURS=off, or the engine does not run. */
	struct mesh_neighbours *neighbours MESH_GUARDED_BY(process);
	uint64_t searched_ms MESH_GUARDED_BY(process); /* when one last searched for routes */
	bool ring_judged MESH_GUARDED_BY(process);     /* rank_ring.c: the order is known */
};

/** One mesh_net_open(): NCCL's ctx. What belongs to it carries a pointer to it. */
struct mesh_net {
	struct mesh_setup *setup;
	struct mesh_process *process; /* setup's */
};

static inline struct mesh_setup *mesh_setup_of(struct mesh_process *process)
{
	return mesh_container_of(process, struct mesh_setup, process);
}

/* ---- start.c -------------------------------------------------------------------------------- */

/** What is done when a frame arrives or a peer is lost. */
extern const struct mesh_peer_events mesh_setup_events;

/**
 * Starts the engine and listens on the control port, once. Domains are opened when they are needed
 * (openings.c). process->lock held.
 *
 * Returns 0 or a negative errno (logged).
 */
MESH_HOLDS(process)
int mesh_setup_start(struct mesh_process *process);

/** Ends the engine and closes the domains, once nothing uses them. No lock held. */
void mesh_setup_stop(struct mesh_process *process);

/* ---- seeker.c: further and better paths for comms that exist --------------------------------- */

/**
 * The comm, which sends to the listener of @handle, may get paths over these links and routes, if
 * they are of a better tier than what it has, or of the same. Without a path (DRAINED) it tries
 * all, also what is far, a reserve, or contradicted by neighbours.
 */
MESH_HOLDS(process)
void mesh_late_links_want(struct mesh_comm *comm, const struct mesh_handle *handle,
			  const struct mesh_path_choice *choice);

/** Tries links, and looks for routes, if NICs or comms have changed since the last call. */
MESH_HOLDS(process)
void mesh_seekers_tick(struct mesh_process *process);

/** Our NIC of @domain has a carrier: paths that were over it are looked for soon. */
MESH_HOLDS(process)
void mesh_seekers_hasten(struct mesh_process *process, const struct mesh_domain *domain);

/** Looks no longer, at shutdown. */
MESH_HOLDS(process)
void mesh_seekers_close(struct mesh_process *process);

#endif
