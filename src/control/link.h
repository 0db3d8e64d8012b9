/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - a link to another process: all peers with the same process, domain and address, in both
 * directions. They are lost together, and the last one to leave frees the link. All with
 * process->lock held.
 *
 * A link is watched while something waits for the process, or while it is silent: the engine reads
 * the kernel's state of all TCP connections with it, ten times a second. Otherwise the kernel's
 * keep-alive asks, and the engine looks twice within the limit of silence whether all was answered.
 *
 * There is one verdict for each link. Anything that arrives on any socket is a sign of life;
 * silence counts from the first packet that got no answer. A peer whose process is stopped is
 * alive: its kernel answers. A slow link is alive: its acknowledgements arrive.
 */
#ifndef MESH_CONTROL_LINK_H
#define MESH_CONTROL_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "fabric/provider_sockets.h"
#include "system/tcp_look.h"

/*
 * What was sent over a link that works arrives within this: a link with a frame that is not
 * acknowledged by then is watched.
 */
#define MESH_LINK_FRAME_MS 500
/* A link that is watched is looked at so often: a verdict is late by at most this. */
#define MESH_LINK_LOOK_MS 100
/* After so long without a sign of life the kernel sends probes. */
#define MESH_LINK_QUIET_MS 1000

/* The sockets of one link that are read; usually there are two for control and two for data. */
#define MESH_LINK_SOCKETS 8

/* The state of one socket at the last look. */
struct mesh_link_socket {
	struct mesh_tcp_look last;
	uint64_t moved_ms; /* when its data in flight was last answered, or the link came back */
	uint32_t resent;   /* last.resent at that time */
	uint64_t mark;	   /* bytes_acked once all that was queued at mark_ms is acknowledged */
};

struct mesh_link {
	LIST_ENTRY(mesh_link) entry; /* process->links */
	struct mesh_timer timer;     /* the next look */
	struct mesh_process *process;
	struct mesh_domain *domain;
	LIST_HEAD(, mesh_peer) peers MESH_GUARDED_BY(process); /* never empty */
	uint64_t wanted_until_ms;			       /* the link is watched until then */
	uint64_t limit_ms;				       /* of silence */
	uint64_t heard_ms;   /* the last sign of life; 0 if unknown */
	uint64_t asked_ms;   /* the first packet without an answer since; 0 if none */
	uint64_t audible_ms; /* when the last silence ended, or the watch began */
	struct mesh_link_socket sockets[MESH_LINK_SOCKETS];
	int num_sockets;
	uint64_t mark_ms;
	uint64_t drained_ms;	   /* all that the sockets held at this time is acknowledged */
	uint64_t writes_until_ms;  /* a sender waits for RDMA writes until then */
	enum mesh_refusal verdict; /* it is dead: mesh_peer_tick() loses it; 0: it is not */
	/* Since when these are seen to be silent for too long, and domain->polls then; 0: not. */
	uint64_t silent_ms, silent_polls;
};

/** Adds a peer to its link; the first peer makes the link. Returns false if memory is short. */
MESH_HOLDS(process)
bool mesh_link_join(struct mesh_peer *peer);

/** Removes the peer from its link, if it has one; the last peer frees the link. */
MESH_HOLDS(process)
void mesh_link_leave(struct mesh_peer *peer);

/**
 * Watches the peer's link from now on until @until_ms, because the caller waits for it.
 *
 * @writes: it sends: until then the link also is dead if RDMA writes get no answer
 */
MESH_HOLDS(process)
void mesh_link_want(struct mesh_peer *peer, uint64_t until_ms, bool writes);

/** A frame was sent: the link is watched if the frame is not acknowledged soon. */
MESH_HOLDS(process)
void mesh_link_sent(struct mesh_peer *peer);

/**
 * True if the process has answered recently, or nothing is known of it. A frame that is sent during
 * a silence stops the kernel's keep-alive, and TCP retransmits it at growing intervals: the caller
 * should wait.
 */
MESH_HOLDS(process)
bool mesh_link_is_fresh(const struct mesh_peer *peer, uint64_t now_ms);

/**
 * Reads the sockets' state now. True if the provider's sockets with the peer no longer hold
 * anything that they held at @since_ms: the peer's kernel has acknowledged it, or the connection
 * has ended.
 */
MESH_HOLDS(process)
bool mesh_link_is_drained(struct mesh_peer *peer, uint64_t since_ms, uint64_t now_ms);

/**
 * The longest silence, in milliseconds, of a link or a relay without which its messages go on: a
 * wrong verdict costs little.
 */
uint64_t mesh_link_resumed_limit_ms(const struct mesh_process *process);

#endif
