/* SPDX-License-Identifier: Apache-2.0 */
/* peer_end.c - ends a peer, or an attempt to reach it, and reports why. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/link.h"
#include "control/peer_end.h"
#include "control/peer_park.h"
#include "control/peer_fence.h"
#include "control/peer_index.h"
#include "control/socket.h"
#include "fabric/remote.h"

/* Between two attempts to connect. Short: a refusal comes at once while a peer is starting. */
#define RETRY_MS 250
/* Lines about strangers that disconnect, within MESH_LOG_LIMIT_PERIOD_MS. */
#define STRANGER_LINES 8

/* True if a user still expects something from it; at a normal end none does. */
MESH_HOLDS(process)
static bool peer_is_missed(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;
	bool missed = false;

	if (peer->state != MESH_PEER_UP)
		return false;
	LIST_FOREACH(user, &peer->user_list, entry)
		missed |= user->ops->misses(user);
	return missed;
}

/* True if NCCL has a comm with the peer. */
MESH_HOLDS(process)
static bool has_known_user(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;

	LIST_FOREACH(user, &peer->user_list, entry) {
		if (user->ops->is_known(user))
			return true;
	}
	return false;
}

/* True if a comm that goes on without the peer has no other path now. */
MESH_HOLDS(process)
static bool peer_is_waited_for(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;

	LIST_FOREACH(user, &peer->user_list, entry) {
		if (user->ops->waits(user))
			return true;
	}
	return false;
}

/*
 * True if a WARN already reported the loss of the same process over the same link, in the other
 * direction; or over another lane of this link, unless this one was the last path.
 */
MESH_HOLDS(process)
static bool twin_is_lost(const struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (other == peer || other->state != MESH_PEER_LOST || !other->warned ||
		    !mesh_addr_equal(&other->address.addr, &peer->address.addr))
			continue;
		if (other->domain == peer->domain ||
		    (other->dev == peer->dev && !peer_is_waited_for(peer)))
			return true;
	}
	return false;
}

/* True if somebody has drained the cable, and pulls it: no comm has needed the link since. */
MESH_HOLDS(process)
static bool was_drained(const struct mesh_peer *peer)
{
	return mesh_peer_is_parked(peer) && !peer->over && mesh_peer_is_idle(peer);
}

/*
 * True if a line about the end of this peer may be written. Any process with a cookie can connect
 * and disconnect as often as it likes, but a peer with a comm of NCCL cannot.
 */
MESH_HOLDS(process)
static bool loss_passes(const struct mesh_peer *peer, char *more)
{
	struct mesh_process *process = peer->process;

	*more = '\0';
	if (has_known_user(peer))
		return true;
	if (peer->warned)
		return mesh_log_limit_pass(&process->limits.unaccepted, 1, mesh_clock_ms(), more);
	return !peer->incoming || mesh_log_limit_pass(&process->limits.strangers, STRANGER_LINES,
						      mesh_clock_ms(), more);
}

/* What happens to the messages between the two now. */
MESH_HOLDS(process)
static const char *remedy_text(const struct mesh_peer *peer)
{
	if (!mesh_peer_is_resumed(peer))
		return "";
	return peer_is_waited_for(peer)
		       ? "; its messages wait for a path (NCCL_MESH_RECOVERY_TIMEOUT)"
		       : "; its messages go over the other paths now";
}

/*
 * Logs the end of @peer with its reason: one WARN if users expect more from it, however many comms
 * it has; otherwise INFO, because the connect itself reports how an attempt ended.
 */
MESH_HOLDS(process)
static void loss_log(struct mesh_peer *peer)
{
	char text[MESH_PEER_TEXT_MAX], local[MESH_ADDR_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	mesh_addr_text(&mesh_peer_nic(peer)->source, local);
	peer->warned = peer_is_missed(peer) && !twin_is_lost(peer) && !was_drained(peer);
	if (!loss_passes(peer, more))
		return;
	if (peer->warned)
		mesh_warn("lost %s, reached from %s (%s): %s%s%s", mesh_peer_text(peer, text),
			  mesh_peer_nic(peer)->netdev, local, peer->reason, remedy_text(peer),
			  more);
	else
		mesh_info("the connection with %s on %s ended: %s%s", mesh_peer_text(peer, text),
			  mesh_peer_nic(peer)->netdev, peer->reason, more);
}

bool mesh_peer_is_resumed(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;

	LIST_FOREACH(user, &peer->user_list, entry) {
		if (user->ops->resumes(user))
			return true;
	}
	return false;
}

MESH_HOLDS(process)
static void left_send(const struct mesh_peer *peer)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.refuse.refusal = MESH_REFUSAL_LEFT;
	(void)!send(peer->watch.fd, &frame, mesh_frame_finish(&frame, MESH_FRAME_REFUSE),
		    MSG_NOSIGNAL | MSG_DONTWAIT);
}

void mesh_peer_attempt_end(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->state == MESH_PEER_UP || peer->out_size)
		mesh_control_socket_reset(peer->watch.fd);
	else if (!peer->incoming && peer->state == MESH_PEER_GREETING)
		left_send(peer);
}

void mesh_peer_lose(struct mesh_peer *peer, const char *reason)
{
	mesh_process_assert_locked(peer->process);
	if (peer->state == MESH_PEER_LOST)
		return;
	mesh_peer_attempt_end(peer);
	snprintf(peer->reason, sizeof(peer->reason), "%s", reason);
	loss_log(peer);
	peer->process->events->lost(peer, peer->warned);
	mesh_link_leave(peer);
	mesh_peer_port_cancel(peer);
	mesh_peer_sink_end(peer);
	mesh_engine_unwatch(&peer->process->engine, &peer->watch);
	/* Without a remote nothing of it is in flight. */
	peer->lost_ms = peer->remote ? mesh_clock_ms() : 0;
	peer->failed_in = peer->state;
	mesh_peer_state_set(peer, MESH_PEER_LOST);
}

/*
 * Drops a greeting that the provider has not accepted yet, because its attempt is over. Otherwise
 * every poll would retry it, and it would hold its buffer and the peer.
 */
void mesh_peer_greeting_drop(struct mesh_peer *peer)
{
	if (!peer->remote)
		return;
	mesh_domain_lock(peer->domain);
	mesh_remote_lose(peer->domain, peer->remote);
	mesh_domain_unlock(peer->domain);
}

MESH_HOLDS(process)
static void users_notify(struct mesh_peer *peer)
{
	struct mesh_peer_user *user;

	if (!peer->domain)
		return; /* a stranger has none */
	mesh_domain_lock(peer->domain);
	LIST_FOREACH(user, &peer->user_list, entry)
		user->ops->lost(user);
	if (peer->remote)
		mesh_remote_lose(peer->domain, peer->remote);
	mesh_domain_unlock(peer->domain);
}

void mesh_peer_process_ended(struct mesh_peer *peer, const char *why)
{
	struct mesh_peer *other = NULL;
	char text[MESH_PEER_TEXT_MAX];
	bool waited = false;

	mesh_process_assert_locked(peer->process);
	while ((other = mesh_peer_of_process(peer, other)))
		waited |= other->state == MESH_PEER_LOST && peer_is_waited_for(other);
	if (waited)
		mesh_warn("%s does not come back: %s", mesh_peer_text(peer, text), why);
	while ((other = mesh_peer_of_process(peer, other)))
		other->over = true;
	while ((other = mesh_peer_of_process(peer, other))) {
		if (other->state == MESH_PEER_LOST && other->buried)
			users_notify(other);
		else if (other == peer || other->state == MESH_PEER_UP)
			mesh_peer_lose(other, why);
	}
}

void mesh_peer_unfenced(struct mesh_peer *peer)
{
	if (peer->fenced == MESH_FENCED_FAILED)
		users_notify(peer);
}

/*
 * True if the provider's connection with a lost peer is to be cut. A comm that goes on needs that;
 * and without any the other end may have cut it, of which nothing is heard while the cable is away.
 * Then the provider would refuse that end's next connection for as long as this one stays
 * (xnet_process_connreq() of 1.17 to 2.6). On verbs that end has given its endpoint up, and its
 * next connection comes from another address.
 */
MESH_HOLDS(process)
static bool peer_is_cut_off(const struct mesh_peer *peer)
{
	if (mesh_peer_is_resumed(peer))
		return true;
	return peer->failed_in == MESH_PEER_UP && !peer->over &&
	       peer->domain->provider != MESH_PROVIDER_VERBS_RXM && !mesh_peer_flow_is_shared(peer);
}

void mesh_peer_bury(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->buried)
		return;
	peer->buried = true;
	mesh_peer_urgent_set(peer, false);
	mesh_peer_drain_end(peer);
	if (peer_is_cut_off(peer)) {
		/* First, so that no thread posts to it and connects it again. */
		mesh_peer_greeting_drop(peer);
		mesh_peer_fence(peer);
	}
	users_notify(peer);
	mesh_peer_check(peer); /* without users it is freed */
}

void mesh_peer_retry(struct mesh_peer *peer, const char *reason)
{
	mesh_peer_attempt_end(peer);
	if (peer->incoming) {
		mesh_peer_lose(peer, reason);
		return;
	}
	snprintf(peer->reason, sizeof(peer->reason), "%s", reason);
	mesh_engine_unwatch(&peer->process->engine, &peer->watch);
	mesh_peer_greeting_drop(peer);
	peer->retry_ms = mesh_clock_ms() + RETRY_MS;
	peer->in_size = 0;
	peer->out_size = 0;
	peer->parked_there = false; /* the next connection begins without PARK, too */
	peer->failed_in = peer->state;
	mesh_peer_state_set(peer, MESH_PEER_RETRY);
}

void mesh_peer_hasten(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->state == MESH_PEER_CONNECTING)
		peer->first_refused_ms = 0; /* no answer is no refusal */
	if (peer->state < MESH_PEER_UP)
		mesh_peer_retry(peer, "it took too long");
	if (peer->state != MESH_PEER_RETRY)
		return;
	peer->retry_ms = mesh_clock_ms();
	mesh_peer_check(peer);
}
