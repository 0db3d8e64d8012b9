/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cut_segment.c - segments that are longer than the memory of their circuit: they pass the
 * relays in pieces, of which the receiver learns the last one only, when it has all others.
 */
#include "fabric/mr.h"
#include "transport/recovery.h"
#include "transport/send.h"

#include "log_capture.h"

#define GRANULE 64 /* bytes: 4 KiB of memory */
#include "relays_fixture.h"

#define PIECE ((size_t)2048)
/* As it was agreed on with an earlier circuit: two pieces and a half. */
#define SEGMENT ((size_t)5120)
#define MORE ((size_t)100) /* of a second segment */
#define SIZE (SEGMENT + MORE)
/* Enough to see that nothing is posted. */
#define TURNS 4

static struct mesh_request *sent;

static int setup(void)
{
	int ret = fixture_setup();

	relayed_sender_open(1, 1);
	sent = fixture_post(comm, SIZE);
	return ret;
}

/* The message was cut for the earlier circuit, and goes on over this one. */
static void message_begin(void)
{
	comm->segment_bytes = SEGMENT;
	fixture_grant(comm, 0, 1, SIZE);
	assert_int_equal(fake.writes.num, 0);
	mesh_lock_take(&comm->lock);
	comm->segment_bytes = comm->paths[0].segment_bytes;
	mesh_send_push(comm);
	mesh_lock_release(&comm->lock);
}

static int teardown(void)
{
	relayed_close();
	return relays_close();
}

TESTS_USE(setup, teardown);

/* What was written last lies where it should; RELAYED says whether more follows. */
static void piece_check(int number, size_t offset, size_t size, uint32_t segment, bool more)
{
	const struct fake_post *write = &fake.writes.posts[number];
	const void *payload;
	struct mesh_message_relayed relayed;

	assert_int_equal(fake.writes.num, number + 1);
	fixture_last_sent(MESH_MESSAGE_RELAYED, &payload);
	memcpy(&relayed, payload, sizeof(relayed));
	assert_int_equal(write->address, opened.address + relayed.granule * GRANULE);
	assert_int_equal(relayed.address, FIXTURE_ADDRESS(0) + offset);
	assert_int_equal(relayed.key, FIXTURE_KEY(0));
	assert_int_equal(relayed.length, size);
	assert_int_equal(relayed.segment, segment);
	assert_int_equal(relayed.num_segments, 2);
	assert_int_equal(relayed.more, more);
	assert_true(relayed.full);
}

static void arrives(uint64_t granules)
{
	const struct mesh_message_arrived arrived = {.granules = granules};

	fixture_message(comm, 0, MESH_MESSAGE_ARRIVED, 0, &arrived, sizeof(arrived));
	fixture_poll();
}

/* The first piece was posted alone: the second one finds no buffer, or no room. */
TEST(pieces)
{
	message_begin();
	piece_check(1, PIECE, PIECE, 0, true);
	fixture_writes_complete(2);
	fixture_sends_complete();
	arrives(1); /* one of the two */
	assert_int_equal(fake.writes.num, 2);
	arrives((uint64_t)1 << 32);
	fixture_sends_complete();
	piece_check(2, 2 * PIECE, SEGMENT - 2 * PIECE, 0, false);
	assert_false(fixture_is_done(sent));
	fixture_writes_complete(1);
	fixture_sends_complete();
	assert_int_equal(fake.writes.num, 3); /* one segment is cut at a time */
	arrives(1);
	fixture_sends_complete();
	piece_check(3, SEGMENT, MORE, 1, false);
	fixture_writes_complete(1);
	fixture_sends_complete();
	assert_false(fixture_is_done(sent));
	arrives(1);
	assert_int_equal(fixture_test(sent), SIZE);
}

/* The provider takes nothing for a while: the next polls try again. */
TEST(busy)
{
	fake_fail(FAKE_WRITE, 1, TURNS, -FI_EAGAIN);
	message_begin();
	fixture_sends_complete();
	fixture_poll();
	assert_int_equal(fake.writes.num, 2);
	fixture_writes_complete(2);
	fixture_sends_complete();
	fake_fail(FAKE_WRITE, 0, TURNS, -FI_EAGAIN);
	arrives(1 | (uint64_t)1 << 32);
	fixture_sends_complete();
	piece_check(2, 2 * PIECE, SEGMENT - 2 * PIECE, 0, false);
	fixture_writes_complete(1);
	arrives(1);
	fixture_sends_complete();
	fixture_writes_complete(1);
	fixture_sends_complete();
	arrives(1);
	assert_int_equal(fixture_test(sent), SIZE);
}

/* A piece fails: the whole segment is in doubt, and nothing more of it is posted. */
TEST(piece_fails)
{
	message_begin();
	fixture_sends_complete();
	fake_complete_error(fake.writes.posts[1].context, FI_ECONNRESET);
	fixture_poll();
	assert_true(comm->paths[0].state != MESH_PATH_UP);
	assert_int_equal(comm->unfinished, 1);
	fake_complete(&fake.writes.posts[0]);
	fixture.writes_completed = 2;
	fixture_poll();
	process_take();
	mesh_comms_recover(&fixture.setup.process);
	process_release();
	assert_int_equal(comm->unfinished, 0);
	assert_int_equal(fake.writes.num, 2);
	assert_false(fixture_is_done(sent));
}

/* The circuit breaks while the last piece waits for the others. */
TEST(circuit_breaks)
{
	message_begin();
	fixture_writes_complete(2);
	fixture_sends_complete();
	arrives(1);
	circuit_comes(
		0, 0,
		(struct mesh_frame_circuit){.event = MESH_CIRCUIT_LOST, .lost = "b", .by = "p"});
	fixture_poll();
	assert_int_equal(comm->unfinished, 0);
	assert_int_equal(fake.writes.num, 2);
	assert_false(fixture_is_done(sent));
}
