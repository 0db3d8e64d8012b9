/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h - a peer: another process's endpoint as one of our domains reaches it, with the control
 * connection to it.
 *
 * The control connection is an ordinary TCP connection between the same two NICs. It carries the
 * frames of frame.h, and the kernel at each end keeps it alive or ends it, whether the processes
 * run or sleep. This is how a refused, unreachable, dead or lost peer is detected, which libfabric
 * does not report.
 *
 * A peer is outgoing (we connected, its comms send) or incoming (its comms receive). Two
 * processes that send to each other have one of each on a link.
 */
#ifndef MESH_CONTROL_PEER_H
#define MESH_CONTROL_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "control/process.h"
#include "fabric/remote.h"
#include "fabric/buffer.h"
#include "nic/addr.h"
#include "wire/frame.h"

struct mesh_fence;
struct mesh_link;
struct mesh_peer;

/* A user of a peer, which is notified of the peer's loss. Embedded in its owner. */
struct mesh_peer_user {
	LIST_ENTRY(mesh_peer_user) entry; /* peer->user_list; process->lock */
	const struct mesh_peer_user_ops *ops;
};

/* What a user is asked. */
enum mesh_peer_question {
	MESH_USER_MISSES,   /* does it still expect something, so that the loss needs a WARN? */
	MESH_USER_RESUMES,  /* does it go on without this peer, and resume what is interrupted? */
	MESH_USER_WAITS,    /* and waits for this peer's link, because nothing else leads there? */
	MESH_USER_IS_QUIET, /* of a lost peer: is nothing that we sent there still in flight? */
	MESH_USER_IS_OPEN,  /* of a lost peer: may something of it still arrive? */
	MESH_USER_QUESTIONS
};

/* All with process->lock held. */
struct mesh_peer_user_ops {
	/* The answers; NULL: no. */
	bool (*answers[MESH_USER_QUESTIONS])(struct mesh_peer_user *user);
	/* The peer is lost, and what it sent has arrived. domain->lock is held as well. */
	void (*lost)(struct mesh_peer_user *user);
	/* The lost peer has stopped and was fenced: nothing more of it arrives. */
	void (*fenced)(struct mesh_peer_user *user);
	/* A NIC of the peer's link is drained, or used again; NULL: it needs this link. */
	void (*drained)(struct mesh_peer_user *user);
};

typedef void mesh_frame_handler(struct mesh_peer *peer, const struct mesh_frame *frame);

/* Callbacks of the layers above for events of a peer. All with process->lock held. */
struct mesh_peer_events {
	/* True if a stranger's HELLO names a listener of this process. */
	bool (*admits)(struct mesh_process *process, const struct mesh_frame_hello *hello);
	/* Opens a domain, as mesh_opening_need(). True while it is being opened. */
	bool (*opens)(struct mesh_process *process, int index);
	/* An incoming peer has sent HELLO, and was admitted. */
	void (*introduced)(struct mesh_peer *peer, const struct mesh_frame_hello *hello);
	/* An incoming peer of another protocol version is about to be lost, for @reason. */
	void (*foreign)(struct mesh_peer *peer, const struct mesh_frame_hello *hello,
			const char *reason);
	/* The peer is about to be lost, for peer->reason. */
	void (*lost)(struct mesh_peer *peer);
	/* The peer is up, and comms may use it. */
	void (*up)(struct mesh_peer *peer);
	/* By type; NULL where the control layer handles the frame itself. */
	mesh_frame_handler *frames[MESH_FRAME_TYPES];
};

/* A way to another process: over which of our domains, and where the process listens. */
struct mesh_way {
	int index;			   /* of our domain: control/process.h */
	struct mesh_endpoint_addr address; /* with the provider that both ends use */
	uint16_t control_port;
	uint32_t listen_id; /* what HELLO names there */
	uint64_t cookie;
	bool routed;	    /* the two NICs share no subnet */
	bool needs_carrier; /* else it is dialled whether our NIC has one or not */
};

/* Our NIC. */
static inline int mesh_way_dev(const struct mesh_way *way)
{
	return way->index % MESH_NICS_MAX;
}

/* The first five are passed in this order. */
enum mesh_peer_state {
	/* Outgoing: the TCP connection is being made. */
	MESH_PEER_CONNECTING,
	/* TCP is up. Outgoing: our HELLO is sent. Incoming: we wait for one. */
	MESH_PEER_HELLO,
	/* Incoming: its HELLO waits until the domain that it names is open. */
	MESH_PEER_OPENING,
	/* Both know each other's endpoint. GREET or its reply is in flight through the fabric. */
	MESH_PEER_GREETING,
	/* The fabric works in both directions: comms can be made. */
	MESH_PEER_UP,
	/*
	 * Its process has ended, the link is lost, or it violated the protocol. What it sent before
	 * may still be in flight through the fabric, so its comms fail a moment later. Or it never
	 * was up: the attempt to connect has failed.
	 */
	MESH_PEER_LOST,
	MESH_PEER_STATES
};

/* Whether what a lost peer has sent may still arrive. */
enum mesh_peer_fenced {
	MESH_FENCED_NOT,    /* it may, and its users were not notified yet */
	MESH_FENCED_BURIED, /* it may, and its users were notified */
	MESH_FENCED,	    /* it has stopped, and mesh_peer_fence() was called since */
	MESH_FENCED_FAILED, /* it may, and cannot be kept from it: no user goes on */
};

/* How a fence ends the connection with a lost peer, on verbs. */
enum mesh_peer_cut {
	MESH_PEER_CUT_CLOSE, /* by the end of our endpoint: the other end may not answer */
	/* By a write that is refused: the other end noticed the loss first, or a comm ends here. */
	MESH_PEER_CUT_WRITE,
	MESH_PEER_CUT_DONE, /* such a write has ended it */
};

/* Bits: what a WARN has reported of it. */
enum mesh_peer_warned {
	MESH_PEER_WARNED_LOST = 1,
	MESH_PEER_WARNED_SLOW = 2, /* it owes us an answer */
};

/* A way to a process is tried so long while another one could be, and a greeting is waited for. */
#define MESH_DIAL_MS 3000

#define MESH_PEER_REASON_MAX 256
/*
 * Bytes of frames that wait for the socket: one of the largest for each of 8 paths of 2,048 comms,
 * which all begin, or lose a link, while the peer's process does not run. Only what waits is
 * allocated.
 */
#define MESH_PEER_OUT_MAX ((size_t)8 << 20)

struct mesh_peer {
	LIST_ENTRY(mesh_peer) entry;	     /* process->peers */
	LIST_ENTRY(mesh_peer) process_entry; /* process->peers_by_process */
	struct mesh_timer timer;	     /* when it is to be checked next */
	struct mesh_process *process;
	/* Incoming: NULL until its HELLO is accepted, and the domain that it names is open. */
	struct mesh_domain *domain;
	int dev; /* of our NIC */
	struct mesh_watch watch;
	/* UP: what it shares with the other direction; else NULL. */
	struct mesh_link *link MESH_GUARDED_BY(process);
	LIST_ENTRY(mesh_peer) link_entry MESH_GUARDED_BY(process); /* link->peers */
	enum mesh_peer_state state MESH_GUARDED_BY(process);
	bool incoming;
	bool routed; /* the two NICs share no subnet: the kernels' routes connect them */
	bool over;   /* its process has ended: no user goes on without this peer */
	enum mesh_peer_fenced fenced; /* LOST */
	enum mesh_peer_cut cut;	      /* LOST */
	uint8_t warned;		      /* enum mesh_peer_warned */
	/* LOST, on verbs: the fence that may end its connection is in progress; owned. */
	struct mesh_fence *fence MESH_GUARDED_BY(process);
	/* Since when it owes us a frame about a comm's end; 0: it does not. */
	uint64_t owes_ms MESH_GUARDED_BY(process);

	/* Where it is. The ports are 0 until known. */
	struct mesh_endpoint_addr address;
	uint16_t control_port;
	uint64_t port_ms; /* when PORT is due; 0: it is not */
	/* Outgoing: what our HELLO names. */
	uint64_t cookie;
	uint32_t listen_id;

	/* From its HELLO. */
	uint64_t node_id MESH_GUARDED_BY(process); /* 0 until known */
	uint64_t process_id MESH_GUARDED_BY(process);
	uint32_t eager_limit;		     /* bytes that it accepts in one DATA message */
	int speed_mbps;			     /* of its NIC; 0 where unknown */
	enum mesh_provider_id best_provider; /* of its NIC */
	char site[MESH_SITE_NAME_MAX];	     /* its node's; "" where none is set */
	/* All NICs of its process, as of its first HELLO; owned; unless incoming. */
	struct mesh_endpoint_addr *nics MESH_GUARDED_BY(process);
	int num_nics MESH_GUARDED_BY(process);
	/* Bits: numbers of those that only a later frame has named. */
	uint32_t late_nics MESH_GUARDED_BY(process);
	uint32_t drained_nics MESH_GUARDED_BY(process); /* and of those that are drained */
	uint32_t remote_id, remote_token;
	uint32_t generation;	       /* of our endpoint, as our HELLO named it */
	char name[MESH_NODE_NAME_MAX]; /* its node's; "" until known */
	struct mesh_remote *remote;

	struct mesh_sink sink; /* for GREET */
	/* Set by the poller, with domain->lock held. */
	_Atomic(bool) greeted;
	_Atomic(int) greet_error; /* a greeting could not be sent: negative errno */
	_Atomic(int) greetings;	  /* in flight, with a pointer to us */
	uint64_t greeted_ms MESH_GUARDED_BY(process); /* when GREET was sent last; 0: it is to be */
	uint64_t state_ms MESH_GUARDED_BY(process);   /* when it entered its state */
	/* LOST: unless it has refused, its dials try again then; 0: it was up, or is faulty. */
	uint64_t retry_ms MESH_GUARDED_BY(process);
	/* Since when each attempt of its dials was refused, or nothing answers at all; 0: not. */
	uint64_t first_refused_ms MESH_GUARDED_BY(process), silent_ms MESH_GUARDED_BY(process);
	enum mesh_refusal refusal MESH_GUARDED_BY(process); /* 0 if none */
	/*
	 * In words why the peer is lost, or the attempt before it failed, and the state in which
	 * that was. Empty once the peer has passed that state.
	 */
	char reason[MESH_PEER_REASON_MAX] MESH_GUARDED_BY(process);
	enum mesh_peer_state failed_in MESH_GUARDED_BY(process);

	/* Connects and comms, and a list of the comms; without any an outgoing one may be freed. */
	int users MESH_GUARDED_BY(process);
	LIST_HEAD(, mesh_peer_user) user_list MESH_GUARDED_BY(process);
	uint8_t in[2 * sizeof(struct mesh_frame)] MESH_GUARDED_BY(process);
	size_t in_size MESH_GUARDED_BY(process);
	uint8_t *out MESH_GUARDED_BY(process);	  /* frames that wait for the socket; owned */
	size_t out_size MESH_GUARDED_BY(process); /* SIZE_MAX: mesh_peer_is_choked() */
	/* A negative errno of send(): then recv() returns 0, as if the peer had closed. */
	int send_error MESH_GUARDED_BY(process);
};

/** True if frames were dropped, because more than MESH_PEER_OUT_MAX would wait: it is lost soon. */
MESH_HOLDS(process)
static inline bool mesh_peer_is_choked(const struct mesh_peer *peer)
{
	return peer->out_size > MESH_PEER_OUT_MAX;
}

/** Our NIC on the peer's link, also while the peer has no domain. */
static inline const struct mesh_nic *mesh_peer_nic(const struct mesh_peer *peer)
{
	return peer->domain ? peer->domain->nic : peer->process->nics[peer->dev];
}

/** Mbit/s of the slower end of the peer's link; 0 where neither end knows. */
static inline int mesh_peer_speed_mbps(const struct mesh_peer *peer)
{
	int local = peer->domain->nic->speed_mbps, remote = peer->speed_mbps;

	if (!local || !remote)
		return local ? local : remote;
	return local < remote ? local : remote;
}

/** True if the peer is at the other end of the link from @domain to @address. */
static inline bool mesh_peer_is_at(const struct mesh_peer *peer, const struct mesh_domain *domain,
				   const struct mesh_addr *address)
{
	return peer->domain == domain && mesh_addr_equal(&peer->address.addr, address);
}

/** True if both are at the other end of one link. */
static inline bool mesh_peer_shares_link(const struct mesh_peer *peer,
					 const struct mesh_peer *other)
{
	return mesh_peer_is_at(peer, other->domain, &other->address.addr);
}

/** "node b (10.1.0.2)" for messages; @text has MESH_PEER_TEXT_MAX bytes. Returns @text. */
#define MESH_PEER_TEXT_MAX (MESH_NODE_NAME_MAX + MESH_ADDR_TEXT_MAX + 16)
const char *mesh_peer_text(const struct mesh_peer *peer, char *text);

/**
 * Changes the peer's state, which no other code may do; asserts the legal steps. process->lock
 * held.
 */
MESH_HOLDS(process)
void mesh_peer_state_set(struct mesh_peer *peer, enum mesh_peer_state state);

/** Has the engine check the peer in this turn, or in the next one. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_check(struct mesh_peer *peer);

/** Adds a user, which is notified if the peer is lost, and removes it. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_user_add(struct mesh_peer *peer, struct mesh_peer_user *user);
MESH_HOLDS(process)
void mesh_peer_user_remove(struct mesh_peer *peer, struct mesh_peer_user *user);

/** Counts one more user, and one less. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_use(struct mesh_peer *peer);
MESH_HOLDS(process)
void mesh_peer_put(struct mesh_peer *peer);

/** True if a user of the peer gives this answer. */
MESH_HOLDS(process)
bool mesh_peer_users_say(const struct mesh_peer *peer, enum mesh_peer_question question,
			 bool answer);

/** True if a user goes on when this peer is lost. */
MESH_HOLDS(process)
bool mesh_peer_is_resumed(const struct mesh_peer *peer);

/**
 * Cuts the provider's connections with a lost peer, and reads what had arrived: afterwards nothing
 * that it sent is written, or still to be counted. Takes domain->lock.
 *
 * Returns false while that is in progress, on verbs: call it again later. And if it has failed, on
 * tcp, after a WARN: then peer->fenced is MESH_FENCED_FAILED, and its users were notified again:
 * none of them goes on.
 */
MESH_HOLDS(process)
bool mesh_peer_fence(struct mesh_peer *peer);

/** True while it is: something of the lost peer may still arrive. */
MESH_HOLDS(process)
bool mesh_peer_is_fencing(const struct mesh_peer *peer);

/**
 * True if the peer has refused the user with @cookie. If it refused the cookie of another user,
 * this one is untried, and a new peer has to try it.
 */
MESH_HOLDS(process)
bool mesh_peer_refuses(const struct mesh_peer *peer, uint64_t cookie);

/**
 * Adds the peer's sink, at which greetings arrive, with a new token; mesh_peer_sink_end() removes
 * it if it is there. Both take domain->lock.
 *
 * Returns 0 or a negative errno: -ENOSPC if the domain has no id left.
 */
MESH_HOLDS(process)
int mesh_peer_sink_begin(struct mesh_peer *peer);
MESH_HOLDS(process)
void mesh_peer_sink_end(struct mesh_peer *peer);

/** The peer's process is known, or another one than before. */
MESH_HOLDS(process)
void mesh_peer_process_set(struct mesh_peer *peer, uint64_t process_id);

/**
 * Iterates over the peers of one process: over all links, in both directions, @peer included, even
 * if its process is not known yet.
 *
 * @previous: what the last call returned; NULL: begins
 *
 * Returns NULL after the last one. process->lock held.
 */
MESH_HOLDS(process)
struct mesh_peer *mesh_peer_of_process(const struct mesh_peer *peer, struct mesh_peer *previous);

/** Another peer that is up, as of the link's other direction, and has the peer's flow; or NULL. */
MESH_HOLDS(process)
struct mesh_peer *mesh_peer_flow_other(const struct mesh_peer *peer);

/** True if a comm of ours has, or had, a path to the process, which has not ended. */
MESH_HOLDS(process)
bool mesh_process_is_known(const struct mesh_process *process, uint64_t process_id);

#endif
