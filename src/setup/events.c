/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - what set-up and transport do when a frame arrives or a peer is lost. */
#include "control/peer_end.h"
#include "setup/connect.h"
#include "setup/events.h"
#include "setup/listener.h"
#include "transport/frames.h"
#include "transport/rejoin.h"

MESH_HOLDS(process)
static bool hello_is_admitted(struct mesh_process *process, const struct mesh_frame_hello *hello)
{
	return mesh_listener_admits(process, hello) || mesh_rejoin_admits(process, hello);
}

MESH_HOLDS(process)
static void connect_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (peer->incoming && peer->remote)
		mesh_listener_connect(peer, &frame->connect);
	else
		mesh_peer_lose(peer, "it sent CONNECT before HELLO");
}

MESH_HOLDS(process)
static void accept_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (!mesh_rejoin_accepted(peer, &frame->accept))
		mesh_connect_accept_handle(peer, frame);
}

MESH_HOLDS(process)
static void refuse_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (!mesh_rejoin_refused(peer, &frame->refuse))
		mesh_connect_refuse_handle(peer, frame);
}

MESH_HOLDS(process)
static void withdraw_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	mesh_listener_withdrawn(peer, &frame->withdraw);
}

const struct mesh_peer_events mesh_setup_events = {
	.admits = hello_is_admitted,
	.introduced = mesh_listener_introduced,
	.lost = mesh_listener_peer_lost,
	.up = mesh_rejoin_peer_up,
	.frames =
		{
			[MESH_FRAME_REFUSE] = refuse_handle,
			[MESH_FRAME_CONNECT] = connect_handle,
			[MESH_FRAME_ACCEPT] = accept_handle,
			[MESH_FRAME_CLOSE] = mesh_comm_frame_handle,
			[MESH_FRAME_CLOSED] = mesh_comm_frame_handle,
			[MESH_FRAME_ASK] = mesh_comm_frame_handle,
			[MESH_FRAME_SENT] = mesh_comm_frame_handle,
			[MESH_FRAME_WITHDRAW] = withdraw_handle,
			[MESH_FRAME_CUT] = mesh_cut_frame_handle,
			[MESH_FRAME_RESUME] = mesh_resume_frame_handle,
			[MESH_FRAME_HAVE] = mesh_have_frame_handle,
			[MESH_FRAME_JOIN] = mesh_rejoin_asked,
		},
};
