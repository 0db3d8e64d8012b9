/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration_move.c - a comm's memory is registered for the NIC that one of its paths moves to.
 *
 * That is done before the path moves, beside what it has; the move itself exchanges the two, and
 * then the other one is closed. On verbs both pin memory, for seconds, so a thread does it without
 * process->lock, and whoever moves the path comes again.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/threads.h"
#include "control/process.h"
#include "fabric/mr.h"
#include "transport/registration.h"

/* What is to be done for each registration of the comm. */
struct move {
	struct mesh_comm *comm;
	int path;
	struct mesh_domain *domain; /* where it is to be; NULL: what lies beside is closed */
};

/* True if the path's memory is not registered for this domain yet. */
MESH_HOLDS(comm)
static bool is_elsewhere(const struct mesh_registration *registration, int path,
			 const struct mesh_domain *domain)
{
	return registration->size && mesh_mr_domain(registration->mrs[path]) != domain;
}

MESH_HOLDS(comm)
static bool is_due(const struct mesh_registration *registration, const struct move *move)
{
	if (!move->domain)
		return registration->beside;
	return is_elsewhere(registration, move->path, move->domain) &&
	       mesh_mr_domain(registration->beside) != move->domain;
}

/* The first one for which it is, or NULL. */
MESH_HOLDS(comm)
static struct mesh_registration *due_find(const struct move *move)
{
	struct mesh_registration *registration;

	LIST_FOREACH(registration, &move->comm->registrations, entry) {
		if (is_due(registration, move))
			break;
	}
	return registration;
}

/* The same; nobody frees it, nor the comm, until the next function. */
static struct mesh_registration *due_take(const struct move *move)
{
	struct mesh_registration *registration;

	mesh_comm_lock(move->comm);
	registration = due_find(move);
	if (registration)
		registration->busy = true;
	mesh_comm_unlock(move->comm);
	return registration;
}

static int due_do(const struct move *move, struct mesh_registration *registration)
{
	struct mesh_mr *mr = NULL, *before = NULL;
	int ret = 0;

	if (move->domain)
		ret = mesh_mr_open(move->domain, registration->data, registration->size, &mr);
	mesh_comm_lock(move->comm);
	if (!ret) {
		before = registration->beside;
		registration->beside = mr;
	}
	registration->busy = false;
	mesh_comm_unlock(move->comm);
	mesh_mr_close(before);
	return ret;
}

static int move_do(const struct move *move)
{
	struct mesh_registration *registration;
	int ret = 0;

	while (!ret && (registration = due_take(move)))
		ret = due_do(move, registration);
	return ret;
}

static void move_main(void *arg)
{
	struct move move = *(struct move *)arg;
	struct mesh_process *process = move.comm->process;
	int ret = move_do(&move);

	free(arg);
	mesh_comm_lock(move.comm);
	move.comm->moving = false;
	move.comm->move_error = ret;
	mesh_comm_unlock(move.comm); /* from now on it may be freed */
	atomic_store(&process->routeless, true);
	mesh_engine_wake(&process->engine);
}

/* True if it may take long. */
MESH_HOLDS(comm)
static bool move_pins(const struct move *move)
{
	const struct mesh_registration *registration;
	const struct mesh_domain *domain;
	bool pins = move->domain && mesh_domain_pins(move->domain);

	LIST_FOREACH(registration, &move->comm->registrations, entry) {
		domain = mesh_mr_domain(registration->beside);
		pins |= domain && mesh_domain_pins(domain);
	}
	return pins;
}

MESH_HOLDS(process)
static int thread_begin(const struct move *move)
{
	struct move *copy = malloc(sizeof(*copy));
	int ret = -ENOMEM;

	if (copy) {
		*copy = *move;
		ret = mesh_thread_start(move_main, copy);
	}
	if (!ret)
		return -EAGAIN;
	mesh_comm_lock(move->comm);
	move->comm->moving = false;
	mesh_comm_unlock(move->comm);
	free(copy);
	return ret;
}

/* Returns 0: it is done; -EAGAIN: a thread does it; or another negative errno. */
MESH_HOLDS(process)
static int move_begin(const struct move *move)
{
	struct mesh_comm *comm = move->comm;
	bool due, pins;

	mesh_comm_lock(comm);
	due = due_find(move);
	pins = move_pins(move);
	comm->moving = due && pins;
	mesh_comm_unlock(comm);
	if (due && pins)
		return thread_begin(move);
	return due ? move_do(move) : 0;
}

int mesh_registrations_prepare(struct mesh_comm *comm, int path, struct mesh_domain *domain)
{
	const struct move move = {.comm = comm, .path = path, .domain = domain};
	int ret;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	ret = comm->moving ? -EAGAIN : comm->move_error;
	comm->move_error = 0;
	mesh_comm_unlock(comm);
	if (!ret)
		ret = move_begin(&move);
	if (ret && ret != -EAGAIN)
		move_begin(&(struct move){.comm = comm}); /* what was made is of no use */
	return ret;
}

/* The path's and the one beside it change places. Returns false if there is none to change with. */
MESH_HOLDS(comm)
static bool registration_move(struct mesh_registration *registration, int path,
			      const struct mesh_domain *domain)
{
	struct mesh_mr *before = registration->mrs[path];

	if (!is_elsewhere(registration, path, domain))
		return true;
	if (mesh_mr_domain(registration->beside) != domain)
		return false;
	registration->mrs[path] = registration->beside;
	registration->beside = before;
	return true;
}

int mesh_registrations_move(struct mesh_comm *comm, int path)
{
	const struct mesh_domain *domain = comm->paths[path].peer->domain;
	const struct move rest = {.comm = comm};
	struct mesh_registration *registration;
	bool moved = true;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	LIST_FOREACH(registration, &comm->registrations, entry)
		moved &= registration_move(registration, path, domain);
	mesh_comm_unlock(comm);
	move_begin(&rest); /* without memory for it, it lies there until NCCL ends the others */
	return moved ? 0 : -EAGAIN;
}

int mesh_registrations_extend(struct mesh_comm *comm)
{
	const struct move move = {
		.comm = comm,
		.path = comm->num_paths,
		.domain = comm->paths[comm->num_paths].domain,
	};
	struct mesh_registration *registration;
	int ret = 0;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	if (comm->closing)
		ret = -ECANCELED;
	else if (due_find(&move))
		ret = -EAGAIN;
	LIST_FOREACH(registration, &comm->registrations, entry) {
		if (!ret)
			registration_move(registration, move.path, move.domain);
	}
	if (!ret)
		atomic_store(&comm->num_paths, move.path + 1);
	mesh_comm_unlock(comm);
	return ret;
}
