/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.h - this process as a relay: for whom it relays, who else may, what all circuits share, and
 * the thread that polls their NICs, because NCCL's threads sleep between collectives. It takes no
 * lock of set-up.
 *
 * For a while after something was forwarded the thread polls, because what comes next then costs no
 * wake-up. After a small message of NCCL that while is long, because somebody waits for each one;
 * after a segment it is as short as a wake-up, because the next segments are on their way while the
 * thread sleeps. Otherwise it sleeps on the NICs' descriptors; where a provider has none it looks
 * ever more seldom. They also wake it for what this process itself sends and receives, which NCCL's
 * threads poll for: after such a wake-up it pauses.
 */
#ifndef MESH_RELAY_RELAY_H
#define MESH_RELAY_RELAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "wire/handle.h"

struct mesh_circuit;
struct mesh_neighbours;

_Static_assert(MESH_MAIN_DOMAINS <= 32, "a bit for each");

/*
 * Whether the process of a relay runs: its kernel answers also while it is stopped, so its engine
 * is asked, over the control connection. process->lock covers it. Zeros: nothing was asked.
 */
struct mesh_relay_question {
	uint64_t asked_ms;  /* since when the latest one has had no answer; 0: it has one */
	uint64_t sent_ms;   /* when that was sent */
	uint64_t looked_ms; /* the last call of mesh_relay_ask() */
};

struct mesh_relay_thread {
	pthread_t thread;
	bool running;
	int wake_fd; /* eventfd; -1 until the thread is started */
	_Atomic(bool) stop;
	_Atomic(uint32_t) domains;  /* a bit for each main domain that had a circuit; 0: sleeps */
	_Atomic(uint64_t) moved;    /* counts what circuits forward */
	_Atomic(uint64_t) messages; /* those of it that are small messages of NCCL */
	_Atomic(bool) sleeps;	    /* what is forwarded now needs wake_fd */
};

struct mesh_relay {
	struct mesh_process *process;
	uint64_t job; /* mesh_job_key(); 0 where unknown */
	/* Set-up's; NULL: there are no answers, and only the last relay of a route can be found. */
	struct mesh_neighbours *neighbours MESH_GUARDED_BY(process);
	LIST_HEAD(, mesh_circuit) circuits MESH_GUARDED_BY(process);
	uint64_t memory MESH_GUARDED_BY(process); /* bytes that circuits have */
	_Atomic(bool) news;			  /* a circuit is broken, or may be at its end */
	struct mesh_relay_thread thread;
};

/**
 * Makes process->relay. No thread runs until the first circuit opens. process->lock held.
 *
 * Returns 0 or -ENOMEM.
 */
MESH_HOLDS(process)
int mesh_relay_open(struct mesh_process *process, uint64_t job);

/** Stops the thread. The process->lock must not be held. Does nothing without a relay. */
void mesh_relay_stop(struct mesh_process *process);

/** Frees process->relay, which has no circuit. process->lock held. */
MESH_HOLDS(process)
void mesh_relay_close(struct mesh_process *process);

/** Has circuits that are broken, or at their end, looked at. Any lock may be held. */
void mesh_relay_wake(struct mesh_relay *relay);

/** True if a HELLO asks for this process as a relay, and it relays. process->lock held. */
MESH_HOLDS(process)
bool mesh_relay_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello);

/**
 * True if the processes of @job relay for each other here: NCCL_MESH_RELAY. process->lock held.
 */
MESH_HOLDS(process)
bool mesh_relay_serves(const struct mesh_process *process, uint64_t job);

/**
 * Asks a relay with CIRCUIT, unless it owes an answer or was asked a moment ago. To be called
 * several times within a second while something waits: time in which it was not does not count,
 * because this process itself may have been stopped. process->lock held.
 *
 * @to: the relay's id of the circuit
 */
MESH_HOLDS(process)
void mesh_relay_ask(struct mesh_relay_question *question, struct mesh_peer *relay, uint32_t to,
		    uint64_t now_ms);

/** True if the relay has not answered for as long as a link may be silent. */
MESH_HOLDS(process)
bool mesh_relay_is_silent(const struct mesh_relay_question *question,
			  const struct mesh_process *process, uint64_t now_ms);

/** Starts the thread if it does not run. Returns 0 or a negative errno after a WARN line. */
int mesh_relay_thread_start(struct mesh_relay *relay);

/** Ends the thread's sleep. Any lock may be held. */
void mesh_relay_thread_wake(struct mesh_relay_thread *thread);

/**
 * A circuit has forwarded something, in whichever thread: completions of what was posted may make
 * no event that would wake the relay's. Any lock may be held. @message: it was a small message of
 * NCCL.
 */
static inline void mesh_relay_moved(struct mesh_relay *relay, bool message)
{
	struct mesh_relay_thread *thread = &relay->thread;

	if (message)
		atomic_fetch_add_explicit(&thread->messages, 1, memory_order_relaxed);
	atomic_fetch_add(&thread->moved, 1);
	if (atomic_load(&thread->sleeps))
		mesh_relay_thread_wake(thread);
}

/* ---- who may relay, and the way on to the listener ------------------------------------------- */

#define MESH_NEXTS_MAX 16

/* A process behind one of our links. */
struct mesh_next {
	struct mesh_way way;
	uint64_t node_id;
	char node[MESH_NODE_NAME_MAX];
	bool drained; /* a user drains a NIC at either end: others come first */
	int turn;     /* among those that are drained alike */
};

/**
 * Lists the processes on neighbouring nodes that may relay, as the neighbours have answered: first
 * the most suitable one of each node, over each of our links to it, those with RDMA at both ends
 * first; then the second one of each, and so on. Those over a drained NIC follow all others.
 *
 * @neighbours: NULL: there are none
 * @node_id: of the node; 0: all but our own
 * @job: of this job, or services that relay for it; with NCCL_MESH_RELAY=any all, these first
 * @spread: of several links that are alike each comes first for some of these numbers
 *
 * Returns how many, at most @max.
 */
MESH_HOLDS(process)
int mesh_nexts_of_node(const struct mesh_process *process, const struct mesh_neighbours *neighbours,
		       uint64_t node_id, uint64_t job, uint32_t spread, struct mesh_next *nexts,
		       int max);

/**
 * The same for the listener of @handle: first the NICs of its node that have answered as
 * neighbours, then those of the handle that share a subnet with one of ours; of each kind, those
 * with RDMA at both ends first. The listener's id spreads connections over links that are alike.
 */
MESH_HOLDS(process)
int mesh_nexts_of_handle(const struct mesh_process *process,
			 const struct mesh_neighbours *neighbours, const struct mesh_handle *handle,
			 struct mesh_next *nexts, int max);

/* ---- circuit.c: frames, lost peers, the end of circuits -------------------------------------- */

/*
 * A relay answers OPEN within this, and the listener CONNECT: each relay has it for what lies
 * behind it.
 */
#define MESH_OPEN_ANSWER_MS 15000

/** Ends and frees circuits that are due. process->lock held. */
MESH_HOLDS(process)
void mesh_circuits_tick(struct mesh_process *process, uint64_t now_ms);

/** Frees all of them at the end of the plugin, after mesh_relay_stop(). process->lock held. */
MESH_HOLDS(process)
void mesh_circuits_close(struct mesh_process *process);

/** True if a circuit through this process ends at that node. process->lock held. */
MESH_HOLDS(process)
bool mesh_circuits_end_at(const struct mesh_process *process, uint64_t node_id);

/** A NIC has no carrier: breaks the circuits over it. process->lock held. */
MESH_HOLDS(process)
void mesh_circuits_carrier_lost(struct mesh_process *process, const struct mesh_domain *domain);

/** Sends CIRCUIT about the peer's id @to. process->lock held. */
MESH_HOLDS(process)
void mesh_circuit_event_send(struct mesh_peer *peer, uint32_t to, struct mesh_frame_circuit event);

/**
 * Handles ACCEPT, OPENED, REFUSE, CIRCUIT, or another frame about a comm (wire/frame.h: to_comm) if
 * it names a circuit that leads through this process; else returns false: then it is for an end
 * that is here.
 */
MESH_HOLDS(process)
bool mesh_circuit_frame(struct mesh_peer *peer, const struct mesh_frame *frame);

/* ---- opening.c ------------------------------------------------------------------------------- */

/** Handles OPEN: makes a circuit, or refuses it. process->lock held. */
MESH_HOLDS(process)
void mesh_circuit_open_came(struct mesh_peer *peer, const struct mesh_frame *frame);

/** Answers OPENED or ACCEPT for what no longer exists: it is withdrawn, or lost without a write. */
MESH_HOLDS(process)
void mesh_circuit_answered_in_vain(struct mesh_peer *peer, const struct mesh_frame *frame);

#endif
