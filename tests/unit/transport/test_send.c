/* SPDX-License-Identifier: Apache-2.0 */
/* test_send.c - what a sending comm posts, on which path, and what becomes of it. */
#include <sys/mman.h>

#include <rdma/fi_errno.h>

#include "fabric/mr.h"
#include "transport/comm_life.h"

#include "comm_fixture.h"
#include "fake_clock.h"
#include "log_capture.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SMALL ((size_t)64)
#define LARGE (64 * KIB)

TESTS_USE(fixture_setup, fixture_teardown);

static struct mesh_comm *comm;

static int path_of(const struct fake_post *write)
{
	return (int)(write->to - FAKE_ADDR_FIRST);
}

/* ---- segments ------------------------------------------------------------------------------ */

/* The writes since @first are the whole message, in segments of @segment, each to where it goes. */
static void message_check(const char *data, int first, size_t size, size_t segment)
{
	size_t offset = 0, left;

	for (int i = first; i < fake.writes.num; i++) {
		const struct fake_post *write = &fake.writes.posts[i];
		struct mesh_immediate immediate = mesh_immediate_decode(write->data);
		int path = path_of(write);

		left = size - offset;
		assert_ptr_equal(write->buffer, data + offset);
		assert_int_equal(write->size, left < segment ? left : segment);
		assert_true(write->address == FIXTURE_ADDRESS((unsigned int)path) + offset);
		assert_true(write->key == FIXTURE_KEY((unsigned int)path));
		assert_int_equal(immediate.comm, FIXTURE_REMOTE_ID + path);
		assert_int_equal(immediate.segment, i - first);
		assert_int_equal(immediate.last, offset + write->size == size);
		assert_int_equal(immediate.size, size);
		offset += write->size;
	}
	assert_int_equal(offset, size);
}

/* One message over @num_paths of NCCL's size; its memory is only read. */
static void segments_are(int num_paths, size_t size, size_t segment)
{
	struct mesh_request *request;
	char *data =
		mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(data != MAP_FAILED);
	fixture_setup();
	fake.writes_end_with = -1;
	comm = fixture_open(MESH_PROVIDER_TCP, num_paths, true);
	assert_int_equal(
		mesh_comm_send(comm, data, size, fixture_register(comm, data, size), &request), 0);
	fixture_grant(comm, 0, 1, size);
	fixture_poll();
	assert_true(fake.writes.num <= (int)MESH_SEGMENTS_MAX);
	message_check(data, 0, size, segment);
	fixture.acked = MESH_ACKED(1); /* a short one over one path waits for that */
	fixture_message(comm, 0, MESH_MESSAGE_POSTED, 1, NULL, 0);
	assert_true(fixture_is_done(request));
	fixture_teardown();
	munmap(data, size);
}

TEST_BARE(segment_sizes)
{
	segments_are(1, 2 * KIB, 2 * KIB);
	segments_are(1, 9 * MIB + 5, MIB); /* on tcp; on verbs as configured */
	/* Two for each path, within 64 and 512 KiB, and whole lines. */
	segments_are(2, 100000, 64 * KIB);
	segments_are(2, 1 * MIB, 256 * KIB);
	segments_are(2, 4 * 100 * KIB + 4, 100 * KIB + 128);
	segments_are(2, 8 * MIB, 512 * KIB);
	/* As many as an immediate can number, and not one more. */
	segments_are(2, (size_t)600000001, 585984);
	segments_are(2, MESH_MESSAGE_MAX, 1 * MIB);
}

/* A path that joins in mid-message does not move the segments that are still to come. */
TEST(segments_stay)
{
	const struct mesh_comm_wish wish = {
		.num_paths = 2,
		.key = 1,
		.handle = &fixture_handle,
	};

	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	process_take();
	assert_int_equal(mesh_comm_open(&fixture.net, &fixture.peers[0], &wish, &comm), 0);
	fixture_accept(&comm->paths[0], FIXTURE_REMOTE_ID, FIXTURE_REMOTE_TOKEN);
	process_release();
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
	fixture_post(comm, 3 * MIB);
	fixture_grant(comm, 0, 1, 3 * MIB);
	assert_int_equal(fake.writes.num, 1); /* the second one waits for the next poll */
	process_take();
	assert_int_equal(mesh_comm_path_add(comm, &fixture.peers[1], false), 0);
	fixture_accept(&comm->paths[1], FIXTURE_REMOTE_ID + 1, FIXTURE_REMOTE_TOKEN + 1);
	assert_int_equal(mesh_comm_path_add(comm, &fixture.peers[0], false), -ENOSPC);
	process_release();
	fixture_writes_complete(1);
	fixture_poll();
	assert_int_equal(fake.writes.num, 3);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(fake.writes.posts[i].buffer, fixture_memory + (size_t)i * MIB);
		assert_int_equal(fake.writes.posts[i].size, MIB);
	}
	fixture_writes_complete(2);
}

/* Each path has its own registration, and counts what it carried. */
TEST(two_paths)
{
	uint64_t bytes[2] = {0}, segments[2] = {0};

	fake.mr_mode |= FI_MR_LOCAL;
	fake.writes_end_with = -1;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	fixture_post(comm, MIB);
	fixture_grant(comm, 0, 1, MIB + 1);
	fixture_poll();
	message_check(fixture_memory, 0, MIB, 256 * KIB);
	for (int i = 0; i < fake.writes.num; i++) {
		const struct fake_post *write = &fake.writes.posts[i];

		bytes[path_of(write)] += write->size;
		segments[path_of(write)]++;
		assert_true(write->flags & FI_DELIVERY_COMPLETE);
		assert_ptr_equal(write->desc,
				 mesh_mr_desc(fixture_registration(comm)->mrs[path_of(write)]));
	}
	for (int i = 0; i < 2; i++) {
		assert_true(bytes[i] >= 256 * KIB);
		assert_int_equal(comm_path(comm, i).counters->bytes, bytes[i]);
		assert_int_equal(comm_path(comm, i).counters->segments, segments[i]);
		assert_int_equal(comm_path(comm, i).counters->errors +
					 comm_path(comm, i).counters->busy +
					 comm_path(comm, i).counters->small,
				 0);
	}
	assert_int_equal(
		comm_path(comm, 0).counters->messages + comm_path(comm, 1).counters->messages, 1);
	assert_int_equal(*comm_inside(comm).writes_started, fake.writes.num);
}

/* One path needs no acknowledgement for each write. */
TEST(one_path_completes_plainly)
{
	fake.writes_end_with = -1;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(fake.writes.num, 1);
	assert_false(fake.writes.posts[0].flags & FI_DELIVERY_COMPLETE);
}

/* Small messages and segments that make no difference take turns. */
TEST(paths_take_turns)
{
	int i, used[2] = {0};

	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	for (i = 0; i < 8; i++) {
		fixture_post(comm, SMALL);
		used[fake.sends.posts[i].to - FAKE_ADDR_FIRST]++;
	}
	assert_int_equal(used[0], 4);
	assert_int_equal(used[1], 4);
	assert_int_equal(comm_path(comm, 0).counters->small, 4);
	assert_int_equal(comm_path(comm, 0).counters->messages, 4);
	assert_int_equal(comm_path(comm, 1).counters->bytes, 4 * SMALL);
}

static struct mesh_pace *pace(int path)
{
	return &comm_path(comm, path).flow->pace;
}

/* Small and control messages take the shorter path, and long ones both. */
TEST(short_path)
{
	int i, used[2] = {0};

	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	mesh_pace_latency_set(pace(0), 200000);
	mesh_pace_latency_set(pace(1), 2000);
	for (i = 0; i < 8; i++)
		fixture_post(comm, SMALL);
	fixture_post(comm, 8 * MIB);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 1);
	for (i = 0; i < fake.sends.num; i++)
		assert_int_equal(path_of(&fake.sends.posts[i]), 1);
	fake.writes_end_with = -1;
	fixture_grant(comm, 8, 1, 8 * MIB);
	fixture_poll();
	for (i = 0; i < fake.writes.num; i++)
		used[path_of(&fake.writes.posts[i])]++;
	assert_true(used[0] > 0);
	assert_true(used[1] > 0);
}

/* ---- what the provider does ------------------------------------------------------------------ */

static void polls(int count)
{
	for (; count; count--) {
		for (int i = 0; i < fixture.num_paths; i++)
			mesh_domain_poll(fixture.domains[i]);
	}
}

/* A full flow accepts no more; small messages overtake, and each completion admits one. */
TEST(window_is_kept)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	fixture_post(comm, 8 * MIB);
	fixture_post(comm, 8 * MIB);
	fixture_grant(comm, 0, 2, 8 * MIB);
	polls(4); /* on tcp each of them lets some more be copied */
	assert_int_equal(fake.writes.num, 2 * MESH_PACE_WINDOW_MIN / (512 * KIB));
	fixture_post(comm, SMALL);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 1);
	fixture_writes_complete(1);
	assert_int_equal(fake.writes.num, 2 * MESH_PACE_WINDOW_MIN / (512 * KIB) + 1);
	fake.writes_end_with = -1;
	fixture_writes_complete(8);
	while (fake.writes.num < 32)
		fixture_poll();
	message_check(fixture_memory, 16, 8 * MIB, 512 * KIB);
}

/* Posts @count messages of @size on @sender, and grants them. */
static void granted_post(struct mesh_comm *sender, struct mesh_registration *to, int count,
			 size_t size)
{
	struct mesh_request *request;

	for (int i = 0; i < count; i++)
		assert_int_equal(mesh_comm_send(sender, fixture_memory, size, to, &request), 0);
	fixture_grant(sender, 0, count, size);
}

/* RDMA is fast without the cache: a late poll must not leave the link idle. */
TEST(four_segments_in_flight)
{
	comm = fixture_open(MESH_PROVIDER_VERBS_RXM, 1, true);
	granted_post(comm, fixture_registration(comm), 8, 4 * MIB);
	assert_int_equal(fake.writes.num, 4);
	for (int i = 1; i <= 4; i++) {
		fixture_writes_complete(1);
		assert_int_equal(fake.writes.num, 4 + i);
	}
	fixture_writes_complete(4);
}

/* Writes in flight of eight comms with eight messages of @size each. */
static int writes_of_eight(enum mesh_provider_id provider, size_t size)
{
	struct mesh_registration *registrations[8];
	struct mesh_comm *comms[8];
	int i, writes;

	fixture_setup();
	fixture_paths_open(provider, 1);
	for (i = 0; i < 8; i++) {
		comms[i] = fixture_comm_open(true);
		registrations[i] = fixture_register(comms[i], fixture_memory, FIXTURE_MEMORY);
		granted_post(comms[i], registrations[i], 8, size);
	}
	polls(4);
	writes = fake.writes.num;
	while (fixture.writes_completed < fake.writes.num)
		fixture_writes_complete(1);
	assert_int_equal(fake.writes.num, 64);
	fixture_teardown();
	return writes;
}

/* As many as their grants and the window allow, for all comms together. */
TEST_BARE(writes_of_eight_comms)
{
	assert_int_equal(writes_of_eight(MESH_PROVIDER_VERBS_RXM, 64 * KIB), 64);
	assert_int_equal(writes_of_eight(MESH_PROVIDER_VERBS_RXM, 256 * KIB), 64);
	assert_int_equal(writes_of_eight(MESH_PROVIDER_VERBS_RXM, 512 * KIB), 32);
	assert_int_equal(writes_of_eight(MESH_PROVIDER_TCP, 512 * KIB), 4);
}

/* A comm that is resumed does not send a short message ahead of a long one that waits for room. */
TEST(full_for_all_that_follow)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, 8 * MIB);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 2, 8 * MIB);
	polls(4);
	assert_int_equal(fake.writes.num, 2);
	fixture_writes_complete(1);
	assert_int_equal(fake.writes.num, 3);
	assert_int_equal(mesh_immediate_decode(fake.writes.posts[2].data).seq, 0);
	fixture_writes_complete(2);
	fixture_peers_lose();
	mesh_comm_close(comm);
	fixture_writes_complete(fake.writes.num - fixture.writes_completed);
	fixture_left_free(comm);
}

/* What is posted behind a message that waits is not tried before that one goes on. */
TEST(behind_one_that_waits)
{
	uint64_t looks;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, 2 * MIB);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 8, 8 * MIB);
	polls(4);
	assert_int_equal(fake.writes.num, 2); /* the second one waits for room */
	looks = fake_clock_us;
	for (int i = 0; i < 6; i++)
		fixture_post(comm, LARGE);
	assert_int_equal(fake_clock_us, looks);
	fake.writes_end_with = -1;
	fixture_writes_complete(2);
	polls(4);
	assert_int_equal(fake.writes.num, 2 + 7);
	for (int i = 0; i < 7; i++)
		assert_int_equal(mesh_immediate_decode(fake.writes.posts[2 + i].data).seq, 1 + i);
}

/* After small messages it requests its grant at once, also behind one that waits. */
TEST(want_behind_one_that_waits)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, SMALL);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 1);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 1); /* that one was for all */
	fixture_post(comm, SMALL);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 2);
	fake.writes_end_with = -1;
	fixture_grant(comm, 1, 4, LARGE);
	fixture_poll();
	assert_int_equal(fake.writes.num, 3);
}

/*
 * The provider of tcp copies what is posted, and no other thread gets at it meanwhile. However much
 * eight comms have to send, they release it after a piece, and take turns.
 */
TEST(copies_in_pieces)
{
	struct mesh_registration *to;
	struct mesh_comm *comms[8];
	uint64_t bytes, before = 0;
	int i, k;

	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	fake.writes_end_with = -1;
	for (i = 0; i < 8; i++) {
		comms[i] = fixture_comm_open(true);
		to = fixture_register(comms[i], fixture_memory, FIXTURE_MEMORY);
		granted_post(comms[i], to, 1, 4 * MIB);
	}
	for (i = 0; fake.writes.num < 32; i++) {
		assert_true(i < 100);
		for (bytes = 0, k = 0; k < fake.writes.num; k++)
			bytes += fake.writes.posts[k].size;
		assert_true(bytes - before <= MIB);
		before = bytes;
		polls(1);
	}
	fixture_poll();
}

/* Where all paths are full, a completion on any of them lets the comm go on. */
TEST(waits_on_all_paths)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	fixture_post(comm, 8 * MIB);
	fixture_grant(comm, 0, 1, 8 * MIB);
	fixture_poll();
	for (int i = 0; i < 2; i++)
		assert_int_equal(comm_path(comm, i).flow->num_waiters, 1);
	fake.writes_end_with = -1;
	fixture_writes_complete(fake.writes.num);
}

/* What was not taken is tried again by the next poll, and nothing behind it before. */
TEST(busy_provider)
{
	struct mesh_request *request;

	fixture.setup.process.config.segment_bytes = LARGE;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	request = fixture_post(comm, 2 * LARGE);
	fixture_post(comm, LARGE);
	fake_fail(FAKE_WRITE, 1, 2, -FI_EAGAIN);
	fixture_grant(comm, 0, 2, 2 * LARGE);
	assert_int_equal(fake.on[FAKE_WRITE].calls, 2);
	assert_int_equal(fake.writes.num, 1);
	assert_int_equal(comm_path(comm, 0).counters->busy, 1);
	fixture_writes_complete(1); /* it was the only one in flight */
	assert_false(fixture_is_done(request));
	fixture_poll();
	assert_int_equal(fake.writes.num, 3);
	fixture_writes_complete(2);
	assert_true(fixture_is_done(request));
}

TEST(write_is_refused)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fake_fail(FAKE_WRITE, 0, 1, -FI_EIO);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(comm_path(comm, 0).state, MESH_PATH_SUSPECT);
}

/* A failed write may still arrive: the peer learns of it, and fences. */
TEST(write_fails)
{
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	request = fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	fake_complete_error(fake.writes.posts[0].context, FI_ECONNRESET);
	fixture_poll();
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(comm_path(comm, 0).state, MESH_PATH_SUSPECT);
	assert_int_equal(comm_path(comm, 0).counters->errors, 1);
	assert_false(fixture_is_done(request));
	fixture_comm_close(comm);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSE).close.unclean, 1);
}

TEST(message_fails)
{
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	fixture_post(comm, SMALL);
	request = fixture_post(comm, SMALL);
	fake_complete_error(fake.sends.posts[1].context, FI_EIO);
	fixture_poll();
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(comm_path(comm, path_of(&fake.sends.posts[1])).state, MESH_PATH_SUSPECT);
	assert_int_equal(comm_path(comm, path_of(&fake.sends.posts[0])).state, MESH_PATH_UP);
	assert_int_equal(comm_path(comm, path_of(&fake.sends.posts[1])).counters->errors, 1);
	assert_int_equal(comm_path(comm, path_of(&fake.sends.posts[0])).counters->errors, 0);
	assert_true(fixture_is_done(request)); /* there is a copy */
	fake_complete(&fake.sends.posts[0]);
	fixture_poll();
	fixture.sends_completed = 2;
}

/* A message that belongs to no request: WANT. */
TEST(want_fails)
{
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, SMALL);
	fixture_post(comm, LARGE);
	assert_int_equal(fixture_sent(MESH_MESSAGE_WANT), 1);
	fake_complete_error(fake.sends.posts[1].context, FI_EIO);
	fixture_poll();
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(comm_path(comm, 0).state, MESH_PATH_SUSPECT);
	fake_complete(&fake.sends.posts[0]);
	fixture_poll();
	fixture.sends_completed = 2;
}
