/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liveness.h - decides whether another process's kernel still answers over one link, from our
 * kernel's state of all TCP sockets with it. Pure logic: the caller reads sockets and the clock.
 *
 * There is one verdict for each link. Anything that arrives on any socket is a sign of life;
 * silence counts from the first packet that got no answer. A peer whose process is stopped is
 * alive: its kernel answers. A slow link is alive: its acknowledgements arrive.
 */
#ifndef MESH_CONTROL_LIVENESS_H
#define MESH_CONTROL_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "system/tcp_look.h"

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

/** @limit_ms: how long the peer may be silent */
void mesh_liveness_init(struct mesh_liveness *liveness, uint64_t limit_ms);

/** Watches the peer until @until_ms at least. */
void mesh_liveness_want(struct mesh_liveness *liveness, uint64_t until_ms);

/** True if the sockets should be read now. Ends the watch when its time is over. */
bool mesh_liveness_is_due(struct mesh_liveness *liveness, uint64_t now_ms);

/**
 * The kernel's keep-alive has had no answer since @asked_ms, while the peer was not watched: it is
 * watched from now on, and the silence counts from then.
 *
 * @heard_ms: the last sign of life
 */
void mesh_liveness_unanswered(struct mesh_liveness *liveness, uint64_t heard_ms, uint64_t asked_ms,
			      uint64_t now_ms);

/**
 * Updates the state from a look at all sockets of the link, and returns the verdict.
 *
 * @looks, @num_looks: those that could be read; without any the verdict is GOES_ON
 */
enum mesh_liveness_verdict mesh_liveness_learn(struct mesh_liveness *liveness,
					       const struct mesh_tcp_look *looks, int num_looks,
					       uint64_t now_ms);

/**
 * True if the peer has answered recently, or nothing is known of it. A frame that is sent during a
 * silence stops the kernel's keep-alive, and TCP retransmits it at growing intervals: the caller
 * should wait.
 */
bool mesh_liveness_is_fresh(const struct mesh_liveness *liveness, uint64_t now_ms);

#endif
