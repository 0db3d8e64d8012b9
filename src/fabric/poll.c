/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll.c - reads a domain's completion queue and calls the owner of each completion; explains what
 * failed; and a descriptor that is readable while there is something to do.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "fabric/endpoint.h"
#include "fabric/poll.h"
#include "fabric/remote.h"
#include "fabric/buffer.h"
#include "nic/rdma_port.h"

/* Reads in a poll: with MESH_POLL_ENTRIES they bound a poll, however busy the NIC is. */
#define POLL_BATCHES 8
/*
 * Reads that empty a queue. libfabric keeps its own messages and the errors of its own receives to
 * itself, and a read that meets one of these errors returns as if the queue was empty: a connection
 * that has broken leaves 128 of them.
 */
#define DRAIN_READS 1024
/* Lines about broken connections, within MESH_LOG_LIMIT_PERIOD_MS. */
#define BREAKAGE_LINES 8

static bool op_is_receive(const struct mesh_domain *domain, const struct mesh_op *op)
{
	const struct mesh_buffer *buffer = (const struct mesh_buffer *)op;

	return buffer >= domain->receive_buffers &&
	       buffer < domain->receive_buffers + domain->num_receive_buffers;
}

/* A send or write is over: nothing of it is left in the endpoint. */
MESH_HOLDS(domain)
static void op_ended(struct mesh_domain *domain, struct mesh_op *op)
{
	mesh_op_take_back(op);
	if (!domain->has_connector || op_is_receive(domain, op))
		return;
	mesh_transmit_lock(domain);
	LIST_REMOVE(op, in_flight);
	mesh_transmit_unlock(domain);
}

MESH_HOLDS(domain)
static void completion_handle(struct mesh_domain *domain, const struct fi_cq_data_entry *entry)
{
	struct mesh_op *op = entry->op_context;

	/* A peer's write with immediate. Its context is NULL; on 1.17 it may be invalid. */
	if (entry->flags & FI_REMOTE_CQ_DATA && !(entry->flags & FI_RECV)) {
		mesh_sink_written(domain, entry->data);
		return;
	}
	if (!op)
		return;
	op_ended(domain, op);
	op->size = entry->len;
	op->complete(op, 0);
}

/* The flow of what was posted to this address; NULL if it has ended. */
MESH_HOLDS(transmit)
static struct mesh_flow *flow_find(struct mesh_domain *domain, fi_addr_t to)
{
	struct mesh_flow *flow;

	LIST_FOREACH(flow, &domain->flows, entry) {
		if (flow->fi_addr == to)
			return flow;
	}
	return NULL;
}

/* A send or write to this address has failed: the next post may connect. */
static void connection_broken(struct mesh_domain *domain, fi_addr_t to)
{
	struct mesh_flow *flow;

	mesh_transmit_lock(domain);
	flow = flow_find(domain, to);
	if (flow)
		flow->connected = false;
	mesh_transmit_unlock(domain);
}

/* The address that @op was posted to, in words. A receive has no target. */
static void target_find(struct mesh_domain *domain, const struct mesh_op *op, char *text)
{
	const struct mesh_flow *flow;

	mesh_transmit_lock(domain);
	flow = op ? flow_find(domain, op->to) : NULL;
	if (flow)
		mesh_addr_text(&flow->address, text);
	mesh_transmit_unlock(domain);
}

/*
 * Logs why a connection of verbs broke, for the operation that failed: the other operations of the
 * connection are only flushed. @op: NULL for a receive; @status: of enum ibv_wc_status.
 */
MESH_COLD static void breakage_report(struct mesh_domain *domain, const struct mesh_op *op,
				      int status)
{
	char local[MESH_ADDR_TEXT_MAX], peer[MESH_ADDR_TEXT_MAX] = "a peer";
	char text[MESH_RDMA_ERROR_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	if (!mesh_log_limit_pass(&domain->breakages, BREAKAGE_LINES, mesh_clock_ms(), more))
		return;
	target_find(domain, op, peer);
	mesh_warn("%s: RDMA with %s port %d from %s to %s failed: %s%s", domain->nic->netdev,
		  domain->nic->rdma.device, domain->nic->rdma.port,
		  mesh_addr_text(&domain->nic->source, local), peer,
		  mesh_rdma_status_explain(status, domain->nic->rdma.link_layer, text), more);
}

static int errno_from_fi(int error)
{
	/* Numbers beyond the errno range are libfabric's own. */
	return error > 0 && error < FI_ERRNO_OFFSET ? -error : -EIO;
}

/* The most specific errno of a failed operation. */
static int error_decide(struct mesh_domain *domain, const struct mesh_op *op,
			const struct fi_cq_err_entry *entry)
{
	if (domain->provider != MESH_PROVIDER_VERBS_RXM || entry->prov_errno <= 0)
		return errno_from_fi(entry->err);
	if (entry->prov_errno != MESH_RDMA_FLUSHED && !op->expected_to_fail)
		breakage_report(domain, op_is_receive(domain, op) ? NULL : op, entry->prov_errno);
	return mesh_rdma_status_errno(entry->prov_errno);
}

MESH_HOLDS(domain)
MESH_COLD static void error_handle(struct mesh_domain *domain)
{
	struct fi_cq_err_entry entry;
	struct mesh_op *op;
	ssize_t ret;

	memset(&entry, 0, sizeof(entry)); /* offers no buffer for provider data */
	ret = fi_cq_readerr(domain->cq, &entry, 0);
	if (ret < 0)
		return;
	op = entry.op_context;
	mesh_trace("%s: an operation failed: %s (provider error %d), flags 0x%llx",
		   domain->nic->netdev, fi_strerror(entry.err), entry.prov_errno,
		   (unsigned long long)entry.flags);
	/*
	 * No context: either a peer's write was interrupted, and its sender gets an error; or an
	 * injected message failed, and the end that waits for it will ask for it (stall.c).
	 */
	if (!op)
		return;
	op_ended(domain, op);
	if (domain->has_connector && !op_is_receive(domain, op))
		connection_broken(domain, op->to);
	op->complete(op, error_decide(domain, op, &entry));
}

/* The queue itself is broken: no operation completes. The engine loses the peers. */
MESH_COLD static void queue_failed(struct mesh_domain *domain, int error)
{
	if (domain->broken)
		return;
	domain->broken = true;
	mesh_warn("%s: cannot read the completion queue of %s: %s; this NIC cannot be used",
		  domain->nic->netdev, mesh_provider_id_text(domain->provider),
		  fi_strerror(-error));
}

MESH_HOLDS(domain)
static inline ssize_t queue_read(struct mesh_domain *domain)
{
	errno = 0; /* 1.17's net reads a stale errno and may leak an accepted socket */
	return fi_cq_read(domain->cq, domain->completions, MESH_POLL_ENTRIES);
}

/* Handles what a read returned, and reads on while there may be more. */
MESH_HOLDS(domain)
__attribute__((noinline)) static void completions_handle(struct mesh_domain *domain, ssize_t n)
{
	int batch;
	ssize_t i;

	for (batch = 1; n == -FI_EAVAIL || n > 0; batch++) {
		for (i = 0; i < n; i++)
			completion_handle(domain, &domain->completions[i]);
		if (n < 0)
			error_handle(domain);
		if (batch == POLL_BATCHES || (n > 0 && n < MESH_POLL_ENTRIES))
			return;
		n = queue_read(domain);
	}
	if (n < 0 && n != -FI_EAGAIN)
		queue_failed(domain, (int)n);
}

/* Always inline: most polls find nothing, and are as short as this. */
MESH_HOLDS(domain)
__attribute__((always_inline)) static inline void domain_poll(struct mesh_domain *domain)
{
	ssize_t n;

	mesh_domain_assert_locked(domain);
	atomic_store_explicit(&domain->polls,
			      atomic_load_explicit(&domain->polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	n = queue_read(domain);
	if (n != -FI_EAGAIN)
		completions_handle(domain, n);
	if (!TAILQ_EMPTY(&domain->unposted))
		mesh_receives_resume(domain);
	if (atomic_load_explicit(&domain->has_waiting, memory_order_relaxed)) {
		mesh_backlogs_resume(domain);
		mesh_waiters_resume(domain);
	}
}

void mesh_domain_drain(struct mesh_domain *domain, bool handle)
{
	struct fi_cq_err_entry entry = {0};
	ssize_t n;
	int i;

	mesh_domain_assert_locked(domain);
	for (i = 0; i < DRAIN_READS; i++) {
		n = queue_read(domain);
		if (handle && (n > 0 || n == -FI_EAVAIL))
			completions_handle(domain, n);
		else if (n == -FI_EAVAIL)
			fi_cq_readerr(domain->cq, &entry, 0);
	}
}

bool mesh_domain_poll(struct mesh_domain *domain)
{
	if (!mesh_domain_try_lock(domain))
		return false;
	if (mesh_endpoint_is_claimed(domain)) {
		mesh_domain_unlock(domain);
		return false;
	}
	domain_poll(domain);
	mesh_domain_unlock(domain);
	return true;
}

const char *mesh_silence_explain(const struct mesh_domain *domain, uint16_t port, int error,
				 char *text)
{
	const char *provider = mesh_provider_id_text(domain->provider);
	bool unanswered = !error || error == -ECONNRESET || error == -ETIMEDOUT;

	/* rdma_cm times out by itself and then flushes the posted operations. */
	if (domain->provider == MESH_PROVIDER_VERBS_RXM && unanswered)
		return mesh_rdma_silence_explain(domain->nic->rdma.link_layer, text);
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

/*
 * A second completion queue, which no endpoint is bound to. The provider puts the descriptor that
 * all its sockets report to into the wait object of each queue. The wait object of the queue that
 * has the completions would cost each completion a lock and a signal, which libfabric 1.17 never
 * takes back.
 */
void mesh_readiness_open(struct mesh_domain *domain)
{
	struct fi_cq_attr attr = {.size = 1, .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
	struct fid_cq *cq;
	int fd, ret;

	if (domain->ready_cq || domain->provider != MESH_PROVIDER_TCP)
		return;
	ret = fi_cq_open(domain->domain, &attr, &cq, NULL);
	if (!ret) {
		ret = fi_control(&cq->fid, FI_GETWAIT, &fd);
		if (ret)
			fi_close(&cq->fid);
	}
	if (ret) {
		mesh_info("%s: cannot find a descriptor to sleep on: %s; this NIC is polled "
			  "instead",
			  domain->nic->netdev, fi_strerror(-ret));
		return;
	}
	domain->ready_cq = cq;
	atomic_store(&domain->ready_fd, fd);
}

void mesh_readiness_close(struct mesh_domain *domain)
{
	if (!domain->ready_cq)
		return;
	atomic_store(&domain->ready_fd, -1);
	fi_close(&domain->ready_cq->fid);
	domain->ready_cq = NULL;
}
