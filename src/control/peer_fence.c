/* SPDX-License-Identifier: Apache-2.0 */
/* peer_fence.c - cuts the provider's connections with a lost peer. */
#include <stdlib.h>

#include "control/peer_fence.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"

/* On verbs: for each step of a fence whose peer has closed its end of the connection. */
#define REPORTED_MS 100

/* Posts a write that the peer's NIC is to refuse. Does nothing if memory is short. */
MESH_HOLDS(process)
static void refusal_begin(struct mesh_peer *peer)
{
	peer->fence = calloc(1, sizeof(*peer->fence));
	if (!peer->fence)
		return;
	*peer->fence = (struct mesh_fence){
		.domain = peer->domain,
		.remote = peer->remote,
		.limit_ms = REPORTED_MS,
	};
	mesh_fence_begin(peer->fence);
	mesh_peer_check(peer);
}

/* Returns false while the write may still be refused. */
MESH_HOLDS(process)
static bool refusal_step(struct mesh_peer *peer)
{
	if (mesh_fence_step(peer->fence))
		return false;
	/* The other end closes its endpoint before it asks what has arrived. */
	peer->cut = peer->fence->result > 0;
	free(peer->fence);
	peer->fence = NULL;
	return true;
}

/* True if nothing has ended the peer's connection yet, and nothing is about to. */
MESH_HOLDS(process)
static bool is_uncut(const struct mesh_peer *peer)
{
	return !peer->cut && !mesh_remote_is_outdated(peer->domain, peer->remote);
}

/*
 * On verbs. The end that has noticed the loss closes its endpoint, which ends the connection also
 * where nothing answers. The other one then needs no more than a moment for a fence by which the
 * connections with its other peers stay: else one loss would go round all nodes of a switch.
 */
MESH_HOLDS(process)
static bool verbs_fence(struct mesh_peer *peer)
{
	if (!peer->fence && peer->reported && is_uncut(peer))
		refusal_begin(peer);
	if (peer->fence && !refusal_step(peer))
		return false;
	if (is_uncut(peer)) {
		mesh_endpoint_close(peer->domain);
		mesh_engine_wake(&peer->process->engine); /* mesh_endpoints_check() */
	}
	return !mesh_endpoint_is_closing(peer->domain);
}

bool mesh_peer_fence(struct mesh_peer *peer)
{
	struct mesh_fence fence = {.domain = peer->domain, .remote = peer->remote};
	char text[MESH_PEER_TEXT_MAX];

	mesh_process_assert_locked(peer->process);
	if (!peer->remote)
		return true;
	if (peer->domain->provider == MESH_PROVIDER_VERBS_RXM)
		return verbs_fence(peer);
	mesh_remote_unread_take(peer->domain, peer->remote);
	mesh_remotes_fence(&fence, 1);
	if (fence.result < 0) {
		peer->fenced = MESH_FENCED_FAILED;
		return false;
	}
	mesh_fence_drain(&fence, mesh_peer_text(peer, text));
	return true;
}

bool mesh_peer_is_fencing(const struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->state != MESH_PEER_LOST || !peer->remote)
		return false;
	return peer->fence || (mesh_remote_is_outdated(peer->domain, peer->remote) &&
			       mesh_endpoint_is_closing(peer->domain));
}

void mesh_peer_fence_end(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (!peer->fence)
		return;
	mesh_fence_abandon(peer->fence);
	free(peer->fence);
	peer->fence = NULL;
}
