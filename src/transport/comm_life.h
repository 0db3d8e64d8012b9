/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_life.h - a comm is made, ends, closes and is freed; it goes on when a path is lost, and the
 * path gets another life: docs/protocol/recovery.md.
 */
#ifndef MESH_TRANSPORT_COMM_LIFE_H
#define MESH_TRANSPORT_COMM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/process.h"
#include "transport/comm.h"
#include "wire/frame.h"

/* ---- made and freed (comm_life.c) ------------------------------------------------------------ */

/* What a new comm is to be. */
struct mesh_comm_wish {
	int num_paths; /* that it will have */
	uint64_t key;  /* random, the same at both ends */
	/* Of the listener at the other end; NULL: the comm receives. */
	const struct mesh_handle *handle;
	/* The node's name at the other end of relays, through which its paths lead; NULL: none. */
	const char *relayed_to;
};

/**
 * Makes a comm with its first path, through @peer. process->lock held.
 *
 * @owner: the mesh_net that closes it
 *
 * Returns 0, -ENOMEM, -ENOSPC if the domain has no id left, or another negative errno.
 */
MESH_HOLDS(process)
int mesh_comm_open(const void *owner, struct mesh_peer *peer, const struct mesh_comm_wish *wish,
		   struct mesh_comm **comm);

/**
 * Adds the next path, through @peer, a @relay or the process at the other end, whose domain's table
 * it enters. Returns as mesh_comm_open() does; also -ENOSPC if the comm has all of its paths.
 */
MESH_HOLDS(process)
int mesh_comm_path_add(struct mesh_comm *comm, struct mesh_peer *peer, bool relay);

/** A link of the comm is drained, a NIC has become a reserve, or neither any longer. */
MESH_HOLDS(process)
void mesh_comm_tiers_renew(struct mesh_comm *comm);

/** Frees a comm that has no registrations and nothing in flight. process->lock held. */
MESH_HOLDS(process)
void mesh_comm_free(struct mesh_comm *comm);

/** Frees the memory of a comm to which nothing refers. */
void mesh_comm_memory_free(struct mesh_comm *comm);

/** A frame of the control connection that is for a comm: CLOSE, ASK, RESUME or HAVE. */
MESH_HOLDS(process)
void mesh_comm_frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame);

/* ---- the states of its two ends (comm_end.c) ------------------------------------------------- */

/* Also the engine's part of closing: it answers peers that close; and the fence of one comm. */

/** Notes what the peer reports about its end; a late report is ignored. comm->lock held. */
MESH_HOLDS(comm)
void mesh_comm_peer_end_learn(struct mesh_comm *comm, enum mesh_end state);

/**
 * Ends the comm at once, at both ends: no frame is sent, and what was in flight is lost. Logs @why
 * at INFO only, because the caller logs one line for all of its comms. process->lock held.
 *
 * Returns whether NCCL still used it.
 */
MESH_HOLDS(process)
bool mesh_comm_end(struct mesh_comm *comm, int error, const char *why);

/** The peer with which frames about this comm are exchanged. process->lock held. */
MESH_HOLDS(process)
static inline struct mesh_peer *mesh_comm_frame_peer(const struct mesh_comm *comm)
{
	return mesh_comm_frame_path(comm)->peer;
}

/**
 * Takes a step of our end and informs the peer. The engine and NCCL's thread may both call it: the
 * second call does nothing. process->lock held.
 */
MESH_HOLDS(process)
void mesh_comm_end_step(struct mesh_comm *comm, enum mesh_end state);

/**
 * Sends the frame about our end once more if a lost path may have dropped it. Without a path it is
 * sent when there is one. process->lock held.
 */
MESH_HOLDS(process)
void mesh_comm_end_repeat(struct mesh_comm *comm);

/** CLOSE came from the comm's peer. process->lock held. */
MESH_HOLDS(process)
void mesh_comm_close_came(struct mesh_comm *comm, const struct mesh_frame_close *frame);

/**
 * Sends CLOSED for a comm that our NCCL never received; the caller frees it next. process->lock
 * held.
 */
MESH_HOLDS(process)
void mesh_comm_refuse(const struct mesh_comm *comm);

/** True if no path needs a fence: nothing of the comm is in flight, or may arrive. */
MESH_HOLDS(process)
MESH_HOLDS(comm)
bool mesh_paths_are_at_rest(const struct mesh_comm *comm);

/**
 * Brings the paths of a comm that ends to rest: circuits are left, and fenced if that takes too
 * long; the links of the others are lost, and fenced. Other comms there go on as after any loss. To
 * be called until it returns true. No lock held.
 *
 * @late: nothing has moved on it for MESH_LINK_FRAME_MS
 */
bool mesh_comm_fence_step(struct mesh_comm *comm, bool late);

/**
 * Writes of a sender that have not completed after that may never complete. They keep the comm
 * allocated, but no longer count against the window of the flow, which other comms need. No lock.
 */
void mesh_comm_writes_forget(struct mesh_comm *comm);

/* ---- closed (close.c) ------------------------------------------------------------------------ */

/**
 * Brings the comm to rest: it starts nothing new, the peer has confirmed that, and no operation in
 * flight touches the memory of its requests. Waits a bounded time; a peer that does not answer is
 * fenced. No lock held.
 *
 * Returns true if the answer to our CLOSED is awaited: no abort, and it has not come.
 */
bool mesh_comm_quiesce(struct mesh_comm *comm);

/*
 * A sender that has nothing in flight needs only the receiver's word that everything has arrived,
 * because its process may end. NCCL closes its comms one after the other, so a close does not wait
 * for that word: the comm lingers, and the engine frees it. The close of the last comm waits for
 * all that linger; so do mesh_net_close() and exit().
 *
 * A receiver lingers as well: its CLOSED may be lost with a link, and the sender's doubt about what
 * has arrived ends with it.
 */

/**
 * Closes a send or receive comm. Waits a bounded time for operations in flight; afterwards nothing
 * reads or writes the memory of its requests. NULL is allowed. No lock held.
 */
void mesh_comm_close(struct mesh_comm *comm);

/** CLOSED has come for the comm: frees it if it lingers and the peer has answered. */
MESH_HOLDS(process)
void mesh_comm_linger_check(struct mesh_comm *comm);

/** Waits a bounded time until no comm lingers. No lock held. */
void mesh_comms_linger_await(struct mesh_process *process);

/** The owner of comms is freed: another one at its address does not abort. No lock held. */
void mesh_abort_forget(struct mesh_process *process, const void *owner);

/* From here on all with process->lock held, and no comm's but where it is said. */

/* ---- a path is lost (recovery.c) ------------------------------------------------------------- */

/** True if the comm goes on when this path is lost, has no other then, and waits for one. */
MESH_HOLDS(process)
bool mesh_path_is_waited_for(const struct mesh_path *path);

/** Sends again what a lost path may have dropped, but for large messages. comm->lock held. */
MESH_HOLDS(comm)
void mesh_send_repeat(struct mesh_comm *comm);

/**
 * Loses the links of suspect paths, and sends RESUME where it is due. To be called after
 * each event; does nothing unless mesh_comm_recover_soon() was called.
 */
MESH_HOLDS(process)
void mesh_comms_recover(struct mesh_process *process);

/** HAVE for a sending comm: what has not arrived is sent again. */
MESH_HOLDS(process)
void mesh_have_came(struct mesh_comm *comm, const struct mesh_frame_have *have);

/** CIRCUIT came over @peer for a path that ends here. */
MESH_HOLDS(process)
void mesh_path_circuit_event(struct mesh_peer *peer, const struct mesh_frame *frame);

/**
 * Leaves a path through relays that is up, because the comm has a better one: the relays learn that
 * and the other end. Takes domain->lock and comm->lock.
 */
MESH_HOLDS(process)
void mesh_path_leave(struct mesh_path *path);

/* ---- a lost path is quiet, and messages in doubt (questions.c) ------------------------------- */

/**
 * The sending end has given up a path through relays. The path is down once its last relay has
 * reported, which may be now; if that takes too long, a later call fences it. Takes domain->lock.
 */
MESH_HOLDS(process)
void mesh_path_given_up(struct mesh_path *path);

/** CIRCUIT drained came for a path: its last relay has no write in flight, and posts none. */
MESH_HOLDS(process)
void mesh_path_circuit_drained(struct mesh_path *path, const struct mesh_frame_circuit *event);

/**
 * RESUME for a receiving comm: fences the paths that it names, and answers with HAVE, at once or
 * when they are fenced and their relays have reported. Takes domain->lock.
 *
 * @over: the path of the comm that it has come over
 */
MESH_HOLDS(process)
void mesh_resume_came(struct mesh_path *over, const struct mesh_frame_resume *resume);

/* ---- over its link, when that is back (rejoin.c) --------------------------------------------- */

/*
 * The process at the sending end connects again, for as long as a comm wants the path. A comm
 * without any path waits for NCCL_MESH_RECOVERY_TIMEOUT.
 */

/**
 * A path is lost: its link is tried until the path is up again. The receiving end of a comm tries
 * it only if the comm has no other path. A link over which no large write arrives again and again,
 * although small messages do, is tried ever more seldom, also for comms without another path.
 */
MESH_HOLDS(process)
void mesh_rejoin_want(struct mesh_path *path);

/**
 * Comms that send to the process @process_id and never had a path over this link may get one, if it
 * is not worse than theirs. It is dialled for as long as one of them may.
 *
 * @way: its listener is not meant
 * @comm: the one that it is for; NULL: any
 */
MESH_HOLDS(process)
void mesh_rejoin_new(struct mesh_process *process, uint64_t process_id, const struct mesh_way *way,
		     struct mesh_comm *comm);

/** The NIC has a carrier: its links that were lost are tried at once. */
MESH_HOLDS(process)
void mesh_rejoins_hasten(struct mesh_process *process, const struct mesh_domain *domain);

/** A comm's memory may be registered: links that are up go on at once, in the same order. */
MESH_HOLDS(process)
void mesh_rejoins_go_on(struct mesh_process *process);

/** A peer is up: a lost link may be back with it. Takes domain->lock. */
MESH_HOLDS(process)
void mesh_rejoin_peer_up(struct mesh_peer *peer);

/** Forgets all links, at shutdown. */
MESH_HOLDS(process)
void mesh_rejoins_close(struct mesh_process *process);

/* ---- another life of a path (attach.c) ------------------------------------------------------- */

/*
 * The sending end asks for it: over the link that the path had, or over any way that leads to its
 * peer (src/setup/seeker.c).
 */

/* ---- the sending end ----------------------------------------------------------------------- */

/**
 * Gives a path to @peer, which is up: the process at the other end, which is asked, or, if @relay,
 * a relay to which OPEN is to be sent.
 *
 * Returns 0; -EAGAIN if the path is not down, operations of its earlier life are in flight, or the
 * comm's memory is still being registered; -EOPNOTSUPP if the peer is not enough for the comm;
 * -ENOSPC, -ENOMEM, or another negative errno of a registration.
 */
MESH_HOLDS(process)
int mesh_attach_begin(struct mesh_path *path, struct mesh_peer *peer, bool relay);

/** True if mesh_attach_late() finds a path for a link, one that the comm has left included. */
MESH_HOLDS(process)
bool mesh_attach_has_room(struct mesh_comm *comm);

/**
 * Gives a comm that NCCL uses a path that it never had: *late. The one before it must be known to
 * both ends, or it is this one. Returns as the above does.
 */
MESH_HOLDS(process)
int mesh_attach_late(struct mesh_comm *comm, struct mesh_peer *peer, bool relay,
		     struct mesh_path **late);

/** Asks the process at the other end, the path's peer, for this life of it. */
MESH_HOLDS(process)
void mesh_attach_request(const struct mesh_path *path);

/**
 * ACCEPT, OPENED or REFUSE came, also about a path of a comm that is being made: then its opener
 * finds the path known, or with a refusal. False if it answers none of our questions.
 */
MESH_HOLDS(process)
bool mesh_attach_accepted(struct mesh_peer *peer, const struct mesh_frame_accept *accept);
MESH_HOLDS(process)
bool mesh_attach_opened(struct mesh_peer *peer, const struct mesh_frame_opened *opened);
MESH_HOLDS(process)
bool mesh_attach_refused(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse);

/**
 * A sending comm leaves its paths over relays for those of a better tier that are up, or over fewer
 * relays. What they had in flight is asked for, and sent again if need be, as after a loss. Takes
 * comm->lock.
 */
MESH_HOLDS(process)
void mesh_attach_relays_leave(struct mesh_comm *comm);

/* ---- the receiving end --------------------------------------------------------------------- */

/** Asks over @peer whether the comm of this path, which has no path that is up, lives there. */
MESH_HOLDS(process)
void mesh_attach_ask(const struct mesh_path *path, struct mesh_peer *peer);

/** Answers CONNECT with ACCEPT: the path is as @request has asked for. */
MESH_HOLDS(process)
void mesh_attach_answer(const struct mesh_path *path, struct mesh_peer *peer,
			const struct mesh_frame_connect *request);

/**
 * True for a HELLO of a process that may ask for a path: it has one of our handles, or comms with
 * us, and has lost a link.
 */
MESH_HOLDS(process)
bool mesh_attach_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello);

/** CONNECT came. Answers it, or returns false: a listener is to make a comm, or a part of one. */
MESH_HOLDS(process)
bool mesh_attach_came(struct mesh_peer *peer, const struct mesh_frame_connect *request);

/* ---- a comm waits for its peer, or for a path (stall.c) -------------------------------------- */

/** A route is looked for, if the comm lacks one, or lacks a better one. */
MESH_HOLDS(process)
void mesh_reroute_soon(struct mesh_comm *comm);

/** True for a sending comm that waits for a route, and may get one. */
MESH_HOLDS(process)
bool mesh_comm_lacks_route(const struct mesh_comm *comm);

/**
 * True for a sending comm that goes on, and may get a route that is better than what it has, or
 * another one for a path through relays that it has lost. Takes comm->lock.
 */
MESH_HOLDS(process)
bool mesh_comm_lacks_path(struct mesh_comm *comm);

/**
 * Sends ASK when it is due, has relays looked at, and ends the comm if it has waited for a path for
 * too long. To be called ten times a second.
 */
MESH_HOLDS(process)
void mesh_stall_tick(struct mesh_comm *comm, uint64_t now_ms);
/** Answers the peer's ASK. */
MESH_HOLDS(process)
void mesh_stall_asked(struct mesh_comm *comm, const struct mesh_frame_ask *ask);

#endif
