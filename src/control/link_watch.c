/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_watch.c - checks the links that are watched, loses those that are dead, and brings to rest
 * what was lost on a link, before the link is used again.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "control/peer_send.h"
#include "fabric/endpoint.h"
#include "system/tcp_look.h"

/* Looks at the keep-alive of a link that nothing waits for, within its limit of silence. */
#define IDLE_LOOKS 2

/* ---- verdicts -------------------------------------------------------------------------------- */

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
	uint64_t now_ms = mesh_clock_ms(), heard_ms = now_ms;

	mesh_process_assert_locked(peer->process);
	if (!link) {
		mesh_peer_lose(peer, reason);
		return;
	}
	if (refusal)
		others_notify(peer, refusal);
	if (refusal == MESH_REFUSAL_NO_ANSWER && link->liveness.heard_ms)
		heard_ms = link->liveness.heard_ms;
	for (peer = LIST_FIRST(&link->peers); peer; peer = next) {
		next = LIST_NEXT(peer, link_entry); /* the last one to leave frees the link */
		/* Never without a word: that would mean that this process has ended. */
		refusal_send(peer, refusal ? refusal : MESH_REFUSAL_BROKEN, 0, 0);
		if (!peer->out_size) /* else it is reset */
			mesh_engine_unwatch(&peer->process->engine, &peer->watch);
		mesh_peer_lose(peer, reason);
		peer->state_ms = now_ms; /* one loss has one time */
		peer->cut = refusal ? MESH_PEER_CUT_CLOSE : MESH_PEER_CUT_WRITE;
		peer->heard_ms = heard_ms;
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

/* True if @refuse names the link of @peer as it is now; it may have been lost and come back. */
MESH_HOLDS(process)
static bool is_named(const struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	return mesh_link_name(peer->address.nic, (uint8_t)peer->domain->dev,
			      (uint8_t)peer->domain->lane) == refuse->detail &&
	       peer->remote_id == refuse->peer_id;
}

void mesh_link_given_up(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	struct mesh_peer *other = NULL;

	mesh_process_assert_locked(peer->process);
	while ((other = mesh_peer_of_process(peer, other))) {
		if (other->link && (refuse->detail ? is_named(other, refuse) : other == peer))
			break;
	}
	if (other)
		mesh_link_lose(other, mesh_refusal_text((enum mesh_refusal)refuse->refusal), 0);
}

/* No host there answers ARP, which a dead link explains, or the kernel has no error at all. */
static bool error_is_silence(int error)
{
	return !error || error == -ETIMEDOUT || error == -EHOSTUNREACH;
}

/* What the kernel met on one of the link's control connections, such as -ENETUNREACH; 0: nothing */
MESH_HOLDS(process)
static int link_error_take(const struct mesh_link *link)
{
	const struct mesh_peer *peer;
	int error = 0;

	LIST_FOREACH(peer, &link->peers, link_entry) {
		if (error_is_silence(error))
			error = mesh_tcp_error_take(peer->watch.fd);
	}
	return error;
}

void mesh_link_timed_out(struct mesh_peer *peer, int error)
{
	char why[MESH_PEER_REASON_MAX / 2] = "cable pulled, link down, node stopped";
	uint64_t limit_s = peer->process->config.dead_peer_timeout_s;
	char reason[MESH_PEER_REASON_MAX];

	if (!error && peer->link) {
		limit_s = peer->link->liveness.limit_ms / 1000;
		error = link_error_take(peer->link);
	}
	if (!error_is_silence(error))
		mesh_control_errno_explain(error, why, sizeof(why));
	snprintf(reason, sizeof(reason), "no answer for %llu s: %s", (unsigned long long)limit_s,
		 why);
	mesh_link_lose(peer, reason, MESH_REFUSAL_NO_ANSWER);
}

MESH_HOLDS(process)
static void writes_lost(struct mesh_link *link)
{
	char reason[MESH_PEER_REASON_MAX];

	snprintf(
		reason, sizeof(reason),
		"no RDMA write has been answered on %s for %llu s, though TCP gets through: does a "
		"firewall drop UDP port 4791, or is the RDMA device gone?",
		link->domain->nic->netdev, (unsigned long long)link->liveness.limit_ms / 1000);
	mesh_link_lose(LIST_FIRST(&link->peers), reason, MESH_REFUSAL_NO_WRITES);
}

MESH_HOLDS(process)
static void verdict_execute(struct mesh_link *link, enum mesh_liveness_verdict verdict)
{
	unsigned long long limit_s = link->liveness.limit_ms / 1000;
	struct mesh_peer *peer = LIST_FIRST(&link->peers);
	char reason[MESH_PEER_REASON_MAX];

	if (verdict == MESH_LIVENESS_NO_ANSWER) {
		mesh_link_timed_out(peer, 0);
	} else if (verdict == MESH_LIVENESS_NO_WRITES) {
		writes_lost(link);
	} else if (verdict == MESH_LIVENESS_NO_DATA) {
		snprintf(reason, sizeof(reason),
			 "it has acknowledged no data for %llu s, though small packets get "
			 "through: large frames are lost (is the MTU of both NICs the same?)",
			 limit_s);
		mesh_link_lose(peer, reason, MESH_REFUSAL_NO_DATA);
	}
}

/* ---- what is due ----------------------------------------------------------------------------- */

/* If keep-alive is set again, the kernel sends a probe at once. */
MESH_HOLDS(process)
static void silence_poke(struct mesh_link *link, uint64_t now_ms)
{
	uint64_t pause_ms = link->liveness.limit_ms / MESH_LINK_QUESTIONS;

	if (pause_ms < 2 * MESH_LINK_LOOK_MS)
		pause_ms = 2 * MESH_LINK_LOOK_MS;
	if (now_ms < link->liveness.heard_ms + MESH_LINK_QUIET_MS ||
	    now_ms < link->poked_ms + pause_ms)
		return;
	link->poked_ms = now_ms;
	mesh_link_keepalives_set(link);
}

/* Watches the link if a frame is not acknowledged. */
MESH_HOLDS(process)
static void frames_check(struct mesh_link *link, uint64_t now_ms)
{
	struct mesh_tcp_look look = {.queued = 0};
	const struct mesh_peer *peer;

	if (!link->sent_ms || mesh_clock_elapsed_ms(link->sent_ms, now_ms) < MESH_LINK_FRAME_MS)
		return;
	LIST_FOREACH(peer, &link->peers, link_entry) {
		if (!mesh_tcp_look(peer->watch.fd, &look) && look.queued) {
			mesh_link_want(LIST_FIRST(&link->peers), now_ms + MESH_LINK_FRAME_MS);
			return;
		}
	}
	link->sent_ms = 0;
}

/* All links have the same times for this, so that the engine wakes once for all of them. */
MESH_HOLDS(process)
static uint64_t idle_next(const struct mesh_link *link, uint64_t now_ms)
{
	uint64_t period_ms = link->process->config.dead_peer_timeout_s * 1000 / IDLE_LOOKS;

	return now_ms - now_ms % period_ms + period_ms;
}

/* Nothing waits for the process: a silence is found by the kernel's keep-alive. */
MESH_HOLDS(process)
static void idle_check(struct mesh_link *link, uint64_t now_ms)
{
	if (link->liveness.state != MESH_LIVENESS_IDLE || now_ms < link->idle_ms)
		return;
	link->idle_ms = idle_next(link, now_ms);
	if (now_ms >= link->waited_until_ms)
		mesh_link_idle_look(link, now_ms);
}

MESH_HOLDS(process)
static uint64_t look_due_ms(const struct mesh_link *link)
{
	return link->judged_ms + MESH_LINK_LOOK_MS;
}

/* While the link is watched it is looked at often, and so is a frame that is not acknowledged. */
MESH_HOLDS(process)
static void next_check_set(struct mesh_link *link, uint64_t now_ms)
{
	uint64_t due_ms = link->idle_ms > now_ms ? link->idle_ms : idle_next(link, now_ms);

	if (link->sent_ms && link->sent_ms + MESH_LINK_FRAME_MS < due_ms)
		due_ms = link->sent_ms + MESH_LINK_FRAME_MS;
	if (link->liveness.state != MESH_LIVENESS_IDLE) {
		due_ms = look_due_ms(link);
		if (due_ms <= now_ms) /* it is looked at in this turn */
			due_ms = now_ms + MESH_LINK_LOOK_MS;
	}
	mesh_engine_timer_set(&link->process->engine, &link->timer, due_ms);
}

/* How long the link may be silent. */
MESH_HOLDS(process)
static uint64_t link_limit_ms(const struct mesh_link *link, uint64_t now_ms)
{
	const struct mesh_peer *peer;

	if (now_ms < link->waited_until_ms) {
		LIST_FOREACH(peer, &link->peers, link_entry) {
			if (mesh_peer_is_resumed(peer))
				return mesh_link_resumed_limit_ms(link->process);
		}
	}
	return link->process->config.dead_peer_timeout_s * 1000;
}

/* Checks a link, loses it if it is dead, and sets the next check. */
MESH_HOLDS(process)
static void link_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_link *link = mesh_container_of(timer, struct mesh_link, timer);
	enum mesh_liveness_state before = link->liveness.state;

	mesh_process_assert_locked(link->process);
	frames_check(link, now_ms);
	idle_check(link, now_ms);
	link->liveness.limit_ms = link_limit_ms(link, now_ms);
	mesh_link_watch_update(link, now_ms);
	/* It is watched now, and was not before; or the reverse. */
	if ((before == MESH_LIVENESS_IDLE) != (link->liveness.state == MESH_LIVENESS_IDLE))
		mesh_link_keepalives_set(link);
	next_check_set(link, now_ms);
	if (link->liveness.state == MESH_LIVENESS_IDLE || now_ms < look_due_ms(link))
		return;
	link->judged_ms = now_ms;
	silence_poke(link, now_ms);
	verdict_execute(link, mesh_link_look(link, now_ms)); /* last: it may free the link */
}

void mesh_link_watch(struct mesh_peer *peer)
{
	struct mesh_link *link;

	mesh_link_join(peer);
	link = peer->link;
	if (!link)
		return;
	link->timer.expired = link_expired;
	mesh_engine_timer_advance(&link->process->engine, &link->timer,
				  idle_next(link, mesh_clock_ms()));
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
