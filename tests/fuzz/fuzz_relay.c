/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_relay.c - peers that send whatever they like to a process that relays: OPENs for the first
 * relay of a route, for its last one and for one in the middle, answers, events, frames of comms,
 * segments, small messages, grants, ARRIVED, and what neighbours say of themselves, in any order,
 * while operations end in any way, links are lost and come back, NICs lose their carrier, and time
 * passes.
 *
 * What must hold, besides what asserts and the sanitizers check: the memory of all circuits stays
 * within NCCL_MESH_RELAY_MEMORY, and what waits within its limit; nothing is in flight from memory
 * that is not a circuit's, nor to a place that it was not told; taken slots are those of segments
 * in hand; each frame that the relay sends is one; no lock stays held. Soon after all peers are
 * gone nothing is left: no circuit, memory, registration, timer, or use of a peer.
 *
 * Input: one byte of options, then steps. Each step is one byte, and what it takes from the rest.
 */
#include <stdint.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "relay/relay.h"

#include "relay_run.h"

#define STEPS 256
/* Of the fake's room for operations: then those that are in flight end. */
#define POSTS_MANY (FAKE_POSTS_MAX / 3)

/* ---- steps: the machine ---------------------------------------------------------------------- */

/* One of the operations in flight ends, or all of a kind. */
static void step_end(void)
{
	uint32_t way = take(1);
	struct fake_posts *posts = way & 1 ? &fake.writes : &fake.sends;

	if (way & 2)
		posts_end(posts, way & 4 && way & 8);
	else if (posts->num)
		post_end(&posts->posts[way / 8 % (uint32_t)posts->num], way & 4);
	if (way & 128)
		relay_poll();
}

/* The provider has no room for a while, or fails. */
static void step_provider(void)
{
	static const int errors[] = {-FI_EAGAIN, -FI_EAGAIN, -FI_EAGAIN, -FI_ECONNRESET};
	static const enum fake_call calls[] = {FAKE_WRITE, FAKE_SEND, FAKE_INJECT, FAKE_MR};
	uint32_t way = take(1);

	fake_fail(calls[way % 4], way / 4 % 2, way / 8 % 8, errors[way / 64]);
}

static void step_engine(void)
{
	static const uint64_t times_ms[] = {0, 1, 6, 20, 250, 1100, 3100, 11000, 16000};

	relay_engine(times_ms[take(1) % (sizeof(times_ms) / sizeof(times_ms[0]))]);
}

static void step_lose(void)
{
	struct mesh_peer *peer = &relay_run.peers[take(1) % RELAY_PEERS];
	uint32_t way = take(1);

	mesh_lock_take(&relay_run.process->lock);
	if (peer->state != MESH_PEER_LOST && way % 4 == 0)
		mesh_peer_lose(peer, "the input says so"); /* its process has ended */
	else if (peer->state == MESH_PEER_UP && way % 4 < 3)
		mesh_link_lose(peer, "the input says so", way % 2 ? MESH_REFUSAL_BROKEN : 0);
	mesh_lock_release(&relay_run.process->lock);
}

/* A process is there again, over a new connection, once nothing uses what was lost. */
static void step_return(void)
{
	struct mesh_peer *peer = &relay_run.peers[take(1) % RELAY_PEERS];

	if (peer->state != MESH_PEER_LOST || peer->users > 1)
		return;
	relay_peer_leave(peer);
	relay_peer_enter(peer);
}

static void step_carrier(void)
{
	const struct mesh_domain *domain = relay_run.domains[take(1) % RELAY_NICS];

	mesh_lock_take(&relay_run.process->lock);
	if (take(1) % 4 == 0)
		mesh_circuits_carrier_lost(relay_run.process, domain);
	mesh_lock_release(&relay_run.process->lock);
}

/* What was lost was connected: the provider makes it anew. */
static void connect_again(void)
{
	for (int i = 0; i < RELAY_NICS; i++)
		relay_run.remotes[i]->flow->connected = true;
}

/* The fake has room for so many operations only. */
static void room_make(void)
{
	for (int i = 0; i < 8 && (fake.sends.num > POSTS_MANY || fake.writes.num > POSTS_MANY ||
				  fake.completed > POSTS_MANY);
	     i++) {
		posts_end(&fake.sends, false);
		posts_end(&fake.writes, false);
		relay_poll(); /* which may post more */
		fake.read = fake.completed = 0;
		posts_forget(&fake.sends, &relay_run.seen);
		posts_forget(&fake.writes, &relay_run.seen);
	}
	if (fake.read == fake.completed) {
		fake.read = fake.completed = 0;
		posts_forget(&fake.sends, &relay_run.seen);
		posts_forget(&fake.writes, &relay_run.seen);
	}
	fake.injects.num = 0;
}

static void step(void)
{
	static void (*const steps[])(void) = {
		relay_step_open,    relay_step_answer,	  relay_step_segment,
		relay_step_message, step_engine,	  step_end,
		relay_step_open,    relay_step_answer,	  relay_step_segment,
		relay_step_message, relay_poll,		  relay_step_event,
		relay_step_frame,   relay_step_neighbour, step_provider,
		step_lose,	    step_return,	  step_carrier,
	};

	steps[take(1) % (sizeof(steps) / sizeof(steps[0]))]();
	connect_again();
	room_make();
	relay_check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	machine_begin(data + 1, size - 1);
	relay_begin(data[0]);
	for (int i = 0; i < STEPS && machine.left; i++)
		step();
	relay_end();
	return 0;
}
