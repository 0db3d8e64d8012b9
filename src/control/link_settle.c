/* SPDX-License-Identifier: Apache-2.0 */
/* link_settle.c - brings to rest what was lost on a link, before the link is used again. */
#include "control/link_settle.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "control/peer_fence.h"
#include "control/peer_index.h"

static bool is_same_link(const struct mesh_peer *peer, const struct mesh_peer *other)
{
	return other != peer && mesh_peer_shares_link(other, peer);
}

/* True if the users of a lost peer have nothing in flight to it, and its fence has nothing. */
MESH_HOLDS(process)
static bool peer_is_quiet(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;

	if (mesh_peer_is_fencing(peer))
		return false;
	if (peer->over)
		return true; /* none of them goes on */
	LIST_FOREACH(user, &peer->user_list, entry) {
		if (!user->ops->is_quiet(user))
			return false;
	}
	return true;
}

/* True if @other was lost on the peer's link, and something of ours is in flight to it. */
MESH_HOLDS(process)
static bool is_unsettled(const struct mesh_peer *peer, const struct mesh_peer *other)
{
	return is_same_link(peer, other) && other->state == MESH_PEER_LOST && !peer_is_quiet(other);
}

/* The process at the other end is not known yet: those of other processes there count as well. */
MESH_HOLDS(process)
static bool bucket_is_quiet(const struct mesh_peer *peer, uint16_t control_port)
{
	const struct mesh_peer *other;

	LIST_FOREACH(other, mesh_peers_at(peer->process, &peer->address.addr, control_port),
		     address_entry) {
		if (is_unsettled(peer, other))
			return false;
	}
	return true;
}

bool mesh_link_is_quiet(const struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	/* Incoming peers are indexed with port 0. */
	return bucket_is_quiet(peer, peer->control_port) && bucket_is_quiet(peer, 0);
}

/* True if a user of the peer, once that is lost, may still receive something. */
MESH_HOLDS(process)
static bool peer_is_open(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;

	LIST_FOREACH(user, &peer->user_list, entry) {
		if (user->ops->is_open(user))
			return true;
	}
	return false;
}

/*
 * A process has one outgoing peer for each link: this end has not noticed that it lost it. If it
 * noticed later, what fences then would cut the connection that is new.
 */
MESH_HOLDS(process)
static void stale_lose(const struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (is_same_link(peer, other) && other->incoming && other->state == MESH_PEER_UP &&
		    (mesh_peer_is_resumed(other) || peer_is_open(other))) {
			mesh_link_lose(other, "its process connects anew", MESH_REFUSAL_BROKEN);
			return; /* with all others of the link */
		}
	}
}

/*
 * A fence cuts the connections of all peers of the process on this link. Returns false while one is
 * in progress, or if it has failed.
 */
MESH_HOLDS(process)
static bool peers_fence(struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;
	struct mesh_peer_user *user;
	bool fenced = false;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (!is_same_link(peer, other) || other->state != MESH_PEER_LOST || other->over)
			continue;
		if (other->fenced != MESH_FENCED && !fenced && peer_is_open(other)) {
			if (!mesh_peer_fence(other)) {
				mesh_peer_unfenced(other);
				return false;
			}
			fenced = true;
		}
		other->fenced = MESH_FENCED;
		LIST_FOREACH(user, &other->user_list, entry)
			user->ops->fenced(user);
	}
	return true;
}

bool mesh_link_settle(struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	mesh_process_assert_locked(peer->process);
	if (peer->incoming)
		stale_lose(peer);
	while ((other = mesh_peer_of_process(peer, other))) {
		/* Its process has stopped: nothing more is to come. */
		if (is_same_link(peer, other) && other->state == MESH_PEER_LOST)
			mesh_peer_bury(other);
		if (is_unsettled(peer, other))
			return false;
	}
	return peers_fence(peer);
}

bool mesh_link_was_lost(const struct mesh_peer *peer, bool *logged)
{
	struct mesh_peer *other = NULL;
	bool lost = false;

	mesh_process_assert_locked(peer->process);
	*logged = false;
	while ((other = mesh_peer_of_process(peer, other))) {
		if (other->state != MESH_PEER_LOST || other->dev != peer->dev ||
		    !mesh_addr_equal(&other->address.addr, &peer->address.addr))
			continue;
		lost |= other->domain == peer->domain && !LIST_EMPTY(&other->user_list);
		*logged |= other->warned && !LIST_EMPTY(&other->user_list);
		other->warned = false;
	}
	return lost;
}
