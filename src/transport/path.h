/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - one path of a comm to its peer.
 *
 * Sending, receiving, closing and logging see a path only through these functions and fields. What
 * all paths have in common is in path_ops.c. How a segment is written differs: to the peer, or into
 * the memory of a relay (path_relayed.c). A path may change from one to the other whenever it
 * begins another life.
 */
#ifndef MESH_TRANSPORT_PATH_H
#define MESH_TRANSPORT_PATH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/retry.h"
#include "control/peer.h"
#include "fabric/buffer.h"
#include "fabric/flow.h"
#include "fabric/remote.h"
#include "nic/addr.h"
#include "nic/graph.h"
#include "nic/path_choice.h"
#include "relay/hop.h"
#include "relay/relay.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/stats.h"

struct mesh_comm;
struct mesh_mr;
struct mesh_op;
struct mesh_pace;
struct mesh_path;

/* JOINING -> UP -> SUSPECT -> DOWN -> JOINING ..., or DOWN at once from JOINING. */
enum mesh_path_state {
	MESH_PATH_JOINING, /* the two ends make it */
	MESH_PATH_UP,	   /* it carries messages, or may (enum mesh_path_tier) */
	MESH_PATH_SUSPECT, /* nothing more is posted on it; what the peer sent may still arrive */
	MESH_PATH_DOWN,	   /* it has been fenced: nothing more of it arrives */
	MESH_PATH_STATES
};

/* The best first. Those of the lowest one that is up carry the messages of a comm. */
enum mesh_path_tier {
	MESH_TIER_LINK,	       /* the two NICs share a link */
	MESH_TIER_ROUTED_RDMA, /* the kernels' routes, with RDMA */
	MESH_TIER_RELAYS_RDMA, /* relays; the receiver knows its own hop only */
	MESH_TIER_ROUTED,
	MESH_TIER_RELAYS,
	MESH_TIER_RESERVE, /* one NIC is a reserve (setup/candidates.h) */
	MESH_TIER_DRAINED, /* its link is out of use (control/peer_life.h) */
};

/* The two NICs that a path connects, for the log and the counters. */
struct mesh_path_ends {
	const struct mesh_addr *local, *remote; /* of one family */
	const char *nic;			/* our netdev */
	const char *via_text;			/* "direct", "routed", or the relays: "b,c" */
	enum mesh_provider_id provider;
	enum mesh_stats_via via;
};

/* A path that is this many times slower than the fastest would only slow the comm down. */
#define MESH_PATH_SPEED_RATIO_MAX 8

/* Bytes: longer messages take a buffer, whatever the provider could inject (tcp: 128). */
#define MESH_PATH_INJECT_MAX 256

/*
 * A segment that passes through the relays in pieces, one after the other, because their memory is
 * small. The receiver learns of the last piece only.
 */
struct mesh_path_cut {
	struct mesh_op *op;	   /* the segment's; NULL: none is cut now */
	struct mesh_write rest;	   /* what is not posted yet */
	struct mesh_waiter waiter; /* for a buffer */
	/* RELAYED as the caller has prepared it, and what its buffer had. */
	uint8_t relayed[sizeof(struct mesh_message_header) + sizeof(struct mesh_message_relayed)];
	void (*sent)(struct mesh_buffer *buffer, int error);
	void *about;
	bool in_flight; /* a piece */
	int error;
};

/* What a path of a sending comm has once it has led through relays. */
struct mesh_path_relayed {
	struct mesh_path *path;
	struct mesh_path_cut cut; /* one at a time; comm->lock */
	struct mesh_hop hop;	  /* into the memory of the first relay; comm->lock */
	struct mesh_pace pace;	  /* from here to the receiver */
	/* What its circuit was asked for; no relays: none was yet. process->lock. */
	struct mesh_route route;
	struct mesh_retry retry; /* when it may look for another one; process->lock */
	/* The relay at the end of the hop that was lost last, and when; 0: none. process->lock. */
	uint64_t lost_node, lost_ms;
};

struct mesh_path {
	/* Set when the path is opened, and when one that is down is moved; else constant. */
	struct mesh_domain *_Atomic domain; /* threads poll it without a lock */
	/*
	 * The process at the other end, or a relay: its loss ends the path, and its control
	 * connection may carry the comm's frames. process->lock.
	 */
	struct mesh_peer *peer;
	struct mesh_remote *remote;
	struct mesh_flow *flow;	      /* the remote's */
	const struct mesh_pace *pace; /* of what is in flight on it */
	/* Number of polls: shows whether any thread polls. */
	const _Atomic(uint64_t) *_Atomic polls;
	size_t inject_max;	      /* bytes of the largest message that needs no buffer */
	size_t payload_max;	      /* bytes of payload in a message */
	size_t segment_max;	      /* bytes of the largest write */
	size_t segment_bytes;	      /* of a usual large one */
	int immediate_bits;	      /* of a write: 64, 32, or 0 if it cannot have one */
	enum mesh_path_reason reason; /* for the log: of the connector's choice */
	bool is_acknowledged;	      /* plain completions mean that the peer's NIC has the data */
	/* The peer is a relay: the first one, or the last one at the receiving end. */
	atomic_bool has_relay;
	bool rdma_hops; /* has_relay, sending end: each hop of its route has RDMA */
	/* Sending end, once it has had a relay (path_relayed.c); else NULL. Owned. */
	struct mesh_path_relayed *relayed;
	/* has_relay: its circuit is broken, for good; attach.c gives it another one. */
	bool broken MESH_GUARDED_BY(process);
	/* Of its life; sending end: of the one that was asked for last. 0: the first. */
	uint32_t epoch MESH_GUARDED_BY(process);
	enum mesh_refusal refusal MESH_GUARDED_BY(process); /* the answer to that; 0: none */
	/*
	 * The last relay of a receiving end has no write in flight, and posts none; or the path is
	 * fenced, because its comm ends.
	 */
	bool drained MESH_GUARDED_BY(process);
	bool known MESH_GUARDED_BY(process); /* remote_id and remote_token, of its present peer */
	uint64_t drain_asked_ms MESH_GUARDED_BY(process); /* and was asked for that then; else 0 */
	struct mesh_relay_question question MESH_GUARDED_BY(process); /* has_relay: of that one */

	struct mesh_comm *comm;
	struct mesh_sink sink; /* what arrives for this comm on this path */
	struct mesh_peer_user user;
	struct mesh_waiter waiter;
	uint32_t remote_id, remote_token;		  /* the peer's sink for this path */
	enum mesh_path_state state MESH_GUARDED_BY(comm); /* mesh_path_state_set() */
	enum mesh_path_tier tier; /* written with process->lock and comm->lock held */
	/* SUSPECT: the error of the operation that failed; else old, or 0. */
	int cause MESH_GUARDED_BY(comm);
	uint32_t unfinished MESH_GUARDED_BY(comm); /* our operations in flight on it */
	_Atomic(uint64_t) seen_polls;		   /* *polls, when a request was last tested */
	/* In the process's page, or the comm's. */
	struct mesh_counters *counters MESH_GUARDED_BY(comm);
	/* The relays between the two, "b,c"; NULL: none. Owned; constant once the path is up. */
	char *via;
};

/** The path that a sink, a waiter, or a user of a peer is. */
static inline struct mesh_path *mesh_path_of_sink(struct mesh_sink *sink)
{
	return mesh_container_of(sink, struct mesh_path, sink);
}

static inline struct mesh_path *mesh_path_of_waiter(struct mesh_waiter *waiter)
{
	return mesh_container_of(waiter, struct mesh_path, waiter);
}

static inline struct mesh_path *mesh_path_of_user(struct mesh_peer_user *user)
{
	return mesh_container_of(user, struct mesh_path, user);
}

/* Of the users that are paths; others are circuits that lead through this process. */
extern const struct mesh_peer_user_ops mesh_path_user_ops;

/** The path that this user of a peer is; NULL: it is none. */
static inline struct mesh_path *mesh_path_if_user(struct mesh_peer_user *user)
{
	return user->ops == &mesh_path_user_ops ? mesh_path_of_user(user) : NULL;
}

/** True if the peer of the path is a relay. */
static inline bool mesh_path_has_relay(const struct mesh_path *path)
{
	return atomic_load_explicit(&path->has_relay, memory_order_relaxed);
}

/** True if segments are written into the memory of a relay (path_relayed.c), not to the peer. */
static inline bool mesh_path_is_relayed(const struct mesh_path *path)
{
	return mesh_path_has_relay(path) && path->relayed;
}

/**
 * True if large writes were posted since the link came up, over RDMA, and none has arrived. Of a
 * path through relays it would say nothing about the link to the first one.
 */
static inline bool mesh_path_is_futile(const struct mesh_path *path)
{
	return path->is_acknowledged && !mesh_path_has_relay(path) &&
	       mesh_flow_is_futile(path->flow);
}

/** Reports the two ends; the pointers are valid while the path is open. */
struct mesh_path_ends mesh_path_describe(const struct mesh_path *path);

/** The comm no longer waits for the path: path->waiter. domain->lock held. */
MESH_HOLDS(domain)
void mesh_path_wait_cancel(struct mesh_path *path);

/**
 * What is in flight through relays and not at the receiver fails now, as far as the provider does
 * not hold it: nothing more is heard. The operations of a direct path end with those of the
 * provider. domain->lock held, comm->lock not.
 */
MESH_HOLDS(domain)
void mesh_path_abandon(struct mesh_path *path);

/**
 * Of a relayed path (path_relayed.c): starts to write a segment into the first relay's memory, if
 * that has room. comm->lock held. Returns as mesh_domain_write().
 */
MESH_HOLDS(comm)
int mesh_path_relayed_write(const struct mesh_path *path, const struct mesh_write *write,
			    struct mesh_op *op);
bool mesh_path_relayed_has_room(const struct mesh_path *path);

/** A segment has arrived. domain->lock held, no comm's. @size: bytes */
MESH_HOLDS(domain)
void mesh_path_relayed_written(const struct mesh_path *path, size_t size, uint64_t posted_ns);

/**
 * Opens a path of @comm through @peer, a @relay or the process at the other end. One that sends
 * carries nothing through a relay until mesh_path_relayed_opened(). process->lock held; takes
 * domain->lock and comm->lock.
 *
 * Returns 0, -ENOMEM, -ENOSPC if the domain has no id left, or another negative errno.
 */
MESH_HOLDS(process)
int mesh_path_open(struct mesh_path *path, struct mesh_comm *comm, struct mesh_peer *peer,
		   bool relay);

/** The path that has this id at our end, if @peer is its peer; else NULL. process->lock held. */
MESH_HOLDS(process)
struct mesh_path *mesh_comm_path_find(struct mesh_peer *peer, uint32_t id);

/** Names the relays, "b,c", for the log and `fi_mesh watch`. Returns 0 or -ENOMEM. */
MESH_HOLDS(process)
int mesh_path_via_set(struct mesh_path *path, const char *via);

/**
 * Gives a path that is down, and has no operation in flight, to another peer, a @relay or the
 * process at the other end, and its sink another id and token. The peer may be at another NIC, for
 * which the comm's memory is prepared, and moved behind it (data.h). A circuit that it had
 * is shut. process->lock held; takes domain->lock and comm->lock.
 *
 * Returns as mesh_path_open(); then the path is as before.
 */
MESH_HOLDS(process)
int mesh_path_move(struct mesh_path *path, struct mesh_peer *peer, bool relay);

/**
 * Closes the path: nothing arrives at the sink and the waiter is not resumed afterwards.
 * process->lock held; takes domain->lock and comm->lock.
 */
MESH_HOLDS(process)
void mesh_path_close(struct mesh_path *path);

/* ---- whether it carries messages ----------------------------------------------------------- */

/** True if the path is in this state. process->lock held; takes comm->lock. */
MESH_HOLDS(process)
bool mesh_path_is(const struct mesh_path *path, enum mesh_path_state state);

/** The only way to change a path's state; asserts the legal steps. comm->lock held. */
MESH_HOLDS(comm)
void mesh_path_state_set(struct mesh_path *path, enum mesh_path_state state);

/**
 * Nothing more arrives on the path; if it is in state @from, it is down. Takes domain->lock and
 * comm->lock.
 */
MESH_HOLDS(process)
void mesh_path_down(struct mesh_path *path, enum mesh_path_state from);

/** Both ends know the path: it carries messages from now on. Takes comm->lock. */
MESH_HOLDS(process)
void mesh_path_accepted(struct mesh_path *path, const struct mesh_frame_accept *accept);

/**
 * Posts nothing more on the path, because an operation on it failed; the engine loses its link
 * then. Without effect on a path that is not up. comm->lock held.
 *
 * @error: negative errno
 */
MESH_HOLDS(comm)
void mesh_path_suspect(struct mesh_path *path, int error);

/** The engine looks after the comm's lost paths soon. Any lock may be held. */
void mesh_comm_recover_soon(struct mesh_comm *comm);

/** The tier of the paths that carry the comm's messages; DRAINED: none is up. Takes comm->lock. */
enum mesh_path_tier mesh_comm_tier(struct mesh_comm *comm);

/** The tier of a path from our NIC @dev to the peer's, over a link that they share or @routed. */
MESH_HOLDS(process)
enum mesh_path_tier mesh_link_tier(const struct mesh_process *process, int dev,
				   const struct mesh_endpoint_addr *remote, bool routed);

/** Learns the tiers of the comm's paths: one is up, or a link is drained, or no longer. */
MESH_HOLDS(process)
MESH_HOLDS(comm)
void mesh_comm_tiers_learn(struct mesh_comm *comm);

/** Sets what depends on all paths of the comm. To be called whenever one is added. */
void mesh_comm_paths_learn(struct mesh_comm *comm);

/* ---- the sending end through relays (path_relayed.c) --------------------------------------- */

/** Makes what a path that leads through relays has beside others. Returns 0 or -ENOMEM. */
int mesh_path_relayed_make(struct mesh_path *path);

/**
 * The path leads to its peer as to the first relay from now on: it carries nothing until
 * mesh_path_relayed_opened(). comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_path_relayed_begin(struct mesh_path *path);

/**
 * The circuit is open: OPENED has come. process->lock held.
 *
 * Returns 0 or -ENOMEM.
 */
MESH_HOLDS(process)
int mesh_path_relayed_opened(struct mesh_path *path, const struct mesh_frame_opened *opened);

/**
 * Reports to the first relay, if it knows the path, that nothing more is written: it frees the
 * circuit when all has come, and knows it no longer. process->lock held.
 */
MESH_HOLDS(process)
void mesh_path_relayed_shut(struct mesh_path *path);

/** How many relays a path of a sending comm leads over now; 0: none, or it is not up. */
MESH_HOLDS(process)
int mesh_path_num_relays(const struct mesh_path *path);

/** The function of the path's sink. */
MESH_HOLDS(domain)
void mesh_path_relayed_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			       const void *payload);

/**
 * Ends the circuit at the relay that is the peer: nothing more is posted for it. The receiving end
 * gets a report when the writes of the last relay are complete (path->drained). process->lock held.
 */
MESH_HOLDS(process)
void mesh_path_drain_ask(struct mesh_path *path);

#endif
