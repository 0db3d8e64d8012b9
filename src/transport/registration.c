/* SPDX-License-Identifier: Apache-2.0 */
/* registration.c - NCCL's memory handles: one registration for each path's domain. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/retry.h"
#include "base/threads.h"
#include "control/process.h"
#include "fabric/mr.h"
#include "transport/comm_life.h"
#include "transport/data.h"

/* True if what the path needs of this memory is registered with the domain. */
static bool fits(const struct mesh_registration *registration, int path,
		 const struct mesh_domain *domain)
{
	return !registration->size || mesh_mr_domain(registration->mrs[path]) == domain;
}

/* Makes those that are missing, or that are for other NICs by now. */
static int mrs_open(struct mesh_comm *comm, struct mesh_registration *registration)
{
	int i, ret = 0;

	for (i = 0; i < comm->num_paths && !ret; i++) {
		if (fits(registration, i, comm->paths[i].domain))
			continue;
		mesh_mr_close(registration->mrs[i]);
		registration->mrs[i] = NULL;
		ret = mesh_mr_open(comm->paths[i].domain, registration->data, registration->size,
				   &registration->mrs[i]);
	}
	return ret;
}

static void mrs_close(struct mesh_registration *registration)
{
	int i;

	for (i = 0; i < MESH_PATHS_MAX; i++) {
		mesh_mr_close(registration->mrs[i]);
		registration->mrs[i] = NULL;
	}
}

/* Lists the registration, unless the comm has another path meanwhile, or one has moved. */
static bool registration_enter(struct mesh_comm *comm, struct mesh_registration *registration)
{
	int i = 0;
	bool whole;

	mesh_comm_lock(comm);
	while (i < comm->num_paths && fits(registration, i, comm->paths[i].domain))
		i++;
	whole = i == comm->num_paths;
	if (whole)
		LIST_INSERT_HEAD(&comm->registrations, registration, entry);
	mesh_comm_unlock(comm);
	return whole;
}

int mesh_registration_open(struct mesh_comm *comm, void *data, size_t size,
			   struct mesh_registration **registration)
{
	struct mesh_registration *opened;
	int ret;

	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->data = data;
	opened->size = size;
	do {
		ret = mrs_open(comm, opened);
		if (ret) {
			mrs_close(opened);
			free(opened);
			return ret;
		}
	} while (!registration_enter(comm, opened));
	*registration = opened;
	return 0;
}

/* True while a request that is not complete reads from or is written into this memory. */
static bool registration_is_used(struct mesh_comm *comm,
				 const struct mesh_registration *registration)
{
	bool used = false;
	int i;

	mesh_comm_lock(comm);
	for (i = 0; i < MESH_COMM_REQUESTS; i++) {
		const struct mesh_request *request = &comm->requests[i];

		used |= request->registration == registration && mesh_request_is_open(request);
	}
	mesh_comm_unlock(comm);
	return used;
}

/* The MRs are closed without comm->lock: that takes mrs_lock, which comes before it. */
static void registration_free(struct mesh_comm *comm, struct mesh_registration *registration)
{
	mesh_comm_lock(comm);
	while (comm->busy == registration) { /* for as long as one MR takes */
		mesh_comm_unlock(comm);
		sched_yield();
		mesh_comm_lock(comm);
	}
	LIST_REMOVE(registration, entry);
	mesh_comm_unlock(comm);
	mrs_close(registration);
	free(registration);
}

void mesh_registration_close(struct mesh_comm *comm, struct mesh_registration *registration)
{
	if (!registration)
		return;
	/* NCCL does this when it aborts: it needs the memory, and no longer the comm. */
	if (registration_is_used(comm, registration))
		mesh_comm_quiesce(comm);
	registration_free(comm, registration);
}

static bool is_moving(struct mesh_comm *comm)
{
	bool moving;

	mesh_comm_lock(comm);
	moving = comm->move_error == -EINPROGRESS;
	mesh_comm_unlock(comm);
	return moving;
}

void mesh_registrations_close(struct mesh_comm *comm)
{
	struct mesh_registration *registration;

	while ((registration = LIST_FIRST(&comm->registrations)))
		registration_free(comm, registration);
	while (is_moving(comm)) /* the thread finds that there are none */
		sched_yield();
}

/* ---- for another NIC ------------------------------------------------------------------------- */

/*
 * A comm's memory is registered for the NIC that one of its paths moves to, before that, while the
 * path is down: nothing uses what it has, which is closed. On verbs both pin memory, for seconds,
 * so a thread does it without process->lock, and whoever moves the path comes again.
 */

/* What is to be done for each registration of the comm. */
struct move {
	struct mesh_comm *comm;
	int path;
	struct mesh_domain *domain; /* where it is to be */
};

/* The first one for which it is, or NULL. */
MESH_HOLDS(comm)
static struct mesh_registration *due_find(const struct move *move)
{
	struct mesh_registration *registration;

	LIST_FOREACH(registration, &move->comm->registrations, entry) {
		if (!fits(registration, move->path, move->domain))
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
		move->comm->busy = registration;
	mesh_comm_unlock(move->comm);
	return registration;
}

static int due_do(const struct move *move, struct mesh_registration *registration)
{
	struct mesh_mr *mr = NULL, *before = NULL;
	int ret = mesh_mr_open(move->domain, registration->data, registration->size, &mr);

	mesh_comm_lock(move->comm);
	if (!ret) {
		before = registration->mrs[move->path];
		registration->mrs[move->path] = mr;
	}
	move->comm->busy = NULL;
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
	move.comm->move_error = ret;
	move.comm->moved = move.domain;
	move.comm->moved_path = move.path;
	move.comm->moved_ms = mesh_clock_ms();
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
	bool pins = mesh_domain_pins(move->domain);

	LIST_FOREACH(registration, &move->comm->registrations, entry) {
		domain = mesh_mr_domain(registration->mrs[move->path]);
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
	move->comm->move_error = 0;
	mesh_comm_unlock(move->comm);
	free(copy);
	return ret;
}

/*
 * True if the path has memory on another NIC since a moment ago, which no life of it has used: the
 * attempts over two routes take turns, and each would undo what the one before has made.
 */
MESH_HOLDS(comm)
static bool other_is_ready(const struct move *move)
{
	const struct mesh_comm *comm = move->comm;

	return comm->moved && comm->moved != move->domain && comm->moved_path == move->path &&
	       mesh_clock_elapsed_ms(comm->moved_ms, mesh_clock_ms()) < 4 * MESH_RETRY_MIN_MS;
}

/* Returns 0: it is done; -EAGAIN: a thread does it; or another negative errno. */
MESH_HOLDS(process)
static int move_begin(const struct move *move)
{
	struct mesh_comm *comm = move->comm;
	bool due, pins, waits;

	mesh_comm_lock(comm);
	due = due_find(move);
	pins = move_pins(move);
	waits = other_is_ready(move);
	if (due && pins && !waits)
		comm->move_error = -EINPROGRESS;
	mesh_comm_unlock(comm);
	if (due && pins)
		return waits ? -EAGAIN : thread_begin(move);
	return due ? move_do(move) : 0;
}

int mesh_registrations_prepare(struct mesh_comm *comm, int path, struct mesh_domain *domain)
{
	const struct move move = {.comm = comm, .path = path, .domain = domain};
	int ret;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	ret = comm->move_error;
	if (ret != -EINPROGRESS)
		comm->move_error = 0;
	mesh_comm_unlock(comm);
	if (ret == -EINPROGRESS)
		return -EAGAIN;
	return ret ? ret : move_begin(&move);
}

int mesh_registrations_check(struct mesh_comm *comm, int path)
{
	const struct move move = {
		.comm = comm,
		.path = path,
		.domain = comm->paths[path].domain,
	};
	int ret = 0;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	if (path == comm->num_paths && comm->closing)
		ret = -ECANCELED;
	else if (due_find(&move))
		ret = -EAGAIN;
	else if (path == comm->num_paths)
		atomic_store(&comm->num_paths, path + 1);
	if (!ret && path == comm->moved_path)
		comm->moved = NULL;
	mesh_comm_unlock(comm);
	return ret;
}
