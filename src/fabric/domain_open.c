/* SPDX-License-Identifier: Apache-2.0 */
/*
 * domain_open.c - opens and closes one NIC's libfabric objects: among them its endpoint, which can
 * be replaced by another one, and the thread for posts that connect.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/threads.h"
#include "fabric/buffer.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/flow.h"
#include "fabric/mr.h"
#include "fabric/poll.h"
#include "fabric/provider.h"
#include "fabric/provider_sockets.h"
#include "fabric/remote.h"
#include "nic/addr.h"
#include "nic/rdma_port.h"
#include "system/this_process.h"

/* The least room for completions; the supported providers keep more in a list of their own. */
#define CQ_ENTRIES 4096
/* The expected number of peers; the address vector grows beyond it. */
#define AV_ENTRIES 256
/*
 * libfabric's verbs caches registrations by default (1.17 to 2.6 at least; FI_MR_CACHE_*): after
 * fi_close() the memory stays registered under the same key until it is unmapped, and longer if
 * libfabric does not detect that, as with CUDA's and shared memory. A late write would land in
 * memory that NCCL has back. So this plugin's registrations bypass the cache, like ofi_rxm's own,
 * by the flag OFI_MR_NOCACHE of libfabric's include/ofi_util.h. The flag is unchanged since 1.10
 * but not part of the interface: a libfabric without it would refuse each registration.
 */
#define FI_MR_NOCACHE ((uint64_t)1 << 60)

/* ---- the endpoint -------------------------------------------------------------------------- */

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

static int domain_fail(const struct mesh_domain *domain, const char *what, int error)
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

static void fid_close(struct fid *fid)
{
	int ret = fi_close(fid);

	if (ret)
		mesh_info("cannot close a libfabric object: %s", fi_strerror(-ret));
}

/* The next attempt opens another one (endpoint_renew()). */
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
		return domain_fail(domain, "read the endpoint's name", ret);
	domain->name_len = len;
	ret = mesh_addr_from_sockaddr((struct sockaddr *)domain->name, len, &address, &port);
	if (ret)
		return domain_fail(domain, "decode the endpoint's name", ret);
	atomic_store_explicit(&domain->port, port, memory_order_relaxed);
	return 0;
}

/*
 * Opens the endpoint on one of the ports, and reads its name and port. The other objects are open.
 * On verbs @ports has no effect: its port is one of rdma_cm's, which no firewall of TCP sees.
 */
static int endpoint_open(struct mesh_domain *domain, const struct mesh_port_range *ports)
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
		return domain_fail(domain, what, ret);
	ret = name_read(domain);
	if (ret)
		endpoint_undo(domain);
	return ret;
}

void mesh_connector_wake(struct mesh_domain *domain)
{
	sem_post(&domain->connector_wake);
}

bool mesh_endpoint_claim(struct mesh_domain *domain)
{
	bool claimed;

	/* Both locks: then no thread is in the endpoint, and the next one sees the claim. */
	mesh_domain_lock(domain);
	mesh_transmit_lock(domain);
	claimed = !mesh_endpoint_is_claimed(domain);
	atomic_store_explicit(&domain->claimed, true, memory_order_relaxed);
	mesh_transmit_unlock(domain);
	mesh_domain_unlock(domain);
	return claimed;
}

void mesh_endpoint_release(struct mesh_domain *domain)
{
	mesh_transmit_lock(domain);
	atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
	atomic_store_explicit(&domain->claimed, false, memory_order_release);
	mesh_transmit_unlock(domain);
	mesh_connector_wake(domain);
}

/* ---- another endpoint in its place --------------------------------------------------------- */

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
	if (domain->has_connector && FI_VERSION_LT(fi_version(), FI_VERSION(1, 20)) &&
	    atomic_load(&domain->endpoint_state) == MESH_ENDPOINT_OPEN)
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

	mesh_domain_lock(domain);
	mesh_domain_drain(domain, true);
	mesh_domain_unlock(domain);
	if (domain->endpoint)
		fid_close(&domain->endpoint->fid);
	mesh_domain_lock(domain);
	domain->endpoint = NULL;
	mesh_domain_drain(domain, true);
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
	/* Each attempt that fails is a line in the log. */
	if (mesh_clock_elapsed_ms(domain->reopened_ms, mesh_clock_ms()) < MESH_ANSWER_MS)
		return;
	if (endpoint_open(domain, NULL)) {
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

/*
 * Closes the endpoint if it was given up, and opens another one. What cannot be done now is done in
 * a later turn. No lock held.
 */
static void endpoint_renew(struct mesh_domain *domain)
{
	/* Whoever has claimed it wakes this thread when it gives it back. */
	if (mesh_endpoint_is_closing(domain) && mesh_endpoint_claim(domain))
		endpoint_shut(domain);
	if (atomic_load(&domain->endpoint_state) == MESH_ENDPOINT_CLOSED)
		endpoint_reopen(domain);
}

/* ---- the thread for posts that connect ----------------------------------------------------- */

/* What waits for it, and what comes meanwhile. */
static void *connector_main(void *arg)
{
	struct mesh_domain *domain = arg;

	for (;;) {
		while (sem_wait(&domain->connector_wake) && errno == EINTR)
			;
		if (atomic_load(&domain->connector_ends))
			return NULL;
		do {
			endpoint_renew(domain);
			mesh_fences_post(domain);
		} while (mesh_remote_connect_next(domain));
	}
}

/* Without one, posts never wait: on the other providers. */
static int connector_start(struct mesh_domain *domain)
{
	int ret;

	if (domain->provider != MESH_PROVIDER_VERBS_RXM)
		return 0;
	sem_init(&domain->connector_wake, 0, 0);
	domain->has_connector = true;
	ret = mesh_thread_create(&domain->connector, "nccl-mesh-conn", connector_main, domain);
	if (!ret)
		return 0;
	domain->has_connector = false;
	sem_destroy(&domain->connector_wake);
	return domain_fail(domain, "start a thread to connect", ret);
}

/* Waits for the post that it is making. */
static void connector_stop(struct mesh_domain *domain)
{
	if (!domain->has_connector)
		return;
	atomic_store(&domain->connector_ends, true);
	mesh_connector_wake(domain);
	pthread_join(domain->connector, NULL);
	domain->has_connector = false;
	sem_destroy(&domain->connector_wake);
}

/* ---- the domain ---------------------------------------------------------------------------- */

/* All posted operations may complete at once, plus one write of a peer for each receive. */
static size_t completions_count(const struct fi_info *info)
{
	size_t posted = info->tx_attr->size + 2 * info->rx_attr->size;

	return posted > CQ_ENTRIES ? posted : CQ_ENTRIES;
}

static int objects_open(struct mesh_domain *domain)
{
	struct fi_cq_attr cq_attr = {
		.size = completions_count(domain->info),
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_NONE,
	};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = AV_ENTRIES};
	int ret;

	ret = fi_fabric(domain->info->fabric_attr, &domain->fabric, NULL);
	if (ret)
		return domain_fail(domain, "open the fabric", ret);
	ret = fi_domain(domain->fabric, domain->info, &domain->domain, NULL);
	if (ret)
		return domain_fail(domain, "open the domain", ret);
	ret = fi_av_open(domain->domain, &av_attr, &domain->av, NULL);
	if (ret)
		return domain_fail(domain, "open the address vector", ret);
	ret = fi_cq_open(domain->domain, &cq_attr, &domain->cq, NULL);
	if (ret)
		return domain_fail(domain, "open the completion queue", ret);
	return 0;
}

static void limits_set(struct mesh_domain *domain)
{
	if (domain->provider != MESH_PROVIDER_TCP_RXM)
		domain->immediate_bits = (int)domain->info->domain_attr->cq_data_size * 8;
	domain->send_flags = FI_COMPLETION;
	/* On verbs a plain completion already means that the peer's NIC has acknowledged. */
	if (domain->provider != MESH_PROVIDER_VERBS_RXM)
		domain->delivery_flag = FI_DELIVERY_COMPLETE;
	domain->segment_max = domain->info->ep_attr->max_msg_size;
	domain->inject_max = domain->info->tx_attr->inject_size;
	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		domain->mr_flags = FI_MR_NOCACHE;
}

/* Logs the provider's limits, which help to explain a figure or a failure. */
static void limits_log(const struct mesh_domain *domain)
{
	const struct fi_info *info = domain->info;
	char protocol[MESH_RDMA_PORT_TEXT_MAX] = "";
	char rdma[MESH_RDMA_NAME_MAX + MESH_RDMA_PORT_TEXT_MAX + 32] = "";
	char version[MESH_LIBFABRIC_VERSION_MAX];

	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		snprintf(rdma, sizeof(rdma), " on %s port %d (%s)", domain->nic->rdma.device,
			 domain->nic->rdma.port, mesh_rdma_protocol_text(domain->nic, protocol));
	mesh_info("%s: %s%s; libfabric %s, largest write %zu bytes, inject %zu bytes, %zu sends "
		  "and %zu receives posted, immediates of %zu bytes, keys of %zu bytes, mr_mode "
		  "0x%x",
		  domain->nic->netdev, mesh_provider_id_text(domain->provider), rdma,
		  mesh_libfabric_version(version), domain->segment_max, info->tx_attr->inject_size,
		  info->tx_attr->size, info->rx_attr->size, info->domain_attr->cq_data_size,
		  info->domain_attr->mr_key_size, (unsigned int)info->domain_attr->mr_mode);
}

/* It is zeroed, so its lists are empty. */
MESH_NOT_ANALYSED
static void domain_init(struct mesh_domain *domain, const struct mesh_domain_options *options)
{
	mesh_lock_init(&domain->mrs_lock);
	mesh_lock_init(&domain->lock);
	mesh_lock_init(&domain->transmit_lock);
	TAILQ_INIT(&domain->free_buffers);
	TAILQ_INIT(&domain->backlogged);
	TAILQ_INIT(&domain->waiters);
	atomic_store(&domain->copied_in, UINT64_MAX - 1); /* no poll */
	atomic_store(&domain->ready_fd, -1);
	TAILQ_INIT(&domain->unposted);
	domain->nic = options->nic;
	domain->dev = options->dev;
	domain->lane = options->lane;
	domain->payload_max = options->payload_max;
	domain->failure = options->failure;
}

MESH_NOT_ANALYSED
int mesh_domain_open(const struct mesh_domain_options *options, struct mesh_domain **domain)
{
	char reason[MESH_PROVIDER_REASON_MAX];
	struct mesh_domain *opened;
	int ret = mesh_sockets_reserve();

	if (ret) {
		mesh_warn_new(options->failure,
			      "%s: cannot open /proc/self/fd, which is needed when a connection is "
			      "lost: %s%s",
			      options->nic->netdev, strerror(-ret), mesh_descriptors_hint());
		return ret;
	}
	opened = calloc(1, sizeof(*opened));
	if (!opened) {
		mesh_warn_new(options->failure, "%s: no memory for its domain",
			      options->nic->netdev);
		mesh_sockets_release();
		return -ENOMEM;
	}
	domain_init(opened, options);
	ret = mesh_provider_find(options->nic, options->provider, &opened->info, &opened->provider,
				 reason);
	if (ret) {
		mesh_warn_new(options->failure, "%s: %s", options->nic->netdev, reason);
		goto close;
	}
	ret = objects_open(opened);
	if (ret)
		goto close;
	ret = endpoint_open(opened, &options->ports);
	if (ret)
		goto close;
	limits_set(opened);
	mesh_handshakes_limit(opened);
	ret = mesh_buffers_open(opened);
	if (ret)
		goto close;
	ret = connector_start(opened);
	if (ret)
		goto close;
	if (!opened->lane)
		limits_log(opened);
	opened->failure = NULL;
	*domain = opened;
	return 0;
close:
	mesh_domain_close(opened);
	return ret;
}

/* A few are late messages of closed connections; many come from another program on this link. */
static void strangers_log(const struct mesh_domain *domain)
{
	uint64_t strangers = atomic_load(&domain->strangers);

	if (strangers)
		mesh_info("%s: %" PRIu64 " messages or writes matched no connection: late ones of "
			  "closed connections, or from another program",
			  domain->nic->netdev, strangers);
}

static void endpoint_end(struct mesh_domain *domain)
{
	if (!domain->endpoint)
		return;
	if (domain->provider == MESH_PROVIDER_VERBS_RXM) {
		mesh_domain_lock(domain);
		mesh_domain_drain(domain, false);
		mesh_domain_unlock(domain);
	}
	fid_close(&domain->endpoint->fid);
}

void mesh_domain_close(struct mesh_domain *domain)
{
	if (!domain)
		return;
	connector_stop(domain);
	strangers_log(domain);
	endpoint_end(domain);
	mesh_buffers_close(domain);
	mesh_remotes_free(domain);
	mesh_readiness_close(domain);
	if (domain->cq)
		fid_close(&domain->cq->fid);
	mesh_fences_free(domain);
	if (domain->av)
		fid_close(&domain->av->fid);
	if (domain->domain)
		fid_close(&domain->domain->fid);
	if (domain->fabric)
		fid_close(&domain->fabric->fid);
	fi_freeinfo(domain->info);
	mesh_lock_destroy(&domain->mrs_lock);
	mesh_lock_destroy(&domain->lock);
	mesh_lock_destroy(&domain->transmit_lock);
	free(domain);
	mesh_sockets_release();
}
