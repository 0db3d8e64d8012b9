/* SPDX-License-Identifier: Apache-2.0 */
/* breakage.c - explains why a connection broke or failed to start, from the facts of the NICs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_domain.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "fabric/breakage.h"
#include "nic/rdma_error.h"

/* Lines about broken connections, within MESH_LOG_LIMIT_PERIOD_MS. */
#define BREAKAGE_LINES 8

/* The address that @op was posted to; false for a receive. */
static bool target_address(struct mesh_domain *domain, const struct mesh_op *op,
			   struct mesh_addr *address)
{
	struct sockaddr_storage name;
	size_t len = sizeof(name);
	int ret;

	if (!op)
		return false;
	mesh_transmit_lock(domain);
	ret = fi_av_lookup(domain->av, op->to, &name, &len);
	mesh_transmit_unlock(domain);
	return !ret &&
	       !mesh_addr_from_sockaddr((struct sockaddr *)&name, (socklen_t)len, address, NULL);
}

/* The MTU that a remote at this address has reported; 0 if none has. The remote may be closed. */
static int target_mtu(struct mesh_domain *domain, const struct mesh_op *op)
{
	const struct mesh_remote *remote;
	int mtu = 0;

	mesh_transmit_lock(domain);
	LIST_FOREACH(remote, &domain->remotes, entry) {
		if (op && remote->fi_addr == op->to && remote->mtu)
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
	struct mesh_rdma_ends ends = ends_of(domain, target_mtu(domain, op));
	char local[MESH_ADDR_TEXT_MAX], peer[MESH_ADDR_TEXT_MAX] = "a peer";
	char text[MESH_RDMA_ERROR_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];
	struct mesh_addr address;

	if (!mesh_log_limit_pass(&domain->breakages, BREAKAGE_LINES, mesh_clock_ms(), more))
		return;
	if (target_address(domain, op, &address))
		mesh_addr_text(&address, peer);
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
