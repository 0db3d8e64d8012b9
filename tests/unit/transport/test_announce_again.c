/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_announce_again.c - where messages announce the writes, a lost path may have dropped some of
 * them although the writes themselves have arrived: they are announced again over another path.
 */
#include <rdma/fi_errno.h>

#include "transport/comm_life.h"
#include "transport/resend.h"

#include "comm_fixture.h"

#define MESSAGE ((size_t)1 << 20)
#define SEGMENTS 4 /* of each: two for each path */
#define MANY 24	   /* messages: more announcements than a comm may have buffers */

TESTS_USE(fixture_setup, fixture_teardown);

static struct mesh_comm *comm;

static void open_sender(void)
{
	comm = fixture_open(MESH_PROVIDER_TCP_RXM, 2, true);
}

static struct mesh_request *large_post(void)
{
	struct mesh_request *request = fixture_post(comm, MESSAGE);

	fixture_poll();
	return request;
}

/* The second path is lost, with whatever its socket held. */
static void second_lose(void)
{
	mesh_lock_take(&comm->lock);
	mesh_path_suspect(&comm->paths[1], -ECONNRESET);
	mesh_send_repeat(comm);
	mesh_lock_release(&comm->lock);
	fixture_sends_complete();
}

/* One write of the message is left, over the first path. */
static struct fake_post *all_but_one_complete(void)
{
	struct fake_post *left = NULL;

	for (int i = 0; i < fake.writes.num; i++) {
		if (!left && fake.writes.posts[i].address < FIXTURE_ADDRESS(1u))
			left = &fake.writes.posts[i];
		else
			fake_complete(&fake.writes.posts[i]);
	}
	assert_non_null(left);
	fixture_sends_complete();
	return left;
}

/* The last announcements are those of message @seq, in order, over the first path. */
static void assert_announced(uint32_t seq)
{
	const struct mesh_message_header *header;
	struct mesh_message_written written;
	const struct fake_post *post;

	for (uint32_t i = 0; i < SEGMENTS; i++) {
		post = &fake.sends.posts[fake.sends.num - SEGMENTS + (int)i];
		header = (const struct mesh_message_header *)(const void *)post->bytes;
		assert_int_equal(header->type, MESH_MESSAGE_WRITTEN);
		assert_int_equal(header->comm, FIXTURE_REMOTE_ID);
		assert_int_equal(header->token, FIXTURE_REMOTE_TOKEN);
		assert_int_equal(header->seq, seq);
		assert_int_equal(header->size, MESSAGE);
		memcpy(&written, post->bytes + sizeof(*header), sizeof(written));
		assert_int_equal(written.segment, i);
		assert_int_equal(written.num_segments, SEGMENTS);
	}
}

TEST(complete)
{
	struct mesh_request *request;

	open_sender();
	request = large_post();
	fixture_grant(comm, 0, 1, MESSAGE);
	fixture_sends_complete();
	fixture_writes_complete(SEGMENTS);
	assert_true(fixture_is_done(request));
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), SEGMENTS);
	second_lose();
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 2 * SEGMENTS);
	assert_announced(0);
	/* A sender that closes now may have to wait for a path. */
	mesh_lock_take(&comm->lock);
	assert_true(mesh_copies_may_be_lost(comm));
	mesh_lock_release(&comm->lock);
	/* The receiver could post so many only because it has this one. */
	fixture_message(comm, 0, MESH_MESSAGE_POSTED, MESH_COMM_REQUESTS + 1, NULL, 0);
	mesh_lock_take(&comm->lock);
	mesh_send_repeat(comm);
	assert_false(mesh_copies_may_be_lost(comm));
	mesh_lock_release(&comm->lock);
	fixture_sends_complete();
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 2 * SEGMENTS);
}

/* A write that is in flight is not announced before it has arrived; then all of them are. */
TEST(open)
{
	struct mesh_request *request;
	struct fake_post *left;

	open_sender();
	request = large_post();
	fixture_grant(comm, 0, 1, MESSAGE);
	left = all_but_one_complete();
	assert_false(fixture_is_done(request));
	second_lose();
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), SEGMENTS);
	fake_complete(left);
	fixture_sends_complete();
	assert_true(fixture_is_done(request));
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 2 * SEGMENTS);
	assert_announced(0);
	/* Once is enough. */
	request = large_post();
	fixture_grant(comm, 1, 1, MESSAGE);
	fixture_sends_complete();
	fixture.writes_completed = SEGMENTS;
	fixture_writes_complete(SEGMENTS);
	assert_true(fixture_is_done(request));
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 3 * SEGMENTS);
}

/* More than there are buffers for, or than the provider accepts. */
TEST(many)
{
	struct mesh_request *requests[MANY];

	open_sender();
	for (int i = 0; i < MANY; i++) {
		requests[i] = large_post();
		fixture_grant(comm, (uint32_t)i, 1, MESSAGE);
		fixture_sends_complete();
		fixture_writes_complete(fake.writes.num - fixture.writes_completed);
		assert_true(fixture_is_done(requests[i]));
	}
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), MANY * SEGMENTS);
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	second_lose();
	assert_int_equal(fixture_sent(MESH_MESSAGE_WRITTEN), 2 * MANY * SEGMENTS);
	assert_announced(MANY - 1);
}

/* The provider accepts a write and not its announcement, and the write fails. */
TEST(write_alone)
{
	struct mesh_request *request;

	open_sender();
	request = large_post();
	fake_fail(FAKE_SEND, 0, SEGMENTS, -FI_EAGAIN);
	fixture_grant(comm, 0, 1, MESSAGE);
	fixture_sends_complete();
	assert_true(request->send.unfinished > 0);
	for (int i = 0; i < fake.writes.num; i++) {
		fake_complete_error(fake.writes.posts[i].context, FI_ECONNRESET);
		fake.completions[fake.completed - 1].domain = fake.writes.posts[i].domain;
	}
	fixture_sends_complete();
	/* Now the receiver can be asked. */
	assert_int_equal(request->send.unfinished, 0);
	assert_int_equal(request->send.num_lost, fake.writes.num);
	assert_int_equal(comm->unfinished, 0);
	assert_int_equal(*comm_inside(comm).error, 0);
}
