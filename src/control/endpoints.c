/* SPDX-License-Identifier: Apache-2.0 */
/* endpoints.c - what follows when the endpoint of a NIC was closed, as the fence of one link. */
#include <stdatomic.h>

#include "control/endpoints.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer.h"
#include "control/peer_end.h"
#include "fabric/endpoint.h"

/* True if the peer has a connection, or is about to, over an endpoint that was closed. */
MESH_HOLDS(process)
static bool is_outdated(const struct mesh_peer *peer)
{
	return (peer->state == MESH_PEER_UP || peer->state == MESH_PEER_GREETING) && peer->remote &&
	       mesh_remote_is_outdated(peer->domain, peer->remote);
}

/* The next one of a NIC; losing it changes the list. */
MESH_HOLDS(process)
static struct mesh_peer *outdated_find(const struct mesh_process *process,
				       const struct mesh_domain *domain)
{
	struct mesh_peer *peer;

	LIST_FOREACH(peer, &process->peers, entry) {
		if (peer->domain == domain && is_outdated(peer))
			break;
	}
	return peer;
}

MESH_HOLDS(process)
static void peers_lose(struct mesh_process *process, const struct mesh_domain *domain)
{
	struct mesh_peer *peer;

	while ((peer = outdated_find(process, domain))) {
		if (peer->state == MESH_PEER_UP)
			mesh_link_lose(peer,
				       "another link of the NIC here was lost, and its endpoint "
				       "with it",
				       MESH_REFUSAL_BROKEN);
		else
			mesh_peer_retry(peer, MESH_ENDPOINT_OPENING);
	}
}

void mesh_endpoints_check(struct mesh_process *process)
{
	const struct mesh_domain *domain;
	uint32_t generation;
	int i;

	mesh_process_assert_locked(process);
	for (i = 0; i < MESH_DOMAINS_MAX; i++) {
		domain = process->domains[i];
		if (!domain)
			continue;
		generation = atomic_load_explicit(&domain->generation, memory_order_relaxed);
		if (generation == process->generations[i])
			continue;
		process->generations[i] = generation;
		peers_lose(process, domain);
	}
}
