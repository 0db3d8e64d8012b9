/* SPDX-License-Identifier: Apache-2.0 */
/* peer_end.c - ends a peer, or an attempt to reach it, reports why, and fences a lost one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/retry.h"
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/provider_sockets.h"
#include "fabric/remote.h"

/* Lines about strangers that disconnect, within MESH_LOG_LIMIT_PERIOD_MS. */
#define STRANGER_LINES 8

/* True if a comm that goes on without the peer has no other path now. */
MESH_HOLDS(process)
static bool peer_is_waited_for(const struct mesh_peer *peer)
{
	return mesh_peer_users_say(peer, MESH_USER_WAITS, true);
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
		if (other == peer || other->state != MESH_PEER_LOST ||
		    !(other->warned & MESH_PEER_WARNED_LOST) ||
		    !mesh_addr_equal(&other->address.addr, &peer->address.addr))
			continue;
		if (other->domain == peer->domain ||
		    (other->dev == peer->dev && !peer_is_waited_for(peer)))
			return true;
	}
	return false;
}

/* True if somebody has drained the cable, and pulls it: no comm needs the link. */
MESH_HOLDS(process)
static bool was_drained(const struct mesh_peer *peer)
{
	return mesh_peer_is_drained(peer) && !peer->over && !peer_is_waited_for(peer);
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
	struct mesh_log_limit *limit = &peer->process->limits.strangers;

	mesh_addr_text(&mesh_peer_nic(peer)->source, local);
	/* At a normal end no user expects anything from it. */
	if (peer->state == MESH_PEER_UP && mesh_peer_users_say(peer, MESH_USER_MISSES, true) &&
	    !twin_is_lost(peer) && !was_drained(peer))
		peer->warned |= MESH_PEER_WARNED_LOST;
	/* Any process with a cookie can connect and disconnect as often as it likes. */
	*more = '\0';
	if (peer->warned & MESH_PEER_WARNED_LOST)
		mesh_warn("lost %s, reached from %s (%s): %s%s", mesh_peer_text(peer, text),
			  mesh_peer_nic(peer)->netdev, local, peer->reason, remedy_text(peer));
	else if (!peer->incoming ||
		 mesh_log_limit_pass(limit, STRANGER_LINES, mesh_clock_ms(), more))
		mesh_info("the connection with %s on %s ended: %s%s", mesh_peer_text(peer, text),
			  mesh_peer_nic(peer)->netdev, peer->reason, more);
}

/* Ends the connection with a reset, and drops what was not sent. */
static void socket_reset(int fd)
{
	const struct sockaddr unspecified = {.sa_family = AF_UNSPEC};

	/* Fails if the connection has ended. */
	(void)!connect(fd, &unspecified, sizeof(unspecified));
}

void mesh_peer_attempt_end(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->state == MESH_PEER_UP || peer->state == MESH_PEER_GREETING || peer->out_size)
		socket_reset(peer->watch.fd);
}

void mesh_peer_lose(struct mesh_peer *peer, const char *reason)
{
	mesh_process_assert_locked(peer->process);
	if (peer->state == MESH_PEER_LOST)
		return;
	mesh_peer_attempt_end(peer);
	snprintf(peer->reason, sizeof(peer->reason), "%s", reason);
	if (!peer->retry_ms) {
		loss_log(peer);
		peer->process->events->lost(peer);
	}
	mesh_link_leave(peer);
	mesh_peer_sink_end(peer);
	mesh_engine_unwatch(&peer->process->engine, &peer->watch);
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

/* ---- the fence ------------------------------------------------------------------------------- */

/* Posts a write that the peer's NIC is to refuse. Does nothing if memory is short. */
MESH_HOLDS(process)
static void refusal_begin(struct mesh_peer *peer)
{
	peer->fence = mesh_fence_begin(peer->domain, peer->remote);
	if (peer->fence)
		mesh_peer_check(peer);
}

/* Returns false while the write may still be refused. */
MESH_HOLDS(process)
static bool refusal_step(struct mesh_peer *peer)
{
	int result = mesh_fence_step(peer->fence);

	if (result == -EAGAIN)
		return false;
	peer->fence = NULL;
	/*
	 * The other end closes its endpoint before it asks what has arrived. If nobody asks, it is
	 * enough that there is no connection.
	 */
	peer->cut = MESH_PEER_CUT_CLOSE;
	if (result > 0 || (!result && !mesh_peer_is_resumed(peer)))
		peer->cut = MESH_PEER_CUT_DONE;
	return true;
}

/* True if nothing has ended the peer's connection yet, and nothing is about to. */
MESH_HOLDS(process)
static bool is_uncut(const struct mesh_peer *peer)
{
	return peer->cut != MESH_PEER_CUT_DONE &&
	       !mesh_remote_is_outdated(peer->domain, peer->remote);
}

/*
 * On verbs. The end that has noticed the loss closes its endpoint, which ends the connection also
 * where nothing answers. The other one then needs no more than a moment for a fence by which the
 * connections with its other peers stay: else one loss would go round all nodes of a switch.
 */
MESH_HOLDS(process)
static bool verbs_fence(struct mesh_peer *peer)
{
	if (!peer->fence && peer->cut == MESH_PEER_CUT_WRITE && is_uncut(peer))
		refusal_begin(peer);
	if (peer->fence && !refusal_step(peer))
		return false;
	if (is_uncut(peer)) {
		mesh_endpoint_close(peer->domain);
		mesh_engine_wake(&peer->process->engine); /* mesh_endpoints_check() */
	}
	return !mesh_endpoint_is_closing(peer->domain);
}

/* One step of mesh_peer_fence(). */
MESH_HOLDS(process)
static bool fence_step(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (!peer->remote)
		return true;
	if (peer->domain->provider == MESH_PROVIDER_VERBS_RXM)
		return verbs_fence(peer);
	if (!mesh_sockets_fence(peer->domain, peer->remote))
		return true;
	peer->fenced = MESH_FENCED_FAILED;
	return false;
}

bool mesh_peer_is_fencing(const struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->state != MESH_PEER_LOST || !peer->remote)
		return false;
	return peer->fence || (mesh_remote_is_outdated(peer->domain, peer->remote) &&
			       mesh_endpoint_is_closing(peer->domain));
}

/* Notifies all users of a lost peer, also again. Takes domain->lock. */
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

bool mesh_peer_fence(struct mesh_peer *peer)
{
	bool done = fence_step(peer);

	if (!done && peer->fenced == MESH_FENCED_FAILED)
		users_notify(peer);
	return done;
}

/* ---- the end of a peer ----------------------------------------------------------------------- */

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
		if (other->fenced)
			users_notify(other);
		else if (other == peer || other->state == MESH_PEER_UP)
			mesh_peer_lose(other, why);
	}
}

/*
 * True if the provider's connection with a lost peer is to be cut. A comm that goes on needs that;
 * on tcp also one, or a circuit, in whose memory something may still arrive; on verbs a circuit
 * that has something in flight there, which no kernel ends. And without any the other end may have
 * cut it, of which nothing is heard while the cable is away. Then the provider would refuse that
 * end's next connection for as long as this one stays (xnet_process_connreq() of 1.17 to 2.6). On
 * verbs that end has given its endpoint up, and its next connection comes from another address.
 */
MESH_HOLDS(process)
static bool peer_is_cut_off(const struct mesh_peer *peer)
{
	if (mesh_peer_is_resumed(peer))
		return true;
	if (peer->failed_in != MESH_PEER_UP)
		return false;
	if (peer->domain->provider == MESH_PROVIDER_VERBS_RXM)
		return !peer->over && mesh_peer_users_say(peer, MESH_USER_IS_QUIET, false);
	return mesh_peer_users_say(peer, MESH_USER_IS_OPEN, true) ||
	       (!peer->over && !mesh_peer_flow_other(peer));
}

void mesh_peer_flow_lose(const struct mesh_peer *peer, const char *why)
{
	struct mesh_peer *other;

	mesh_process_assert_locked(peer->process);
	while ((other = mesh_peer_flow_other(peer)))
		mesh_link_lose(other, why, 0);
}

void mesh_peer_bury(struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	if (peer->fenced)
		return;
	peer->fenced = MESH_FENCED_BURIED;
	if (peer_is_cut_off(peer)) {
		/* First, so that no thread posts to it and connects it again. */
		mesh_peer_flow_lose(peer, peer->reason);
		mesh_peer_greeting_drop(peer);
		mesh_peer_fence(peer);
	}
	users_notify(peer);
	mesh_peer_check(peer); /* without users it is freed */
}

void mesh_peer_retry(struct mesh_peer *peer, const char *reason)
{
	if (!peer->incoming)
		peer->retry_ms = mesh_clock_ms() + MESH_RETRY_MIN_MS;
	mesh_peer_lose(peer, reason);
}

/* ---- the end of a link ----------------------------------------------------------------------- */

MESH_HOLDS(process)
static void refusal_send(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t detail,
			 uint32_t peer_id)
{
	struct mesh_frame frame = {
		.refuse = {.refusal = refusal, .detail = detail, .peer_id = peer_id},
	};

	mesh_peer_send(peer, &frame, MESH_FRAME_REFUSE);
}

/*
 * Reports the lost link over each other link to the same process. This frame precedes those that
 * the comms send when they close, so that the other node also knows the reason.
 */
MESH_HOLDS(process)
static void others_notify(const struct mesh_peer *lost, enum mesh_refusal refusal)
{
	uint32_t detail = mesh_link_name((uint8_t)lost->domain->dev, lost->address.nic,
					 (uint8_t)lost->domain->lane);
	const struct mesh_peer *one;
	struct mesh_peer *peer = NULL;

	while ((peer = mesh_peer_of_process(lost, peer))) {
		if (!peer->link || peer->link == lost->link)
			continue;
		LIST_FOREACH(one, &lost->link->peers, link_entry)
			refusal_send(peer, refusal, detail, one->sink.id);
	}
}

void mesh_link_lose(struct mesh_peer *peer, const char *reason, enum mesh_refusal refusal)
{
	struct mesh_link *link = peer->link;
	struct mesh_peer *first = peer, *next;
	uint64_t now_ms = mesh_clock_ms();

	mesh_process_assert_locked(peer->process);
	if (!link) {
		mesh_peer_lose(peer, reason);
		return;
	}
	if (refusal)
		others_notify(peer, refusal);
	for (peer = LIST_FIRST(&link->peers); peer; peer = next) {
		next = LIST_NEXT(peer, link_entry); /* the last one to leave frees the link */
		/* Never without a word: that would mean that this process has ended. */
		refusal_send(peer, refusal ? refusal : MESH_REFUSAL_BROKEN, 0, 0);
		if (!peer->out_size) /* else it is reset */
			mesh_engine_unwatch(&peer->process->engine, &peer->watch);
		mesh_peer_lose(peer, reason);
		peer->state_ms = now_ms; /* one loss has one time */
		peer->cut = refusal ? MESH_PEER_CUT_CLOSE : MESH_PEER_CUT_WRITE;
	}
	/* Now: a frame that comes next, over another link, relies on it. Nothing is in flight. */
	peer = NULL;
	while ((peer = mesh_peer_of_process(first, peer))) {
		if (!mesh_peer_shares_link(peer, first))
			continue;
		if (peer->state == MESH_PEER_LOST)
			mesh_peer_bury(peer);
		else if (peer->state == MESH_PEER_GREETING) /* its HELLO came before this loss */
			mesh_peer_retry(peer, reason);
	}
}

/* ---- rest, before a link is used again ------------------------------------------------------- */

static bool is_same_link(const struct mesh_peer *peer, const struct mesh_peer *other)
{
	return other != peer && mesh_peer_shares_link(other, peer);
}

/*
 * True if the users of a lost peer have nothing in flight to it, and its fence has nothing. If its
 * process has ended, none of them goes on.
 */
MESH_HOLDS(process)
static bool peer_is_quiet(const struct mesh_peer *peer)
{
	return !mesh_peer_is_fencing(peer) &&
	       (peer->over || !mesh_peer_users_say(peer, MESH_USER_IS_QUIET, false));
}

/* True if @other was lost on the peer's link, and something of ours is in flight to it. */
MESH_HOLDS(process)
static bool is_unsettled(const struct mesh_peer *peer, const struct mesh_peer *other)
{
	return is_same_link(peer, other) && other->state == MESH_PEER_LOST && !peer_is_quiet(other);
}

bool mesh_link_is_quiet(const struct mesh_peer *peer)
{
	const struct mesh_peer *other;

	mesh_process_assert_locked(peer->process);
	/* The process at the other end is known by its port alone yet. */
	LIST_FOREACH(other, &peer->process->peers, entry) {
		if (other->control_port == peer->control_port && is_unsettled(peer, other))
			return false;
	}
	return true;
}

/* True if a user of the peer, once that is lost, may still receive something. */
MESH_HOLDS(process)
static bool peer_is_open(const struct mesh_peer *peer)
{
	return mesh_peer_users_say(peer, MESH_USER_IS_OPEN, true);
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
			if (!mesh_peer_fence(other))
				return false;
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
		*logged |= other->warned & MESH_PEER_WARNED_LOST && !LIST_EMPTY(&other->user_list);
		other->warned &= ~MESH_PEER_WARNED_LOST;
	}
	return lost;
}

/* ---- endpoints ------------------------------------------------------------------------------- */

/* True if the peer has a connection, or is about to, over an endpoint that was closed. */
MESH_HOLDS(process)
static bool is_outdated(const struct mesh_peer *peer)
{
	return peer->remote && mesh_remote_is_outdated(peer->domain, peer->remote);
}

/* Operations in flight on a broken domain would never complete. */
MESH_HOLDS(process)
static void domain_peers_check(struct mesh_process *process, const struct mesh_domain *domain)
{
	struct mesh_peer *peer;

	LIST_FOREACH(peer, &process->peers, entry) {
		if (peer->domain != domain)
			continue;
		if (peer->state == MESH_PEER_UP && domain->broken)
			mesh_link_lose(peer, "our NIC's completion queue cannot be read",
				       MESH_REFUSAL_BROKEN);
		else if (peer->state == MESH_PEER_UP && is_outdated(peer))
			mesh_link_lose(peer,
				       "another link of the NIC here was lost, and its endpoint "
				       "with it",
				       MESH_REFUSAL_BROKEN);
		else if (peer->state == MESH_PEER_GREETING && is_outdated(peer))
			mesh_peer_retry(peer, MESH_ENDPOINT_OPENING);
	}
}

void mesh_endpoints_check(struct mesh_process *process)
{
	const struct mesh_domain *domain;
	uint32_t generation;
	int i;

	mesh_process_assert_locked(process);
	for (i = 0; i < MESH_DOMAINS_MAX; i++) {
		domain = process->domains[i];
		if (!domain)
			continue;
		generation = atomic_load_explicit(&domain->generation, memory_order_relaxed);
		if (domain->broken || generation != process->generations[i])
			domain_peers_check(process, domain);
		process->generations[i] = generation;
	}
}
