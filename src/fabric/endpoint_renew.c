/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint_renew.c - closes the endpoint of a domain, and opens another one in its place. */
#include <errno.h>
#include <time.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/buffer.h"
#include "fabric/connector.h"
#include "fabric/endpoint.h"
#include "fabric/endpoint_renew.h"
#include "fabric/op.h"
#include "fabric/poll.h"

/* Between two attempts to open an endpoint: each that fails is a line in the log. */
#define REOPEN_MS 1000

/* From now on nothing is posted to them, and what waits for them fails at the next poll. */
static void remotes_outdate(struct mesh_domain *domain)
{
	struct mesh_remote *remote;

	mesh_transmit_lock(domain);
	atomic_fetch_add_explicit(&domain->generation, 1, memory_order_relaxed);
	LIST_FOREACH(remote, &domain->remotes, entry) {
		remote->lost = true;
		remote->flow->connected = false;
	}
	mesh_transmit_unlock(domain);
}

/* The provider has forgotten them, and reports nothing. One at a time: its owner may free it. */
MESH_HOLDS(domain)
static void operations_end(struct mesh_domain *domain)
{
	struct mesh_op *op;

	for (;;) {
		mesh_transmit_lock(domain);
		op = LIST_FIRST(&domain->in_flight);
		if (op)
			LIST_REMOVE(op, in_flight);
		mesh_transmit_unlock(domain);
		if (!op)
			return;
		mesh_op_take_back(op);
		op->complete(op, -ECONNABORTED);
	}
}

void mesh_endpoint_close(struct mesh_domain *domain)
{
	const struct timespec pause = {.tv_nsec = 500000};
	uint64_t started_ms = mesh_clock_ms();
	int ret;

	if (atomic_load(&domain->endpoint_closed))
		return; /* and it has not been opened since */
	while (!mesh_endpoint_claim(domain))
		nanosleep(&pause, NULL);
	remotes_outdate(domain);
	mesh_domain_lock(domain);
	mesh_domain_drain(domain);
	mesh_domain_unlock(domain);
	if (domain->endpoint) {
		ret = fi_close(&domain->endpoint->fid);
		if (ret)
			mesh_info("%s: cannot close the endpoint: %s", domain->nic->netdev,
				  fi_strerror(-ret));
	}
	mesh_domain_lock(domain);
	domain->endpoint = NULL;
	mesh_domain_drain(domain);
	operations_end(domain);
	mesh_receives_take_back(domain);
	mesh_domain_unlock(domain);
	atomic_store(&domain->endpoint_closed, true);
	mesh_info("%s: closed its endpoint, so that nothing late arrives (%llu ms)",
		  domain->nic->netdev, (unsigned long long)(mesh_clock_ms() - started_ms));
	mesh_connector_wake(domain);
}

bool mesh_endpoint_is_open(struct mesh_domain *domain)
{
	if (!atomic_load(&domain->endpoint_closed))
		return true;
	mesh_connector_wake(domain);
	return false;
}

void mesh_endpoint_reopen(struct mesh_domain *domain)
{
	const struct mesh_port_range any = {0, 0};

	if (!atomic_load(&domain->endpoint_closed) ||
	    mesh_clock_elapsed_ms(domain->reopened_ms, mesh_clock_ms()) < REOPEN_MS)
		return;
	if (mesh_endpoint_open(domain, &any)) {
		domain->reopened_ms = mesh_clock_ms();
		return;
	}
	mesh_domain_lock(domain);
	mesh_receives_resume(domain);
	mesh_domain_unlock(domain);
	mesh_info("%s: opened another endpoint, on port %u", domain->nic->netdev,
		  (unsigned int)atomic_load(&domain->port));
	atomic_store(&domain->endpoint_closed, false);
	mesh_endpoint_release(domain);
}
