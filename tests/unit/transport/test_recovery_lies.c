/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_recovery_lies.c - a peer that lies while a comm of its is resumed: random RESUME and HAVE,
 * with wrong ids, paths and messages that do not exist, old rounds, and bitmaps that claim too
 * much. It harms its own messages at most: the comm goes on, no segment is written that was not in
 * doubt, no path is given up whose id it does not know, and the answers stay true.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "transport/frames.h"
#include "transport/recovery.h"
#include "transport/resend.h"
#include "wire/immediate.h"

#include "fake_clock.h"
#include "lies_fixture.h"

#define SEEDS 200
#define LIES 100
#define ROOM ((size_t)1 << 20)
#define SEGMENTS 4 /* of each message: two for each path */
#define GRANTED 3  /* messages */

/* All of it belongs to the seed that runs. */
static struct mesh_request *requests[GRANTED];
static uint32_t doubts[GRANTED]; /* bits: segments that may be written again */
static int writes_seen;
static bool named; /* a RESUME had the true id of the second path */
/* Of all seeds: the lies do what they are for. */
static int rewritten, fenced, answers;
static uint64_t refused;

static void run_begin(void **state, int seed, bool sending)
{
	int i;

	memset(doubts, 0, sizeof(doubts));
	writes_seen = 0;
	named = false;
	lies_begin(state, seed, sending);
	comm = fixture_comm_open(sending);
	for (i = 0; i < GRANTED; i++)
		requests[i] = fixture_post(comm, ROOM);
	fixture_sends_complete();
}

static void run_clean(void **state)
{
	refused += fixture.setup.process.own_counters.refused;
	lies_end(state);
}

/* The id of a path, or of no path. */
static uint32_t id_choose(void)
{
	return roll(4) ? comm->paths[0].sink.id : comm->paths[roll(2)].sink.id + roll(5);
}

/* ---- the sending end ----------------------------------------------------------------------- */

/* What is written again was in doubt, and is so no longer. */
static void writes_learn(void)
{
	struct mesh_immediate immediate;

	for (; writes_seen < fake.writes.num; writes_seen++) {
		immediate = mesh_immediate_decode(fake.writes.posts[writes_seen].data);
		assert_in_range(immediate.seq, 0, GRANTED - 1);
		assert_true(doubts[immediate.seq] >> immediate.segment & 1);
		doubts[immediate.seq] &= ~(1u << immediate.segment);
		rewritten++;
	}
	assert_int_equal(*comm_inside(comm).error, 0);
}

/* All that was posted over the second path fails with it, and the receiver is asked. */
static void second_fails(void)
{
	const struct fake_post *post;
	struct mesh_immediate immediate;

	for (; writes_seen < fake.writes.num; writes_seen++) {
		post = &fake.writes.posts[writes_seen];
		immediate = mesh_immediate_decode(post->data);
		if (immediate.comm == FIXTURE_REMOTE_ID) {
			fake_complete(post);
			continue;
		}
		fake_complete_error(post->context, FI_ECONNRESET);
		fake.completions[fake.completed - 1].domain = post->domain;
		doubts[immediate.seq] |= 1u << immediate.segment;
	}
	fixture.writes_completed = writes_seen;
	fixture_poll();
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comms_recover(&fixture.setup.process);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_sends_complete();
}

static void have_send(uint32_t id, const struct mesh_frame_have *have)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.have = *have;
	frame.have.to_comm = id;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_have_frame_handle(&fixture.peers[!roll(8)], &frame);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_sends_complete();
	writes_learn();
}

static void have_lie(void)
{
	struct mesh_frame_have have = {
		.seq = roll(GRANTED + 2) - 1,
		.round = roll(3) ? comm->send.round + roll(3) - 1 : roll(1u << 31),
		.complete = !roll(16),
	};
	size_t i;

	for (i = 0; i < sizeof(have.arrived) / sizeof(have.arrived[0]); i++)
		have.arrived[i] = (uint64_t)roll(1u << 31) << roll(34);
	have_send(id_choose(), &have);
}

static void test_have(void **state)
{
	struct mesh_frame_have nothing_arrived = {0};
	int seed, i, turn;

	rewritten = 0;
	refused = 0;
	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed, true);
		fixture_grant(comm, 0, GRANTED, ROOM);
		fixture_sends_complete();
		second_fails();
		for (i = 0; i < LIES; i++)
			have_lie();
		/* In the end the truth: all is done. */
		for (turn = 0; turn < 16; turn++) {
			for (i = 0; i < GRANTED; i++) {
				nothing_arrived.seq = (uint32_t)i;
				nothing_arrived.round = comm->send.round;
				have_send(comm->paths[0].sink.id, &nothing_arrived);
			}
			fixture_writes_complete(fake.writes.num - fixture.writes_completed);
		}
		for (i = 0; i < GRANTED; i++)
			assert_true(fixture_is_done(requests[i]));
		run_clean(state);
	}
	assert_true(rewritten > SEEDS);
	assert_true(refused > SEEDS);
}

/* Nothing was lost, and nothing was asked: whatever HAVE claims, nothing is written again. */
static void test_have_unasked(void **state)
{
	int seed, i;

	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed, true);
		fixture_grant(comm, 0, GRANTED, ROOM);
		fixture_sends_complete();
		mesh_lock_take(&comm->lock);
		assert_false(mesh_send_is_in_doubt(comm));
		mesh_lock_release(&comm->lock);
		writes_seen = fake.writes.num;
		assert_true(writes_seen > 0);
		for (i = 0; i < LIES; i++)
			have_lie();
		for (i = 0; i < GRANTED; i++)
			assert_false(fixture_is_done(requests[i]));
		while (fixture.writes_completed < fake.writes.num)
			fixture_writes_complete(fake.writes.num - fixture.writes_completed);
		for (i = 0; i < GRANTED; i++)
			assert_true(fixture_is_done(requests[i]));
		run_clean(state);
	}
}

/* ---- the receiving end --------------------------------------------------------------------- */

/* Message 0 has half of its segments, message 1 all, message 2 none. */
static void some_arrive(void)
{
	struct mesh_immediate immediate = {.size = ROOM};

	for (; immediate.seq < 2; immediate.seq++) {
		for (immediate.segment = 0; immediate.segment < 2 + 2 * immediate.seq;
		     immediate.segment++) {
			immediate.last = immediate.segment == SEGMENTS - 1;
			fixture_written(comm, immediate.segment % 2, immediate);
		}
	}
	assert_true(fixture_is_done(requests[1]));
}

static void have_check(const struct mesh_frame_have *have, const struct mesh_frame_resume *resume)
{
	size_t i;

	answers++;
	assert_int_equal(have->to_comm, FIXTURE_REMOTE_ID);
	assert_int_equal(have->seq, resume->seq);
	assert_int_equal(have->round, resume->round);
	assert_int_equal(have->complete, have->seq == 1);
	for (i = 0; i < sizeof(have->arrived) / sizeof(have->arrived[0]); i++)
		assert_int_equal(have->arrived[i], !i && !have->seq ? 3 : 0);
}

/* One answer at most; the loss of a link is announced once. */
static void answers_read(const struct mesh_frame_resume *resume)
{
	uint8_t bytes[4096];
	ssize_t n = recv(fixture.frames, bytes, sizeof(bytes), MSG_DONTWAIT), at = 0;
	struct mesh_frame frame;
	int size, haves = 0;

	for (; at < n; at += size) {
		size = mesh_frame_decode(bytes + at, (size_t)(n - at), &frame);
		assert_true(size > 0);
		if (frame.header.type == MESH_FRAME_HAVE) {
			have_check(&frame.have, resume);
			haves++;
			continue;
		}
		assert_int_equal(frame.header.type, MESH_FRAME_REFUSE);
	}
	assert_true(haves <= 1);
}

static void resume_lie(void)
{
	struct mesh_frame frame;
	size_t i;

	memset(&frame, 0, sizeof(frame));
	frame.resume.to_comm = id_choose();
	frame.resume.seq = roll(GRANTED + 2);
	frame.resume.round = roll(1u << 31);
	frame.resume.dead = roll(4) ? roll(4) : roll(1u << 31);
	for (i = 0; i < sizeof(frame.resume.ids) / sizeof(frame.resume.ids[0]); i++)
		frame.resume.ids[i] = comm->paths[i % 2].sink.id + 1 + roll(1u << 20);
	if (!roll(50) && frame.resume.to_comm == comm->paths[0].sink.id) {
		frame.resume.ids[1] = comm->paths[1].sink.id;
		named |= frame.resume.dead >> 1 & 1;
	}
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_resume_frame_handle(&fixture.peers[0], &frame);
	mesh_lock_release(&fixture.setup.process.lock);
	answers_read(&frame.resume);
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
	assert_int_equal(comm->paths[1].state, named ? MESH_PATH_DOWN : MESH_PATH_UP);
}

/* The rest arrives over the first path. */
static void rest_arrives(void)
{
	struct mesh_immediate immediate = {.size = ROOM};

	for (immediate.segment = 0; immediate.segment < SEGMENTS; immediate.segment++) {
		immediate.last = immediate.segment == SEGMENTS - 1;
		immediate.seq = 2;
		fixture_written(comm, 0, immediate);
		immediate.seq = 0;
		fixture_written(comm, 0, immediate); /* half of it for the second time */
	}
	assert_int_equal(fixture_test(requests[0]), ROOM);
	assert_int_equal(fixture_test(requests[2]), ROOM);
}

static void test_resume(void **state)
{
	int seed, i;

	answers = 0;
	fenced = 0;
	refused = 0;
	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed, false);
		some_arrive();
		for (i = 0; i < LIES; i++)
			resume_lie();
		fenced += named;
		rest_arrives();
		run_clean(state);
	}
	assert_true(answers > SEEDS);
	assert_true(fenced > SEEDS / 4);
	assert_true(refused > SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_have),
		cmocka_unit_test(test_have_unasked),
		cmocka_unit_test(test_resume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
