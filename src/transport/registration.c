/* SPDX-License-Identifier: Apache-2.0 */
/* registration.c - NCCL's memory handles: one registration for each path's domain. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/log.h"
#include "fabric/mr.h"
#include "control/process.h"
#include "transport/close.h"
#include "transport/path_state.h"
#include "transport/registration.h"

/* Makes those that are missing for the first @num paths. */
static int mrs_open(struct mesh_comm *comm, struct mesh_registration *registration, int num)
{
	int i, ret;

	for (i = registration->num_mrs; i < num && registration->size; i++) {
		ret = mesh_mr_open(comm->paths[i].domain, registration->data, registration->size,
				   &registration->mrs[i]);
		if (ret)
			return ret;
		registration->num_mrs = i + 1;
	}
	registration->num_mrs = num;
	return 0;
}

static void mrs_close(struct mesh_registration *registration)
{
	int i;

	for (i = 0; i < registration->num_mrs; i++)
		mesh_mr_close(registration->mrs[i]);
	mesh_mr_close(registration->beside);
	free(registration);
}

/* A path has moved to another NIC while they were made: they are of no use. */
static void mrs_drop(struct mesh_registration *registration)
{
	while (registration->num_mrs)
		mesh_mr_close(registration->mrs[--registration->num_mrs]);
}

/*
 * Lists the registration, unless the comm has got another path meanwhile, or one has moved since
 * @moves was read.
 */
static bool registration_enter(struct mesh_comm *comm, struct mesh_registration *registration,
			       uint32_t moves)
{
	bool whole;

	mesh_comm_lock(comm);
	whole = registration->num_mrs == comm->num_paths && moves == comm->moves;
	if (whole)
		LIST_INSERT_HEAD(&comm->registrations, registration, entry);
	mesh_comm_unlock(comm);
	return whole;
}

int mesh_registration_open(struct mesh_comm *comm, void *data, size_t size,
			   struct mesh_registration **registration)
{
	struct mesh_registration *opened;
	uint32_t moves = comm->moves;
	int ret;

	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->data = data;
	opened->size = size;
	do {
		if (moves != comm->moves)
			mrs_drop(opened);
		moves = comm->moves;
		ret = mrs_open(comm, opened, comm->num_paths);
		if (ret) {
			mrs_close(opened);
			return ret;
		}
	} while (!registration_enter(comm, opened, moves));
	*registration = opened;
	return 0;
}

/*
 * The first one without an MR for the next path. NULL if there is none: then the comm has that
 * path; or if NCCL closes the comm, which relies on its paths: then @error is set.
 */
static struct mesh_registration *registration_take(struct mesh_comm *comm, int *error)
{
	struct mesh_registration *registration;

	mesh_comm_lock(comm);
	LIST_FOREACH(registration, &comm->registrations, entry) {
		if (registration->num_mrs == comm->num_paths)
			break;
	}
	if (registration)
		registration->busy = true;
	else if (comm->closing)
		*error = -ECANCELED;
	else
		atomic_store(&comm->num_paths, comm->num_paths + 1);
	mesh_comm_unlock(comm);
	return registration;
}

/* The next path is not entered: another one may take its place. */
static void extension_undo(struct mesh_comm *comm)
{
	struct mesh_registration *registration;
	struct mesh_mr *mr;

	do {
		mr = NULL;
		mesh_comm_lock(comm);
		LIST_FOREACH(registration, &comm->registrations, entry) {
			if (registration->num_mrs > comm->num_paths)
				break;
		}
		if (registration)
			mr = registration->mrs[--registration->num_mrs];
		mesh_comm_unlock(comm);
		mesh_mr_close(mr);
	} while (registration);
}

int mesh_registrations_extend(struct mesh_comm *comm)
{
	struct mesh_registration *registration;
	struct mesh_mr *mr;
	int i = comm->num_paths, ret = 0;

	mesh_process_assert_locked(comm->process);
	while (!ret && (registration = registration_take(comm, &ret))) {
		mr = NULL;
		if (registration->size)
			ret = mesh_mr_open(comm->paths[i].domain, registration->data,
					   registration->size, &mr);
		mesh_comm_lock(comm);
		registration->busy = false;
		if (!ret) {
			registration->mrs[i] = mr;
			registration->num_mrs = i + 1;
		}
		mesh_comm_unlock(comm);
	}
	if (ret)
		extension_undo(comm);
	return ret;
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
	while (registration->busy) { /* for as long as one MR takes */
		mesh_comm_unlock(comm);
		sched_yield();
		mesh_comm_lock(comm);
	}
	LIST_REMOVE(registration, entry);
	mesh_comm_unlock(comm);
	mrs_close(registration);
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
	moving = comm->moving;
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
