/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accept_wait.h - how long accept() waits: what its listener knows of the process that is to
 * connect, and the messages about the wait.
 */
#ifndef MESH_SETUP_ACCEPT_WAIT_H
#define MESH_SETUP_ACCEPT_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"

/* What has become of the process that last sent the listener's cookie, in HELLO or CONNECT. */
enum mesh_accept_peer {
	MESH_ACCEPT_HERE,    /* or there was none */
	MESH_ACCEPT_LOST,    /* no connection with it is left, and the last one was not complete */
	MESH_ACCEPT_LOST_UP, /* the same, and that was */
	MESH_ACCEPT_GAVE_UP, /* it has sent a final WITHDRAW */
	MESH_ACCEPT_REFUSED, /* one runs another protocol version: nothing else counts any more */
};

/* All under process->lock. */
struct mesh_accept_wait {
	struct mesh_process *process; /* constant */
	uint64_t deadline_ms;	      /* set by the first accept() */
	uint64_t since_ms;	      /* of the first accept(); 0 before that */
	bool warned;		      /* a WARN reported that it takes long */
	uint64_t process_id;	      /* of that one; 0: none so far */
	char name[MESH_PEER_TEXT_MAX];
	enum mesh_accept_peer state;
	uint64_t gone_ms;		   /* since when that, and not HERE */
	char reason[MESH_PEER_REASON_MAX]; /* why that ended; "" if it did not */
	/* The last process with comms of ours that was lost meanwhile; "" if none was. */
	char lost[MESH_PEER_TEXT_MAX];
};

/** @peer has sent the listener's cookie. process->lock held, as for all of these. */
MESH_HOLDS(process)
void mesh_accept_wait_heard(struct mesh_accept_wait *wait, const struct mesh_peer *peer);

/** The process of @peer has given up connecting to this listener. */
MESH_HOLDS(process)
void mesh_accept_wait_given_up(struct mesh_accept_wait *wait, const struct mesh_peer *peer);

/** @peer, which has sent the listener's cookie, runs another protocol version: see @reason. */
MESH_HOLDS(process)
void mesh_accept_wait_refused(struct mesh_accept_wait *wait, const struct mesh_peer *peer,
			      const char *reason);

/** @peer is about to be lost, for peer->reason; @missed: comms use it. */
MESH_HOLDS(process)
void mesh_accept_wait_peer_lost(struct mesh_accept_wait *wait, const struct mesh_peer *peer,
				bool missed);

/** A comm waits for its path to come back: the peer's process is not gone as long as that lasts. */
MESH_HOLDS(process)
void mesh_accept_wait_hold(struct mesh_accept_wait *wait, uint64_t now_ms);

/** accept() has found a comm: the wait for the next one starts again. */
void mesh_accept_wait_end(struct mesh_accept_wait *wait);

/**
 * Called by each accept() that finds no comm. Logs one WARN if that lasts long.
 *
 * Returns 0 while it is worth waiting; after a WARN -EPROTONOSUPPORT if the process that is to
 * connect runs another protocol version, -ECONNRESET if it is gone or has given up, -ETIMEDOUT
 * after NCCL_MESH_ACCEPT_TIMEOUT.
 */
MESH_HOLDS(process)
int mesh_accept_wait_check(struct mesh_accept_wait *wait, uint64_t now_ms);

#endif
