/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_futile.c - a link that small messages pass, and on which each large write fails: it comes
 * back each time, and is used ever more seldom. The provider is tcp, whose paths are told that
 * their completions are acknowledgements, as on verbs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"
#include "transport/rejoin_frames.h"

#include "comm_fixture.h"
#include "fake_clock.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)
#define PROCESS_ID 0x1234
#define OWN_ID 0x77
#define PORT 999
#define LIVES 12
#define FIRST_PAUSE_MS 250
#define LAST_PAUSE_MS 10000
#define MS_US 1000

static struct mesh_comm *comm;
static int judged; /* the index of the path whose link is judged */

/* Its peers, one after the other, and what they are sent. */
static struct mesh_peer lives[LIVES];
static int frames[LIVES], num_lives;
/* The other direction of the link: as it was lost, with a user that waits for it, and again. */
static struct mesh_peer other_lost, other_again;
static struct mesh_peer_user other_user;

static void sender_open(int num_paths)
{
	int i;

	fake_clock_us = 1000000 * MS_US; /* zero stands for "never" */
	fixture.setup.process.config.recovery = 1;
	fixture.setup.process.config.recovery_timeout_s = UINT32_MAX;
	fixture.setup.process.process_id = OWN_ID;
	fixture_paths_open(MESH_PROVIDER_TCP, num_paths);
	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < num_paths; i++)
		fixture_peer_enter(&fixture.peers[i], PROCESS_ID, PORT);
	mesh_lock_release(&fixture.setup.process.lock);
	comm = fixture_comm_open(true);
	for (i = 0; i < num_paths; i++)
		comm->paths[i].is_acknowledged = true;
	judged = num_paths - 1;
	num_lives = 0;
}

static int teardown(void **state)
{
	struct mesh_peer *attempt;
	int i;

	mesh_lock_init(&fixture.setup.process.lock); /* a test that failed may hold it */
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_rejoins_close(&fixture.setup.process);
	while ((attempt = LIST_FIRST(&fixture.setup.process.peers)))
		mesh_peer_free(attempt);
	for (i = 0; i < num_lives; i++) {
		mesh_peer_index_remove(&lives[i]);
		mesh_remote_close(lives[i].domain, lives[i].remote);
		if (lives[i].watch.fd >= 0)
			close(lives[i].watch.fd);
		close(frames[i]);
		free(lives[i].out);
	}
	memset(lives, 0, sizeof(lives));
	mesh_lock_release(&fixture.setup.process.lock);
	return fixture_teardown(state);
}

static void sender_close(void)
{
	int i;

	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < num_lives; i++)
		lives[i].state = MESH_PEER_LOST;
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_comm_close(comm);
}

static void timers_run(uint64_t after_ms)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_timers_run(&fixture.setup.process.engine.timers, mesh_clock_ms() + after_ms);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void recover(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The next frame to the last life, or to the first path's peer. Returns false if there is none. */
static bool frame_take(bool to_life, struct mesh_frame *frame, enum mesh_frame_type type)
{
	const int first = fixture.frames;
	bool there;

	if (to_life)
		fixture.frames = frames[num_lives - 1];
	there = !fixture_no_frame();
	if (there)
		*frame = fixture_frame(type);
	fixture.frames = first;
	return there;
}

/* The link works again: its process answers, and waits for JOIN. */
static void life_begin(void)
{
	const struct mesh_peer *first = &fixture.peers[judged];
	struct mesh_peer *life = &lives[num_lives];
	int ends[2];

	assert_true(num_lives < LIVES);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	memset(life, 0, sizeof(*life));
	life->process = first->process;
	life->domain = first->domain;
	life->address = first->address;
	life->state = MESH_PEER_UP;
	life->watch.fd = ends[0];
	frames[num_lives++] = ends[1];
	mesh_lock_take(&fixture.setup.process.lock);
	assert_int_equal(mesh_remote_open(life->domain, first->remote->name,
					  first->remote->name_len, &life->remote),
			 0);
	life->remote->flow->connected = true;
	fixture_peer_enter(life, PROCESS_ID, PORT);
	mesh_rejoin_peer_up(life);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The link works again in the other direction as well, a moment later. */
static void other_begin(void)
{
	const struct mesh_peer *life = &lives[num_lives - 1];
	struct mesh_peer *peers[] = {&other_lost, &other_again};
	int i;

	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < 2; i++) {
		memset(peers[i], 0, sizeof(*peers[i]));
		peers[i]->process = life->process;
		peers[i]->domain = life->domain;
		peers[i]->address = life->address;
		peers[i]->watch.fd = -1;
		fixture_peer_enter(peers[i], PROCESS_ID, PORT);
		peers[i]->incoming = true;
	}
	other_lost.state = MESH_PEER_LOST;
	LIST_INSERT_HEAD(&other_lost.user_list, &other_user, entry);
	other_again.state = MESH_PEER_UP;
	other_again.remote = life->remote;
	mesh_rejoin_peer_up(&other_again);
	for (i = 0; i < 2; i++)
		mesh_peer_index_remove(peers[i]);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The sender asks what is in doubt, if something is: nothing has arrived. */
static void question_answer(bool to_life)
{
	struct mesh_frame_have have = {0};
	struct mesh_frame frame;

	recover();
	if (!frame_take(to_life, &frame, MESH_FRAME_RESUME))
		return;
	have.seq = frame.resume.seq;
	have.round = frame.resume.round;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_have_came(comm, &have);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The peer accepts JOIN; the path is up. The message that was under way is sent again. */
static void life_join(const struct mesh_frame *join)
{
	const struct mesh_frame_accept accept = {
		.to_comm = join->connect.comm, .comm = 0xabc, .token = 0xdef};

	mesh_lock_take(&fixture.setup.process.lock);
	mesh_rejoin_peer_up(&lives[num_lives - 1]); /* it is the attempt by now */
	assert_true(mesh_rejoin_accepted(&lives[num_lives - 1], &accept));
	assert_int_equal(comm->paths[judged].state, MESH_PATH_UP);
	mesh_lock_release(&fixture.setup.process.lock);
	question_answer(true);
}

/* Every write of the judged link that is in flight fails; those of the other link are complete. */
static void writes_end(bool fail)
{
	const struct mesh_peer *peer = num_lives ? &lives[num_lives - 1] : &fixture.peers[judged];
	struct fake_post *post;

	fixture_sends_complete();
	assert_true(fixture.writes_completed < fake.writes.num);
	while (fixture.writes_completed < fake.writes.num) {
		post = &fake.writes.posts[fixture.writes_completed++];
		if (fail && post->to == peer->remote->fi_addr) {
			fake_complete_error(post->context, FI_EIO);
			fake.completions[fake.completed - 1].domain = post->domain;
		} else {
			fake_complete(post);
		}
	}
	fixture_poll();
	recover();
}

/* Until the pause is looked at, no millisecond passes. */
static void writes_fail(void)
{
	fake_clock_us = (fake_clock_us / MS_US + 1) * MS_US;
	assert_int_equal(comm->paths[judged].state, MESH_PATH_UP);
	writes_end(true);
	assert_int_equal(comm->paths[judged].state, MESH_PATH_DOWN);
}

/* How long the next attempt waits from the loss on, which was just now. Begins the next life. */
static uint64_t pause_ms(struct mesh_frame *join)
{
	uint64_t after_ms = FIRST_PAUSE_MS;

	fixture_sends_complete(); /* nothing else is in flight on the link */
	life_begin();
	timers_run(0);
	if (frame_take(true, join, MESH_FRAME_JOIN))
		return 0;
	for (; after_ms <= LAST_PAUSE_MS; after_ms *= 2) {
		timers_run(after_ms - 1);
		assert_false(frame_take(true, join, MESH_FRAME_JOIN));
		timers_run(after_ms);
		if (frame_take(true, join, MESH_FRAME_JOIN))
			return after_ms;
	}
	timers_run(LAST_PAUSE_MS - 1);
	assert_false(frame_take(true, join, MESH_FRAME_JOIN));
	timers_run(LAST_PAUSE_MS);
	assert_true(frame_take(true, join, MESH_FRAME_JOIN));
	return LAST_PAUSE_MS;
}

static void message_post(uint32_t seq)
{
	fixture_post(comm, ROOM);
	fixture_grant(comm, seq, 1, ROOM);
}

/* Without another path: the first attempts come at once, as if the cable had only flapped. */
static void test_only_path(void **state)
{
	static const uint64_t expected[] = {0, 0, 500, 1000, 2000, 4000, 8000, 10000, 10000};
	struct mesh_frame join;
	size_t i;

	(void)state;
	sender_open(1);
	message_post(0);
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		writes_fail();
		assert_int_equal(*comm_inside(comm).error, 0);
		assert_int_equal(pause_ms(&join), expected[i]);
		life_join(&join);
	}
	assert_true(log_captured(MESH_LOG_WARN, "is the MTU the same at both ends"));
	writes_end(false);
	assert_true(fixture_is_done(&comm->requests[0]));
	sender_close();
}

/* The same if both directions carry connections: the second one comes back a moment later. */
static void test_both_directions(void **state)
{
	static const uint64_t expected[] = {0, 0, 500, 1000, 2000};
	struct mesh_frame join;
	size_t i;

	(void)state;
	sender_open(1);
	message_post(0);
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		writes_fail();
		assert_int_equal(pause_ms(&join), expected[i]);
		life_join(&join);
		other_begin();
	}
	writes_end(false);
	assert_true(fixture_is_done(&comm->requests[0]));
	sender_close();
}

/* Each life lasts for @held_ms before there is a large message. */
static void other_path_fails(uint64_t held_ms)
{
	static const uint64_t expected[] = {0, 250, 500, 1000};
	struct mesh_frame join;
	uint32_t i;

	sender_open(2);
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		fake_clock_us += held_ms * MS_US;
		timers_run(0);
		message_post(i);
		writes_fail();
		assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
		question_answer(false);
		writes_end(true);
		assert_true(fixture_is_done(&comm->requests[i]));
		assert_int_equal(pause_ms(&join), expected[i]);
		life_join(&join);
	}
	assert_true(log_captured(MESH_LOG_WARN, "is the MTU the same at both ends"));
	sender_close();
}

/* With another one the message goes on there. */
static void test_other_path(void **state)
{
	(void)state;
	other_path_fails(0);
}

/* A link that holds while it has nothing to carry is not steady for that. */
static void test_messages_are_rare(void **state)
{
	(void)state;
	other_path_fails(100000);
}

/* A link that carries messages and fails at times is only unsteady. */
static void test_progress(void **state)
{
	struct mesh_frame join;
	uint32_t i;

	(void)state;
	sender_open(1);
	for (i = 0; i < 5; i++) {
		message_post(2 * i);
		writes_end(false);
		message_post(2 * i + 1);
		writes_fail();
		assert_int_equal(pause_ms(&join), 0);
		life_join(&join);
		writes_end(false);
	}
	assert_false(log_captured(MESH_LOG_WARN, "MTU"));
	sender_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_only_path),	      TEST(test_both_directions), TEST(test_other_path),
		TEST(test_messages_are_rare), TEST(test_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
