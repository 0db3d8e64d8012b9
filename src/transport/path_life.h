/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_life.h - how a comm goes on when a path is lost, and how the path gets another life:
 * docs/protocol/recovery.md.
 *
 * All with process->lock held, and no comm's but where it is said.
 */
#ifndef MESH_TRANSPORT_PATH_LIFE_H
#define MESH_TRANSPORT_PATH_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "transport/comm.h"
#include "wire/frame.h"

/* ---- a path is lost (recovery.c) ------------------------------------------------------------- */

/** True if the comm goes on when this path is lost: over other paths, or when one is back. */
MESH_HOLDS(process)
bool mesh_path_is_resumed(const struct mesh_path *path);

/** True if it has no other path then, and waits. */
MESH_HOLDS(process)
bool mesh_path_is_waited_for(const struct mesh_path *path);

/**
 * The path's peer is lost, and nothing that we post reaches it: the comm goes on over its other
 * paths, waits for one, or ends if it cannot. domain->lock held as well.
 */
MESH_HOLDS(process)
MESH_HOLDS(domain)
void mesh_path_lost(struct mesh_path *path);

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

/** The comm ends: no answer waits any longer. */
MESH_HOLDS(process)
void mesh_questions_end(struct mesh_comm *comm);

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
