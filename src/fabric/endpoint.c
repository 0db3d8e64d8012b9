/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint.c - opens the endpoint of a domain, closes it and opens another one in its place, and
 * reports what of a domain cannot be opened.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "fabric/buffer.h"
#include "fabric/connector.h"
#include "fabric/endpoint.h"
#include "fabric/poll.h"
#include "fabric/provider.h"
#include "nic/addr.h"
#include "system/this_process.h"

/* The remedy, or "" if it is unknown; @memlock: MESH_MEMLOCK_HINT_MAX bytes. */
static const char *failure_hint(const struct mesh_domain *domain, int error, char *memlock)
{
	bool verbs = domain->provider == MESH_PROVIDER_VERBS_RXM;

	if (error == -FI_EMFILE)
		return "; " MESH_DESCRIPTORS_RAISE;
	if (mesh_descriptors_exhausted())
		return mesh_descriptors_hint();
	if (error == -FI_ENOMEM && verbs)
		return mesh_memlock_hint(memlock); /* queues and buffers are locked memory */
	if (error == -FI_EADDRNOTAVAIL)
		return "; did this NIC lose its address since the start?";
	if (error == -FI_EADDRINUSE && !verbs)
		return "; NCCL_MESH_PORTS needs two ports for each process of this node, "
		       "or up to nine between two sites; "
		       "FI_TCP_PORT_LOW_RANGE (FI_NET_... for libfabric 1.17) one";
	return "";
}

int mesh_domain_fail(const struct mesh_domain *domain, const char *what, int error)
{
	char memlock[MESH_MEMLOCK_HINT_MAX];

	/* Without a lane a connection goes on over the others. */
	mesh_log_new(domain->failure, domain->lane ? MESH_LOG_INFO : MESH_LOG_WARN, __FILE__,
		     __LINE__, "%s: cannot %s%s with %s: %s%s", domain->nic->netdev, what,
		     domain->lane ? " of one more lane" : "",
		     mesh_provider_id_text(domain->provider), fi_strerror(-error),
		     failure_hint(domain, error, memlock));
	return error;
}

/* The address that the endpoint is bound to, which libfabric has allocated for its family. */
static void source_port_set(struct fi_info *info, uint16_t port)
{
	struct sockaddr *address = info->src_addr;

	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

/* The next attempt opens another one (mesh_endpoint_renew()). */
static void endpoint_undo(struct mesh_domain *domain)
{
	fi_close(&domain->endpoint->fid);
	domain->endpoint = NULL;
}

/* Opens and enables the endpoint on @port, 0 for any. *@what: the step that failed. */
static int endpoint_try(struct mesh_domain *domain, uint16_t port, const char **what)
{
	int ret;

	*what = "open the endpoint";
	if (port)
		source_port_set(domain->info, port);
	ret = fi_endpoint(domain->domain, domain->info, &domain->endpoint, NULL);
	if (ret) {
		domain->endpoint = NULL;
		return ret;
	}
	*what = "enable the endpoint";
	ret = fi_ep_bind(domain->endpoint, &domain->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(domain->endpoint, &domain->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(domain->endpoint);
	if (ret)
		endpoint_undo(domain);
	return ret;
}

static int name_read(struct mesh_domain *domain)
{
	struct mesh_addr address;
	size_t len = sizeof(domain->name);
	uint16_t port;
	int ret;

	ret = fi_getname(&domain->endpoint->fid, domain->name, &len);
	if (ret)
		return mesh_domain_fail(domain, "read the endpoint's name", ret);
	domain->name_len = len;
	ret = mesh_addr_from_sockaddr((struct sockaddr *)domain->name, len, &address, &port);
	if (ret)
		return mesh_domain_fail(domain, "decode the endpoint's name", ret);
	atomic_store_explicit(&domain->port, port, memory_order_relaxed);
	return 0;
}

/* On verbs the endpoint's port is one of rdma_cm's, which no firewall of TCP sees. */
int mesh_endpoint_open(struct mesh_domain *domain, const struct mesh_port_range *ports)
{
	const struct mesh_port_range any = {0, 0};
	const char *what = NULL;
	unsigned int number;
	int ret = 0;

	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		ports = &any;
	for (number = 0; number < mesh_port_range_size(ports); number++) {
		ret = endpoint_try(domain, mesh_port_range_get(ports, number), &what);
		if (ret != -FI_EADDRINUSE)
			break;
	}
	if (ret)
		return mesh_domain_fail(domain, what, ret);
	ret = name_read(domain);
	if (ret)
		endpoint_undo(domain);
	return ret;
}

static const uint8_t may_follow[MESH_ENDPOINT_STATES] = {
	[MESH_ENDPOINT_OPEN] = 1 << MESH_ENDPOINT_CLOSED,
	[MESH_ENDPOINT_SPENT] = 1 << MESH_ENDPOINT_OPEN,
	[MESH_ENDPOINT_CLOSING] = 1 << MESH_ENDPOINT_OPEN | 1 << MESH_ENDPOINT_SPENT,
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

void mesh_endpoint_spend(struct mesh_domain *domain)
{
	mesh_transmit_lock(domain);
	if (atomic_load(&domain->endpoint_state) == MESH_ENDPOINT_OPEN)
		state_set(domain, MESH_ENDPOINT_SPENT);
	mesh_transmit_unlock(domain);
}

void mesh_endpoint_close(struct mesh_domain *domain)
{
	/* The connector, which may be at work, claims the endpoint under this lock only. */
	mesh_transmit_lock(domain);
	if (atomic_load(&domain->endpoint_state) <= MESH_ENDPOINT_SPENT) {
		/* First: who sees that a remote is outdated also sees that it is closing. */
		state_set(domain, MESH_ENDPOINT_CLOSING);
		remotes_outdate(domain);
	}
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
	enum mesh_endpoint_state state = atomic_load(&domain->endpoint_state);

	if (state == MESH_ENDPOINT_SPENT)
		mesh_endpoint_close(domain);
	else if (state != MESH_ENDPOINT_OPEN)
		mesh_connector_wake(domain);
	return state == MESH_ENDPOINT_OPEN;
}

static void endpoint_reopen(struct mesh_domain *domain)
{
	const struct mesh_port_range any = {0, 0};

	/* Each attempt that fails is a line in the log. */
	if (mesh_clock_elapsed_ms(domain->reopened_ms, mesh_clock_ms()) < MESH_ANSWER_MS)
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
