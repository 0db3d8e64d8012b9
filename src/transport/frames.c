/* SPDX-License-Identifier: Apache-2.0 */
/* frames.c - the frames of the control connection that are for a comm. */
#include "base/clock.h"
#include "control/process.h"
#include "transport/comm_end.h"
#include "transport/comm_open.h"
#include "transport/frames.h"
#include "transport/questions.h"
#include "transport/recovery.h"
#include "transport/stall.h"
#include "wire/stats.h"

/*
 * Handles a frame for a comm that we have freed. The peer cannot close its end while it has
 * operations in flight, and they progress only while this process polls.
 */
MESH_HOLDS(process)
static void stray_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	if (frame->header.type == MESH_FRAME_RESUME || frame->header.type == MESH_FRAME_HAVE)
		mesh_count_event(&peer->process->counters->refused);
	if (peer->state != MESH_PEER_UP)
		return;
	if (frame->header.type == MESH_FRAME_CLOSE) {
		mesh_peer_drain(peer, frame->to_comm,
				mesh_clock_ms() + peer->process->config.dead_peer_timeout_s * 1000);
	} else if (frame->header.type == MESH_FRAME_CLOSED && peer->stray == frame->to_comm) {
		mesh_peer_drain(peer, 0, 0);
	}
}

/* A frame may come over each path of the comm, and names the comm by the id that it has there. */
void mesh_comm_frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	struct mesh_path *over = mesh_comm_path_find(peer, frame->to_comm);

	if (!over) {
		stray_handle(peer, frame);
		return;
	}
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_CLOSE:
		mesh_comm_close_came(over->comm, NULL);
		break;
	case MESH_FRAME_CLOSED:
		mesh_comm_close_came(over->comm, &frame->closed);
		mesh_comm_linger_check(over->comm); /* may free it */
		break;
	case MESH_FRAME_ASK:
		mesh_stall_asked(over->comm, frame->ask.seq);
		break;
	case MESH_FRAME_SENT:
		mesh_stall_answered(over->comm, frame->sent.seq);
		break;
	case MESH_FRAME_RESUME:
		mesh_resume_came(over, &frame->resume);
		break;
	case MESH_FRAME_HAVE:
		mesh_have_came(over->comm, &frame->have);
		break;
	default:
		break;
	}
}
