/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - what set-up and transport do when a frame arrives or a peer is lost. */
#include "control/peer_end.h"
#include "control/peer_send.h"
#include "relay/relay.h"
#include "setup/connecting.h"
#include "setup/events.h"
#include "setup/late_nics.h"
#include "setup/listener.h"
#include "setup/openings.h"
#include "transport/attach.h"
#include "transport/recovery.h"
#include "transport/comm_open.h"
#include "transport/rejoin.h"

MESH_HOLDS(process)
static bool hello_is_admitted(struct mesh_process *process, const struct mesh_frame_hello *hello)
{
	return mesh_attach_admits(process, hello) || mesh_relay_admits(process, hello);
}

MESH_HOLDS(process)
static void introduced(struct mesh_peer *peer, const struct mesh_frame_hello *hello)
{
	mesh_listener_introduced(peer, hello);
	mesh_late_nics_introduced(peer, hello);
}

MESH_HOLDS(process)
static void peer_up(struct mesh_peer *peer)
{
	mesh_rejoin_peer_up(peer);
	mesh_connects_hasten(peer->process);
}

MESH_HOLDS(process)
static void peer_lost(struct mesh_peer *peer, bool missed)
{
	mesh_listener_peer_lost(peer, missed);
	mesh_connects_hasten(peer->process);
}

MESH_HOLDS(process)
static void connect_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (!peer->incoming || !peer->remote)
		mesh_peer_lose(peer, "it sent CONNECT before HELLO");
	else if (!mesh_attach_came(peer, &frame->connect))
		mesh_listener_connect(peer, &frame->connect);
}

MESH_HOLDS(process)
static void accept_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (!mesh_circuit_accepted(peer, frame) && !mesh_connect_accept_handle(peer, frame) &&
	    !mesh_attach_accepted(peer, &frame->accept))
		mesh_circuit_accepted_in_vain(peer, frame);
}

MESH_HOLDS(process)
static void refuse_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (!mesh_circuit_refused(peer, frame) && !mesh_attach_refused(peer, &frame->refuse))
		mesh_connect_refuse_handle(peer, frame);
}

/* A frame about a comm: of an end that is here, or of a circuit. */
MESH_HOLDS(process)
static void comm_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (!mesh_circuit_frame_pass(peer, frame))
		mesh_comm_frame_handle(peer, frame);
}

MESH_HOLDS(process)
static void opened_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (!mesh_circuit_opened(peer, frame) && !mesh_connect_opened_handle(peer, frame) &&
	    !mesh_attach_opened(peer, &frame->opened))
		mesh_circuit_opened_in_vain(peer, frame);
}

MESH_HOLDS(process)
static void circuit_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (mesh_circuit_event(peer, frame))
		return;
	mesh_path_circuit_event(peer, frame);
	mesh_connects_hasten(peer->process);
}

const struct mesh_peer_events mesh_setup_events = {
	.opens = mesh_opening_need,
	.admits = hello_is_admitted,
	.introduced = introduced,
	.foreign = mesh_listener_foreign,
	.lost = peer_lost,
	.up = peer_up,
	.frames =
		{
			[MESH_FRAME_REFUSE] = refuse_handle,
			[MESH_FRAME_CONNECT] = connect_handle,
			[MESH_FRAME_ACCEPT] = accept_handle,
			[MESH_FRAME_CLOSE] = comm_handle,
			[MESH_FRAME_ASK] = comm_handle,
			[MESH_FRAME_WITHDRAW] = mesh_listener_withdrawn,
			[MESH_FRAME_RESUME] = comm_handle,
			[MESH_FRAME_HAVE] = comm_handle,
			[MESH_FRAME_OPEN] = mesh_circuit_open_came,
			[MESH_FRAME_OPENED] = opened_handle,
			[MESH_FRAME_CIRCUIT] = circuit_handle,
			[MESH_FRAME_NICS] = mesh_late_nics_handle,
		},
};
