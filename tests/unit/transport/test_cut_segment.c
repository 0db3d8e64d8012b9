/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cut_segment.c - segments that are longer than the memory of their circuit: they pass the
 * relays in pieces, of which the receiver learns the last one only, when it has all others.
 */
#include "fabric/mr.h"
#include "transport/data.h"
#include "transport/comm_life.h"

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

void tests_setup(void)
{
	fixture_setup();
	relayed_sender_open(1, 1);
	sent = fixture_post(comm, SIZE);
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

void tests_teardown(void)
{
	relayed_close();
	relays_close();
}

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

/* The piece that was written last arrives. */
static void piece_arrives(void)
{
	fixture_writes_complete(1);
	fixture_sends_complete();
	arrives(1);
	fixture_sends_complete();
}

/* One after the other. */
TEST(pieces)
{
	message_begin();
	piece_check(0, 0, PIECE, 0, true);
	fixture_writes_complete(1);
	fixture_sends_complete();
	assert_int_equal(fake.writes.num, 1);
	arrives(1);
	fixture_sends_complete();
	piece_check(1, PIECE, PIECE, 0, true);
	piece_arrives();
	piece_check(2, 2 * PIECE, SEGMENT - 2 * PIECE, 0, false);
	assert_false(fixture_is_done(sent));
	piece_arrives(); /* one segment is cut at a time */
	piece_check(3, SEGMENT, MORE, 1, false);
	assert_false(fixture_is_done(sent));
	piece_arrives();
	assert_int_equal(fixture_test(sent), SIZE);
}

/* The provider takes nothing for a while: the next polls try again. */
TEST(busy)
{
	message_begin();
	for (int i = 1; i <= 3; i++) {
		fake_fail(FAKE_WRITE, 0, TURNS, -FI_EAGAIN);
		piece_arrives();
		fixture_poll();
		assert_int_equal(fake.writes.num, i + 1);
	}
	piece_check(3, SEGMENT, MORE, 1, false);
	piece_arrives();
	assert_int_equal(fixture_test(sent), SIZE);
}

/* A piece fails: the whole segment is in doubt, and nothing more of it is posted. */
TEST(piece_fails)
{
	message_begin();
	fixture_sends_complete();
	fake_complete_error(fake.writes.posts[0].context, FI_ECONNRESET);
	fixture.writes_completed = 1;
	fixture_poll();
	assert_true(comm->paths[0].state != MESH_PATH_UP);
	process_take();
	mesh_comms_recover(&fixture.setup.process);
	process_release();
	assert_int_equal(comm->unfinished, 0);
	assert_int_equal(fake.writes.num, 1);
	assert_false(fixture_is_done(sent));
}

/* The circuit breaks while a piece has not arrived. */
TEST(circuit_breaks)
{
	message_begin();
	fixture_writes_complete(1);
	fixture_sends_complete();
	circuit_comes(
		0, 0,
		(struct mesh_frame_circuit){.event = MESH_CIRCUIT_LOST, .lost = "b", .by = "p"});
	fixture_poll();
	assert_int_equal(comm->unfinished, 0);
	assert_int_equal(fake.writes.num, 1);
	assert_false(fixture_is_done(sent));
}
