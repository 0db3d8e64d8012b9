/* SPDX-License-Identifier: Apache-2.0 */
/* registration.c - NCCL's memory handles: one registration for each path's domain. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "fabric/mr.h"
#include "transport/close.h"
#include "transport/registration.h"

int mesh_registration_open(struct mesh_comm *comm, void *data, size_t size,
			   struct mesh_registration **registration)
{
	struct mesh_registration *opened;
	int i, ret;

	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->data = data;
	opened->size = size;
	for (i = 0; i < comm->num_paths && size; i++) {
		ret = mesh_path_mr_open(&comm->paths[i], data, size, &opened->mrs[i]);
		if (ret)
			goto close;
	}
	mesh_comm_lock(comm);
	LIST_INSERT_HEAD(&comm->registrations, opened, entry);
	mesh_comm_unlock(comm);
	*registration = opened;
	return 0;
close:
	while (i--)
		mesh_mr_close(opened->mrs[i]);
	free(opened);
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
	int i;

	mesh_comm_lock(comm);
	LIST_REMOVE(registration, entry);
	mesh_comm_unlock(comm);
	for (i = 0; i < comm->num_paths; i++)
		mesh_mr_close(registration->mrs[i]);
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

void mesh_registrations_close(struct mesh_comm *comm)
{
	struct mesh_registration *registration;

	while ((registration = LIST_FIRST(&comm->registrations)))
		registration_free(comm, registration);
}
