/* SPDX-License-Identifier: Apache-2.0 */
/* peer_park.c - takes a peer's link out of use, because a NIC of it is drained. */
#include <string.h>

#include "base/log.h"
#include "control/peer_park.h"
#include "control/peer_send.h"

MESH_HOLDS(process)
static void users_learn(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;
	char text[MESH_PEER_TEXT_MAX];

	mesh_trace("the link of %s with %s is %s", peer->domain->nic->netdev,
		   mesh_peer_text(peer, text), mesh_peer_is_parked(peer) ? "out of use" : "in use");
	LIST_FOREACH(user, &peer->user_list, entry) {
		if (user->ops->park)
			user->ops->park(user);
	}
}

void mesh_peer_park(struct mesh_peer *peer, bool parked)
{
	struct mesh_frame frame;

	mesh_process_assert_locked(peer->process);
	if (peer->state != MESH_PEER_UP || peer->parked_here == parked)
		return;
	peer->parked_here = parked;
	memset(&frame, 0, sizeof(frame));
	frame.park.parked = parked;
	mesh_peer_send(peer, &frame, MESH_FRAME_PARK);
	users_learn(peer);
}

void mesh_peer_park_came(struct mesh_peer *peer, const struct mesh_frame_park *frame)
{
	mesh_process_assert_locked(peer->process);
	/* Its end may be up, and the greeting that tells us still on its way. */
	if (peer->state != MESH_PEER_UP && peer->state != MESH_PEER_GREETING) {
		mesh_count_event(&peer->process->counters->refused);
		return;
	}
	peer->parked_there = frame->parked;
	users_learn(peer);
}
