/* SPDX-License-Identifier: Apache-2.0 */
/* path_direct.c - direct and routed paths: between one of our NICs and one of the peer's. */
#include "fabric/fence.h"
#include "fabric/mr.h"
#include "fabric/poll.h"
#include "fabric/remote.h"
#include "system/tcp_look.h"
#include "transport/comm.h"
#include "transport/path_direct.h"

struct mesh_peer *mesh_direct_peer(const struct mesh_path *path)
{
	return path->direct.peer;
}

static void direct_describe(const struct mesh_path *path, struct mesh_path_ends *ends)
{
	const struct mesh_domain *domain = path->direct.domain;

	*ends = (struct mesh_path_ends){
		.local = &domain->nic->source,
		.remote = &path->direct.peer->address.addr,
		.nic = domain->nic->netdev,
		.provider = domain->provider,
		.via = path->direct.peer->routed ? MESH_STATS_ROUTED : MESH_STATS_DIRECT,
	};
	if (path->via)
		ends->via = MESH_STATS_RELAY;
	/* Names are stable: users' scripts read them. */
	ends->via_text = path->via ? path->via : mesh_stats_via_text(ends->via);
}

/* ---- sending ------------------------------------------------------------------------------- */

int mesh_direct_inject(const struct mesh_path *path, const void *bytes, size_t size)
{
	return mesh_remote_inject(path->direct.domain, path->direct.remote, bytes, size);
}

struct mesh_buffer *mesh_direct_buffer_get(const struct mesh_path *path)
{
	return mesh_remote_buffer_get(path->direct.domain, path->direct.remote);
}

int mesh_direct_write(const struct mesh_path *path, const struct mesh_write *write,
		      struct mesh_op *op)
{
	return mesh_domain_write(path->direct.domain, path->direct.remote, write, op);
}

MESH_HOLDS(domain)
void mesh_direct_write_completed(const struct mesh_path *path, size_t size, uint64_t posted_ns,
				 bool arrived)
{
	mesh_flow_completed(path->direct.domain, path->direct.flow, size, posted_ns, arrived);
}

void mesh_direct_write_forget(const struct mesh_path *path, struct mesh_segment *segment)
{
	struct mesh_domain *domain = path->direct.domain;
	bool counted;

	mesh_domain_lock(domain);
	mesh_comm_lock(path->comm);
	counted = segment->counted;
	segment->counted = false;
	mesh_comm_unlock(path->comm);
	if (counted)
		mesh_flow_forget(domain, path->direct.flow, segment->size);
	mesh_domain_unlock(domain);
}

bool mesh_direct_has_room(const struct mesh_path *path)
{
	return mesh_flow_has_room(path->direct.domain, path->direct.flow);
}

void mesh_direct_room_await(struct mesh_path *path)
{
	mesh_flow_wait(path->direct.domain, path->direct.flow, &path->waiter);
}

void mesh_direct_poll_await(struct mesh_path *path)
{
	mesh_domain_wait(path->direct.domain, &path->waiter);
}

bool mesh_direct_poll(const struct mesh_path *path)
{
	return mesh_domain_poll(path->direct.domain);
}

/* ---- memory -------------------------------------------------------------------------------- */

int mesh_direct_mr_open(const struct mesh_path *path, const void *data, size_t size,
			struct mesh_mr **mr)
{
	return mesh_mr_open(path->direct.domain, data, size, mr);
}

void mesh_direct_target(const struct mesh_path *path, const struct mesh_mr *mr, const void *data,
			struct mesh_target *target)
{
	(void)path;
	target->address = mesh_mr_remote_address(mr, data);
	target->key = mesh_mr_key(mr);
}

void mesh_direct_fence_prepare(const struct mesh_path *path, struct mesh_fence *fence)
{
	*fence = (struct mesh_fence){
		.domain = path->direct.domain,
		.remote = path->direct.remote,
	};
}

/* ---- opening and closing ------------------------------------------------------------------- */

MESH_HOLDS(domain)
void mesh_direct_wait_cancel(struct mesh_path *path)
{
	mesh_domain_wait_cancel(path->direct.domain, &path->waiter);
}

MESH_HOLDS(domain)
void mesh_direct_sink_remove(struct mesh_path *path)
{
	mesh_sink_remove(path->direct.domain, &path->sink);
}

/* Its operations end with those of the provider. */
static void direct_abandon(struct mesh_path *path)
{
	(void)path;
}

void mesh_direct_domain_learn(struct mesh_path *path, struct mesh_domain *domain)
{
	path->polls = &domain->polls;
	path->inject_max = domain->inject_max;
	if (path->inject_max > MESH_PATH_INJECT_MAX)
		path->inject_max = MESH_PATH_INJECT_MAX;
	path->payload_max = domain->payload_max;
	path->segment_max = domain->segment_max;
	path->segment_bytes = domain->segment_bytes ? domain->segment_bytes : SIZE_MAX;
	path->immediate_bits = domain->immediate_bits;
	path->is_acknowledged = !domain->delivery_flag;
	path->direct.domain = domain;
}

/* Other threads poll the path meanwhile, and nothing else: it is down. */
int mesh_direct_move(struct mesh_path *path, struct mesh_peer *peer)
{
	struct mesh_domain *before = path->direct.domain;
	int ret;

	mesh_domain_lock(before);
	mesh_direct_wait_cancel(path);
	mesh_domain_unlock(before);
	ret = mesh_sink_add(peer->domain, &path->sink);
	if (ret)
		return ret;
	mesh_comm_lock(path->comm);
	if (peer->domain != before) {
		mesh_direct_domain_learn(path, peer->domain);
		path->comm->moves++; /* behind the domain: see mesh_registration_open() */
	}
	path->direct.peer = peer;
	path->direct.remote = peer->remote;
	path->direct.flow = peer->remote->flow;
	path->pace = &path->direct.flow->pace;
	mesh_comm_unlock(path->comm);
	return 0;
}

static void direct_close(struct mesh_path *path)
{
	struct mesh_domain *domain = path->direct.domain;

	mesh_domain_lock(domain);
	mesh_direct_sink_remove(path);
	mesh_direct_wait_cancel(path);
	mesh_domain_unlock(domain);
}

static const struct mesh_path_kind direct = {
	.peer = mesh_direct_peer,
	.describe = direct_describe,
	.inject = mesh_direct_inject,
	.buffer_get = mesh_direct_buffer_get,
	.write = mesh_direct_write,
	.write_completed = mesh_direct_write_completed,
	.write_forget = mesh_direct_write_forget,
	.has_room = mesh_direct_has_room,
	.room_await = mesh_direct_room_await,
	.poll_await = mesh_direct_poll_await,
	.poll = mesh_direct_poll,
	.mr_open = mesh_direct_mr_open,
	.target = mesh_direct_target,
	.fence_prepare = mesh_direct_fence_prepare,
	.wait_cancel = mesh_direct_wait_cancel,
	.sink_remove = mesh_direct_sink_remove,
	.abandon = direct_abandon,
	.move = mesh_direct_move,
	.close = direct_close,
};

int mesh_path_direct_open(struct mesh_path *path, struct mesh_peer *peer)
{
	struct mesh_domain *domain = peer->domain;
	struct mesh_flow *flow = peer->remote->flow;
	int ret;

	path->kind = &direct;
	path->pace = &flow->pace;
	path->may_resume = true;
	mesh_direct_domain_learn(path, domain);
	path->direct.peer = peer;
	path->direct.remote = peer->remote;
	path->direct.flow = flow;
	ret = mesh_sink_add(domain, &path->sink);
	if (!ret)
		mesh_pace_hint(&flow->pace, mesh_socket_round_trip_ns(peer->watch.fd));
	return ret;
}
