/* SPDX-License-Identifier: Apache-2.0 */
/*
 * circuit.h - one path of a comm that leads through this process.
 *
 *	connecting node -- up --> this relay -- down --> next relay, or the listener's node
 *
 * Towards the connecting node the relay is a receiver that has memory of its own, towards the
 * listener's node it is a sender. Messages pass in both directions and get the ids that the next
 * one knows. Segments go from the memory of the relay into that of the next relay, or to where the
 * receiver's grant has said. The relay keeps no grants: RELAYED carries address and key.
 *
 * The circuit holds a segment until its receiver has it. So the connecting node has its memory back
 * when "sent" is the receiver's word.
 *
 * Locks: process->lock for opening and ending; circuit->lock, which is taken with a domain's lock
 * held, for what is forwarded.
 */
#ifndef MESH_RELAY_CIRCUIT_H
#define MESH_RELAY_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "control/peer.h"
#include "fabric/mr.h"
#include "nic/path_choice.h"
#include "relay/hop.h"
#include "relay/relay.h"
#include "wire/frame.h"
#include "wire/handle.h"
#include "wire/message.h"
#include "wire/stats.h"

struct mesh_circuit;

/* A message that waits for a buffer. */
struct mesh_passing {
	TAILQ_ENTRY(mesh_passing) entry;
	struct mesh_message_header header;
	uint8_t payload[]; /* header.length bytes */
};

/*
 * Messages that wait for buffers towards one side. The eager credit is 48 DATA; with GRANT, POSTED
 * and WANT a correct end has fewer outstanding than this. One that sends more ends its circuit.
 */
#define MESH_PASSING_MAX 256

/* What still comes from a side, or goes there. It only moves on: side_set(). */
enum mesh_side_state {
	MESH_SIDE_CARRIES,
	MESH_SIDE_SHUT,	   /* up: the connecting end has ended the circuit */
	MESH_SIDE_DRAINED, /* down: the receiving end knows that nothing arrives */
	MESH_SIDE_FENCED
};

/* One direction: the node there. */
struct mesh_circuit_side {
	struct mesh_circuit *circuit;
	struct mesh_circuit_side *other;
	struct mesh_peer *peer; /* process->lock; NULL: it has no sink either, and is no user */
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	struct mesh_sink sink; /* what arrives from there */
	struct mesh_peer_user user;
	struct mesh_waiter waiter;
	enum mesh_side_state state; /* process->lock */
	bool is_relay;		    /* another relay is there; constant */
	struct mesh_relay_question question MESH_GUARDED_BY(process); /* if is_relay */
	/* Theirs for this circuit; constant once known. */
	uint32_t remote_id, remote_token;
	_Atomic(bool) known; /* of up: the circuit is open */
	TAILQ_HEAD(, mesh_passing) passing MESH_GUARDED_BY(circuit); /* to there */
	int num_passing MESH_GUARDED_BY(circuit);
	/* Operations to there that point to the circuit. */
	uint32_t unfinished MESH_GUARDED_BY(circuit);
};

/* A segment in our memory. */
struct mesh_held {
	struct mesh_circuit *circuit; /* NULL: the granule is free */
	struct mesh_message_relayed what;
	uint32_t seq, size; /* as in WRITTEN */
};

/* The way on, while a circuit is opened (opening.c). */
struct mesh_circuit_opening {
	struct mesh_frame_open request;
	struct mesh_handle handle;
	struct mesh_next nexts[MESH_NEXTS_MAX];
	int num_nexts, tried;  /* of nexts */
	struct mesh_dial dial; /* the last one of these */
	uint64_t asked_ms;     /* when CONNECT or OPEN was sent there; 0: it was not */
};

/* Whether it is broken. It only moves on. */
enum mesh_circuit_state {
	MESH_CIRCUIT_WHOLE,
	MESH_CIRCUIT_BROKEN /* both ends know it */
};

struct mesh_circuit {
	LIST_ENTRY(mesh_circuit) entry; /* relay->circuits; process->lock */
	struct mesh_relay *relay;
	struct mesh_lock lock;
	/* expired() makes the next step of opening, or ending; mesh_relay_wake() calls it, too. */
	struct mesh_timer timer;
	/* Owned; NULL: the circuit is open, and both ends know it. */
	struct mesh_circuit_opening *opening MESH_GUARDED_BY(process);
	struct mesh_circuit_side up, down;
	enum mesh_circuit_state state MESH_GUARDED_BY(process);
	uint64_t failed_ms MESH_GUARDED_BY(process); /* when `error` was seen first */
	/* The connecting end has shut it so: SHUT, or WITHDRAWN; after so many writes, ever. */
	enum mesh_circuit_event shut_event MESH_GUARDED_BY(process);
	uint32_t shut_writes MESH_GUARDED_BY(process);
	/* For WITHDRAW, as in the handle and in CONNECT; constant. */
	uint64_t cookie, comm_key;
	uint32_t listen_id;
	char origin[MESH_NODE_NAME_MAX], target[MESH_NODE_NAME_MAX]; /* constant */

	/* Our memory, of MESH_GRANULES granules; constant while OPEN. */
	uint8_t *memory;
	size_t granule, bytes; /* bytes: of relay->memory, and of memory */
	struct mesh_mr *mr_up, *mr_down;

	_Atomic(int) error; /* negative errno: it is broken; set under the lock */
	/* With error: where; if the errno is EPROTO, the node there has violated the protocol. */
	const struct mesh_circuit_side *failed MESH_GUARDED_BY(circuit);
	uint32_t came MESH_GUARDED_BY(circuit);	   /* segments, ever */
	uint32_t writing MESH_GUARDED_BY(circuit); /* writes to the listener's node */
	bool unclean MESH_GUARDED_BY(circuit);	   /* one of those has failed */
	uint64_t arrived MESH_GUARDED_BY(circuit); /* to be reported upward, by first granule */
	struct mesh_hop hop;			   /* circuit->lock */
	struct mesh_held held[MESH_GRANULES] MESH_GUARDED_BY(circuit);
	/* Those that are not posted yet, in order: ring of first granules. */
	uint8_t waiting[MESH_GRANULES] MESH_GUARDED_BY(circuit);
	unsigned int first_waiting, num_waiting MESH_GUARDED_BY(circuit);
	/* Never NULL: in the process's page, or own_counters. */
	struct mesh_circuit_counters *counters MESH_GUARDED_BY(circuit);
	struct mesh_circuit_counters own_counters MESH_GUARDED_BY(circuit);
};

MESH_LOCK_FUNCTIONS(circuit, mesh_circuit, lock)

/** True if the peer there is lost, and what it sent has arrived. */
static inline bool mesh_circuit_side_is_lost(const struct mesh_circuit_side *side)
{
	return side->peer->fenced != MESH_FENCED_NOT;
}

/** Operations that point to the circuit. */
MESH_HOLDS(circuit)
static inline uint32_t mesh_circuit_unfinished(const struct mesh_circuit *circuit)
{
	return circuit->up.unfinished + circuit->down.unfinished;
}

/** Attaches a side to its peer, with an id of ours. Returns 0, -ENOMEM or -ENOSPC. */
MESH_HOLDS(process)
int mesh_circuit_side_open(struct mesh_circuit_side *side, struct mesh_peer *peer);

/** Idempotent. process->lock held. */
MESH_HOLDS(process)
void mesh_circuit_side_close(struct mesh_circuit_side *side);

/** Withdraws what CONNECT has asked of the listener's process. process->lock held. */
MESH_HOLDS(process)
void mesh_circuit_withdraw_send(const struct mesh_circuit *circuit);

/** Gives its memory back. process->lock held. */
MESH_HOLDS(process)
void mesh_circuit_memory_close(struct mesh_circuit *circuit);

/** Frees what only opening needs. Idempotent. process->lock held. */
MESH_HOLDS(process)
void mesh_circuit_opening_end(struct mesh_circuit *circuit);

/** Handles ACCEPT, OPENED or REFUSE; false: the circuit does not wait for it there. */
MESH_HOLDS(process)
bool mesh_circuit_answered(struct mesh_circuit_side *side, const struct mesh_frame *frame);

/** Closes and frees a circuit. process->lock held. */
MESH_HOLDS(process)
void mesh_circuit_free(struct mesh_circuit *circuit);

/**
 * The function of the timer of an open circuit: ends what is broken, and frees the circuit when
 * nothing of it is in flight.
 */
MESH_HOLDS(process)
void mesh_circuit_ending_expired(struct mesh_timer *timer, uint64_t now_ms);

/* ---- forward.c: messages in both directions, and segments ------------------------------------ */

/** Sets what handles a new circuit's messages, and the ends of its writes. */
void mesh_circuit_forward_init(struct mesh_circuit *circuit);

/** The side of a circuit that an id of ours names on this peer's link; NULL: there is none. */
MESH_HOLDS(process)
struct mesh_circuit_side *mesh_circuit_side_find(struct mesh_peer *peer, uint32_t id);

/**
 * The circuit is open: sends the connecting end what the other one has sent meanwhile. Until then
 * nothing of a circuit is in flight, so that it can be freed at once.
 */
void mesh_circuit_up_begin(struct mesh_circuit *circuit);

/** Ends the segments that wait for ARRIVED, which will not come. circuit->lock held. */
MESH_HOLDS(circuit)
void mesh_circuit_abandon(struct mesh_circuit *circuit);

#endif
