/* SPDX-License-Identifier: Apache-2.0 */
/* domain_open.c - opens and closes one NIC's libfabric objects. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/descriptors.h"
#include "base/log.h"
#include "fabric/buffer.h"
#include "fabric/connector.h"
#include "fabric/domain_open.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/flow.h"
#include "fabric/mr.h"
#include "fabric/poll.h"
#include "fabric/provider.h"
#include "fabric/provider_sockets.h"
#include "fabric/remote.h"
#include "nic/rdma_port.h"

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
		return mesh_domain_fail(domain, "open the fabric", ret);
	ret = fi_domain(domain->fabric, domain->info, &domain->domain, NULL);
	if (ret)
		return mesh_domain_fail(domain, "open the domain", ret);
	ret = fi_av_open(domain->domain, &av_attr, &domain->av, NULL);
	if (ret)
		return mesh_domain_fail(domain, "open the address vector", ret);
	ret = fi_cq_open(domain->domain, &cq_attr, &domain->cq, NULL);
	if (ret)
		return mesh_domain_fail(domain, "open the completion queue", ret);
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
	if (domain->provider != MESH_PROVIDER_VERBS_RXM &&
	    (!domain->segment_bytes || domain->segment_bytes > MESH_COPY_SEGMENT))
		domain->segment_bytes = MESH_COPY_SEGMENT;
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

/* What waits for the connector, and what comes meanwhile. */
static void connector_turn(struct mesh_domain *domain)
{
	do {
		mesh_endpoint_renew(domain);
		mesh_fences_post(domain);
	} while (mesh_remote_connect_next(domain));
}

static int connector_open(struct mesh_domain *domain)
{
	int ret;

	if (domain->provider != MESH_PROVIDER_VERBS_RXM)
		return 0;
	ret = mesh_connector_start(domain, connector_turn);
	return ret ? mesh_domain_fail(domain, "start a thread to connect", ret) : 0;
}

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
	LIST_INIT(&domain->remotes);
	LIST_INIT(&domain->ended);
	LIST_INIT(&domain->flows);
	LIST_INIT(&domain->mrs);
	LIST_INIT(&domain->fences);
	LIST_INIT(&domain->abandoned);
	LIST_INIT(&domain->in_flight);
	domain->nic = options->nic;
	domain->dev = options->dev;
	domain->lane = options->lane;
	domain->payload_max = options->payload_max;
	domain->segment_bytes = options->segment_bytes;
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
	ret = mesh_endpoint_open(opened, &options->ports);
	if (ret)
		goto close;
	limits_set(opened);
	mesh_handshakes_limit(opened);
	ret = mesh_buffers_open(opened);
	if (ret)
		goto close;
	ret = connector_open(opened);
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

static void fid_close(struct fid *fid)
{
	int ret = fi_close(fid);

	if (ret)
		mesh_info("cannot close a libfabric object: %s", fi_strerror(-ret));
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
		mesh_domain_discard(domain);
		mesh_domain_unlock(domain);
	}
	fid_close(&domain->endpoint->fid);
}

MESH_NOT_ANALYSED
void mesh_domain_close(struct mesh_domain *domain)
{
	struct mesh_remote *remote;

	if (!domain)
		return;
	mesh_connector_stop(domain);
	strangers_log(domain);
	endpoint_end(domain);
	mesh_buffers_close(domain);
	while ((remote = LIST_FIRST(&domain->remotes))) {
		LIST_REMOVE(remote, entry);
		free(remote);
	}
	mesh_flows_close(domain);
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
