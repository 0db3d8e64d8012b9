/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c - makes, fails and frees comms; what sending and receiving have in common. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "system/round_trip.h"
#include "fabric/buffer.h"
#include "fabric/remote.h"
#include "transport/comm.h"
#include "transport/counters.h"
#include "transport/node.h"
#include "transport/place.h"
#include "transport/protocol.h"

/* Longer messages take a buffer, whatever the provider could inject (tcp: 128 bytes). */
#define MESH_INJECT_MAX 256

/* What holds for all of the paths together: to be called whenever they change. */
static void paths_learn(struct mesh_comm *comm)
{
	size_t segment_max = SIZE_MAX;
	int i;

	comm->sizes_travel = true;
	for (i = 0; i < comm->num_paths; i++) {
		const struct mesh_domain *domain = comm->paths[i].domain;

		comm->sizes_travel &= domain->sizes_travel;
		if (segment_max > domain->segment_max)
			segment_max = domain->segment_max;
	}
	comm->segment_max = segment_max / MESH_LINE_BYTES * MESH_LINE_BYTES;
}

int mesh_comm_path_add(struct mesh_comm *comm, struct mesh_peer *peer)
{
	struct mesh_path *path = &comm->paths[comm->num_paths];
	int ret;

	mesh_lock_assert_held(&comm->node->lock);
	path->comm = comm;
	path->domain = peer->domain;
	path->peer = peer;
	path->remote = peer->remote;
	path->sink.message = comm->sending ? mesh_send_message : mesh_receive_message;
	path->sink.written = comm->sending ? NULL : mesh_receive_written;
	path->waiter.resume = comm->sending ? mesh_send_resume : mesh_receive_resume;
	ret = mesh_random(&path->sink.token, sizeof(path->sink.token));
	if (ret)
		return ret;
	ret = mesh_sink_add(path->domain, &path->sink);
	if (ret)
		return ret;
	mesh_pace_hint(&peer->remote->flow->pace, mesh_socket_round_trip_ns(peer->watch.fd));
	mesh_peer_use(peer);
	mesh_path_counters_open(path);
	comm->paces[comm->num_paths++] = &peer->remote->flow->pace;
	paths_learn(comm);
	return 0;
}

int mesh_comm_open(struct mesh_net *net, bool sending, struct mesh_peer *peer, uint64_t key,
		   int wanted_paths, struct mesh_comm **comm)
{
	struct mesh_node *node = net->node;
	struct mesh_comm *opened;
	int i, ret;

	mesh_lock_assert_held(&node->lock);
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	mesh_lock_init(&opened->lock);
	opened->node = node;
	opened->net = net;
	opened->sending = sending;
	opened->key = key;
	opened->wanted_paths = wanted_paths;
	memcpy(opened->peer_name, peer->name, sizeof(opened->peer_name));
	opened->eager_limit = node->config.eager_limit_bytes;
	if (opened->eager_limit > peer->eager_limit)
		opened->eager_limit = peer->eager_limit;
	LIST_INIT(&opened->registrations);
	for (i = 0; i < MESH_COMM_REQUESTS; i++)
		opened->requests[i].comm = opened;
	if (sending)
		mesh_send_init(opened);
	ret = mesh_comm_path_add(opened, peer);
	if (ret) {
		mesh_lock_destroy(&opened->lock);
		free(opened);
		return ret;
	}
	LIST_INSERT_HEAD(&node->comms, opened, entry);
	mesh_count_event(&node->counters->comms_opened);
	*comm = opened;
	return 0;
}

bool mesh_comm_uses_peer(const struct mesh_comm *comm, const struct mesh_peer *peer)
{
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		if (comm->paths[i].peer == peer)
			return true;
	}
	return false;
}

bool mesh_comm_is_cut(const struct mesh_comm *comm)
{
	int i;

	mesh_lock_assert_held(&comm->node->lock);
	for (i = 0; i < comm->num_paths; i++) {
		if (comm->paths[i].peer->state == MESH_PEER_LOST)
			return true;
	}
	return false;
}

static void path_close(struct mesh_path *path)
{
	mesh_lock_take(&path->domain->lock);
	mesh_sink_remove(path->domain, &path->sink);
	mesh_domain_wait_cancel(path->domain, &path->waiter);
	mesh_lock_release(&path->domain->lock);
	mesh_path_counters_close(path);
	mesh_peer_put(path->peer);
}

void mesh_comm_free(struct mesh_comm *comm)
{
	uint32_t unfinished;
	int i;

	mesh_lock_assert_held(&comm->node->lock);
	/*
	 * Before the paths close: that waits for whoever polls. An operation that ends later may be
	 * in its callback still, with the comm in its hands.
	 */
	mesh_lock_take(&comm->lock);
	unfinished = comm->unfinished;
	mesh_lock_release(&comm->lock);
	mesh_registrations_close(comm);
	for (i = 0; i < comm->num_paths; i++)
		path_close(&comm->paths[i]);
	LIST_REMOVE(comm, entry);
	if (unfinished) {
		/* The provider still holds pointers into it, and may never give them back. */
		mesh_info("a connection with node %s keeps %u operations that never ended; its "
			  "%zu bytes stay allocated",
			  comm->peer_name, unfinished, sizeof(*comm));
		return;
	}
	if (!comm->sending)
		free(comm->receive.early_data);
	mesh_lock_destroy(&comm->lock);
	free(comm);
}

/* "ab0", or "ab0 and ab1". */
static const char *netdevs_text(const struct mesh_comm *comm, char *text, size_t size)
{
	size_t used = 0;
	int i, n;

	text[0] = '\0';
	for (i = 0; i < comm->num_paths && used < size; i++) {
		n = snprintf(text + used, size - used, "%s%s", i ? " and " : "",
			     comm->paths[i].domain->nic->netdev);
		used += (size_t)n;
	}
	return text;
}

void mesh_comm_fail(struct mesh_comm *comm, int error, bool quiet, const char *why)
{
	char netdevs[MESH_PATHS_MAX * (IF_NAMESIZE + 5)];

	mesh_lock_assert_held(&comm->lock);
	if (comm->error)
		return;
	atomic_store_explicit(&comm->error, error, memory_order_release);
	if (!quiet)
		mesh_count_event(&comm->node->counters->comms_failed);
	if (!why)
		return;
	mesh_log(quiet ? MESH_LOG_INFO : MESH_LOG_WARN, __FILE__, __LINE__,
		 "node %s, %s node %s over %s: %s", comm->node->name,
		 comm->sending ? "sending to" : "receiving from", comm->peer_name,
		 netdevs_text(comm, netdevs, sizeof(netdevs)), why);
}

void mesh_comm_frame_send(const struct mesh_comm *comm, enum mesh_frame_type type,
			  struct mesh_frame_comm fields)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.comm = fields;
	frame.comm.to_comm = comm->paths[0].remote_id;
	mesh_peer_send(comm->paths[0].peer, &frame, type);
}

void mesh_comm_paths_log(const struct mesh_comm *comm)
{
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];
	const struct mesh_path *path;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		mesh_addr_text(&path->domain->nic->source, local);
		mesh_addr_text(&path->peer->address.addr, remote);
		/* Stable: fabric_pingpong and users' scripts read it. */
		mesh_info("path: from=%s to=%s nic=%s local=%s remote=%s via=direct provider=%s",
			  comm->sending ? comm->node->name : comm->peer_name,
			  comm->sending ? comm->peer_name : comm->node->name,
			  path->domain->nic->netdev, local, remote,
			  mesh_provider_id_text(path->domain->provider));
	}
}

/* ---- messages to the peer -------------------------------------------------------------- */

static void message_sent(struct mesh_buffer *buffer, int error)
{
	struct mesh_comm *comm = buffer->owner;
	char why[128];

	mesh_lock_take(&comm->lock);
	comm->unfinished--;
	if (error) {
		mesh_comm_count_error(comm, buffer->remote);
		snprintf(why, sizeof(why), "a message could not be delivered: %s",
			 strerror(-error));
		mesh_comm_fail(comm, error, comm->closing, why);
	}
	mesh_lock_release(&comm->lock);
}

struct mesh_path *mesh_comm_path_choose(struct mesh_comm *comm, size_t bytes, uint64_t now_ns)
{
	int i = 0;

	if (comm->num_paths > 1)
		i = mesh_pace_choose(comm->paces, comm->num_paths, bytes, comm->rotation++, now_ns);
	return &comm->paths[i];
}

/* A message that is no segment: it is short, and somebody waits for it. */
static struct mesh_path *message_path_choose(struct mesh_comm *comm, size_t bytes, uint64_t now_ns)
{
	int i = 0;

	if (comm->num_paths > 1)
		i = mesh_pace_choose_for_message(comm->paces, comm->num_paths, bytes,
						 comm->rotation++, now_ns);
	return &comm->paths[i];
}

/* The header and a short payload as one piece; returns false if it must go the long way. */
static bool message_inject(const struct mesh_path *path, const struct mesh_message_header *header,
			   const void *payload)
{
	uint8_t bytes[MESH_INJECT_MAX];
	size_t size = sizeof(*header) + header->length;

	if (size > sizeof(bytes) || size > path->domain->inject_max)
		return false;
	memcpy(bytes, header, sizeof(*header));
	if (header->length)
		memcpy(bytes + sizeof(*header), payload, header->length);
	return !mesh_remote_inject(path->domain, path->remote, bytes, size);
}

/* Only NCCL's own bytes count, not what makes them move. */
static void message_count(struct mesh_path *path, const struct mesh_outgoing *message)
{
	if (message->type != MESH_MESSAGE_DATA)
		return;
	mesh_count(&path->counters->messages, 1);
	mesh_count(&path->counters->small, 1);
	mesh_count(&path->counters->bytes, message->length);
}

bool mesh_comm_message_send(struct mesh_comm *comm, const struct mesh_outgoing *message,
			    struct mesh_request *request)
{
	uint64_t now_ns = comm->num_paths > 1 ? mesh_clock_ns() : 0;
	struct mesh_path *path = message_path_choose(comm, message->length, now_ns);
	struct mesh_message_header header = {
		.type = (uint8_t)message->type,
		.count = message->count,
		.paths = message->paths,
		.length = (uint32_t)message->length,
		.comm = path->remote_id,
		.token = path->remote_token,
		.seq = message->seq,
	};
	struct mesh_buffer *buffer;

	mesh_lock_assert_held(&comm->lock);
	if (message_inject(path, &header, message->payload)) {
		message_count(path, message);
		return true;
	}
	buffer = mesh_remote_buffer_get(path->domain, path->remote);
	if (!buffer) {
		mesh_count(&path->counters->busy, 1);
		mesh_domain_wait(path->domain, &path->waiter);
		return false;
	}
	memcpy(buffer->bytes, &header, sizeof(header));
	if (message->length)
		memcpy(buffer->bytes + sizeof(header), message->payload, message->length);
	buffer->size = sizeof(header) + message->length;
	buffer->owner = request ? (void *)request : comm;
	/* Completions of verbs are the peer's NIC's; tcp's say nothing of the link. */
	buffer->posted_ns = path->domain->delivery_flag ? 0 : now_ns;
	buffer->sent = request ? mesh_send_message_sent : message_sent;
	if (request)
		request->unfinished++;
	comm->unfinished++;
	mesh_remote_send(buffer);
	message_count(path, message);
	return true;
}
