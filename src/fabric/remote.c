/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - the endpoints of peers, and the messages and RMA writes that are sent to them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/endpoint.h"
#include "fabric/remote.h"

/*
 * The bounds of the window. That of verbs holds several segments, so that the link stays busy
 * between two polls. On tcp it is smaller, because all bytes pass through the processor's cache
 * (docs/performance.md).
 */
static const struct mesh_pace_bounds verbs_bounds = {.least = 16 << 20, .most = 32 << 20};
static const struct mesh_pace_bounds tcp_bounds = {MESH_PACE_WINDOW_MIN, MESH_PACE_WINDOW_MIN};

/* ---- an endpoint, and the flow there -------------------------------------------------------- */

/*
 * Equal addresses are inserted once, for the flow that they share: libfabric counts the uses of an
 * entry, but ofi_rxm's own table does not give back what was counted there more than once.
 */
MESH_HOLDS(transmit)
static int address_insert(struct mesh_domain *domain, struct mesh_flow *flow)
{
	char more[MESH_LOG_LIMIT_TEXT_MAX];
	int ret = mesh_addr_from_sockaddr((const struct sockaddr *)flow->name, domain->name_len,
					  &flow->address, &flow->port);

	if (!ret)
		ret = fi_av_insert(domain->av, flow->name, 1, &flow->fi_addr, 0, NULL);
	if (ret == 1)
		return 0;
	if (mesh_log_limit_pass(&domain->bad_names, 1, mesh_clock_ms(), more))
		mesh_warn("%s: libfabric rejects a peer's endpoint name: %s%s", domain->nic->netdev,
			  ret < 0 ? fi_strerror(-ret) : "no such address", more);
	return ret < 0 ? ret : -EINVAL;
}

/* Finds the flow to the endpoint of this name (domain->name_len bytes), or begins it. */
MESH_HOLDS(transmit)
static int flow_get(struct mesh_domain *domain, const void *name, struct mesh_flow **flow)
{
	bool verbs = domain->provider == MESH_PROVIDER_VERBS_RXM;
	struct mesh_flow *found;
	int ret;

	mesh_transmit_assert_locked(domain);
	LIST_FOREACH(found, &domain->flows, entry) {
		if (!memcmp(found->name, name, domain->name_len))
			goto found;
	}
	found = calloc(1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	memcpy(found->name, name, domain->name_len);
	ret = address_insert(domain, found);
	if (ret) {
		free(found);
		return ret;
	}
	mesh_pace_init(&found->pace, domain->nic->speed_mbps, verbs ? &verbs_bounds : &tcp_bounds);
	LIST_INSERT_HEAD(&domain->flows, found, entry);
	domain->num_flows++;
found:
	found->users++;
	*flow = found;
	return 0;
}

/* After its last remote frees the flow, and removes its address. */
MESH_HOLDS(transmit)
static void flow_put(struct mesh_domain *domain, struct mesh_flow *flow)
{
	mesh_transmit_assert_locked(domain);
	if (--flow->users)
		return;
	fi_av_remove(domain->av, &flow->fi_addr, 1, 0);
	LIST_REMOVE(flow, entry);
	domain->num_flows--;
	free(flow);
}

/*
 * True if something still points to the remote: the connector, or an operation, which the NIC may
 * report long after a fence has timed out.
 */
MESH_HOLDS(transmit)
static bool remote_is_used(const struct mesh_domain *domain, const struct mesh_remote *remote)
{
	const struct mesh_flow *flow = remote->flow;

	return domain->at_work == remote || flow->num_buffers || mesh_pace_in_flight(&flow->pace);
}

/* Frees closed remotes that nothing uses. */
MESH_HOLDS(transmit)
static void remotes_reap(struct mesh_domain *domain)
{
	struct mesh_remote *remote, *next;

	mesh_transmit_assert_locked(domain);
	for (remote = LIST_FIRST(&domain->ended); remote; remote = next) {
		next = LIST_NEXT(remote, ended);
		if (remote_is_used(domain, remote))
			continue;
		LIST_REMOVE(remote, ended);
		LIST_REMOVE(remote, entry);
		flow_put(domain, remote->flow);
		free(remote);
	}
}

int mesh_remote_open(struct mesh_domain *domain, const void *name, size_t name_len,
		     struct mesh_remote **remote)
{
	struct mesh_remote *opened;
	int ret;

	/* fi_av_insert reads as many bytes as the local endpoint's name has. */
	if (name_len != domain->name_len)
		return -EPROTO;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	TAILQ_INIT(&opened->backlog);
	mesh_transmit_lock(domain);
	opened->generation = atomic_load_explicit(&domain->generation, memory_order_relaxed);
	remotes_reap(domain);
	ret = flow_get(domain, name, &opened->flow);
	if (!ret) {
		opened->fi_addr = opened->flow->fi_addr;
		LIST_INSERT_HEAD(&domain->remotes, opened, entry);
	}
	mesh_transmit_unlock(domain);
	if (ret) {
		free(opened);
		return ret;
	}
	mesh_receives_grow(domain);
	*remote = opened;
	return 0;
}

void mesh_remote_close(struct mesh_domain *domain, struct mesh_remote *remote)
{
	if (!remote)
		return;
	mesh_transmit_lock(domain);
	/* The messages in its backlog fail at the next poll. */
	remote->lost = true;
	LIST_INSERT_HEAD(&domain->ended, remote, ended);
	remotes_reap(domain);
	mesh_transmit_unlock(domain);
}

MESH_NOT_ANALYSED
void mesh_remotes_free(struct mesh_domain *domain)
{
	struct mesh_remote *remote;
	struct mesh_flow *flow;

	while ((remote = LIST_FIRST(&domain->remotes))) {
		LIST_REMOVE(remote, entry);
		free(remote);
	}
	while ((flow = LIST_FIRST(&domain->flows))) {
		LIST_REMOVE(flow, entry);
		free(flow);
	}
}

/* ---- messages and writes -------------------------------------------------------------------- */

/* Puts a message into its remote's backlog. */
MESH_HOLDS(transmit)
static void backlog_append(struct mesh_domain *domain, struct mesh_buffer *buffer)
{
	struct mesh_remote *remote = buffer->remote;

	mesh_transmit_assert_locked(domain);
	if (TAILQ_EMPTY(&remote->backlog))
		TAILQ_INSERT_TAIL(&domain->backlogged, remote, waiting);
	TAILQ_INSERT_TAIL(&remote->backlog, buffer, entry);
	atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
}

MESH_HOLDS(transmit)
static void backlog_remove(struct mesh_domain *domain, struct mesh_buffer *buffer)
{
	struct mesh_remote *remote = buffer->remote;

	mesh_transmit_assert_locked(domain);
	TAILQ_REMOVE(&remote->backlog, buffer, entry);
	if (TAILQ_EMPTY(&remote->backlog))
		TAILQ_REMOVE(&domain->backlogged, remote, waiting);
}

/* Moves the backlog to @buffers, but for a message that the connector is sending. */
MESH_HOLDS(transmit)
static void backlog_detach(struct mesh_domain *domain, struct mesh_remote *remote,
			   struct mesh_buffer_list *buffers)
{
	struct mesh_buffer *buffer = TAILQ_FIRST(&remote->backlog), *next;

	mesh_transmit_assert_locked(domain);
	if (buffer && domain->at_work == remote)
		buffer = TAILQ_NEXT(buffer, entry);
	for (; buffer; buffer = next) {
		next = TAILQ_NEXT(buffer, entry);
		backlog_remove(domain, buffer);
		TAILQ_INSERT_TAIL(buffers, buffer, entry);
	}
}

void mesh_remote_lose(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct mesh_buffer_list dropped = TAILQ_HEAD_INITIALIZER(dropped);
	struct mesh_buffer *buffer;

	mesh_domain_assert_locked(domain);
	mesh_transmit_lock(domain);
	remote->lost = true;
	backlog_detach(domain, remote, &dropped);
	mesh_transmit_unlock(domain);
	while ((buffer = TAILQ_FIRST(&dropped))) {
		TAILQ_REMOVE(&dropped, buffer, entry);
		buffer->op.complete(&buffer->op, -ECONNRESET);
	}
}

struct mesh_buffer *mesh_remote_buffer_get(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct mesh_flow *flow = remote->flow;
	struct mesh_buffer *buffer = NULL;

	mesh_transmit_lock(domain);
	if (flow->num_buffers < domain->num_free_buffers)
		buffer = TAILQ_FIRST(&domain->free_buffers);
	if (buffer) {
		TAILQ_REMOVE(&domain->free_buffers, buffer, entry);
		domain->num_free_buffers--;
		flow->num_buffers++;
		buffer->remote = remote;
		buffer->flow = flow;
	}
	mesh_transmit_unlock(domain);
	return buffer;
}

/*
 * Makes one attempt to post the message. transmit_lock held, or the endpoint claimed. Returns 0,
 * and then the provider owns the buffer; else the provider's error, and nothing changed.
 */
static int buffer_post(struct mesh_domain *domain, struct mesh_buffer *buffer)
{
	struct iovec iov = {.iov_base = buffer->bytes, .iov_len = buffer->size};
	void *desc = domain->slab_desc;
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = buffer->remote->fi_addr,
		.context = &buffer->op.context,
	};
	int ret;

	buffer->op.to = buffer->remote->fi_addr;
	mesh_op_hand_over(&buffer->op);
	ret = (int)fi_sendmsg(domain->endpoint, &msg, domain->send_flags);
	if (!ret)
		mesh_op_posted(domain, &buffer->op);
	return ret;
}

/*
 * Makes the connector connect with @remote, which would be slow here. After an attempt the provider
 * makes progress in polls, or the kernel asks for the peer's link address: one in a millisecond.
 */
MESH_HOLDS(transmit)
static void connection_want(struct mesh_domain *domain, struct mesh_remote *remote)
{
	mesh_transmit_assert_locked(domain);
	if (remote->wants_connection || domain->at_work == remote ||
	    remote->tried_ms == mesh_clock_ms())
		return;
	remote->wants_connection = true;
	mesh_connector_wake(domain);
}

void mesh_remote_send(struct mesh_buffer *buffer)
{
	struct mesh_domain *domain = buffer->domain;
	struct mesh_remote *remote = buffer->remote;

	mesh_transmit_lock(domain);
	/* The next poll reports errors, too: a send never makes a callback. */
	if (remote->lost || !TAILQ_EMPTY(&remote->backlog) ||
	    mesh_flow_may_wait(domain, remote->flow) || buffer_post(domain, buffer))
		backlog_append(domain, buffer);
	if (mesh_flow_connects(domain, remote->flow))
		connection_want(domain, remote);
	mesh_transmit_unlock(domain);
}

int mesh_remote_inject(struct mesh_domain *domain, struct mesh_remote *remote, const void *bytes,
		       size_t size)
{
	ssize_t ret = -FI_EAGAIN;

	if (size > domain->inject_max)
		return -EAGAIN;
	mesh_transmit_lock(domain);
	/* The backlog goes first, and it reports the error of a lost remote. */
	if (!remote->lost && TAILQ_EMPTY(&remote->backlog) &&
	    !mesh_flow_may_wait(domain, remote->flow))
		ret = fi_inject(domain->endpoint, bytes, size, remote->fi_addr);
	mesh_transmit_unlock(domain);
	return ret ? -EAGAIN : 0;
}

/* Makes one attempt with the first of a backlog. -FI_EAGAIN: later. */
MESH_HOLDS(transmit)
static int first_post(struct mesh_domain *domain, struct mesh_remote *remote)
{
	int error = remote->connect_error;

	mesh_transmit_assert_locked(domain);
	if (domain->at_work == remote)
		return -FI_EAGAIN;
	if (remote->lost)
		return -ECONNRESET;
	remote->connect_error = 0;
	if (error)
		return error;
	if (mesh_flow_connects(domain, remote->flow))
		connection_want(domain, remote);
	if (mesh_flow_may_wait(domain, remote->flow))
		return -FI_EAGAIN;
	return buffer_post(domain, TAILQ_FIRST(&remote->backlog));
}

/*
 * Posts messages until the provider is busy. Returns the first buffer that failed, removed from the
 * backlog, with its error; NULL if there is none.
 */
MESH_HOLDS(transmit)
static struct mesh_buffer *backlog_push(struct mesh_domain *domain, struct mesh_remote *remote,
					int *error)
{
	struct mesh_buffer *buffer;
	int ret;

	mesh_transmit_assert_locked(domain);
	while ((buffer = TAILQ_FIRST(&remote->backlog))) {
		ret = first_post(domain, remote);
		if (ret == -FI_EAGAIN)
			return NULL;
		backlog_remove(domain, buffer);
		if (ret) {
			*error = ret;
			return buffer;
		}
	}
	return NULL;
}

/* Tries every backlog once, one failed message at a time: its callback runs unlocked. */
void mesh_backlogs_resume(struct mesh_domain *domain)
{
	struct mesh_remote *remote, *next;
	struct mesh_buffer *failed;
	int error = 0;

	mesh_domain_assert_locked(domain);
	do {
		failed = NULL;
		mesh_transmit_lock(domain);
		for (remote = TAILQ_FIRST(&domain->backlogged); remote && !failed; remote = next) {
			next = TAILQ_NEXT(remote, waiting);
			failed = backlog_push(domain, remote, &error);
		}
		mesh_transmit_unlock(domain);
		if (failed)
			failed->op.complete(&failed->op, error);
	} while (failed);
}

int mesh_write_post(struct mesh_domain *domain, struct mesh_remote *remote,
		    const struct mesh_write *write, uint64_t flags, struct mesh_op *op)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)write->data, .iov_len = write->size};
	struct fi_rma_iov target = {
		.addr = write->address,
		.len = write->size,
		.key = write->key,
	};
	void *desc = mesh_mr_desc(write->mr);
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = remote->fi_addr,
		.rma_iov = &target,
		.rma_iov_count = 1,
		.context = &op->context,
		.data = write->immediate,
	};
	int ret;

	op->to = remote->fi_addr;
	mesh_op_hand_over(op);
	ret = (int)fi_writemsg(domain->endpoint, &msg, flags);
	if (!ret)
		mesh_op_posted(domain, op);
	return ret;
}

/* The write, and what follows it. Returns as mesh_domain_write() does. */
MESH_HOLDS(transmit)
static int write_and_behind(struct mesh_domain *domain, struct mesh_remote *remote,
			    const struct mesh_write *write, struct mesh_op *op)
{
	uint64_t flags = FI_COMPLETION | (write->delivery ? domain->delivery_flag : 0);
	int ret;

	mesh_transmit_assert_locked(domain);
	if (remote->lost)
		return -ECONNRESET;
	if (mesh_flow_connects(domain, remote->flow))
		connection_want(domain, remote);
	if (mesh_flow_may_wait(domain, remote->flow))
		return -EAGAIN;
	if (write->behind && !TAILQ_EMPTY(&remote->backlog))
		return -EAGAIN; /* the provider is busy: it would not accept the message */
	if (!write->behind && !write->silent && domain->immediate_bits)
		flags |= FI_REMOTE_CQ_DATA;
	ret = mesh_write_post(domain, remote, write, flags, op);
	if (ret)
		return ret;
	mesh_flow_posted(domain, remote->flow, write->size, write->now_ns);
	return write->behind && buffer_post(domain, write->behind) ? MESH_WRITE_ALONE : 0;
}

int mesh_domain_write(struct mesh_domain *domain, struct mesh_remote *remote,
		      const struct mesh_write *write, struct mesh_op *op)
{
	int ret;

	mesh_transmit_lock(domain);
	ret = write_and_behind(domain, remote, write, op);
	mesh_transmit_unlock(domain);
	return ret;
}

/* ---- the connector's thread ----------------------------------------------------------------- */

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
	if (taken)
		taken->wants_connection = false;
	domain->at_work = taken;
	mesh_transmit_unlock(domain);
	return taken;
}

/* @message: what was sent, and ended with @ret; NULL: nothing was. */
static void remote_give_back(struct mesh_domain *domain, struct mesh_remote *remote,
			     struct mesh_buffer *message, int ret)
{
	mesh_transmit_lock(domain);
	if (message && !ret) {
		backlog_remove(domain, message);
		remote->flow->connected = true;
	} else if (message && ret != -FI_EAGAIN) {
		remote->connect_error = ret;
	}
	remote->tried_ms = mesh_clock_ms();
	domain->at_work = NULL;
	mesh_transmit_unlock(domain);
}

static struct mesh_buffer *message_first(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct mesh_buffer *first;

	mesh_transmit_lock(domain);
	first = remote->lost ? NULL : TAILQ_FIRST(&remote->backlog);
	mesh_transmit_unlock(domain);
	return first; /* it stays there: domain->at_work */
}

/*
 * The message that connects: the first that waits. If only a write waits, it is an empty one, which
 * the peer ignores. NULL if no buffer is free, and the next poll tries again; or if the remote is
 * lost.
 */
static struct mesh_buffer *message_take(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct mesh_buffer *first = message_first(domain, remote), *empty;

	if (first)
		return first;
	empty = mesh_remote_buffer_get(domain, remote);
	if (!empty)
		return NULL;
	empty->size = 0;
	mesh_remote_send(empty); /* into the backlog: this thread connects */
	return message_first(domain, remote);
}

bool mesh_remote_connect_next(struct mesh_domain *domain)
{
	struct mesh_remote *remote = remote_take(domain);
	struct mesh_buffer *message;
	int ret = 0;

	if (!remote)
		return false;
	if (!mesh_endpoint_claim(domain)) {
		mesh_transmit_lock(domain);
		domain->at_work = NULL;
		remote->wants_connection = true;
		mesh_transmit_unlock(domain);
		return false;
	}
	message = message_take(domain, remote);
	if (message)
		ret = buffer_post(domain, message);
	remote_give_back(domain, remote, message, ret);
	mesh_endpoint_release(domain);
	return true;
}
