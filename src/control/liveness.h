/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liveness.h - decides whether another process's kernel still answers over one link, from what our
 * kernel knows of all TCP sockets with it. Pure logic: the caller reads sockets and the clock.
 *
 * One verdict for the link, whatever uses it. Anything that arrives on any socket is a sign of
 * life; silence counts from the first packet that got no answer. A peer whose process is stopped
 * is alive: its kernel answers. A slow link is alive: its acknowledgements arrive.
 */
#ifndef MESH_CONTROL_LIVENESS_H
#define MESH_CONTROL_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "system/tcp_look.h"

/* Sockets of one link that are looked at; there are two control connections and two of data. */
#define MESH_LIVENESS_SOCKETS 8

enum mesh_liveness_state {
	MESH_LIVENESS_IDLE,    /* nobody waits for the peer: not looked at */
	MESH_LIVENESS_WATCHED, /* somebody waits, and the peer answers */
	MESH_LIVENESS_SILENT,  /* somebody waits, and nothing has arrived for a while */
	MESH_LIVENESS_STATES
};

enum mesh_liveness_verdict {
	MESH_LIVENESS_GOES_ON,
	MESH_LIVENESS_NO_ANSWER, /* nothing arrives, whatever we send */
	MESH_LIVENESS_NO_DATA,	 /* small packets are answered; the data in flight never is */
};

/* What was seen of one socket before. */
struct mesh_liveness_socket {
	struct mesh_tcp_look last;
	uint64_t moved_ms; /* when its data in flight was last answered, or the link came back */
	uint32_t resent;   /* last.resent at that time */
	uint64_t mark;	   /* bytes_acked at which all that was queued at mark_ms is gone */
};

struct mesh_liveness {
	enum mesh_liveness_state state;
	uint64_t limit_ms;	  /* of silence */
	uint64_t wanted_until_ms; /* somebody waits until then */
	uint64_t looked_ms;	  /* the last look; 0 if none */
	uint64_t heard_ms;	  /* the last sign of life; 0 if unknown */
	uint64_t asked_ms;	  /* the first packet without an answer since; 0 if none */
	uint64_t audible_ms;	  /* since when there was no longer silence */
	uint64_t mark_ms;
	uint64_t drained_ms; /* all that the sockets held at this time is acknowledged */
	struct mesh_liveness_socket sockets[MESH_LIVENESS_SOCKETS];
	int num_sockets;
};

/** @limit_ms: how long the peer may be silent */
void mesh_liveness_init(struct mesh_liveness *liveness, uint64_t limit_ms);

/** Somebody waits for the peer, until @until_ms at least. */
void mesh_liveness_want(struct mesh_liveness *liveness, uint64_t until_ms);

/** True if the sockets should be looked at now. Ends the watch if nobody waits any longer. */
bool mesh_liveness_is_due(struct mesh_liveness *liveness, uint64_t now_ms);

/**
 * Learns from a look at all sockets of the link, and judges.
 *
 * @looks, @num_looks: those that could be read; none say nothing
 */
enum mesh_liveness_verdict mesh_liveness_learn(struct mesh_liveness *liveness,
					       const struct mesh_tcp_look *looks, int num_looks,
					       uint64_t now_ms);

/**
 * True if the peer has answered a moment ago, or nothing is known of it. A frame that is sent in a
 * silence stops the kernel's keep-alive, and is repeated ever less often: better to wait.
 */
bool mesh_liveness_is_fresh(const struct mesh_liveness *liveness, uint64_t now_ms);

#endif
