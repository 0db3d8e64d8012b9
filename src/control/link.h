/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - a link to another process: all peers with the same process, domain and address, in both
 * directions. They are lost together, and the last one to leave frees the link.
 *
 * A link is watched while something waits for the process, or while it is silent: the engine reads
 * the kernel's state of all TCP connections with it, a few times a second. Otherwise the kernel's
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

/* Keep-alive probes of the kernel within the limit of silence; the plugin triggers as many. */
#define MESH_LINK_QUESTIONS 60

/* If a frame is not acknowledged within this, its link is watched. */
#define MESH_LINK_FRAME_MS 500
/*
 * A link that is watched is looked at so often: a verdict is late by at most this. After
 * MESH_LINK_QUIET_MS without a sign of life the kernel is made to send probes.
 */
#define MESH_LINK_LOOK_MS 100
#define MESH_LINK_QUIET_MS 1000

/* The sockets of one link that are read; usually there are two for control and two for data. */
#define MESH_LIVENESS_SOCKETS 8

enum mesh_liveness_state {
	MESH_LIVENESS_IDLE,    /* nothing waits for the peer: it is not checked */
	MESH_LIVENESS_WATCHED, /* something waits, and the peer answers */
	MESH_LIVENESS_SILENT,  /* something waits, and nothing has arrived for a while */
	MESH_LIVENESS_STATES
};

enum mesh_liveness_verdict {
	MESH_LIVENESS_GOES_ON,
	MESH_LIVENESS_NO_ANSWER, /* nothing arrives, whatever is sent */
	MESH_LIVENESS_NO_DATA,	 /* small packets are answered, the data in flight is not */
	MESH_LIVENESS_NO_WRITES, /* TCP gets through, RDMA writes are not answered */
};

/* The state of one socket at the last look. */
struct mesh_liveness_socket {
	struct mesh_tcp_look last;
	uint64_t moved_ms; /* when its data in flight was last answered, or the link came back */
	uint32_t resent;   /* last.resent at that time */
	uint64_t mark;	   /* bytes_acked once all that was queued at mark_ms is acknowledged */
};

struct mesh_liveness {
	enum mesh_liveness_state state;
	uint64_t limit_ms;	  /* of silence */
	uint64_t wanted_until_ms; /* the link is watched until then */
	uint64_t looked_ms;	  /* the last look; 0 if none */
	uint64_t heard_ms;	  /* the last sign of life; 0 if unknown */
	uint64_t asked_ms;	  /* the first packet without an answer since; 0 if none */
	uint64_t audible_ms;	  /* when the last silence ended */
	uint64_t mark_ms;
	uint64_t drained_ms; /* all that the sockets held at this time is acknowledged */
	struct mesh_liveness_socket sockets[MESH_LIVENESS_SOCKETS];
	int num_sockets;
};

struct mesh_link {
	LIST_ENTRY(mesh_link) entry; /* process->links */
	struct mesh_timer timer;     /* the next check; its function is link_watch.c's */
	struct mesh_process *process;
	struct mesh_domain *domain;
	LIST_HEAD(, mesh_peer) peers MESH_GUARDED_BY(process); /* those that are up; never empty */
	struct mesh_liveness liveness;
	struct mesh_remote_sockets sockets;
	uint64_t waited_until_ms; /* something waits for the process until then */
	uint64_t judged_ms;	  /* when the engine looked at it last, for a verdict */
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

/** Watches the link if the kernel's keep-alive has no answer on one of its control connections. */
MESH_HOLDS(process)
void mesh_link_idle_look(struct mesh_link *link, uint64_t now_ms);

/** Begins the watch of a link that is wanted, and ends it when its time is over. */
MESH_HOLDS(process)
void mesh_link_watch_update(struct mesh_link *link, uint64_t now_ms);

/** Reads the state of all TCP connections with the process over this link. Returns the verdict. */
MESH_HOLDS(process)
enum mesh_liveness_verdict mesh_link_look(struct mesh_link *link, uint64_t now_ms);

/** Sets keep-alive on all of its control connections; each setting sends a probe at once. */
MESH_HOLDS(process)
void mesh_link_keepalives_set(const struct mesh_link *link);

/**
 * The longest silence, in milliseconds, of a link or a relay without which its messages go on: a
 * wrong verdict costs little.
 */
uint64_t mesh_link_resumed_limit_ms(const struct mesh_process *process);

#endif
