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
	int i, ret = 0;

	for (i = 0; i < num && registration->size && !ret; i++) {
		if (!registration->mrs[i])
			ret = mesh_mr_open(comm->paths[i].domain, registration->data,
					   registration->size, &registration->mrs[i]);
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
	mesh_mr_close(registration->beside);
	registration->beside = NULL;
}

/*
 * Lists the registration, unless the comm has more than @num paths meanwhile, or one has moved
 * since @moves was read.
 */
static bool registration_enter(struct mesh_comm *comm, struct mesh_registration *registration,
			       int num, uint32_t moves)
{
	bool whole;

	mesh_comm_lock(comm);
	whole = num == comm->num_paths && moves == comm->moves;
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
	int num, ret;

	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->data = data;
	opened->size = size;
	do {
		if (moves != comm->moves)
			mrs_close(opened); /* they are of no use */
		moves = comm->moves;
		num = comm->num_paths;
		ret = mrs_open(comm, opened, num);
		if (ret) {
			mrs_close(opened);
			free(opened);
			return ret;
		}
	} while (!registration_enter(comm, opened, num, moves));
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
	while (registration->busy) { /* for as long as one MR takes */
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
