/* SPDX-License-Identifier: Apache-2.0 */
/* connect_frames.c - asks the listener for a path, or informs it that a connection has ended. */
#include <string.h>

#include "base/clock.h"
#include "control/peer_send.h"
#include "setup/connect_frames.h"
#include "setup/relay_try.h"

void mesh_connect_request(struct mesh_connect *connect)
{
	const struct mesh_comm *comm = connect->comm;
	const struct mesh_path *path = &comm->paths[comm->num_paths - 1];
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.connect.cookie = connect->handle.cookie;
	frame.connect.comm_key = comm->key;
	frame.connect.listen_id = connect->handle.listen_id;
	frame.connect.comm = path->sink.id;
	frame.connect.token = path->sink.token;
	frame.connect.path = (uint8_t)(comm->num_paths - 1);
	frame.connect.num_paths = (uint8_t)comm->wanted_paths;
	connect->open_ms = mesh_clock_ms();
	if (connect->relay)
		mesh_relay_try_request(connect->relay, connect->num_accepted, path);
	else
		mesh_peer_send(path->peer, &frame, MESH_FRAME_CONNECT);
}

void mesh_connect_withdraw(const struct mesh_connect *connect, struct mesh_peer *peer,
			   const struct mesh_comm *comm)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.withdraw.cookie = connect->handle.cookie;
	frame.withdraw.listen_id = connect->handle.listen_id;
	frame.withdraw.comm_key = comm ? comm->key : 0;
	frame.withdraw.final = !comm;
	mesh_peer_send(peer, &frame, MESH_FRAME_WITHDRAW);
}

MESH_HOLDS(process)
static void peer_give_up(const struct mesh_connect *connect, struct mesh_peer *peer)
{
	if (peer && (peer->state == MESH_PEER_GREETING || peer->state == MESH_PEER_UP))
		mesh_connect_withdraw(connect, peer, NULL);
}

void mesh_connect_give_up(const struct mesh_connect *connect)
{
	const struct mesh_relay_try *relay = connect->relay;
	int i;

	for (i = 0; i < connect->num_dials; i++)
		peer_give_up(connect, connect->dials[i].peer);
	for (i = 0; relay && i < relay->num_dials; i++)
		peer_give_up(connect, relay->dials[i].peer);
}
