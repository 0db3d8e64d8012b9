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

/**
 * RESUME for a receiving comm: fences the paths that it names, and answers with HAVE, at once or
 * when they are fenced and their relays have reported. Takes domain->lock.
 *
 * @over: the path of the comm that it has come over
 */
MESH_HOLDS(process)
void mesh_resume_came(struct mesh_path *over, const struct mesh_frame_resume *resume);

/** Answers the RESUMEs that wait, if all relays have reported and all fences are over. */
MESH_HOLDS(process)
void mesh_questions_answer(struct mesh_comm *comm);

/** The comm ends: no answer waits any longer. */
MESH_HOLDS(process)
void mesh_questions_end(struct mesh_comm *comm);

#endif
