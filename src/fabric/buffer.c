/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.c - the message buffers of a domain, posted receives and sends; and the sinks, which get
 * what arrives. Their ids and tokens, in messages and immediates, are untrusted.
 */
#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/buffer.h"
#include "fabric/mr.h"
#include "wire/message.h"

/*
 * The polling thread handles each message and posts its buffer again at once, and no handler waits:
 * so the receives need not hold a peer's whole backlog.
 */
#define RECEIVE_BUFFERS 256
/*
 * On tcp each message takes the oldest of them, so all of them are in use in turn: with 256 the
 * bytes of 4 MiB pass through the processor's cache, and each message goes into memory that is no
 * longer in it (docs/performance.md). What finds none posted stays in the socket meanwhile. But a
 * message keeps its own from its first byte to its last: peers that are slow, have stopped or are
 * lost must leave some for the others. So there are at least RECEIVES_FREE more than peers.
 */
#define RECEIVES_TCP 32
#define RECEIVES_FREE 16
#define SEND_BUFFERS 256
#define CACHE_LINE 64

/* ---- sinks ----------------------------------------------------------------------------------- */

#define SINK_INDEX(id) ((id) & (MESH_COMM_IDS - 1))

static void stranger_count(struct mesh_domain *domain)
{
	/* Dropped: the comm is closed, or this is noise. */
	atomic_fetch_add_explicit(&domain->strangers, 1, memory_order_relaxed);
}

/* The place of the sink with this id. */
MESH_HOLDS(domain)
static struct mesh_sink **place_of(struct mesh_domain *domain, uint32_t id)
{
	return &domain->sinks[SINK_INDEX(id)];
}

int mesh_sink_add(struct mesh_domain *domain, struct mesh_sink *sink)
{
	struct mesh_sink **place;
	uint32_t tries, id;
	int ret = -ENOSPC;

	mesh_domain_lock(domain);
	for (tries = 0; tries < MESH_COMM_IDS && ret; tries++) {
		if (!domain->next_sink)
			domain->next_sink++; /* in frames 0 names none */
		id = domain->next_sink++;
		place = place_of(domain, id);
		if (*place)
			continue;
		sink->id = id;
		*place = sink;
		ret = 0;
	}
	mesh_domain_unlock(domain);
	return ret;
}

void mesh_sink_remove(struct mesh_domain *domain, struct mesh_sink *sink)
{
	struct mesh_sink **place = place_of(domain, sink->id);

	mesh_domain_assert_locked(domain);
	if (*place == sink)
		*place = NULL;
}

struct mesh_sink *mesh_sink_find(struct mesh_domain *domain, uint32_t id)
{
	struct mesh_sink *sink = *place_of(domain, id);

	mesh_domain_assert_locked(domain);
	return sink && sink->id == id ? sink : NULL;
}

void mesh_sink_message(struct mesh_domain *domain, const struct mesh_message_header *header,
		       const void *payload)
{
	struct mesh_sink *sink = mesh_sink_find(domain, header->comm);

	if (!sink || sink->token != header->token)
		stranger_count(domain);
	else
		sink->message(sink, header, payload);
}

void mesh_sink_written(struct mesh_domain *domain, uint64_t immediate)
{
	struct mesh_immediate decoded = mesh_immediate_decode(immediate);
	struct mesh_sink *sink = domain->sinks[decoded.comm];

	mesh_domain_assert_locked(domain);
	if (sink && sink->written)
		sink->written(sink, &decoded);
	else
		stranger_count(domain);
}

/* ---- buffers --------------------------------------------------------------------------------- */

void mesh_buffer_put(struct mesh_buffer *buffer)
{
	struct mesh_domain *domain = buffer->domain;

	buffer->sent = NULL;
	buffer->owner = NULL;
	buffer->about = NULL;
	mesh_transmit_lock(domain);
	TAILQ_INSERT_HEAD(&domain->free_buffers, buffer, entry);
	domain->num_free_buffers++;
	if (buffer->flow)
		buffer->flow->num_buffers--;
	buffer->flow = NULL;
	mesh_transmit_unlock(domain);
}

static void send_complete(struct mesh_op *op, int error)
{
	struct mesh_buffer *buffer = mesh_buffer_of_op(op);

	if (buffer->sent)
		buffer->sent(buffer, error);
	mesh_buffer_put(buffer);
}

/* Every poll tries again. */
MESH_COLD static void post_failed(struct mesh_domain *domain, int error)
{
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	if (mesh_log_limit_pass(&domain->receives, 1, mesh_clock_ms(), more))
		mesh_warn_new(domain->failure, "%s: cannot post a receive: %s%s",
			      domain->nic->netdev, fi_strerror(-error), more);
}

MESH_HOLDS(domain)
static int receive_post(struct mesh_buffer *buffer)
{
	struct mesh_domain *domain = buffer->domain;
	size_t room = sizeof(struct mesh_message_header) + domain->payload_max;
	int ret;

	if (!domain->endpoint)
		return -FI_EAGAIN; /* it is being opened anew (endpoint.h) */
	mesh_op_hand_over(&buffer->op);
	ret = (int)fi_recv(domain->endpoint, buffer->bytes, room, domain->slab_desc, FI_ADDR_UNSPEC,
			   &buffer->op.context);
	if (ret && ret != -FI_EAGAIN)
		post_failed(domain, ret);
	return ret;
}

MESH_HOLDS(domain)
static void receive_complete(struct mesh_op *op, int error)
{
	struct mesh_buffer *buffer = mesh_buffer_of_op(op);
	struct mesh_domain *domain = buffer->domain;
	const struct mesh_message_header *header = NULL;

	if (!error)
		header = mesh_message_check(buffer->bytes, op->size);
	if (header)
		mesh_sink_message(domain, header, header + 1);
	else if (error || op->size) /* an empty one only connects (remote.c) */
		atomic_fetch_add_explicit(&domain->strangers, 1, memory_order_relaxed);
	if (receive_post(buffer))
		TAILQ_INSERT_TAIL(&domain->unposted, buffer, entry);
}

void mesh_receives_resume(struct mesh_domain *domain)
{
	struct mesh_buffer *buffer;

	mesh_domain_assert_locked(domain);
	while ((buffer = TAILQ_FIRST(&domain->unposted))) {
		if (receive_post(buffer))
			return;
		TAILQ_REMOVE(&domain->unposted, buffer, entry);
	}
}

static int receives_wanted(struct mesh_domain *domain)
{
	int wanted = domain->num_receive_buffers;

	mesh_transmit_lock(domain);
	if (domain->num_flows + RECEIVES_FREE < wanted)
		wanted = domain->num_flows + RECEIVES_FREE;
	mesh_transmit_unlock(domain);
	return wanted;
}

void mesh_receives_grow(struct mesh_domain *domain)
{
	int wanted;

	if (domain->provider != MESH_PROVIDER_TCP)
		return;
	wanted = receives_wanted(domain);
	mesh_domain_lock(domain);
	for (; domain->num_receives < wanted; domain->num_receives++)
		TAILQ_INSERT_TAIL(&domain->unposted, &domain->receive_buffers[domain->num_receives],
				  entry);
	mesh_receives_resume(domain);
	mesh_domain_unlock(domain);
}

void mesh_receives_take_back(struct mesh_domain *domain)
{
	int i;

	mesh_domain_assert_locked(domain);
	TAILQ_INIT(&domain->unposted);
	for (i = 0; i < domain->num_receives; i++)
		TAILQ_INSERT_TAIL(&domain->unposted, &domain->receive_buffers[i], entry);
}

static void buffer_init(struct mesh_domain *domain, struct mesh_buffer *buffer, uint8_t *bytes,
			void (*complete)(struct mesh_op *op, int error))
{
	buffer->domain = domain;
	buffer->bytes = bytes;
	buffer->op.complete = complete;
}

/* Bytes of one buffer, and of @count of them: whole cache lines, whole pages. */
static size_t buffer_stride(const struct mesh_domain *domain)
{
	size_t room = sizeof(struct mesh_message_header) + domain->payload_max;

	return (room + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static size_t slab_size(const struct mesh_domain *domain, int count)
{
	return (buffer_stride(domain) * (size_t)count + MESH_PAGE_BYTES - 1) / MESH_PAGE_BYTES *
	       MESH_PAGE_BYTES;
}

static int receives_count(const struct mesh_domain *domain)
{
	size_t limit = domain->info->rx_attr->size;

	return limit && limit < RECEIVE_BUFFERS ? (int)limit : RECEIVE_BUFFERS;
}

static int slab_open(struct mesh_domain *domain, int receives)
{
	size_t size = slab_size(domain, receives + SEND_BUFFERS);
	int ret;

	domain->slab = aligned_alloc(MESH_PAGE_BYTES, size);
	domain->receive_buffers = calloc((size_t)receives, sizeof(*domain->receive_buffers));
	domain->send_buffers = calloc(SEND_BUFFERS, sizeof(*domain->send_buffers));
	if (!domain->slab || !domain->receive_buffers || !domain->send_buffers) {
		mesh_warn_new(domain->failure, "%s: no memory for %zu bytes of message buffers",
			      domain->nic->netdev, size);
		return -ENOMEM;
	}
	if (!(domain->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return 0;
	ret = mesh_mr_open(domain, domain->slab, size, &domain->slab_mr);
	domain->slab_desc = mesh_mr_desc(domain->slab_mr);
	return ret;
}

MESH_NOT_ANALYSED
int mesh_buffers_open(struct mesh_domain *domain)
{
	size_t stride = buffer_stride(domain);
	int receives = receives_count(domain), i, ret;
	struct mesh_buffer *buffer;

	ret = slab_open(domain, receives);
	if (ret)
		return ret;
	for (i = 0; i < SEND_BUFFERS; i++) {
		buffer_init(domain, &domain->send_buffers[i],
			    domain->slab + stride * (size_t)(receives + i), send_complete);
		mesh_buffer_put(&domain->send_buffers[i]);
	}
	domain->num_receive_buffers = domain->num_receives = receives;
	if (domain->provider == MESH_PROVIDER_TCP && receives > RECEIVES_TCP)
		domain->num_receives = RECEIVES_TCP;
	for (i = 0; i < receives; i++) {
		buffer = &domain->receive_buffers[i];
		buffer_init(domain, buffer, domain->slab + stride * (size_t)i, receive_complete);
		if (i >= domain->num_receives)
			continue; /* mesh_receives_grow() */
		ret = receive_post(buffer);
		if (ret && ret != -FI_EAGAIN)
			return ret;
		if (ret)
			TAILQ_INSERT_TAIL(&domain->unposted, buffer, entry);
	}
	return 0;
}

MESH_NOT_ANALYSED
void mesh_buffers_close(struct mesh_domain *domain)
{
	mesh_mr_close(domain->slab_mr);
	free(domain->receive_buffers);
	free(domain->send_buffers);
	free(domain->slab);
}
