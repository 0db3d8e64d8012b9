/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall.c - finds messages that were lost on the way.
 *
 * A small message counts as sent when the provider's socket has it. If that connection is then
 * reset between two living processes, the provider makes a new one and reports nothing. So an end
 * that has waited for a while asks the other end about its oldest request, over the control
 * connection.
 *
 * A sender that is asked says so if the receiver's kernel has the message; if it then does not
 * come, the comm fails instead of waiting for ever. A receiver that is asked sends its grants
 * again: they, or what asked for them, may have been lost. Either way its engine polls, while its
 * NCCL may be asleep: so the acknowledgements move that the provider has kept back.
 *
 * On RDMA the sender itself can tell: a write is acknowledged by the peer's NIC, whatever its
 * process does. A NIC gives up by itself, but not every one, and not if its device went away.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/process.h"
#include "transport/receive.h"
#include "transport/send.h"
#include "transport/stall.h"

/* A request that waits is normal: NCCL posts some minutes early. Asking is cheap. */
#define ASK_MS 3000
/* A request that waits longer has its links watched. */
#define WATCH_MS 500
#define NS_PER_S 1000000000ull

/* The oldest request that is not complete. Returns false if there is none. */
MESH_HOLDS(comm)
static bool oldest_waiting(struct mesh_comm *comm, uint32_t *seq)
{
	uint32_t i;

	for (i = comm->next_seq - MESH_COMM_REQUESTS; i != comm->next_seq; i++) {
		const struct mesh_request *request = mesh_comm_request(comm, i);

		if (request->seq == i && mesh_request_is_open(request)) {
			*seq = i;
			return true;
		}
	}
	return false;
}

/* It is waited for the peer on each of the paths. process->lock held. */
MESH_HOLDS(process)
static void links_want(struct mesh_comm *comm, uint64_t until_ms)
{
	int i;

	for (i = 0; i < comm->num_paths; i++)
		mesh_link_want(mesh_path_peer(&comm->paths[i]), until_ms);
}

/* True if it is time to ask about *seq. process->lock held. */
MESH_HOLDS(comm)
MESH_HOLDS(process)
static bool ask_is_due(struct mesh_comm *comm, uint64_t now_ms, uint32_t *seq)
{
	struct mesh_stall *stall = &comm->stall;

	mesh_comm_assert_locked(comm);
	if (comm->error || mesh_comm_peer_is_over(comm) || !oldest_waiting(comm, seq)) {
		stall->watching = false;
		return false;
	}
	if (!stall->watching || stall->seq != *seq) {
		stall->watching = true;
		stall->seq = *seq;
		stall->since_ms = stall->asked_ms = now_ms;
		stall->sent_ms = 0;
		return false;
	}
	if (now_ms - stall->since_ms >= WATCH_MS)
		links_want(comm, now_ms + WATCH_MS);
	/* All frames go over the first path. */
	if (now_ms - stall->asked_ms < ASK_MS ||
	    !mesh_link_is_fresh(mesh_path_peer(&comm->paths[0]), now_ms))
		return false;
	stall->asked_ms = now_ms;
	return true;
}

MESH_HOLDS(comm)
static void lost_check(struct mesh_comm *comm, uint64_t now_ms)
{
	const struct mesh_stall *stall = &comm->stall;
	uint64_t limit_ms = comm->process->config.dead_peer_timeout_s * 1000;
	char why[160];

	if (!stall->watching || !stall->sent_ms || now_ms - stall->sent_ms < limit_ms)
		return;
	snprintf(why, sizeof(why),
		 "message %u was sent and has not arrived after %llu s: the provider's connection "
		 "was reset on the way",
		 stall->seq, (unsigned long long)limit_ms / 1000);
	mesh_comm_fail(comm, -EIO, false, why);
}

/*
 * True if the path has been silent for the limit, and still is after another poll: a
 * process that was stopped finds its completions only then.
 */
static bool path_is_silent(struct mesh_path *path, uint64_t now_ns)
{
	uint64_t limit_s = path->comm->process->config.dead_peer_timeout_s;
	uint64_t polls = atomic_load_explicit(path->polls, memory_order_relaxed);

	if (!path->is_acknowledged ||
	    mesh_pace_silence_ns(path->pace, now_ns) / NS_PER_S < limit_s) {
		path->silent_ns = 0;
		return false;
	}
	if (!path->silent_ns) {
		path->silent_ns = now_ns;
		path->silent_polls = polls;
	}
	return now_ns - path->silent_ns >= NS_PER_S && polls >= path->silent_polls + 2;
}

/* Writes that no NIC acknowledges, though the peer's kernel answers on the control connection. */
MESH_HOLDS(comm)
static void silence_check(struct mesh_comm *comm)
{
	uint64_t limit_s = comm->process->config.dead_peer_timeout_s;
	uint64_t now_ns = mesh_clock_ns();
	char why[200];
	int i;

	mesh_comm_assert_locked(comm);
	if (!comm->unfinished || comm->error)
		return;
	for (i = 0; i < comm->num_paths; i++) {
		struct mesh_path *path = &comm->paths[i];

		if (!path_is_silent(path, now_ns))
			continue;
		snprintf(why, sizeof(why),
			 "no RDMA write has been answered on %s for %llu s, though TCP gets "
			 "through: does a firewall drop UDP port 4791, or is the RDMA device gone?",
			 mesh_path_describe(path).nic, (unsigned long long)limit_s);
		mesh_comm_fail(comm, -ETIMEDOUT, false, why);
		return;
	}
}

void mesh_stall_tick(struct mesh_comm *comm, uint64_t now_ms)
{
	uint32_t seq = 0;
	bool ask;

	mesh_comm_lock(comm);
	ask = ask_is_due(comm, now_ms, &seq);
	if (comm->sending)
		silence_check(comm);
	else
		lost_check(comm, now_ms);
	mesh_comm_unlock(comm);
	if (ask)
		mesh_comm_frame_send(comm, MESH_FRAME_ASK, (struct mesh_frame_comm){.sent = seq});
}

/*
 * True if the kernel of the receiver has all of a message that is complete here. That a provider's
 * socket has it is not enough: over a slow link the rest may take minutes. Then there is no answer
 * yet, and the receiver asks again; meanwhile the link is watched, so that data which is stuck
 * fails here. process->lock held.
 */
MESH_HOLDS(comm)
MESH_HOLDS(process)
static bool is_delivered(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_stall *stall = &comm->stall;
	uint64_t now_ms = mesh_clock_ms();
	bool drained = true;
	int i;

	mesh_comm_assert_locked(comm);
	if (!stall->told_ms || stall->told_seq != seq) {
		stall->told_seq = seq;
		stall->told_ms = now_ms;
	}
	for (i = 0; i < comm->num_paths; i++)
		drained &= mesh_link_is_drained(mesh_path_peer(&comm->paths[i]), stall->told_ms,
						now_ms);
	if (!drained)
		links_want(comm, now_ms + 2 * ASK_MS);
	return drained;
}

void mesh_stall_asked(struct mesh_comm *comm, uint32_t seq)
{
	bool sent = false;

	mesh_comm_lock(comm);
	if (comm->sending)
		sent = mesh_send_is_complete(comm, seq) && is_delivered(comm, seq);
	else
		mesh_receive_tell_again(comm, seq);
	mesh_comm_unlock(comm);
	if (sent)
		mesh_comm_frame_send(comm, MESH_FRAME_SENT, (struct mesh_frame_comm){.sent = seq});
}

void mesh_stall_answered(struct mesh_comm *comm, uint32_t seq)
{
	struct mesh_stall *stall;

	if (comm->sending)
		return;
	mesh_comm_lock(comm);
	stall = &comm->stall;
	if (stall->watching && stall->seq == seq && !stall->sent_ms)
		stall->sent_ms = mesh_clock_ms();
	mesh_comm_unlock(comm);
}
