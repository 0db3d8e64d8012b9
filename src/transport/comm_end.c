/* SPDX-License-Identifier: Apache-2.0 */
/* comm_end.c - the states of a comm's two ends, from open to closed. */
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/process.h"
#include "transport/acks.h"
#include "transport/comm_end.h"
#include "wire/stats.h"

static const struct {
	const char *name;
	uint8_t may_follow; /* bits of the states that may come before */
} ends[MESH_END_STATES] = {
	[MESH_END_OPEN] = {"open", 0},
	[MESH_END_CLOSING] = {"closing", 1 << MESH_END_OPEN},
	[MESH_END_CLOSED] = {"closed", 1 << MESH_END_OPEN | 1 << MESH_END_CLOSING},
	[MESH_END_UNCLEAN] = {"unclean",
			      1 << MESH_END_OPEN | 1 << MESH_END_CLOSING | 1 << MESH_END_CLOSED},
	[MESH_END_CUT] = {"cut off", 1 << MESH_END_OPEN | 1 << MESH_END_CLOSING |
					     1 << MESH_END_CLOSED | 1 << MESH_END_UNCLEAN},
};

bool mesh_end_may_become(enum mesh_end end, enum mesh_end state)
{
	return ends[state].may_follow & 1 << end;
}

void mesh_comm_end_set(struct mesh_comm *comm, enum mesh_end *end, enum mesh_end state)
{
	bool legal = mesh_end_may_become(*end, state);

	mesh_comm_assert_locked(comm);
	assert(legal);
	(void)legal;
	mesh_trace("%s node %s, %s end of the connection: %s -> %s",
		   comm->sending ? "sending to" : "receiving from", comm->peer_name,
		   end == &comm->own_end ? "our" : "its", ends[*end].name, ends[state].name);
	*end = state;
	if (end == &comm->peer_end)
		comm->peer_end_ms = mesh_clock_ms();
}

/* Frames come from another node: one that is late or a duplicate is ignored. */
void mesh_comm_peer_end_learn(struct mesh_comm *comm, enum mesh_end state)
{
	mesh_comm_assert_locked(comm);
	if (mesh_end_may_become(comm->peer_end, state))
		mesh_comm_end_set(comm, &comm->peer_end, state);
}

bool mesh_comm_end(struct mesh_comm *comm, int error, const char *why)
{
	bool used;

	mesh_process_assert_locked(comm->process);
	mesh_comm_lock(comm);
	mesh_comm_peer_end_learn(comm, MESH_END_UNCLEAN);
	if (!mesh_end_is_over(comm->own_end))
		mesh_comm_end_set(comm, &comm->own_end, MESH_END_UNCLEAN);
	mesh_doubts_end(comm);
	used = !comm->error && !comm->closing;
	if (used)
		mesh_count_event(&comm->process->counters->comms_failed);
	mesh_comm_fail(comm, error, true, why);
	mesh_comm_unlock(comm);
	return used;
}

void mesh_comm_peer_lost(struct mesh_comm *comm)
{
	mesh_comm_end(comm, -ECONNRESET, "the peer is lost");
}
