/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_peer_park.c - a link is taken out of use: what both ends believe about what is in flight is
 * true, whatever comes in whatever order.
 *
 * Two ends of one link, each with some users. Frames keep their order, and so do messages through
 * the fabric, but the two have none in common. A user posts while its link is in use, or while it
 * has no other path.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/container.h"
#include "control/peer_greeting.h"
#include "control/peer_park.h"
#include "control/peer_send.h"
#include "fabric/sink.h"
#include "nic/nic.h"

#define USERS 3
#define ITEMS 4096
#define EPISODES 300
#define STEPS 400

struct user {
	struct mesh_peer_user user;
	enum mesh_park_state park;
	bool alone;	/* it has no other path */
	bool unflushed; /* as struct mesh_path's */
	int unfinished; /* posted, and not at the other end */
};

/* What travels through the fabric: a message of a user, or a greeting. */
struct item {
	struct user *user;
	uint32_t id, token, round;
};

struct end {
	struct mesh_process process;
	struct mesh_nic nic;
	struct mesh_domain domain;
	struct mesh_peer peer;
	struct user users[USERS];
	bool wanted;	/* by a user of this end */
	bool timer_set; /* of the link */
	bool no_buffer; /* a greeting cannot be sent now */
	struct item items[ITEMS];
	int first_item, num_items;
	struct mesh_frame frames[ITEMS];
	int first_frame, num_frames;
	uint64_t frames_sent;
};

static struct end *ends; /* the first one connects */
static struct mesh_peer_events events;
static unsigned int seed;

static unsigned int roll(unsigned int below)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % below;
}

static struct end *end_of(const struct mesh_peer *peer)
{
	return peer == &ends[0].peer ? &ends[0] : &ends[1];
}

static struct end *other(const struct end *end)
{
	return end == &ends[0] ? &ends[1] : &ends[0];
}

/* ---- what the code under test calls --------------------------------------------------------- */

void __wrap_mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame,
			   enum mesh_frame_type type);
int __wrap_mesh_peer_greeting_send(struct mesh_peer *peer, uint32_t id, uint32_t token,
				   uint32_t round);
void __wrap_mesh_engine_timer_set(struct mesh_engine *engine, struct mesh_timer *timer,
				  uint64_t due_ms);
void __wrap_mesh_engine_timer_cancel(struct mesh_engine *engine, struct mesh_timer *timer);

void __wrap_mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame,
			   enum mesh_frame_type type)
{
	struct end *end = end_of(peer);

	assert_int_equal(type, MESH_FRAME_PARK);
	assert_true(end->num_frames < ITEMS);
	mesh_frame_finish(frame, type);
	end->frames[(end->first_frame + end->num_frames++) % ITEMS] = *frame;
	end->frames_sent++;
}

int __wrap_mesh_peer_greeting_send(struct mesh_peer *peer, uint32_t id, uint32_t token,
				   uint32_t round)
{
	struct end *end = end_of(peer);

	if (end->no_buffer)
		return -EAGAIN;
	assert_true(end->num_items < ITEMS);
	end->items[(end->first_item + end->num_items++) % ITEMS] =
		(struct item){.id = id, .token = token, .round = round};
	return 0;
}

void __wrap_mesh_engine_timer_set(struct mesh_engine *engine, struct mesh_timer *timer,
				  uint64_t due_ms)
{
	(void)timer;
	(void)due_ms;
	end_of(&(mesh_container_of(engine, struct end, process.engine)->peer))->timer_set = true;
}

void __wrap_mesh_engine_timer_cancel(struct mesh_engine *engine, struct mesh_timer *timer)
{
	(void)timer;
	mesh_container_of(engine, struct end, process.engine)->timer_set = false;
}

/* ---- users, as paths behave ----------------------------------------------------------------- */

static bool carries(const struct user *user)
{
	return user->alone || user->park == MESH_PARK_NONE;
}

static void user_learn(struct user *user)
{
	user->unflushed |= carries(user);
}

static void user_park(struct mesh_peer_user *of, enum mesh_park_state state)
{
	struct user *user = mesh_container_of(of, struct user, user);

	user->park = state;
	if (state == MESH_PARK_FLUSHED && !carries(user) && !user->unfinished)
		user->unflushed = false;
	user_learn(user);
}

static bool user_is_idle(struct mesh_peer_user *of)
{
	const struct user *user = mesh_container_of(of, struct user, user);

	return !carries(user) && !user->unfinished &&
	       (user->park != MESH_PARK_DRAINED || !user->unflushed);
}

static const struct mesh_peer_user_ops ops = {.park = user_park, .is_idle = user_is_idle};

/* ---- steps ---------------------------------------------------------------------------------- */

static void post(struct end *end)
{
	struct user *user = &end->users[roll(USERS)];

	if (!carries(user) || end->num_items > ITEMS / 2)
		return;
	end->items[(end->first_item + end->num_items++) % ITEMS] = (struct item){.user = user};
	user->unfinished++;
}

/*
 * The oldest item arrives. A completion may come before that (an injected message has none), so
 * what is in flight is not what the user knows of it.
 */
static void item_arrives(struct end *from)
{
	struct mesh_message_header header = {.type = from->peer.incoming ? MESH_MESSAGE_GREET_REPLY
									 : MESH_MESSAGE_GREET};
	struct end *to = other(from);
	struct item item;

	if (!from->num_items)
		return;
	item = from->items[from->first_item];
	from->first_item = (from->first_item + 1) % ITEMS;
	from->num_items--;
	if (item.user)
		return;
	header.comm = item.id;
	header.token = item.token;
	header.seq = item.round;
	mesh_domain_lock(&to->domain);
	mesh_sink_message(&to->domain, &header, NULL);
	mesh_domain_unlock(&to->domain);
}

static void completion(struct end *end)
{
	struct user *user = &end->users[roll(USERS)];

	if (user->unfinished)
		user->unfinished--;
}

static void frame_arrives(struct end *from)
{
	struct mesh_frame frame;

	if (!from->num_frames)
		return;
	frame = from->frames[from->first_frame];
	from->first_frame = (from->first_frame + 1) % ITEMS;
	from->num_frames--;
	mesh_peer_park_came(&other(from)->peer, &frame.park);
}

static void timer_runs(struct end *end)
{
	if (!end->timer_set)
		return;
	end->timer_set = false;
	end->peer.park.timer.expired(&end->peer.park.timer, 0);
}

static void alone_set(struct user *user, bool alone)
{
	user->alone = alone;
	user_learn(user);
}

static void wish(struct end *end, bool wanted)
{
	end->wanted = wanted;
	mesh_peer_park(&end->peer, wanted);
}

/* Where an end believes that a user's link is drained, nothing of that user is on the way. */
static void belief_check(const struct end *end)
{
	int i, k;

	for (i = 0; i < USERS; i++) {
		const struct user *user = &end->users[i];

		if (user->park != MESH_PARK_DRAINED || user->unflushed)
			continue;
		assert_int_equal(user->unfinished, 0);
		for (k = 0; k < end->num_items; k++)
			assert_ptr_not_equal(end->items[(end->first_item + k) % ITEMS].user, user);
	}
}

/* The provider has lost a greeting, with its connection, and reports that. */
static void greeting_fails(struct end *from)
{
	if (!from->num_items || from->items[from->first_item].user)
		return;
	if (roll(2)) { /* it may have arrived all the same */
		item_arrives(from);
	} else {
		from->first_item = (from->first_item + 1) % ITEMS;
		from->num_items--;
	}
	atomic_store(&from->peer.greet_error, -ECONNRESET);
}

static void step(struct end *end)
{
	switch (roll(12)) {
	case 0:
		if (!roll(4))
			wish(end, roll(2));
		break;
	case 1:
		alone_set(&end->users[roll(USERS)], !roll(8));
		break;
	case 2:
		end->no_buffer = !roll(4);
		if (!roll(8))
			greeting_fails(end);
		break;
	case 3:
	case 4:
		frame_arrives(end);
		break;
	case 5:
	case 6:
		item_arrives(end);
		break;
	case 7:
	case 8:
		completion(end);
		break;
	case 9:
		timer_runs(end);
		break;
	default:
		post(end);
	}
	belief_check(&ends[0]);
	belief_check(&ends[1]);
}

/* Until nothing is on the way. */
static void settle(void)
{
	int i, k;

	for (k = 0; k < 200; k++) {
		for (i = 0; i < 2; i++) {
			ends[i].no_buffer = false;
			while (ends[i].num_frames)
				frame_arrives(&ends[i]);
			while (ends[i].num_items)
				item_arrives(&ends[i]);
			ends[i].users[0].unfinished = ends[i].users[1].unfinished =
				ends[i].users[2].unfinished = 0;
			timer_runs(&ends[i]);
			belief_check(&ends[i]);
		}
	}
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void end_open(struct end *end, bool incoming)
{
	int i;

	memset(end, 0, sizeof(*end));
	mesh_lock_init(&end->process.lock);
	mesh_lock_init(&end->domain.lock);
	end->process.events = &events;
	end->process.counters = &end->process.own_counters;
	end->process.engine.wake_fd = -1;
	strcpy(end->nic.netdev, "eth7");
	end->domain.nic = &end->nic;
	end->peer.process = &end->process;
	end->peer.domain = &end->domain;
	end->peer.incoming = incoming;
	end->peer.state = MESH_PEER_UP;
	mesh_peer_park_init(&end->peer);
	for (i = 0; i < USERS; i++) {
		end->users[i].user.ops = &ops;
		LIST_INSERT_HEAD(&end->peer.user_list, &end->users[i].user, entry);
		user_learn(&end->users[i]);
	}
	mesh_lock_take(&end->process.lock);
}

static void end_close(struct end *end)
{
	mesh_peer_park_end(&end->peer);
	assert_false(end->timer_set);
	mesh_lock_release(&end->process.lock);
	mesh_lock_destroy(&end->process.lock);
	mesh_lock_destroy(&end->domain.lock);
}

static int setup(void **state)
{
	(void)state;
	ends = calloc(2, sizeof(*ends));
	assert_non_null(ends);
	end_open(&ends[0], false);
	end_open(&ends[1], true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	end_close(&ends[0]);
	end_close(&ends[1]);
	free(ends);
	return 0;
}

static void both_are(enum mesh_park_state state)
{
	assert_int_equal(ends[0].peer.park.state, state);
	assert_int_equal(ends[1].peer.park.state, state);
}

static void none_is_drained(void)
{
	assert_int_not_equal(ends[0].peer.park.state, MESH_PARK_DRAINED);
	assert_int_not_equal(ends[1].peer.park.state, MESH_PARK_DRAINED);
}

/* Either end may want it; the link is used again when neither does. */
static void test_drained_and_used_again(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		post(&ends[0]);
		post(&ends[1]);
		wish(&ends[i], true);
		assert_int_equal(ends[i].peer.park.state, MESH_PARK_ASKED);
		settle();
		both_are(MESH_PARK_DRAINED);
		wish(&ends[1 - i], true);
		settle();
		wish(&ends[i], false);
		settle();
		both_are(MESH_PARK_DRAINED);
		wish(&ends[1 - i], false);
		settle();
		both_are(MESH_PARK_NONE);
		assert_false(ends[0].timer_set || ends[1].timer_set);
	}
}

/* Neither end goes on while something of a user is in flight. */
static void test_in_flight(void **state)
{
	int i, k;

	(void)state;
	for (i = 0; i < 2; i++) {
		ends[i].users[1].unfinished = 1;
		wish(&ends[0], true);
		for (k = 0; k < 20; k++) {
			frame_arrives(&ends[k % 2]);
			item_arrives(&ends[k % 2]);
			timer_runs(&ends[k % 2]);
		}
		assert_int_equal(ends[i].peer.park.state, MESH_PARK_ASKED);
		settle();
		both_are(MESH_PARK_DRAINED);
		wish(&ends[0], false);
		settle();
	}
}

/* A user without another path keeps the link in use; later it leaves, and comes back. */
static void test_the_only_path(void **state)
{
	(void)state;
	alone_set(&ends[1].users[1], true);
	wish(&ends[0], true);
	settle();
	none_is_drained();
	alone_set(&ends[1].users[1], false);
	settle();
	both_are(MESH_PARK_DRAINED);
	assert_false(ends[1].users[1].unflushed);
	alone_set(&ends[1].users[1], true);
	settle();
	none_is_drained();
	alone_set(&ends[1].users[1], false);
	settle();
	both_are(MESH_PARK_DRAINED);
}

static void test_greeting_fails(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		wish(&ends[0], true);
		while (!ends[i].num_items) {
			frame_arrives(&ends[0]);
			frame_arrives(&ends[1]);
			item_arrives(&ends[1 - i]);
			timer_runs(&ends[0]);
			timer_runs(&ends[1]);
		}
		assert_int_equal(ends[i].peer.park.state, MESH_PARK_FLUSHED);
		greeting_fails(&ends[i]);
		settle();
		both_are(MESH_PARK_DRAINED);
		wish(&ends[0], false);
		settle();
		both_are(MESH_PARK_NONE);
	}
}

static void frames_arrive(struct end *from)
{
	while (from->num_frames)
		frame_arrives(from);
}

/*
 * A greeting comes when its end has used the link again: the other end, which wants the link out of
 * use as well, must not take it for one of the present round.
 */
static void test_old_greeting(void **state)
{
	struct end *a = &ends[0], *b = &ends[1];

	(void)state;
	wish(a, true);
	frames_arrive(a);
	frames_arrive(b);
	timer_runs(a);
	assert_int_equal(a->num_items, 1); /* the greeting */
	wish(b, true);
	wish(a, false);
	post(a);
	frames_arrive(b);
	assert_int_equal(a->peer.park.state, MESH_PARK_ASKED);
	frames_arrive(a);
	item_arrives(a);
	timer_runs(b);
	item_arrives(b);
	a->users[0].unfinished = a->users[1].unfinished = a->users[2].unfinished = 0;
	timer_runs(a);
	belief_check(a);
	settle();
	both_are(MESH_PARK_DRAINED);
}

/* PARK comes while the peer's greeting is still on its way here. */
static void test_before_the_greeting(void **state)
{
	(void)state;
	ends[0].peer.state = MESH_PEER_GREETING;
	wish(&ends[1], true);
	frame_arrives(&ends[1]);
	assert_int_equal(ends[0].peer.park.state, MESH_PARK_NONE);
	ends[0].peer.state = MESH_PEER_UP;
	mesh_peer_park_up(&ends[0].peer);
	settle();
	both_are(MESH_PARK_DRAINED);
}

/* A peer that is not up yet, and one that lies about where its sink is. */
static void test_lies(void **state)
{
	struct mesh_frame_park lie = {.peer_id = 1, .peer_token = 2, .wanted = 1};
	int i;

	(void)state;
	ends[1].peer.state = MESH_PEER_HELLO;
	mesh_peer_park_came(&ends[1].peer, &lie);
	assert_int_equal(ends[1].process.counters->refused, 1);
	assert_int_equal(ends[1].peer.park.state, MESH_PARK_NONE);
	ends[1].peer.state = MESH_PEER_UP;
	for (i = 0; i < 1000; i++) {
		lie.peer_id = (uint32_t)i;
		lie.wanted = i % 3 != 0;
		lie.drained = i % 2;
		ends[1].num_frames = ends[1].num_items = 0;
		mesh_peer_park_came(&ends[1].peer, &lie);
		timer_runs(&ends[1]);
		assert_int_not_equal(ends[1].peer.park.state, MESH_PARK_DRAINED);
	}
	assert_true(ends[1].frames_sent <= 1000); /* at most one for each of its own */
}

static void test_any_order(void **state)
{
	int episode, i;

	for (episode = 0; episode < EPISODES; episode++) {
		seed = (unsigned int)episode + 1;
		for (i = 0; i < STEPS; i++)
			step(&ends[roll(2)]);
		for (i = 0; i < USERS; i++) {
			alone_set(&ends[0].users[i], false);
			alone_set(&ends[1].users[i], false);
		}
		settle();
		if (ends[0].wanted || ends[1].wanted)
			both_are(MESH_PARK_DRAINED);
		else
			both_are(MESH_PARK_NONE);
		teardown(state);
		setup(state);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_drained_and_used_again),
		TEST(test_in_flight),
		TEST(test_the_only_path),
		TEST(test_greeting_fails),
		TEST(test_old_greeting),
		TEST(test_before_the_greeting),
		TEST(test_lies),
		TEST(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
