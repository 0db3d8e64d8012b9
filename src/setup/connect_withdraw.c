/* SPDX-License-Identifier: Apache-2.0 */
/* connect_withdraw.c - informs the listener of a connection that has ended. */
#include <string.h>

#include "control/peer_send.h"
#include "setup/connect_withdraw.h"
#include "setup/relay_try.h"

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
	if (peer->state == MESH_PEER_GREETING || peer->state == MESH_PEER_UP)
		mesh_connect_withdraw(connect, peer, NULL);
}

void mesh_connect_give_up(const struct mesh_connect *connect)
{
	const struct mesh_relay_try *relay = connect->relay;
	int i;

	for (i = 0; i < connect->num_peers; i++)
		peer_give_up(connect, connect->peers[i]);
	for (i = 0; relay && i < relay->num_peers; i++)
		peer_give_up(connect, relay->peers[i]);
}
