/* SPDX-License-Identifier: Apache-2.0 */
/* connect_relay.c - a connection to a node without a common link: over relays (relay_try.h). */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "setup/connect_relay.h"
#include "transport/comm_open.h"

/* Without a neighbour of our job: those of this communicator have all started before. */
#define LONELY_MS 5000

int mesh_connect_relay_begin(struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;

	if (connect->choice.provider_differs)
		return -ENETUNREACH;
	return mesh_relay_try_open(process, &connect->handle, (int)process->config.max_paths,
				   &connect->relay);
}

bool mesh_connect_relay_is_hopeless(const struct mesh_connect *connect, uint64_t now_ms)
{
	return !connect->relay->num_tried &&
	       mesh_clock_elapsed_ms(connect->started_ms, now_ms) >= LONELY_MS;
}

int mesh_connect_comm_open(struct mesh_connect *connect, struct mesh_peer *peer, uint64_t key)
{
	const struct mesh_handle *handle = &connect->handle;
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	mesh_process_assert_locked(connect->net->process);
	if (!connect->relay)
		return mesh_comm_open(connect->net, true, peer, key, connect->num_peers,
				      &connect->comm);
	return mesh_comm_open_relayed(connect->net, peer,
				      handle->node[0] ? handle->node
						      : mesh_handle_node_text(handle, node),
				      key, connect->relay->num_peers, &connect->comm);
}

void mesh_connect_relay_keep(struct mesh_connect *connect)
{
	struct mesh_handle *handle = connect->relay ? malloc(sizeof(*handle)) : NULL;

	mesh_process_assert_locked(connect->net->process);
	if (!handle)
		return; /* without it the comm waits for a route in vain */
	*handle = connect->handle;
	connect->comm->handle = handle;
}
