/* SPDX-License-Identifier: Apache-2.0 */
/* question_wait.c - the questions of a comm's sender that wait for an answer. */
#include "base/clock.h"
#include "control/process.h"
#include "transport/question_wait.h"

void mesh_questions_look(const struct mesh_path *path)
{
	const struct mesh_comm *comm = path->comm;
	struct mesh_questions *questions = comm->sending ? NULL : comm->receive.questions;

	mesh_process_assert_locked(comm->process);
	if (!questions || !questions->num || !(questions->paths >> (path - comm->paths) & 1))
		return;
	mesh_engine_timer_set(&comm->process->engine, &questions->timer, mesh_clock_ms());
}

void mesh_questions_path_renewed(const struct mesh_path *path)
{
	const struct mesh_comm *comm = path->comm;
	struct mesh_questions *questions = comm->sending ? NULL : comm->receive.questions;

	mesh_process_assert_locked(comm->process);
	if (questions)
		questions->paths &= ~(1u << (path - comm->paths));
}
