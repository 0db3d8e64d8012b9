/* SPDX-License-Identifier: Apache-2.0 */
/* receive.h - the receiving half of the data protocol: docs/protocol/data.md. */
#ifndef MESH_TRANSPORT_RECEIVE_H
#define MESH_TRANSPORT_RECEIVE_H

#include "base/lock.h"
#include "transport/comm.h"

/** Starts to receive up to @size bytes; the same rules as mesh_comm_send(). */
int mesh_comm_receive(struct mesh_comm *comm, void *data, size_t size,
		      struct mesh_registration *registration, struct mesh_request **request);

/** What arrives for a receiving comm: DATA, WANT, WRITTEN. domain->lock held. */
void mesh_receive_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			  const void *payload);

/** A segment has been written into a receive. domain->lock held. */
void mesh_receive_written(struct mesh_sink *sink, const struct mesh_immediate *immediate);

/** Called from a poll: sends what found no room before. domain->lock held. */
void mesh_receive_resume(struct mesh_waiter *waiter);

/**
 * Sends all grants again, because they may not have arrived: the sender has waited with message
 * @seq for long. Grants also report how many receives are posted. comm->lock held.
 */
MESH_HOLDS(comm)
void mesh_receive_grants_resend(struct mesh_comm *comm, uint32_t seq);

/** True if the first @count messages have all arrived. comm->lock held. */
MESH_HOLDS(comm)
bool mesh_receive_has_all(struct mesh_comm *comm, uint32_t count);

/** True if the sender has sent something that no receive was posted for. comm->lock held. */
bool mesh_receive_has_early(const struct mesh_comm *comm);

/** True if the peer may still write into the memory of a posted receive. comm->lock held. */
bool mesh_receive_is_granted(const struct mesh_comm *comm);

#endif
