/* SPDX-License-Identifier: Apache-2.0 */
/* connect.c - NCCL's connect(): hands a new attempt to the engine, and fetches its result. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "setup/connecting.h"
#include "setup/net.h"
#include "setup/setup.h"
#include "transport/comm_life.h"
#include "wire/protocol.h"

/*
 * The engine looks at an attempt when something has happened that it may wait for, and after this
 * time, or this part of the attempt's age if that is longer, up to MESH_SETTLE_MS.
 */
#define ADVANCE_MS 10
#define ADVANCE_PART 16
/*
 * NCCL may never ask for the result: its tables up to v10 forget an attempt that they gave up. The
 * result is freed after this, the second time: if this process was stopped meanwhile, NCCL had no
 * chance to ask.
 */
#define ABANDONED_MS 30000

MESH_HOLDS(process)
static struct mesh_connect *connect_find(struct mesh_net *net, uint64_t id,
					 const struct mesh_handle *handle)
{
	struct mesh_connect *connect;

	LIST_FOREACH(connect, &net->setup->connects, entry) {
		/* The id comes from the buffer, so it is trusted only with the right listener. */
		if (connect->id == id && connect->net == net &&
		    connect->handle.cookie == handle->cookie &&
		    connect->handle.listen_id == handle->listen_id)
			return connect;
	}
	return NULL;
}

void mesh_connect_free(struct mesh_connect *connect)
{
	mesh_connect_end(connect);
	mesh_engine_timer_cancel(&connect->net->process->engine, &connect->timer);
	LIST_REMOVE(connect, entry);
	free(connect);
}

/*
 * NCCL has the comm: NICs that join give it paths, and so do links and routes that let nothing
 * through until now. Not before: a comm that NCCL never fetches is withdrawn as it was made.
 */
MESH_HOLDS(process)
static void taken_improve(const struct mesh_connect *connect, struct mesh_comm *comm)
{
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		if (!mesh_path_has_relay(&comm->paths[i]) &&
		    !mesh_path_is(&comm->paths[i], MESH_PATH_UP))
			mesh_rejoin_want(&comm->paths[i]); /* lost since it was accepted */
	}
	atomic_store(&comm->process->late_nics, true);
	mesh_late_links_want(comm, &connect->handle, &connect->choice);
	mesh_reroute_soon(comm); /* its circuit may have broken before NCCL asked for it */
}

/* To the next look: the longer the attempt takes, the longer. Events are looked at at once. */
MESH_HOLDS(process)
static uint64_t pause_ms(const struct mesh_connect *connect, uint64_t now_ms)
{
	uint64_t part_ms = mesh_clock_elapsed_ms(connect->started_ms, now_ms) / ADVANCE_PART;

	if (part_ms < ADVANCE_MS)
		return ADVANCE_MS;
	return part_ms < MESH_SETTLE_MS ? part_ms : MESH_SETTLE_MS;
}

MESH_HOLDS(process)
static void connect_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_connect *connect = mesh_container_of(timer, struct mesh_connect, timer);
	struct mesh_engine *engine = &connect->net->process->engine;

	mesh_connect_advance(connect, now_ms);
	if (connect->state < MESH_CONNECT_DONE)
		mesh_engine_timer_set(engine, timer, now_ms + pause_ms(connect, now_ms));
	else if (connect->over_looks++ == 2)
		mesh_connect_free(connect);
	else
		mesh_engine_timer_set(engine, timer, now_ms + ABANDONED_MS);
}

/* Hands a new attempt to the engine. NULL if memory is short. */
MESH_HOLDS(process)
static struct mesh_connect *connect_start(struct mesh_net *net, int dev,
					  const struct mesh_handle *handle)
{
	struct mesh_process *process = net->process;
	struct mesh_connect *connect = calloc(1, sizeof(*connect));

	if (!connect)
		return NULL;
	connect->net = net;
	connect->dev = dev;
	connect->handle = *handle;
	connect->started_ms = mesh_clock_ms();
	connect->deadline_ms = connect->started_ms + process->config.connect_timeout_s * 1000;
	connect->id = ++net->setup->next_connect_id;
	LIST_INSERT_HEAD(&net->setup->connects, connect, entry);
	connect->timer.expired = connect_expired;
	mesh_engine_timer_set(&process->engine, &connect->timer, connect->started_ms);
	return connect;
}

/* Returns the comm, or the error, of one that is over. */
MESH_HOLDS(process)
static int connect_finish(struct mesh_connect *connect, struct mesh_comm **comm)
{
	int error = connect->error;

	if (connect->state < MESH_CONNECT_DONE)
		return 0;
	if (connect->state == MESH_CONNECT_DONE) {
		*comm = connect->comm;
		(*comm)->opener = NULL;
		(*comm)->use = MESH_COMM_USED;
		connect->comm = NULL;
		taken_improve(connect, *comm);
	}
	mesh_connect_free(connect);
	return error;
}

/*
 * Returns 0, also for a handle of another protocol version that leads to its listener; or a
 * negative errno. Both are logged.
 */
static int handle_read(const struct mesh_process *process, const void *bytes,
		       struct mesh_handle *handle)
{
	int ret = mesh_handle_decode(bytes, handle);
	char node[MESH_NODE_NAME_MAX];

	if (ret == -EPROTONOSUPPORT || (!ret && handle->foreign && !handle->connect_id)) {
		mesh_handle_node(bytes, node);
		mesh_warn("node %s got a handle of another version of this plugin from %s%s: it "
			  "has protocol %u, and nccl-net-mesh %s here has protocol %d. Install the "
			  "same version on all nodes",
			  process->name, *node ? "node " : "a node whose version has no name in it",
			  node, mesh_handle_protocol(bytes), mesh_version(), MESH_PROTOCOL_VERSION);
	} else if (ret) {
		mesh_warn("node %s got a handle that is not this plugin's: does every rank load "
			  "libnccl-net-mesh.so (`fi_mesh enable` on its node)? If not, NCCL "
			  "silently uses another network (NCCL_DEBUG=INFO on each rank shows it)",
			  process->name);
	}
	return ret;
}

int mesh_net_connect(struct mesh_net *net, int dev, void *handle_bytes, struct mesh_comm **comm)
{
	struct mesh_process *process = net->process;
	struct mesh_connect *connect;
	struct mesh_handle handle;
	int ret;

	*comm = NULL;
	ret = handle_read(process, handle_bytes, &handle);
	if (ret)
		return ret;
	mesh_process_poll(process);
	mesh_process_lock(process);
	connect = connect_find(net, handle.connect_id, &handle);
	if (!connect) {
		ret = mesh_setup_start(process);
		if (!ret)
			connect = connect_start(net, dev, &handle);
		if (!ret && !connect)
			ret = -ENOMEM;
		if (ret)
			goto unlock;
		mesh_handle_connect_id_set(handle_bytes, connect->id);
	}
	ret = connect_finish(connect, comm);
	if (ret)
		mesh_handle_connect_id_set(handle_bytes, 0);
unlock:
	mesh_process_unlock(process);
	if (*comm)
		mesh_comm_paths_log(*comm);
	return ret;
}
