/* SPDX-License-Identifier: Apache-2.0 */
/* breakage.c - explains why a connection broke or failed to start, from the facts of the NICs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "fabric/breakage.h"
#include "nic/rdma_port.h"

/* Lines about broken connections, within MESH_LOG_LIMIT_PERIOD_MS. */
#define BREAKAGE_LINES 8

/*
 * The address that @op was posted to, in words, and the MTU that a remote there has reported; 0 if
 * none has. Remotes that are closed count as well. A receive has no target.
 */
static int target_find(struct mesh_domain *domain, const struct mesh_op *op, char *text)
{
	const struct mesh_remote *remote;
	struct mesh_addr address;
	int mtu = 0;

	mesh_transmit_lock(domain);
	LIST_FOREACH(remote, &domain->remotes, entry) {
		if (!op || remote->fi_addr != op->to)
			continue;
		if (!mesh_addr_from_sockaddr((const struct sockaddr *)remote->name,
					     (socklen_t)remote->name_len, &address, NULL))
			mesh_addr_text(&address, text);
		if (remote->mtu)
			mtu = remote->mtu;
	}
	mesh_transmit_unlock(domain);
	return mtu;
}

static struct mesh_rdma_ends ends_of(const struct mesh_domain *domain, int peer_mtu)
{
	return (struct mesh_rdma_ends){
		.link_layer = domain->nic->rdma.link_layer,
		.mtu = domain->nic->mtu,
		.peer_mtu = peer_mtu,
	};
}

void mesh_breakage_report(struct mesh_domain *domain, const struct mesh_op *op, int status)
{
	char local[MESH_ADDR_TEXT_MAX], peer[MESH_ADDR_TEXT_MAX] = "a peer";
	struct mesh_rdma_ends ends = ends_of(domain, target_find(domain, op, peer));
	char text[MESH_RDMA_ERROR_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	if (!mesh_log_limit_pass(&domain->breakages, BREAKAGE_LINES, mesh_clock_ms(), more))
		return;
	mesh_warn("%s: RDMA with %s port %d from %s to %s failed: %s%s", domain->nic->netdev,
		  domain->nic->rdma.device, domain->nic->rdma.port,
		  mesh_addr_text(&domain->nic->source, local), peer,
		  mesh_rdma_status_explain(status, &ends, text), more);
}

const char *mesh_remote_silence_explain(struct mesh_domain *domain, struct mesh_remote *remote,
					uint16_t port, int error, char *text)
{
	const char *provider = mesh_provider_id_text(domain->provider);
	bool unanswered = !error || error == -ECONNRESET || error == -ETIMEDOUT;
	struct mesh_rdma_ends ends = ends_of(domain, remote->mtu);

	/* rdma_cm times out by itself and then flushes the posted operations. */
	if (domain->provider == MESH_PROVIDER_VERBS_RXM && unanswered)
		return mesh_rdma_silence_explain(&ends, text);
	if (error)
		snprintf(text, MESH_RDMA_ERROR_MAX, "%s could not send to it: %s%s", provider,
			 strerror(-error), error == -EMFILE ? "; " MESH_DESCRIPTORS_RAISE : "");
	else
		snprintf(text, MESH_RDMA_ERROR_MAX,
			 "the control connection works, but %s does not answer on port %u: does a "
			 "firewall drop it?",
			 provider, port);
	return text;
}
