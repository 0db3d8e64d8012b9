/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h - a peer: another process's endpoint as one of our domains reaches it, with the control
 * connection to it.
 *
 * The control connection is an ordinary TCP connection between the same two NICs. It carries the
 * frames of frame.h, and the kernel at each end keeps it alive or ends it, whether the processes
 * run or sleep: that is how a refused, unreachable, dead or lost peer is told, of which libfabric
 * says nothing.
 *
 * A peer is outgoing (we connected, its comms send) or incoming (its comms receive). Two
 * processes that send to each other have one of each on a link.
 */
#ifndef MESH_CONTROL_PEER_H
#define MESH_CONTROL_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "fabric/remote.h"
#include "fabric/sink.h"
#include "control/process.h"
#include "wire/frame.h"

struct mesh_link;
struct mesh_peer;

/* Something that uses a peer and must know of its end: embedded in its owner. */
struct mesh_peer_user {
	LIST_ENTRY(mesh_peer_user) entry; /* peer->user_list; process->lock */
	const struct mesh_peer_user_ops *ops;
};

/* All with process->lock held. */
struct mesh_peer_user_ops {
	/* True if it still expects something of the peer, so that its loss is news. */
	bool (*misses)(struct mesh_peer_user *user);
	/* True if NCCL knows of it: strangers can have as many others as they like. */
	bool (*is_known)(struct mesh_peer_user *user);
	/* The peer is lost, and what it sent has arrived. domain->lock is held as well. */
	void (*lost)(struct mesh_peer_user *user);
};

typedef void mesh_frame_handler(struct mesh_peer *peer, const struct mesh_frame *frame);

/* What the layers above do when something happens to a peer. All with process->lock held. */
struct mesh_peer_events {
	/* A stranger's HELLO: true if it knows a listener of ours. */
	bool (*admits)(struct mesh_process *process, const struct mesh_frame_hello *hello);
	/* An incoming peer has introduced itself, and was admitted. */
	void (*introduced)(struct mesh_peer *peer, const struct mesh_frame_hello *hello);
	/* The peer is about to be lost, for peer->reason. @missed: users expected more of it. */
	void (*lost)(struct mesh_peer *peer, bool missed);
	/* By type; NULL where the control layer handles the frame itself. */
	mesh_frame_handler *frames[MESH_FRAME_TYPES];
};

/* The first four are passed in this order. */
enum mesh_peer_state {
	/* Outgoing: the TCP connection is being made. */
	MESH_PEER_CONNECTING,
	/* TCP is up. Outgoing: our HELLO is sent. Incoming: we wait for one. */
	MESH_PEER_HELLO,
	/* Both know each other's endpoint. GREET or its reply is on its way through the fabric. */
	MESH_PEER_GREETING,
	/* The fabric works in both directions: comms can be made. */
	MESH_PEER_UP,
	/* Outgoing: an attempt failed; the next starts at retry_ms. */
	MESH_PEER_RETRY,
	/*
	 * Over: its process ended, the link is lost, or it misbehaved. What it sent before may
	 * still be on its way through the fabric, so its comms fail a moment later.
	 */
	MESH_PEER_LOST,
	MESH_PEER_STATES
};

#define MESH_PEER_REASON_MAX 256
/* Frames that wait for the socket. They are small; a peer that takes none is not well. */
#define MESH_PEER_OUT_MAX (64 * 1024)

struct mesh_peer {
	LIST_ENTRY(mesh_peer) entry; /* process->peers */
	struct mesh_process *process;
	struct mesh_domain *domain;
	struct mesh_watch watch;
	struct mesh_link *link; /* UP: what it shares with the other direction; else NULL */
	enum mesh_peer_state state;
	bool incoming;
	bool buried;	  /* LOST, and its comms have failed */
	bool told;	  /* LOST, and the user was warned */
	bool slow_told;	  /* the user was warned that it owes us an answer */
	uint64_t owes_ms; /* since when it owes us a frame about a comm's end; 0: it does not */
	/* A comm that we have freed, and on which the peer still has something in flight. */
	uint32_t stray;
	uint64_t stray_until_ms; /* the engine polls for it so long */

	/* Where it is. The ports are 0 until known. */
	struct mesh_endpoint_addr address;
	uint16_t control_port;
	/* What its listener wants to see in our next HELLO, and what our last one had. */
	uint64_t cookie;
	uint32_t listen_id;
	uint64_t told_cookie;

	/* From its HELLO. */
	uint64_t process_id;
	uint32_t eager_limit; /* bytes that it takes in one DATA message */
	int speed_mbps;	      /* of its NIC; 0 where unknown */
	uint32_t remote_id, remote_token;
	char name[MESH_NODE_NAME_MAX]; /* its node's; "" until known */
	struct mesh_remote *remote;

	struct mesh_sink sink; /* for GREET and GREET_REPLY */
	bool has_sink;
	/* Set by the poller, with domain->lock held. */
	_Atomic(bool) greeted;
	_Atomic(int) greet_error;  /* a greeting could not be sent: negative errno */
	_Atomic(int) greetings;	   /* in flight, with a pointer to us */
	uint64_t started_ms;	   /* of this attempt */
	uint64_t state_ms;	   /* since when it is in its state */
	bool stuck_told;	   /* the user knows that it is stuck for want of descriptors */
	uint64_t lost_ms;	   /* LOST: since when */
	uint64_t retry_ms;	   /* RETRY: when */
	uint64_t first_refused_ms; /* since when each attempt was refused; 0 if not */
	uint64_t silent_ms; /* outgoing: since when nobody answers at all; 0 if somebody does */
	enum mesh_refusal refusal; /* what it answered; 0 if nothing */
	/*
	 * Why the last attempt failed, or it is lost, in words, and how far that attempt had come.
	 * Empty once another has come further.
	 */
	char reason[MESH_PEER_REASON_MAX];
	enum mesh_peer_state failed_in;

	int users; /* connects and comms; an outgoing peer without any may go */
	LIST_HEAD(, mesh_peer_user) user_list; /* those of them that are comms */
	uint8_t in[2 * sizeof(struct mesh_frame)];
	size_t in_size;
	uint8_t *out; /* frames that wait for the socket; owned */
	size_t out_size;
};

/** "node b (10.1.0.2)" for messages; @text has MESH_PEER_TEXT_MAX bytes. Returns @text. */
#define MESH_PEER_TEXT_MAX (MESH_NODE_NAME_MAX + MESH_ADDR_TEXT_MAX + 16)
const char *mesh_peer_text(const struct mesh_peer *peer, char *text);

/** The only way to change a peer's state; asserts the legal steps. process->lock held. */
void mesh_peer_state_set(struct mesh_peer *peer, enum mesh_peer_state state);

/** Adds a user, which knows of the end of the peer, and takes it back. process->lock held. */
void mesh_peer_user_add(struct mesh_peer *peer, struct mesh_peer_user *user);
void mesh_peer_user_remove(struct mesh_peer *peer, struct mesh_peer_user *user);

/** Counts one more user, and one less. process->lock held. */
void mesh_peer_use(struct mesh_peer *peer);
void mesh_peer_put(struct mesh_peer *peer);

/**
 * True if the peer's word is that it will not talk to the user who came with @cookie. The refusal
 * of another user's cookie says nothing of that: a new peer will tell.
 */
bool mesh_peer_refuses(const struct mesh_peer *peer, uint64_t cookie);

/** True while the peer waits for what it has in flight on a comm that we have freed. */
static inline bool mesh_peer_drains(const struct mesh_peer *peer, uint64_t now_ms)
{
	return now_ms < peer->stray_until_ms;
}

/** Ends the sink that greetings arrive at. process->lock held; takes domain->lock. */
void mesh_peer_sink_end(struct mesh_peer *peer);

#endif
