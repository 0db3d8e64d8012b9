/* SPDX-License-Identifier: Apache-2.0 */
/* question_wait.h - the questions of a comm's sender that wait for an answer. */
#ifndef MESH_TRANSPORT_QUESTION_WAIT_H
#define MESH_TRANSPORT_QUESTION_WAIT_H

#include "base/lock.h"
#include "control/engine.h"
#include "transport/comm.h"

/*
 * A relay reports within this that its writes are complete; else the link to it is given up: its
 * process may be stopped.
 */
#define MESH_RELAY_REPORT_MS 3000

/* RESUMEs whose answer waits until these paths are fenced, or their last relays have reported. */
struct mesh_questions {
	struct mesh_timer timer;
	uint64_t limit_ms; /* then a relay that has not reported is fenced with its link */
	struct mesh_comm *comm;
	const struct mesh_path *over; /* the latest one came over this path */
	uint32_t round, paths;	      /* bits */
	int num;
	uint32_t seqs[MESH_COMM_REQUESTS];
};

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
