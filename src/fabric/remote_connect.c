/* SPDX-License-Identifier: Apache-2.0 */
/* remote_connect.c - what the connector's thread does: it connects with remotes. */
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "fabric/connector.h"
#include "fabric/endpoint.h"
#include "fabric/fence_verbs.h"
#include "fabric/remote_connect.h"
#include "system/route.h"

/* How long the kernel may take for a peer's link address: as rdma_resolve_addr() waits. */
#define RESOLVE_MS 2000

/*
 * Takes the remote that wants a connection and was tried least recently: those that want it again
 * and again take turns with the others. It is not freed until remote_give_back().
 */
static struct mesh_remote *remote_take(struct mesh_domain *domain)
{
	struct mesh_remote *remote, *taken = NULL;

	mesh_transmit_lock(domain);
	LIST_FOREACH(remote, &domain->remotes, entry) {
		if (remote->wants_connection && (!taken || remote->tried_ms < taken->tried_ms))
			taken = remote;
	}
	if (taken) {
		taken->wants_connection = false;
		taken->connecting = true;
	}
	mesh_transmit_unlock(domain);
	return taken;
}

static void remote_give_back(struct mesh_domain *domain, struct mesh_remote *remote,
			     struct mesh_buffer *sent, int ret)
{
	mesh_transmit_lock(domain);
	if (sent && !ret) {
		mesh_backlog_remove(domain, sent);
		remote->flow->connected = true;
	} else if (sent && ret != -FI_EAGAIN) {
		remote->connect_error = ret;
	}
	remote->tried_ms = mesh_clock_ms();
	remote->connecting = false;
	mesh_transmit_unlock(domain);
}

/*
 * The message that connects: the first that waits. If only a write waits, it is an empty one, which
 * the peer ignores. NULL if no buffer is free, and the next poll tries again; or if the remote is
 * lost.
 */
static struct mesh_buffer *message_take(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct mesh_buffer *first, *empty;
	bool lost;

	mesh_transmit_lock(domain);
	first = TAILQ_FIRST(&remote->backlog);
	lost = remote->lost;
	mesh_transmit_unlock(domain);
	if (first || lost)
		return lost ? NULL : first; /* while remote->connecting is set it stays */
	empty = mesh_remote_buffer_get(domain, remote);
	if (!empty)
		return NULL;
	empty->size = 0;
	mesh_transmit_lock(domain);
	first = TAILQ_FIRST(&remote->backlog);
	if (!first)
		mesh_backlog_append(domain, empty);
	mesh_transmit_unlock(domain);
	if (!first)
		return empty;
	mesh_buffer_put(empty);
	return first;
}

/*
 * Inside the provider the kernel would ask for the peer's link address, while the whole NIC stands
 * still. So it is asked before, and the NIC serves its other peers meanwhile. Returns 0 if the
 * address is known; -FI_EAGAIN: not yet; -FI_EHOSTUNREACH: nothing answers.
 */
static int remote_resolve(struct mesh_domain *domain, struct mesh_remote *remote)
{
	const struct mesh_nic *nic = domain->nic;
	uint64_t since_ms = 0, now_ms = mesh_clock_ms();
	struct mesh_addr theirs;
	int ret = 0;

	if (mesh_addr_from_sockaddr((const struct sockaddr *)remote->name, remote->name_len,
				    &theirs, NULL))
		return 0;
	theirs.scope_id = nic->source.scope_id;
	if (mesh_link_address_find(&nic->source, nic->ifindex, &theirs)) {
		since_ms = remote->unresolved_ms ? remote->unresolved_ms : now_ms;
		ret = -FI_EAGAIN;
	}
	if (ret && now_ms - since_ms >= RESOLVE_MS) {
		since_ms = 0; /* the next message waits as long */
		ret = -FI_EHOSTUNREACH;
	}
	mesh_transmit_lock(domain);
	remote->unresolved_ms = since_ms;
	mesh_transmit_unlock(domain);
	return ret;
}

/* Returns false if another thread has claimed the endpoint, which then wakes the connector. */
static bool remote_connect(struct mesh_domain *domain, struct mesh_remote *remote)
{
	int ret = remote_resolve(domain, remote);
	struct mesh_buffer *message = NULL;
	bool claims = !ret;

	if (claims && !mesh_endpoint_claim(domain))
		return false;
	if (ret != -FI_EAGAIN)
		message = message_take(domain, remote);
	if (message && claims)
		ret = mesh_buffer_post(domain, message);
	remote_give_back(domain, remote, message, message ? ret : -FI_EAGAIN);
	if (claims)
		mesh_endpoint_release(domain);
	return true;
}

void mesh_remotes_connect(struct mesh_domain *domain)
{
	struct mesh_remote *remote;
	bool more = true;

	while (more) {
		/* Each time: some remote may want a connection as long as another one is tried. */
		mesh_endpoint_renew(domain);
		mesh_verbs_fences_post(domain);
		remote = remote_take(domain);
		more = remote && remote_connect(domain, remote);
		if (!remote || more)
			continue;
		mesh_transmit_lock(domain);
		remote->connecting = false;
		remote->wants_connection = true;
		mesh_transmit_unlock(domain);
	}
}
