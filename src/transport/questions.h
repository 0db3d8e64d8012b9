/* SPDX-License-Identifier: Apache-2.0 */
/*
 * questions.h - what a receiver answers about a message in doubt. All with process->lock held, and
 * no comm's.
 */
#ifndef MESH_TRANSPORT_QUESTIONS_H
#define MESH_TRANSPORT_QUESTIONS_H

#include "base/lock.h"
#include "transport/comm.h"
#include "wire/frame.h"

/*
 * A relay reports within this that its writes are complete; else the link to it is given up: its
 * process may be stopped.
 */
#define MESH_RELAY_REPORT_MS 3000

/**
 * Answers RESUME with HAVE, at once or when its paths are fenced and their relays have reported.
 * The paths were given up before.
 */
MESH_HOLDS(process)
void mesh_question_came(struct mesh_comm *comm, const struct mesh_frame_resume *resume);

/**
 * The link to the last relay of @path is lost, or the path is fenced or being fenced: no report has
 * to be waited for. The engine answers, because this may be in the middle of the loss of a link, with
 * domain->lock held.
 */
MESH_HOLDS(process)
void mesh_questions_look(const struct mesh_path *path);

/** Answers the RESUMEs that wait, if all relays have reported and all fences are over. */
MESH_HOLDS(process)
void mesh_questions_answer(struct mesh_comm *comm);

/** The comm ends: no answer waits any longer. */
MESH_HOLDS(process)
void mesh_questions_end(struct mesh_comm *comm);

#endif
