/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_life.h - the life of a peer: it connects, sends HELLO, greets, retries, is lost, and ends.
 *
 * All with process->lock held.
 */
#ifndef MESH_CONTROL_PEER_LIFE_H
#define MESH_CONTROL_PEER_LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "control/process.h"
#include "nic/path_choice.h"
#include "wire/handle.h"

/* ---- dials and attempts (peer_life.c) -------------------------------------------------------- */

/*
 * A dial makes a way to another process real: it opens our domain, and has a peer made, and another
 * one when that fails. Its owner looks at it from time to time, and decides how long it waits, and
 * what comes next.
 */

/**
 * Makes an incoming peer from an accepted socket, and owns the socket. It gets a domain when it has
 * sent a HELLO that is admitted: nobody else has one opened.
 *
 * @dev: the NIC that it has connected to
 *
 * Returns 0, or a negative errno.
 */
MESH_HOLDS(process)
int mesh_peer_accept(struct mesh_process *process, int dev, int fd, const struct mesh_addr *from);

/** Frees the peer with everything it holds, at shutdown. process->lock held. */
MESH_HOLDS(process)
void mesh_peer_free(struct mesh_peer *peer);

/**
 * The function of peer->timer: the deadlines of one peer. It sets the time of the next call. May
 * free the peer, but no other one. process->lock held.
 */
MESH_HOLDS(process)
void mesh_peer_tick(struct mesh_timer *timer, uint64_t now_ms);

/* ---- dials --------------------------------------------------------------------------------- */

/** Names the listener of @handle as the one that the way leads to. */
void mesh_way_listener_set(struct mesh_way *way, const struct mesh_handle *handle);

/**
 * The way to the listener of @handle over a pair of NICs.
 *
 * Returns false if our NIC has no domain for the pair's provider.
 */
MESH_HOLDS(process)
bool mesh_way_of_pair(const struct mesh_process *process, const struct mesh_handle *handle,
		      const struct mesh_path_candidate *pair, struct mesh_way *way);

enum mesh_dial_state {
	MESH_DIAL_REST,
	MESH_DIAL_OPENING, /* our domain is being opened */
	MESH_DIAL_TRYING,
	MESH_DIAL_UP,
	MESH_DIAL_DEAD /* peer says why, or error does */
};

/* Zeros: at rest. */
struct mesh_dial {
	struct mesh_process *process;
	struct mesh_way way;
	enum mesh_dial_state state;
	uint64_t since_ms; /* when it began, or our domain was open, if that was later */
	/* The attempt, or one that has failed; this is one user of it; NULL: no domain is open. */
	struct mesh_peer *peer;
	/*
	 * DEAD without a peer: -ENETDOWN: our NIC has no carrier; -ENODEV: it cannot be opened
	 * (logged), or its domain has no id left (-ENOSPC); or there is no memory.
	 */
	int error;
};

/**
 * Begins to dial @way. The dial is at rest.
 *
 * Returns 0, or what is said of mesh_dial.error: then the dial is at rest again.
 */
MESH_HOLDS(process)
int mesh_dial_begin(struct mesh_dial *dial, struct mesh_process *process,
		    const struct mesh_way *way, uint64_t now_ms);

/** Learns what has become of it, and tries again if that is due. Returns its state. */
MESH_HOLDS(process)
enum mesh_dial_state mesh_dial_look(struct mesh_dial *dial, uint64_t now_ms);

/**
 * True if it is dead, or another way should be tried now: no process listens there, or it took
 * MESH_DIAL_MS; three times that if libfabric opens our NIC, which takes seconds on ofi_rxm.
 */
MESH_HOLDS(process)
bool mesh_dial_is_vain(const struct mesh_dial *dial, uint64_t now_ms);

/** Leaves the peer, if there is one: the dial is at rest. */
MESH_HOLDS(process)
void mesh_dial_end(struct mesh_dial *dial);

/* ---- control connections (controls.c) -------------------------------------------------------- */

/** Starts an attempt to connect. */
MESH_HOLDS(process)
void mesh_peer_attempt_start(struct mesh_peer *peer);

/** An attempt to connect has failed: the peer's dials try again soon. */
MESH_HOLDS(process)
void mesh_peer_errno_retry(struct mesh_peer *peer, int error);

/** The function of peer->watch. */
MESH_HOLDS(process)
void mesh_peer_ready(struct mesh_watch *watch, uint32_t events);

/**
 * Handles what the kernel has received from all peers that are up: before a link is lost, whose
 * control connections are then closed with whatever lies there. It may be the last word about a
 * comm. process->lock held, and no walk over comms or peers is under way.
 */
MESH_HOLDS(process)
void mesh_peers_unread_handle(struct mesh_process *process);

/** Sends a frame, or queues it. If that fails, its link is lost soon after. */
MESH_HOLDS(process)
void mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame, enum mesh_frame_type type);

/** Writes what the error of a control connection means into @reason, @size bytes. */
void mesh_control_errno_explain(int error, char *reason, size_t size);

/* ---- frames (peer_frames.c) ------------------------------------------------------------------ */

/*
 * HELLO comes first; then a greeting proves that the fabric works in both directions, before any
 * comm is made. A link of which a NIC is drained goes out of use: comms that have another path post
 * nothing more on it (docs/protocol/recovery.md).
 */

/**
 * Handles the complete frames in peer->in. A peer that has no domain yet sends HELLO first: that
 * waits in peer->in while its domain is being opened.
 */
MESH_HOLDS(process)
void mesh_peer_frames_handle(struct mesh_peer *peer);

/** Handles the HELLOs that wait for a domain: one was opened, or cannot be. */
MESH_HOLDS(process)
void mesh_peers_hello_resume(struct mesh_process *process);

/** Refuses the peer's HELLO or, if @comm is not 0, the CONNECT of its comm @comm. */
MESH_HOLDS(process)
void mesh_peer_refuse(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t comm);

/** Sends HELLO. */
MESH_HOLDS(process)
void mesh_peer_hello_send(struct mesh_peer *peer);

/** True if our NIC on the link or the peer's is drained: comms with another path leave it. */
MESH_HOLDS(process)
bool mesh_peer_is_drained(const struct mesh_peer *peer);

/** HELLO or NICS from the peer's process has all of its NICs; users learn which are drained. */
MESH_HOLDS(process)
void mesh_peer_drained_learn(struct mesh_peer *peer, const struct mesh_wire_nic *nics,
			     int num_nics);

/** A NIC has joined, is drained, or no longer: peers and users learn of it. */
MESH_HOLDS(process)
void mesh_peers_nics_changed(struct mesh_process *process);

/* ---- the end (peer_end.c) -------------------------------------------------------------------- */

/*
 * What was lost on a link is brought to rest before it is used again.
 *
 * The provider has one connection between two endpoints, in both directions and for all comms. What
 * was posted before the loss must neither be sent over a new one, nor be fenced together with it.
 * So each end stops first: it sends HELLO once none of its operations is in flight on that link.
 * Each end that reads a HELLO knows that the other one has stopped, and fences, once.
 *
 * On verbs a cut takes up to some seconds: while the peer's NIC may refuse a write, and while our
 * endpoint is being closed. Nothing waits for it with a lock held: the peer's timer goes on with
 * it, and until it is over the link is not used again, and no question about what has arrived there
 * is answered (src/transport/recovery.c).
 */

/* Why an attempt starts anew: mesh_endpoints_check(). */
#define MESH_ENDPOINT_OPENING "the endpoint of the NIC here is being opened anew"

/*
 * Where each attempt is refused for so long, the process has ended. A firewall's reload refuses for
 * a moment, too; where a process ends in order, its control connections have said so before.
 */
#define MESH_REFUSED_MS 2000

/**
 * Declares the peer lost, with @reason in the log; its comms fail soon after, from
 * mesh_peer_tick(). Idempotent. Takes domain->lock.
 */
MESH_HOLDS(process)
void mesh_peer_lose(struct mesh_peer *peer, const char *reason);

/**
 * The process of @peer has ended: none of its users goes on, also those that wait for a lost link.
 *
 * @why: for a WARN, if some of them wait
 */
MESH_HOLDS(process)
void mesh_peer_process_ended(struct mesh_peer *peer, const char *why);

/**
 * Notifies the users of a lost peer, once: what it sent before has had time to arrive. Where users
 * go on without it, a cut of the provider's connections with it begins before, so that every
 * operation that is in flight there ends. Takes domain->lock.
 */
MESH_HOLDS(process)
void mesh_peer_bury(struct mesh_peer *peer);

/**
 * Before a fence of @peer: loses the links of other peers whose connections are the same ones, so
 * that what they have in flight is sent again. @why: for the log
 */
MESH_HOLDS(process)
void mesh_peer_flow_lose(const struct mesh_peer *peer, const char *why);

/** The peer is lost, and was not up: if it is outgoing its dials try again soon. */
MESH_HOLDS(process)
void mesh_peer_retry(struct mesh_peer *peer, const char *reason);

/**
 * Says that this attempt is over, if the other end may believe that it has succeeded: there a
 * connection that ends in order means that the process has ended. So one that is up or that greets,
 * or has frames that were not sent, is reset.
 */
MESH_HOLDS(process)
void mesh_peer_attempt_end(struct mesh_peer *peer);

/** Drops a greeting that the provider has not accepted yet: its attempt is over. */
void mesh_peer_greeting_drop(struct mesh_peer *peer);

/**
 * Declares all peers of @peer's link lost at once: nothing more can arrive over it.
 *
 * @refusal: sent over the link and over the process's other links before; 0: over this link only
 */
MESH_HOLDS(process)
void mesh_link_lose(struct mesh_peer *peer, const char *reason, enum mesh_refusal refusal);

/** True if nothing of ours is in flight to a lost peer on the same link, and none is fenced now. */
MESH_HOLDS(process)
bool mesh_link_is_quiet(const struct mesh_peer *peer);

/**
 * The process at the other end of @peer's link has sent HELLO, so it has stopped: fences the peers
 * of this process that were lost there, and informs their users. An incoming peer that seems to be
 * up there is lost, because its process connects anew. Takes domain->lock.
 *
 * Returns false if operations of ours are in flight there, or a fence is in progress: later.
 */
MESH_HOLDS(process)
bool mesh_link_settle(struct mesh_peer *peer);

/**
 * True if comms have lost the link of @peer, which is up again.
 *
 * @logged: set if a WARN reported that, of this lane or another one, which is forgotten
 */
MESH_HOLDS(process)
bool mesh_link_was_lost(const struct mesh_peer *peer, bool *logged);

/**
 * Loses the links of a NIC that broke, and the other links over endpoints that were closed, as the
 * fence of one link: they come back with the new endpoints' names. To be called after each event.
 */
MESH_HOLDS(process)
void mesh_endpoints_check(struct mesh_process *process);

#endif
