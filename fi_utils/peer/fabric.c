/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.c - measures one link through the plugin's own libfabric layer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/random.h"
#include "fabric/domain_open.h"
#include "fabric/mr.h"
#include "fabric/poll.h"
#include "fabric/remote.h"
#include "fabric/sink.h"

#include "common/interrupt.h"
#include "peer/fabric.h"
#include "peer/figures.h"
#include "peer/wire.h"

/* Small enough for slow cables; as many are in flight as keep a fast one busy. */
#define SEGMENT_BYTES ((size_t)512 << 10)
#define WRITES 16
#define MEMORY_BYTES (WRITES * SEGMENT_BYTES)
#define PAGE 4096
/* Messages have headers only, but the domain needs a payload size. */
#define PAYLOAD_MAX 64
/* The time for writes in flight at the end of the measurement to complete. */
#define DRAIN_MS 3000

struct fabric_write {
	struct mesh_op op;
	struct peer_fabric *fabric;
	bool busy;
	uint64_t posted_ns;
};

struct peer_fabric {
	struct mesh_nic nic; /* the domain's copy: the caller may read its table again meanwhile */
	struct mesh_domain *domain;
	struct mesh_sink sink;
	bool has_sink;
	struct mesh_remote *remote;
	uint8_t *memory; /* written by the other side, and the source of our writes */
	struct mesh_mr *mr;
	struct mesh_check_fabric theirs;
	uint32_t answered; /* the latest message that came back */
	int error;	   /* of a message or write: negative errno */
	struct fabric_write writes[WRITES];
	int in_flight;
	bool writing; /* new writes are posted */
	uint64_t bytes, started_ns, ended_ns, until_ns;
	struct peer_since met; /* when both ends knew each other */
};

/* ---- messages ----------------------------------------------------------------------------- */

static void message_sent(struct mesh_buffer *buffer, int error)
{
	struct peer_fabric *fabric = buffer->owner;

	if (error && !fabric->error)
		fabric->error = error;
}

/* WANT is used as the request and POSTED as the reply: both have no payload. */
static int message_send(struct peer_fabric *fabric, enum mesh_message_type type, uint32_t seq)
{
	struct mesh_message_header header = {
		.type = (uint8_t)type,
		.comm = fabric->theirs.sink_id,
		.token = fabric->theirs.sink_token,
		.seq = seq,
	};
	struct mesh_buffer *buffer;

	/* As the plugin does with short messages. */
	if (!mesh_remote_inject(fabric->domain, fabric->remote, &header, sizeof(header)))
		return 0;
	buffer = mesh_remote_buffer_get(fabric->domain, fabric->remote);
	if (!buffer)
		return -EAGAIN;
	memcpy(buffer->bytes, &header, sizeof(header));
	buffer->size = sizeof(header);
	buffer->owner = fabric;
	buffer->sent = message_sent;
	mesh_remote_send(buffer);
	return 0;
}

/* domain->lock held. */
static void message_arrived(struct mesh_sink *sink, const struct mesh_message_header *header,
			    const void *payload)
{
	struct peer_fabric *fabric = mesh_container_of(sink, struct peer_fabric, sink);

	(void)payload;
	if (header->type == MESH_MESSAGE_POSTED)
		fabric->answered = header->seq;
	else if (header->type == MESH_MESSAGE_WANT && fabric->remote)
		message_send(fabric, MESH_MESSAGE_POSTED, header->seq);
}

/* A write of the other side, which counts its writes itself. */
static void write_arrived(struct mesh_sink *sink, const struct mesh_immediate *immediate)
{
	(void)sink;
	(void)immediate;
}

/* ---- opening and closing ------------------------------------------------------------------ */

/* The log's sink has no argument: this keeps the line that has the reason. */
static char failure[MESH_LOG_LINE_MAX];

static void failure_keep(enum mesh_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level == MESH_LOG_WARN)
		snprintf(failure, sizeof(failure), "%s", text);
}

static int sink_open(struct peer_fabric *fabric)
{
	int ret = mesh_random(&fabric->sink.token, sizeof(fabric->sink.token));

	if (ret)
		return ret;
	fabric->sink.message = message_arrived;
	fabric->sink.written = write_arrived;
	ret = mesh_sink_add(fabric->domain, &fabric->sink);
	fabric->has_sink = !ret;
	return ret;
}

static int objects_open(struct peer_fabric *fabric, enum mesh_provider_id provider)
{
	struct mesh_domain_options options = {
		.nic = &fabric->nic,
		.provider = provider,
		.payload_max = PAYLOAD_MAX,
	};
	int i, ret;

	fabric->memory = aligned_alloc(PAGE, MEMORY_BYTES);
	if (!fabric->memory)
		return -ENOMEM;
	memset(fabric->memory, 0x5a, MEMORY_BYTES);
	for (i = 0; i < WRITES; i++)
		fabric->writes[i].fabric = fabric;
	ret = mesh_domain_open(&options, &fabric->domain);
	if (!ret)
		ret = sink_open(fabric);
	if (!ret)
		ret = mesh_mr_open(fabric->domain, fabric->memory, MEMORY_BYTES, &fabric->mr);
	return ret;
}

int peer_fabric_open(const struct mesh_nic *nic, enum mesh_provider_id provider,
		     struct peer_fabric **fabric, char *text)
{
	struct peer_fabric *opened = calloc(1, sizeof(*opened));
	int ret = -ENOMEM;

	*failure = '\0';
	mesh_log_sink_set(failure_keep);
	if (opened) {
		opened->nic = *nic;
		ret = objects_open(opened, provider);
	}
	mesh_log_sink_set(NULL);
	if (!ret) {
		*fabric = opened;
		return 0;
	}
	snprintf(text, MESH_CHECK_TEXT_MAX, "%.*s", MESH_CHECK_TEXT_MAX - 1,
		 *failure ? failure : strerror(-ret));
	peer_fabric_close(opened);
	return ret;
}

void peer_fabric_close(struct peer_fabric *fabric)
{
	if (!fabric)
		return;
	if (fabric->has_sink) {
		mesh_domain_lock(fabric->domain);
		mesh_sink_remove(fabric->domain, &fabric->sink);
		mesh_domain_unlock(fabric->domain);
	}
	mesh_mr_close(fabric->mr);
	mesh_domain_close(fabric->domain); /* with the remote */
	/* Last: tcp continues a write that has begun until its endpoint is closed. */
	free(fabric->memory);
	free(fabric);
}

double peer_fabric_cpu_share(const struct peer_fabric *fabric)
{
	return peer_cpu_share(&fabric->met);
}

struct mesh_domain *peer_fabric_domain(struct peer_fabric *fabric)
{
	return fabric ? fabric->domain : NULL;
}

void peer_fabric_offer(const struct peer_fabric *fabric, struct mesh_check_fabric *mine)
{
	*mine = (struct mesh_check_fabric){
		.port = fabric->domain->port,
		.provider = (uint8_t)fabric->domain->provider,
		.sink_id = fabric->sink.id,
		.sink_token = fabric->sink.token,
		.address = mesh_mr_remote_address(fabric->mr, fabric->memory),
		.key = mesh_mr_key(fabric->mr),
		.size = MEMORY_BYTES,
	};
}

int peer_fabric_meet(struct peer_fabric *fabric, const struct mesh_addr *remote,
		     const struct mesh_check_fabric *theirs)
{
	struct mesh_addr address = *remote;
	struct sockaddr_storage name;
	socklen_t len;

	if (fabric->remote || !theirs->port || theirs->provider != fabric->domain->provider)
		return -EPROTO;
	if (mesh_addr_is_link_local(remote))
		address.scope_id = fabric->domain->nic->source.scope_id;
	len = mesh_addr_to_sockaddr(&address, theirs->port, &name);
	fabric->theirs = *theirs;
	fabric->met = peer_since_now();
	return mesh_remote_open(fabric->domain, &name, len, &fabric->remote);
}

/* ---- there and back ----------------------------------------------------------------------- */

int peer_fabric_ping(void *end, uint32_t seq, uint64_t deadline_ms)
{
	struct peer_fabric *fabric = end;
	int ret = message_send(fabric, MESH_MESSAGE_WANT, seq);

	while (!ret && fabric->answered != seq) {
		mesh_domain_poll(fabric->domain);
		if (fabric->error)
			ret = fabric->error;
		else if (interrupt_happened())
			ret = -EINTR;
		else if (mesh_clock_ms() >= deadline_ms)
			ret = -ETIMEDOUT;
	}
	return ret;
}

/* ---- writes ------------------------------------------------------------------------------- */

/* domain->lock held. */
MESH_HOLDS(domain)
static void write_done(struct mesh_op *op, int error)
{
	struct fabric_write *write = mesh_container_of(op, struct fabric_write, op);
	struct peer_fabric *fabric = write->fabric;

	write->busy = false;
	fabric->in_flight--;
	fabric->ended_ns = mesh_clock_ns();
	mesh_flow_completed(fabric->domain, fabric->remote->flow, SEGMENT_BYTES, write->posted_ns,
			    false);
	if (error && !fabric->error)
		fabric->error = error;
	if (!error)
		fabric->bytes += SEGMENT_BYTES;
}

/* The other side's memory may be smaller than ours. */
static size_t write_offset(const struct peer_fabric *fabric, int index)
{
	size_t slots = fabric->theirs.size / SEGMENT_BYTES;

	return slots ? (size_t)index % slots * SEGMENT_BYTES : 0;
}

static int write_post(struct peer_fabric *fabric, int index)
{
	struct mesh_immediate immediate = {.comm = fabric->theirs.sink_id & (MESH_COMM_IDS - 1)};
	struct mesh_write write = {
		.data = fabric->memory + (size_t)index * SEGMENT_BYTES,
		.size = SEGMENT_BYTES,
		.mr = fabric->mr,
		.address = fabric->theirs.address + write_offset(fabric, index),
		.key = fabric->theirs.key,
		.immediate = mesh_immediate_encode(&immediate),
		.now_ns = mesh_clock_ns(),
	};
	struct fabric_write *slot = &fabric->writes[index];
	int ret;

	slot->op.complete = write_done;
	ret = mesh_domain_write(fabric->domain, fabric->remote, &write, &slot->op);
	if (ret)
		return ret;
	slot->posted_ns = write.now_ns;
	slot->busy = true;
	fabric->in_flight++;
	return 0;
}

static void writes_post(struct peer_fabric *fabric)
{
	int i, ret = 0;

	for (i = 0; i < WRITES && !ret; i++)
		if (!fabric->writes[i].busy)
			ret = write_post(fabric, i);
	if (ret && ret != -EAGAIN && !fabric->error)
		fabric->error = ret;
}

void peer_fabric_write(struct peer_fabric *fabric, uint32_t ms)
{
	fabric->bytes = 0;
	fabric->error = fabric->remote && fabric->theirs.size >= SEGMENT_BYTES ? 0 : -EPROTO;
	fabric->started_ns = fabric->ended_ns = mesh_clock_ns();
	fabric->until_ns = fabric->started_ns + (uint64_t)ms * 1000000u;
	fabric->writing = true;
}

int peer_fabric_step(void *end, uint64_t *bytes, uint64_t *ns)
{
	struct peer_fabric *fabric = end;
	uint64_t now = mesh_clock_ns();

	if (now >= fabric->until_ns || fabric->error)
		fabric->writing = false;
	if (fabric->writing)
		writes_post(fabric);
	mesh_domain_poll(fabric->domain);
	if (fabric->writing)
		return -EAGAIN;
	if (fabric->in_flight && now < fabric->until_ns + DRAIN_MS * 1000000ull)
		return -EAGAIN;
	if (fabric->error)
		return fabric->error;
	if (fabric->in_flight)
		return -ETIMEDOUT;
	*bytes = fabric->bytes;
	*ns = fabric->ended_ns - fabric->started_ns;
	return 0;
}
