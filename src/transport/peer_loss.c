/* SPDX-License-Identifier: Apache-2.0 */
/* peer_loss.c - who is told of the end of a peer, and how often. */
#include "base/clock.h"
#include "base/log.h"
#include "transport/comm.h"
#include "transport/listener.h"
#include "transport/node.h"
#include "transport/peer.h"
#include "transport/peer_internal.h"

/* About strangers that end, within MESH_LOG_LIMIT_PERIOD_MS. */
#define STRANGER_LINES 8

/* True if somebody still expects something of it: at a normal end, nobody does. */
static bool peer_is_missed(const struct mesh_peer *peer)
{
	struct mesh_comm *comm;
	bool missed = false;

	if (peer->state != MESH_PEER_UP)
		return false;
	LIST_FOREACH(comm, &peer->node->comms, entry) {
		mesh_lock_take(&comm->lock);
		missed |= mesh_comm_uses_peer(comm, peer) && !mesh_comm_peer_is_over(comm) &&
			  !comm->closing;
		mesh_lock_release(&comm->lock);
	}
	return missed;
}

/* The same process over the same link, in the other direction, whose loss was just told. */
static bool twin_is_lost(const struct mesh_peer *peer)
{
	const struct mesh_peer *other;

	LIST_FOREACH(other, &peer->node->peers, entry) {
		if (other != peer && other->state == MESH_PEER_LOST && other->told &&
		    other->domain == peer->domain && other->process_id == peer->process_id)
			return true;
	}
	return false;
}

/*
 * Whether a line about the end of this peer may be written. Whoever knows a cookie can come and go
 * as often as it likes; a peer that NCCL has a comm with cannot.
 */
static bool loss_passes(const struct mesh_peer *peer, char *more)
{
	struct mesh_node *node = peer->node;

	*more = '\0';
	if (peer->told)
		return !mesh_listener_holds_all(peer) ||
		       mesh_log_limit_pass(&node->limits.unaccepted, 1, mesh_clock_ms(), more);
	return !peer->incoming || peer->state == MESH_PEER_UP ||
	       mesh_log_limit_pass(&node->limits.strangers, STRANGER_LINES, mesh_clock_ms(), more);
}

void mesh_peer_loss_log(struct mesh_peer *peer)
{
	char text[MESH_PEER_TEXT_MAX], local[MESH_ADDR_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	mesh_addr_text(&peer->domain->nic->source, local);
	peer->told = peer_is_missed(peer) && !twin_is_lost(peer);
	if (!loss_passes(peer, more))
		return;
	if (peer->told)
		mesh_warn("lost %s, reached from %s (%s): %s%s", mesh_peer_text(peer, text),
			  peer->domain->nic->netdev, local, peer->reason, more);
	else
		mesh_info("the connection with %s on %s ended: %s%s", mesh_peer_text(peer, text),
			  peer->domain->nic->netdev, peer->reason, more);
}
