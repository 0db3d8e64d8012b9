/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - other nodes' endpoints, and the messages and writes that go to them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/log.h"
#include "fabric/domain.h"
#include "fabric/fabric_internal.h"
#include "fabric/mr.h"

/* Frees the remotes that were closed while messages waited for them. */
static void remotes_reap(struct mesh_domain *domain)
{
	struct mesh_remote *remote, *next;

	mesh_lock_assert_held(&domain->transmit_lock);
	for (remote = LIST_FIRST(&domain->remotes); remote; remote = next) {
		next = LIST_NEXT(remote, entry);
		if (!remote->closed || !TAILQ_EMPTY(&remote->backlog))
			continue;
		LIST_REMOVE(remote, entry);
		mesh_flow_put(domain, remote->flow);
		free(remote);
	}
}

static int remote_insert(struct mesh_domain *domain, struct mesh_remote *remote)
{
	int ret = fi_av_insert(domain->av, remote->name, 1, &remote->fi_addr, 0, NULL);

	if (ret == 1) {
		remote->flow = mesh_flow_get(domain, remote->name, remote->name_len);
		return remote->flow ? 0 : -ENOMEM;
	}
	mesh_warn("%s: libfabric does not take a peer's endpoint name: %s", domain->nic->netdev,
		  ret < 0 ? fi_strerror(-ret) : "no such address");
	return ret < 0 ? ret : -EINVAL;
}

int mesh_remote_open(struct mesh_domain *domain, const void *name, size_t name_len,
		     struct mesh_remote **remote)
{
	struct mesh_remote *opened;
	int ret;

	/* fi_av_insert reads as many bytes as our own names have. */
	if (name_len != domain->name_len)
		return -EPROTO;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	memcpy(opened->name, name, name_len);
	opened->name_len = name_len;
	TAILQ_INIT(&opened->backlog);
	mesh_lock_take(&domain->transmit_lock);
	remotes_reap(domain);
	ret = remote_insert(domain, opened);
	if (!ret)
		LIST_INSERT_HEAD(&domain->remotes, opened, entry);
	mesh_lock_release(&domain->transmit_lock);
	if (ret)
		free(opened);
	else
		*remote = opened;
	return ret;
}

void mesh_remote_close(struct mesh_domain *domain, struct mesh_remote *remote)
{
	if (!remote)
		return;
	mesh_lock_take(&domain->transmit_lock);
	/* What waits for it ends with an error from the next poll. */
	remote->lost = true;
	remote->closed = true;
	/* The address stays in the AV: it is the same entry for all who inserted it. */
	remotes_reap(domain);
	mesh_lock_release(&domain->transmit_lock);
}

/* Moves the whole backlog to @buffers. */
static void backlog_detach(struct mesh_domain *domain, struct mesh_remote *remote,
			   struct mesh_buffer_list *buffers)
{
	struct mesh_buffer *buffer;

	mesh_lock_assert_held(&domain->transmit_lock);
	if (!TAILQ_EMPTY(&remote->backlog))
		TAILQ_REMOVE(&domain->backlogged, remote, waiting);
	while ((buffer = TAILQ_FIRST(&remote->backlog))) {
		TAILQ_REMOVE(&remote->backlog, buffer, entry);
		TAILQ_INSERT_TAIL(buffers, buffer, entry);
	}
}

void mesh_remote_lose(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct mesh_buffer_list dropped = TAILQ_HEAD_INITIALIZER(dropped);
	struct mesh_buffer *buffer;

	mesh_lock_assert_held(&domain->lock);
	mesh_lock_take(&domain->transmit_lock);
	remote->lost = true;
	backlog_detach(domain, remote, &dropped);
	mesh_lock_release(&domain->transmit_lock);
	while ((buffer = TAILQ_FIRST(&dropped))) {
		TAILQ_REMOVE(&dropped, buffer, entry);
		buffer->op.complete(&buffer->op, -ECONNRESET);
	}
}

struct mesh_buffer *mesh_buffer_get(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct mesh_buffer *buffer = NULL;

	mesh_lock_take(&domain->transmit_lock);
	if (remote->flow->num_buffers < domain->num_free_buffers)
		buffer = TAILQ_FIRST(&domain->free_buffers);
	if (buffer) {
		TAILQ_REMOVE(&domain->free_buffers, buffer, entry);
		domain->num_free_buffers--;
		remote->flow->num_buffers++;
		buffer->remote = remote;
		buffer->flow = remote->flow;
	}
	mesh_lock_release(&domain->transmit_lock);
	return buffer;
}

void mesh_buffer_put(struct mesh_buffer *buffer)
{
	struct mesh_domain *domain = buffer->domain;

	buffer->sent = NULL;
	buffer->owner = NULL;
	mesh_lock_take(&domain->transmit_lock);
	TAILQ_INSERT_HEAD(&domain->free_buffers, buffer, entry);
	domain->num_free_buffers++;
	if (buffer->flow)
		buffer->flow->num_buffers--;
	buffer->flow = NULL;
	mesh_lock_release(&domain->transmit_lock);
}

/* One attempt. Returns as fi_sendmsg does. */
static ssize_t buffer_post(struct mesh_domain *domain, struct mesh_buffer *buffer)
{
	struct iovec iov = {.iov_base = buffer->bytes, .iov_len = buffer->size};
	void *desc = mesh_mr_desc(domain->slab_mr);
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = buffer->remote->fi_addr,
		.context = &buffer->op.context,
	};

	buffer->op.to = buffer->remote->fi_addr;
	mesh_op_hand_over(&buffer->op);
	return fi_sendmsg(domain->endpoint, &msg, domain->send_flags);
}

/* The buffer is the caller's again; it goes back through a failed completion at the next poll. */
static void backlog_append(struct mesh_domain *domain, struct mesh_buffer *buffer)
{
	struct mesh_remote *remote = buffer->remote;

	mesh_lock_assert_held(&domain->transmit_lock);
	if (TAILQ_EMPTY(&remote->backlog))
		TAILQ_INSERT_TAIL(&domain->backlogged, remote, waiting);
	TAILQ_INSERT_TAIL(&remote->backlog, buffer, entry);
	atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
}

void mesh_buffer_send(struct mesh_buffer *buffer)
{
	struct mesh_domain *domain = buffer->domain;
	struct mesh_remote *remote = buffer->remote;

	mesh_lock_take(&domain->transmit_lock);
	/* Errors, too, come back from the next poll: never a callback from inside a send. */
	if (remote->lost || !TAILQ_EMPTY(&remote->backlog) || buffer_post(domain, buffer))
		backlog_append(domain, buffer);
	mesh_lock_release(&domain->transmit_lock);
}

int mesh_remote_inject(struct mesh_domain *domain, struct mesh_remote *remote, const void *bytes,
		       size_t size)
{
	ssize_t ret = -FI_EAGAIN;

	if (size > domain->inject_max)
		return -EAGAIN;
	mesh_lock_take(&domain->transmit_lock);
	/* What waits already goes first, and an error is the backlog's to report. */
	if (!remote->lost && TAILQ_EMPTY(&remote->backlog))
		ret = fi_inject(domain->endpoint, bytes, size, remote->fi_addr);
	mesh_lock_release(&domain->transmit_lock);
	return ret ? -EAGAIN : 0;
}

/*
 * Sends what the provider takes now. Returns the first buffer that failed, taken out of the
 * backlog, with its error; NULL if there is none.
 */
static struct mesh_buffer *backlog_push(struct mesh_domain *domain, struct mesh_remote *remote,
					int *error)
{
	struct mesh_buffer *buffer;
	ssize_t ret;

	mesh_lock_assert_held(&domain->transmit_lock);
	while ((buffer = TAILQ_FIRST(&remote->backlog))) {
		ret = remote->lost ? -ECONNRESET : buffer_post(domain, buffer);
		if (ret == -FI_EAGAIN)
			return NULL;
		TAILQ_REMOVE(&remote->backlog, buffer, entry);
		if (TAILQ_EMPTY(&remote->backlog))
			TAILQ_REMOVE(&domain->backlogged, remote, waiting);
		if (ret) {
			*error = (int)ret;
			return buffer;
		}
	}
	return NULL;
}

/* Tries every backlog once; one failed message at a time, because its callback runs unlocked. */
static void backlogs_resume(struct mesh_domain *domain)
{
	struct mesh_remote *remote, *next;
	struct mesh_buffer *failed;
	int error = 0;

	do {
		failed = NULL;
		mesh_lock_take(&domain->transmit_lock);
		for (remote = TAILQ_FIRST(&domain->backlogged); remote && !failed; remote = next) {
			next = TAILQ_NEXT(remote, waiting);
			failed = backlog_push(domain, remote, &error);
		}
		mesh_lock_release(&domain->transmit_lock);
		if (failed)
			failed->op.complete(&failed->op, error);
	} while (failed);
}

static void waiters_resume(struct mesh_domain *domain)
{
	struct mesh_waiter_list ready = TAILQ_HEAD_INITIALIZER(ready);
	struct mesh_waiter *waiter;

	/* Only those who wait now: a resume() that must wait again joins for the next poll. */
	mesh_lock_take(&domain->transmit_lock);
	TAILQ_CONCAT(&ready, &domain->waiters, entry);
	while ((waiter = TAILQ_FIRST(&ready))) {
		TAILQ_REMOVE(&ready, waiter, entry);
		waiter->queued = false;
		mesh_lock_release(&domain->transmit_lock);
		waiter->resume(waiter);
		mesh_lock_take(&domain->transmit_lock);
	}
	mesh_lock_release(&domain->transmit_lock);
}

void mesh_waiting_resume(struct mesh_domain *domain)
{
	bool more;

	mesh_lock_assert_held(&domain->lock);
	backlogs_resume(domain);
	waiters_resume(domain);
	mesh_lock_take(&domain->transmit_lock);
	more = !TAILQ_EMPTY(&domain->backlogged) || !TAILQ_EMPTY(&domain->waiters);
	atomic_store_explicit(&domain->has_waiting, more, memory_order_relaxed);
	mesh_lock_release(&domain->transmit_lock);
}

void mesh_domain_wait(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	mesh_lock_take(&domain->transmit_lock);
	mesh_flow_leave(domain, waiter);
	if (!waiter->queued) {
		waiter->queued = true;
		TAILQ_INSERT_TAIL(&domain->waiters, waiter, entry);
		atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
	}
	mesh_lock_release(&domain->transmit_lock);
}

void mesh_domain_wait_cancel(struct mesh_domain *domain, struct mesh_waiter *waiter)
{
	mesh_lock_assert_held(&domain->lock);
	mesh_lock_take(&domain->transmit_lock);
	mesh_flow_leave(domain, waiter);
	if (waiter->queued) {
		waiter->queued = false;
		TAILQ_REMOVE(&domain->waiters, waiter, entry);
	}
	mesh_lock_release(&domain->transmit_lock);
}

bool mesh_remote_backlogged(struct mesh_domain *domain, struct mesh_remote *remote)
{
	bool backlogged;

	mesh_lock_take(&domain->transmit_lock);
	backlogged = !TAILQ_EMPTY(&remote->backlog);
	mesh_lock_release(&domain->transmit_lock);
	return backlogged;
}

/* Announces a write that carries no immediate; it travels behind the write. */
static void written_send(struct mesh_buffer *buffer, const struct mesh_write *write)
{
	struct mesh_message_header header = {
		.type = MESH_MESSAGE_WRITTEN,
		.comm = write->sink_id,
		.token = write->sink_token,
		.seq = (uint32_t)write->immediate,
		.size = (uint32_t)(write->immediate >> 32),
	};

	memcpy(buffer->bytes, &header, sizeof(header));
	buffer->size = sizeof(header);
	mesh_buffer_send(buffer);
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

	mesh_lock_assert_held(&domain->transmit_lock);
	op->to = remote->fi_addr;
	mesh_op_hand_over(op);
	return (int)fi_writemsg(domain->endpoint, &msg, flags);
}

int mesh_domain_write(struct mesh_domain *domain, struct mesh_remote *remote,
		      const struct mesh_write *write, struct mesh_op *op)
{
	uint64_t flags = domain->write_flags | (write->delivery ? domain->delivery_flag : 0);
	struct mesh_buffer *written = NULL;
	int ret;

	if (!domain->immediates) {
		written = mesh_buffer_get(domain, remote);
		if (!written)
			return -EAGAIN;
	}
	mesh_lock_take(&domain->transmit_lock);
	ret = -ECONNRESET;
	if (!remote->lost)
		ret = mesh_write_post(domain, remote, write, flags, op);
	if (!ret)
		mesh_pace_posted(&remote->flow->pace, write->size, write->now_ns);
	mesh_lock_release(&domain->transmit_lock);
	if (written && ret)
		mesh_buffer_put(written);
	else if (written)
		written_send(written, write);
	return ret;
}
