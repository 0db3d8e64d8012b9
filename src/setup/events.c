/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - what set-up and transport do when a frame arrives or a peer is lost. */
#include "control/peer_end.h"
#include "setup/connect.h"
#include "setup/events.h"
#include "setup/listener.h"
#include "transport/frames.h"

MESH_HOLDS(process)
static void connect_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (peer->incoming && peer->remote)
		mesh_listener_connect(peer, &frame->connect);
	else
		mesh_peer_lose(peer, "it sent CONNECT before HELLO");
}

MESH_HOLDS(process)
static void withdraw_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	mesh_listener_withdrawn(peer, &frame->withdraw);
}

const struct mesh_peer_events mesh_setup_events = {
	.admits = mesh_listener_admits,
	.introduced = mesh_listener_introduced,
	.lost = mesh_listener_peer_lost,
	.frames =
		{
			[MESH_FRAME_REFUSE] = mesh_connect_refuse_handle,
			[MESH_FRAME_CONNECT] = connect_handle,
			[MESH_FRAME_ACCEPT] = mesh_connect_accept_handle,
			[MESH_FRAME_CLOSE] = mesh_comm_frame_handle,
			[MESH_FRAME_CLOSED] = mesh_comm_frame_handle,
			[MESH_FRAME_ASK] = mesh_comm_frame_handle,
			[MESH_FRAME_SENT] = mesh_comm_frame_handle,
			[MESH_FRAME_WITHDRAW] = withdraw_handle,
			[MESH_FRAME_CUT] = mesh_cut_frame_handle,
			[MESH_FRAME_RESUME] = mesh_resume_frame_handle,
			[MESH_FRAME_HAVE] = mesh_have_frame_handle,
		},
};
