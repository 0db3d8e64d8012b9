/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint_renew.c - closes the endpoint of a domain, and opens another one in its place. */
#include <assert.h>
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

static const uint8_t may_follow[MESH_ENDPOINT_STATES] = {
	[MESH_ENDPOINT_OPEN] = 1 << MESH_ENDPOINT_CLOSED,
	[MESH_ENDPOINT_CLOSING] = 1 << MESH_ENDPOINT_OPEN,
	[MESH_ENDPOINT_CLOSED] = 1 << MESH_ENDPOINT_CLOSING,
};

static void state_set(struct mesh_domain *domain, enum mesh_endpoint_state state)
{
	enum mesh_endpoint_state before = atomic_exchange(&domain->endpoint_state, state);
	bool legal = may_follow[state] & 1 << before;

	assert(legal);
	(void)legal;
}

/* From now on nothing is posted to them, and what waits for them fails at the next poll. */
MESH_HOLDS(transmit)
static void remotes_outdate(struct mesh_domain *domain)
{
	struct mesh_remote *remote;

	atomic_fetch_add_explicit(&domain->generation, 1, memory_order_release);
	LIST_FOREACH(remote, &domain->remotes, entry) {
		remote->lost = true;
		remote->flow->connected = false;
	}
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
	if (atomic_load(&domain->endpoint_state) != MESH_ENDPOINT_OPEN)
		return; /* its remotes are lost */
	/* The connector, which may be at work, claims the endpoint under this lock only. */
	mesh_transmit_lock(domain);
	/* First: who sees that a remote is outdated also sees that it is closing. */
	state_set(domain, MESH_ENDPOINT_CLOSING);
	remotes_outdate(domain);
	mesh_transmit_unlock(domain);
	mesh_connector_wake(domain);
}

/* The endpoint is claimed: no other thread enters it. */
static void endpoint_shut(struct mesh_domain *domain)
{
	uint64_t started_ms = mesh_clock_ms();
	int ret;

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
	state_set(domain, MESH_ENDPOINT_CLOSED);
	mesh_info("%s: closed its endpoint, so that nothing late arrives (%llu ms)",
		  domain->nic->netdev, (unsigned long long)(mesh_clock_ms() - started_ms));
}

void mesh_endpoint_close_await(const struct mesh_domain *domain)
{
	const struct timespec pause = {.tv_nsec = 500000};

	while (mesh_endpoint_is_closing(domain))
		nanosleep(&pause, NULL);
}

bool mesh_endpoint_is_open(struct mesh_domain *domain)
{
	if (atomic_load(&domain->endpoint_state) == MESH_ENDPOINT_OPEN)
		return true;
	mesh_connector_wake(domain);
	return false;
}

static void endpoint_reopen(struct mesh_domain *domain)
{
	const struct mesh_port_range any = {0, 0};

	if (mesh_clock_elapsed_ms(domain->reopened_ms, mesh_clock_ms()) < REOPEN_MS)
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
	state_set(domain, MESH_ENDPOINT_OPEN);
	mesh_endpoint_release(domain);
}

void mesh_endpoint_renew(struct mesh_domain *domain)
{
	/* Whoever has claimed it wakes this thread when it gives it back. */
	if (mesh_endpoint_is_closing(domain) && mesh_endpoint_claim(domain))
		endpoint_shut(domain);
	if (atomic_load(&domain->endpoint_state) == MESH_ENDPOINT_CLOSED)
		endpoint_reopen(domain);
}
