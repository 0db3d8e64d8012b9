/* SPDX-License-Identifier: Apache-2.0 */
/*
 * questions.h - a receiver's lost path, and what it answers about a message in doubt once nothing
 * late arrives over that. All with process->lock held, and no comm's.
 */
#ifndef MESH_TRANSPORT_QUESTIONS_H
#define MESH_TRANSPORT_QUESTIONS_H

#include <stdbool.h>

#include "base/lock.h"
#include "transport/comm.h"
#include "wire/frame.h"

/** True if no operation of ours is in flight on a lost path. */
MESH_HOLDS(process)
bool mesh_path_is_quiet(struct mesh_peer_user *path);

/** The lost path's peer has stopped and was fenced: the path is down. Takes domain->lock. */
MESH_HOLDS(process)
void mesh_path_fenced(struct mesh_peer_user *path);

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

/**
 * Something about a lost path has changed: its link is lost, a fence of it has begun, or it is
 * fenced. The engine looks whether the questions about it can be answered, because this may be in
 * the middle of the loss of a link, with domain->lock held. process->lock held.
 */
MESH_HOLDS(process)
void mesh_questions_look(const struct mesh_path *path);

/**
 * The path, which was fenced, has another life: the questions ask for nothing of that.
 * process->lock held.
 */
MESH_HOLDS(process)
void mesh_questions_path_renewed(const struct mesh_path *path);

#endif
