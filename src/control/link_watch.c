/* SPDX-License-Identifier: Apache-2.0 */
/* link_watch.c - checks the links that are watched, and loses those that are dead. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "control/peer_index.h"
#include "control/peer_send.h"
#include "control/socket.h"
#include "system/tcp_look.h"

/* After QUIET_MS without a sign of life, the kernel is made to send probes, at this interval. */
#define QUIET_MS 1000
#define POKE_MS 200
/* Between two checks of a link that is watched: liveness.c decides which of them are looks. */
#define TURN_MS 20
/* Looks at the keep-alive of a link that nothing waits for, within its limit of silence. */
#define IDLE_LOOKS 2
/* The longest silence of a link whose messages go on without it: a wrong verdict costs little. */
#define RESUMED_MS 3000

/* ---- verdicts -------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void refusal_send(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t detail,
			 uint32_t peer_id)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.refuse.refusal = refusal;
	frame.refuse.detail = detail;
	frame.refuse.peer_id = peer_id;
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
		peer->reported = !refusal;
		peer->heard_ms = heard_ms;
		peer->lost_ms = 0; /* nothing is in flight: its comms need not wait */
	}
	/* Now: a frame that comes next, over another link, relies on it. */
	peer = NULL;
	while ((peer = mesh_peer_of_process(first, peer))) {
		if (peer->state == MESH_PEER_LOST && !peer->lost_ms)
			mesh_peer_bury(peer);
		/* Its HELLO came before this loss (link_settle.h). */
		if (peer->state == MESH_PEER_GREETING && mesh_peer_shares_link(peer, first))
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
static void link_judge(struct mesh_link *link, enum mesh_liveness_verdict verdict, uint64_t now_ms)
{
	unsigned long long limit_s = link->liveness.limit_ms / 1000;
	struct mesh_peer *peer = LIST_FIRST(&link->peers);
	char reason[MESH_PEER_REASON_MAX];

	if (verdict == MESH_LIVENESS_NO_ANSWER) {
		mesh_link_timed_out(peer, 0);
	} else if (verdict == MESH_LIVENESS_NO_DATA) {
		snprintf(reason, sizeof(reason),
			 "it has acknowledged no data for %llu s, though small packets get "
			 "through: large frames are lost (is the MTU of both NICs the same?)",
			 limit_s);
		mesh_link_lose(peer, reason, MESH_REFUSAL_NO_DATA);
	} else if (link->liveness.state == MESH_LIVENESS_WATCHED &&
		   mesh_link_writes_are_silent(link, now_ms)) {
		writes_lost(link);
	}
}

/* ---- what is due ----------------------------------------------------------------------- */

/* If keep-alive is set again, the kernel sends a probe at once. */
MESH_HOLDS(process)
static void silence_poke(struct mesh_link *link, uint64_t now_ms)
{
	uint64_t pause_ms = link->liveness.limit_ms / MESH_LINK_QUESTIONS;

	if (pause_ms < POKE_MS)
		pause_ms = POKE_MS;
	if (now_ms < link->liveness.heard_ms + QUIET_MS || now_ms < link->poked_ms + pause_ms)
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

/*
 * Nothing waits for the process: a silence is found by the kernel's keep-alive. A link that is
 * silent is watched until it is heard again, or dead.
 */
MESH_HOLDS(process)
static void idle_check(struct mesh_link *link, uint64_t now_ms)
{
	if (link->liveness.state == MESH_LIVENESS_IDLE && now_ms >= link->idle_ms) {
		link->idle_ms = idle_next(link, now_ms);
		if (now_ms >= link->waited_until_ms)
			mesh_link_idle_look(link, now_ms);
	}
	if (link->liveness.state != MESH_LIVENESS_IDLE && link->liveness.asked_ms)
		mesh_liveness_want(&link->liveness, now_ms + QUIET_MS);
}

/* While the link is watched it is looked at often, and so is a frame that is not acknowledged. */
MESH_HOLDS(process)
static void next_check_set(struct mesh_link *link, uint64_t now_ms)
{
	bool watched = link->liveness.state != MESH_LIVENESS_IDLE;
	uint64_t frame_ms = link->sent_ms + MESH_LINK_FRAME_MS;
	uint64_t due_ms = link->idle_ms > now_ms ? link->idle_ms : idle_next(link, now_ms);

	if (watched || (link->sent_ms && frame_ms <= now_ms))
		due_ms = now_ms + TURN_MS;
	else if (link->sent_ms && frame_ms < due_ms)
		due_ms = frame_ms;
	mesh_engine_timer_set(&link->process->engine, &link->timer, due_ms);
}

/* How long the link may be silent. */
MESH_HOLDS(process)
static uint64_t link_limit_ms(const struct mesh_link *link, uint64_t now_ms)
{
	uint64_t limit_ms = link->process->config.dead_peer_timeout_s * 1000;
	const struct mesh_peer *peer;

	if (now_ms >= link->waited_until_ms)
		return limit_ms;
	LIST_FOREACH(peer, &link->peers, link_entry) {
		if (limit_ms > RESUMED_MS && mesh_peer_is_resumed(peer))
			return RESUMED_MS;
	}
	return limit_ms;
}

/* Checks a link, loses it if it is dead, and sets the next check. */
MESH_HOLDS(process)
static void link_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_link *link = mesh_container_of(timer, struct mesh_link, timer);
	bool due, eager;

	mesh_process_assert_locked(link->process);
	frames_check(link, now_ms);
	idle_check(link, now_ms);
	link->liveness.limit_ms = link_limit_ms(link, now_ms);
	due = mesh_liveness_is_due(&link->liveness, now_ms);
	eager = link->liveness.state != MESH_LIVENESS_IDLE;
	if (eager != link->eager) {
		link->eager = eager;
		mesh_link_keepalives_set(link);
	}
	if (!eager)
		link->silent_ms = 0;
	next_check_set(link, now_ms);
	if (!due)
		return;
	silence_poke(link, now_ms);
	link_judge(link, mesh_link_look(link, now_ms), now_ms); /* last: it may free the link */
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
