/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - a link to another process: all peers with the same process, domain and address, in both
 * directions. They are lost together, and the last one to leave frees the link.
 *
 * A link is watched while something waits for the process, or while it is silent: the engine reads
 * the kernel's state of all TCP connections with it, a few times a second (liveness.h). Otherwise
 * the kernel's keep-alive asks, and the engine looks twice within the limit of silence whether all
 * was answered.
 */
#ifndef MESH_CONTROL_LINK_H
#define MESH_CONTROL_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/liveness.h"
#include "control/peer.h"
#include "fabric/provider_sockets.h"

/* Keep-alive probes of the kernel within the limit of silence; the plugin triggers as many. */
#define MESH_LINK_QUESTIONS 60

/* If a frame is not acknowledged within this, its link is watched. */
#define MESH_LINK_FRAME_MS 500

struct mesh_link {
	LIST_ENTRY(mesh_link) entry; /* process->links */
	struct mesh_timer timer;     /* the next check; its function is link_watch.c's */
	struct mesh_process *process;
	struct mesh_domain *domain;
	LIST_HEAD(, mesh_peer) peers MESH_GUARDED_BY(process); /* those that are up; never empty */
	bool eager; /* keep-alive probes often, and does not end the connection */
	struct mesh_liveness liveness;
	struct mesh_remote_sockets sockets;
	uint64_t waited_until_ms; /* something waits for the process until then */
	uint64_t idle_ms;	  /* when the keep-alive is looked at next, if nothing waits */
	uint64_t searched_ms;	  /* last search for the sockets; 0: none */
	uint64_t poked_ms;
	uint64_t sent_ms;	  /* when a frame was sent that may be unacknowledged; 0: none */
	uint64_t writes_until_ms; /* a sender waits for RDMA writes until then */
	/* Since when these are seen to be silent for too long, and domain->polls then; 0: not. */
	uint64_t silent_ms, silent_polls;
};

/**
 * Adds a peer that is up to its link; the first peer makes the link. Without memory the peer has no
 * link, and only the kernel's keep-alive ends its control connection. process->lock held, as for
 * all of these.
 */
MESH_HOLDS(process)
void mesh_link_join(struct mesh_peer *peer);

/** Removes the peer from its link, if it has one; the last peer frees the link. */
MESH_HOLDS(process)
void mesh_link_leave(struct mesh_peer *peer);

/** Watches the peer's link from now on until @until_ms, because the caller waits for it. */
MESH_HOLDS(process)
void mesh_link_want(struct mesh_peer *peer, uint64_t until_ms);

/** The same for all links of a NIC: its cable may be out. */
MESH_HOLDS(process)
void mesh_links_want(struct mesh_process *process, const struct mesh_domain *domain,
		     uint64_t until_ms);

/** The same for a sender: until then the link also is dead if RDMA writes get no answer. */
MESH_HOLDS(process)
void mesh_link_writes_want(struct mesh_peer *peer, uint64_t until_ms);

/**
 * True if the link's RDMA writes have had no answer for the limit, although the peer's kernel
 * answers on TCP; false if nothing waits for them.
 */
MESH_HOLDS(process)
bool mesh_link_writes_are_silent(struct mesh_link *link, uint64_t now_ms);

/** A frame was sent: the link is watched if the frame is not acknowledged soon. */
MESH_HOLDS(process)
void mesh_link_sent(struct mesh_peer *peer);

/** False while the link is silent: a frame sent now would delay the next sign of life. */
MESH_HOLDS(process)
bool mesh_link_is_fresh(const struct mesh_peer *peer, uint64_t now_ms);

/**
 * Reads the sockets' state now. True if the provider's sockets with the peer no longer hold
 * anything that they held at @since_ms: the peer's kernel has acknowledged it, or the connection
 * has ended.
 */
MESH_HOLDS(process)
bool mesh_link_is_drained(struct mesh_peer *peer, uint64_t since_ms, uint64_t now_ms);

/** Watches the link if the kernel's keep-alive has no answer on one of its control connections. */
MESH_HOLDS(process)
void mesh_link_idle_look(struct mesh_link *link, uint64_t now_ms);

/** Reads the state of all TCP connections with the process over this link. Returns the verdict. */
MESH_HOLDS(process)
enum mesh_liveness_verdict mesh_link_look(struct mesh_link *link, uint64_t now_ms);

/** Sets keep-alive on all of its control connections; each setting sends a probe at once. */
MESH_HOLDS(process)
void mesh_link_keepalives_set(const struct mesh_link *link);

#endif
