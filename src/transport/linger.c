/* SPDX-License-Identifier: Apache-2.0 */
/* linger.c - closes comms for NCCL, many at the same time. */
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "transport/close.h"
#include "transport/comm_open.h"
#include "transport/linger.h"
#include "transport/registration.h"

/* Between two looks at a comm that lingers: the answer itself is not awaited by looking. */
#define LOOK_MS 100
/*
 * A sender answers a receiver's CLOSED at once. The acknowledgement of its kernel counts only after
 * this, if its process is stopped, or has freed its end: until a process reads a frame, it may
 * still lose the link with it.
 */
#define ACKNOWLEDGED_MS 1000
/* Turns of the wait that only yield; the answers of a quiet node take fewer. */
#define YIELDS 2000

/* Frees the comm if the peer has answered, or will not. */
MESH_HOLDS(process)
static bool linger_end(struct mesh_comm *comm, uint64_t now_ms)
{
	if (!mesh_comm_close_is_over(comm, comm->closed_ms, now_ms))
		return false;
	mesh_comm_free(comm);
	return true;
}

MESH_HOLDS(process)
static void linger_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_comm *comm = mesh_container_of(timer, struct mesh_comm, timer);
	struct mesh_engine *engine = &comm->process->engine;

	if (linger_end(comm, now_ms))
		return;
	if (!comm->sending && now_ms >= comm->closed_ms + ACKNOWLEDGED_MS &&
	    mesh_comm_closed_is_acknowledged(comm, comm->closed_ms, now_ms))
		mesh_comm_free(comm);
	else
		mesh_engine_timer_set(engine, timer, now_ms + LOOK_MS);
}

/* Moves the comm from process->comms to process->lingering. */
MESH_HOLDS(process)
static void linger_begin(struct mesh_comm *comm)
{
	struct mesh_process *process = comm->process;

	comm->closed_ms = mesh_clock_ms();
	LIST_REMOVE(comm, entry);
	LIST_INSERT_HEAD(&process->lingering, comm, entry);
	atomic_store(&process->lingers, true);
	comm->timer.expired = linger_expired;
	mesh_engine_timer_set(&process->engine, &comm->timer, comm->closed_ms + LOOK_MS);
}

void mesh_comm_linger_check(struct mesh_comm *comm)
{
	mesh_process_assert_locked(comm->process);
	if (comm->closed_ms)
		linger_end(comm, mesh_clock_ms());
}

MESH_HOLDS(process)
static void lingering_check(struct mesh_process *process, uint64_t now_ms)
{
	struct mesh_comm *comm, *next;

	for (comm = LIST_FIRST(&process->lingering); comm; comm = next) {
		next = LIST_NEXT(comm, entry);
		linger_end(comm, now_ms);
	}
}

void mesh_comms_linger_await(struct mesh_process *process)
{
	const struct timespec pause = {.tv_nsec = 500000};
	uint64_t now_ms, looked_ms = 0;
	bool over = false;
	int turn;

	/* Without the lock: exit() may have interrupted a thread that holds it. */
	if (!atomic_load(&process->lingers))
		return;
	for (turn = 0; !over; turn++) {
		now_ms = mesh_clock_ms();
		mesh_process_lock(process);
		if (now_ms != looked_ms) /* the engine frees those that are answered, too */
			lingering_check(process, now_ms);
		looked_ms = now_ms;
		over = LIST_EMPTY(&process->lingering);
		if (over)
			atomic_store(&process->lingers, false);
		mesh_process_unlock(process);
		if (over)
			break;
		mesh_process_poll(process);
		if (turn < YIELDS)
			sched_yield();
		else
			nanosleep(&pause, NULL); /* closing, not the data path */
	}
}

void mesh_comm_close(struct mesh_comm *comm)
{
	struct mesh_process *process;
	bool awaited, last;

	if (!comm)
		return;
	process = comm->process;
	awaited = mesh_comm_close_begin(comm);
	if (awaited && comm->sending && !mesh_comm_is_delivered(comm)) {
		mesh_comm_answer_await(comm);
		awaited = false;
	}
	mesh_registrations_close(comm); /* unpins memory, which takes long */
	mesh_process_lock(process);
	if (awaited)
		linger_begin(comm);
	else
		mesh_comm_free(comm);
	last = LIST_EMPTY(&process->comms);
	mesh_process_unlock(process);
	if (last)
		mesh_comms_linger_await(process);
}
