/* SPDX-License-Identifier: Apache-2.0 */
/* accept_wait.c - how long accept() waits, and the messages about the wait. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/peer.h"
#include "control/process.h"
#include "setup/accept_wait.h"
#include "setup/connecting.h"

/* If accept() waits for this long, one WARN reports it. */
#define SLOW_MS 10000

#define ADDRESSES_TEXT_MAX 384
#define SUSPECT_TEXT_MAX (MESH_PEER_TEXT_MAX + MESH_PEER_REASON_MAX + 64)

/* ---- the other process ------------------------------------------------------------------ */

/* True if another peer has a connection with the process of @peer. */
MESH_HOLDS(process)
static bool process_is_here(const struct mesh_peer *peer)
{
	struct mesh_peer *other = NULL;

	while ((other = mesh_peer_of_process(peer, other))) {
		if (other != peer &&
		    (other->state == MESH_PEER_GREETING || other->state == MESH_PEER_UP))
			return true;
	}
	return false;
}

static void state_set(struct mesh_accept_wait *wait, enum mesh_accept_peer state)
{
	if (wait->state == MESH_ACCEPT_REFUSED)
		return;
	wait->state = state;
	wait->gone_ms = mesh_clock_ms();
}

void mesh_accept_wait_heard(struct mesh_accept_wait *wait, const struct mesh_peer *peer)
{
	mesh_process_assert_locked(peer->process);
	wait->process_id = peer->process_id;
	mesh_peer_text(peer, wait->name);
	state_set(wait, MESH_ACCEPT_HERE);
}

void mesh_accept_wait_given_up(struct mesh_accept_wait *wait, const struct mesh_peer *peer)
{
	mesh_accept_wait_heard(wait, peer);
	state_set(wait, MESH_ACCEPT_GAVE_UP);
}

void mesh_accept_wait_refused(struct mesh_accept_wait *wait, const struct mesh_peer *peer,
			      const char *reason)
{
	mesh_process_assert_locked(peer->process);
	mesh_peer_text(peer, wait->name);
	snprintf(wait->reason, sizeof(wait->reason), "%s", reason);
	state_set(wait, MESH_ACCEPT_REFUSED);
}

void mesh_accept_wait_peer_lost(struct mesh_accept_wait *wait, const struct mesh_peer *peer,
				bool missed)
{
	if (missed) {
		mesh_peer_text(peer, wait->lost);
		wait->warned = false;
	}
	if (!peer->process_id || wait->process_id != peer->process_id ||
	    wait->state >= MESH_ACCEPT_GAVE_UP || process_is_here(peer))
		return;
	state_set(wait, peer->state == MESH_PEER_UP ? MESH_ACCEPT_LOST_UP : MESH_ACCEPT_LOST);
	snprintf(wait->reason, sizeof(wait->reason), "%s", peer->reason);
}

/* ---- accept ------------------------------------------------------------------------------ */

MESH_HOLDS(process)
static const char *addresses_text(const struct mesh_accept_wait *wait, char *text)
{
	const struct mesh_process *process = wait->process;

	return mesh_endpoints_text(process->endpoints, process->num_endpoints, process, text,
				   ADDRESSES_TEXT_MAX);
}

/*
 * True if the peer is gone, and during this accept() for longer than another attempt takes. A peer
 * whose connection was never complete may retry until its own NCCL_MESH_CONNECT_TIMEOUT, which we
 * assume to equal ours.
 */
static bool is_gone(const struct mesh_accept_wait *wait, uint64_t now_ms)
{
	uint64_t since_ms = wait->gone_ms > wait->since_ms ? wait->gone_ms : wait->since_ms;
	uint64_t limit_ms = wait->process->config.connect_timeout_s * 1000;

	if (wait->state != MESH_ACCEPT_LOST)
		limit_ms = MESH_CONNECT_SLOW_MS;
	return wait->state != MESH_ACCEPT_HERE &&
	       mesh_clock_elapsed_ms(since_ms, now_ms) >= limit_ms;
}

MESH_HOLDS(process)
static void gone_log(const struct mesh_accept_wait *wait)
{
	bool gave_up = wait->state == MESH_ACCEPT_GAVE_UP;
	char local[ADDRESSES_TEXT_MAX];

	mesh_warn("node %s: %s was connecting to the listener on %s, and %s%s. Its log has the "
		  "reason.",
		  wait->process->name, wait->name, addresses_text(wait, local),
		  gave_up ? "reports that it has given up" : "is gone: ",
		  gave_up ? "" : wait->reason);
}

/* Another attempt would fail as well. */
MESH_HOLDS(process)
static void refused_log(const struct mesh_accept_wait *wait)
{
	char local[ADDRESSES_TEXT_MAX];

	mesh_warn("node %s refused %s, which connected to the listener on %s: %s",
		  wait->process->name, wait->name, addresses_text(wait, local), wait->reason);
}

/* What is known of the rank that does not connect, as a sentence, or "". */
static const char *suspect_text(const struct mesh_accept_wait *wait, char *text, size_t size)
{
	text[0] = '\0';
	if (wait->process_id && wait->state != MESH_ACCEPT_HERE)
		snprintf(text, size, " %s began to connect, and its connection ended: %s.",
			 wait->name, wait->reason);
	else if (wait->process_id)
		snprintf(text, size, " %s has begun to connect and has not finished.", wait->name);
	else if (wait->lost[0])
		snprintf(text, size, " This rank has lost %s meanwhile: the job may have failed.",
			 wait->lost);
	return text;
}

MESH_HOLDS(process)
static void timeout_log(const struct mesh_accept_wait *wait)
{
	const struct mesh_process *process = wait->process;
	char local[ADDRESSES_TEXT_MAX], suspect[SUSPECT_TEXT_MAX];

	mesh_warn("node %s: no rank connected within %llu s to the listener on %s.%s The other "
		  "rank's log has the reason; NCCL_MESH_ACCEPT_TIMEOUT changes the time.",
		  process->name, (unsigned long long)process->config.accept_timeout_s,
		  addresses_text(wait, local), suspect_text(wait, suspect, sizeof(suspect)));
}

/* Ranks may start minutes apart: this is not an error yet, and must not read like one. */
MESH_HOLDS(process)
static void slow_log(struct mesh_accept_wait *wait, uint64_t now_ms)
{
	const struct mesh_process *process = wait->process;
	char local[ADDRESSES_TEXT_MAX], suspect[SUSPECT_TEXT_MAX];

	if (wait->warned || mesh_clock_elapsed_ms(wait->since_ms, now_ms) < SLOW_MS)
		return;
	wait->warned = true;
	mesh_warn("node %s has waited %llu s for another rank to connect to the listener on %s. "
		  "If that rank starts later, this is normal. If it has started, its log has the "
		  "reason. accept fails in %llu s (NCCL_MESH_ACCEPT_TIMEOUT).%s",
		  process->name, (unsigned long long)(now_ms - wait->since_ms) / 1000,
		  addresses_text(wait, local),
		  (unsigned long long)(wait->deadline_ms - now_ms) / 1000,
		  suspect_text(wait, suspect, sizeof(suspect)));
}

void mesh_accept_wait_hold(struct mesh_accept_wait *wait, uint64_t now_ms)
{
	mesh_process_assert_locked(wait->process);
	if (wait->state == MESH_ACCEPT_LOST || wait->state == MESH_ACCEPT_LOST_UP)
		wait->gone_ms = now_ms;
}

void mesh_accept_wait_end(struct mesh_accept_wait *wait)
{
	*wait = (struct mesh_accept_wait){.process = wait->process};
}

int mesh_accept_wait_check(struct mesh_accept_wait *wait, uint64_t now_ms)
{
	uint64_t timeout_s = wait->process->config.accept_timeout_s;

	mesh_process_assert_locked(wait->process);
	if (!wait->since_ms) {
		wait->since_ms = now_ms;
		wait->deadline_ms = now_ms + timeout_s * 1000;
	}
	if (wait->state == MESH_ACCEPT_REFUSED) {
		refused_log(wait);
		return -EPROTONOSUPPORT;
	}
	if (is_gone(wait, now_ms)) {
		gone_log(wait);
		return -ECONNRESET;
	}
	if (now_ms >= wait->deadline_ms) {
		timeout_log(wait);
		return -ETIMEDOUT;
	}
	slow_log(wait, now_ms);
	return 0;
}
