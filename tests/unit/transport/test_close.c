/* SPDX-License-Identifier: Apache-2.0 */
/* test_close.c - the end of a comm: what is sent, what is awaited, and which peer is fenced. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/peer_frames.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "setup/work.h"
#include "transport/answer.h"
#include "transport/comm_end.h"
#include "transport/linger.h"
#include "transport/registration.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define SMALL ((size_t)64)
#define LARGE ((size_t)64 << 10)

static struct mesh_comm *comm;

/* As the engine does it. */
static void asked_tick(uint64_t now_ms)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comms_asked_tick(&fixture.setup.process, now_ms);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* True if the engine polls without a pause, because a peer waits for our end. */
static bool engine_polls(void)
{
	int timeout;

	asked_tick(mesh_clock_ms());
	mesh_lock_take(&fixture.setup.process.lock);
	timeout = mesh_comms_asked_timeout(&fixture.setup.process, mesh_clock_ms());
	mesh_lock_release(&fixture.setup.process.lock);
	return !timeout;
}

static void tick(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_setup_work.tick(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* CLOSE or CLOSED came. */
static void peer_says(enum mesh_frame_type type, struct mesh_frame_closed frame)
{
	mesh_lock_take(&fixture.setup.process.lock);
	if (type == MESH_FRAME_CLOSE)
		mesh_comm_close_came(comm);
	else
		mesh_comm_closed_came(comm, &frame);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* Whether a peer was cut off; reads the log, and clears it. */
static bool was_cut_off(void)
{
	bool cut = log_captured_lines(MESH_LOG_INFO) &&
		   log_captured(MESH_LOG_INFO, "nothing late arrives");

	log_capture_start();
	return cut;
}

static void close_now(void)
{
	fixture_sends_complete();
	log_capture_start();
	mesh_comm_close(comm);
}

/* ---- we close -------------------------------------------------------------------------------- */

static void test_sender_reports_what_it_sent(void **state)
{
	struct mesh_frame frame;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, SMALL);
	fixture_post(comm, SMALL);
	fixture_post(comm, LARGE);
	fake.writes_end_with = -1;
	fixture_grant(comm, 2, 1, LARGE);
	fixture_poll();
	fixture_sends_complete();
	*comm_inside(comm).peer_end = MESH_END_CLOSED; /* the peer has sent CLOSED */
	close_now();
	frame = fixture_frame(MESH_FRAME_CLOSED);
	assert_int_equal(frame.to_comm, FIXTURE_REMOTE_ID);
	assert_int_equal(frame.closed.sent, 3);
	assert_int_equal(frame.closed.writes, 1);
	assert_int_equal(frame.closed.unclean, 0);
	assert_false(was_cut_off());
}

/* What ends in time is waited for. */
static void test_sender_waits_for_its_writes(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	*comm_inside(comm).peer_end = MESH_END_CLOSED; /* the peer has sent CLOSED */
	fake_complete(&fake.writes.posts[0]);	       /* for the next poll to find */
	mesh_comm_close(comm);
	fixture_frame(MESH_FRAME_CLOSE); /* at once: the peer's engine must poll for them */
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.unclean, 0);
	assert_false(was_cut_off());
}

/* Bytes may remain in the receiver's socket. */
static void test_sender_reports_what_did_not_end(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	fixture_sends_complete();
	fixture_peers_lose();
	log_capture_start();
	mesh_comm_close(comm);
	fixture_frame(MESH_FRAME_CLOSE);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.unclean, 1);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0); /* a lost peer is not waited for */
	assert_true(was_cut_off());
	fixture_writes_complete(1);
	fixture_left_free(comm);
}

/* A silent peer is waited for once, for all comms, from the first question on. */
static void test_silent_peer_is_remembered(void **state)
{
	uint64_t begin_ms;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	mesh_lock_take(&fixture.setup.process.lock);
	LIST_INSERT_HEAD(&fixture.setup.process.peers, &fixture.peers[0], entry);
	mesh_lock_release(&fixture.setup.process.lock);
	mesh_comm_close(comm);
	assert_true(fixture.peers[0].owes_ms);
	assert_true(log_captured(MESH_LOG_WARN, "did not answer the end of a connection"));
	log_capture_start();
	comm = fixture_comm_open(true);
	fixture.setup.process.config.dead_peer_timeout_s = 120;
	fixture.peers[0].owes_ms -= 120000;
	begin_ms = mesh_clock_ms();
	mesh_comm_close(comm);
	assert_true(mesh_clock_ms() - begin_ms < 60000);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	/* Until it answers, on any of its connections. */
	comm = fixture_comm_open(true);
	peer_says(MESH_FRAME_CLOSED, (struct mesh_frame_closed){0});
	assert_int_equal(fixture.peers[0].owes_ms, 0);
	mesh_comm_close(comm);
	assert_int_equal(fixture.peers[0].owes_ms, 0); /* nothing was to be answered */
}

/* What a process owes on one connection, it owes on the others; and so with its answers. */
static void test_one_process_has_one_engine(void **state)
{
	struct mesh_peer twin = {
		.process = &fixture.setup.process, .state = MESH_PEER_UP, .owes_ms = 1};
	uint64_t begin_ms = mesh_clock_ms();

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture.setup.process.config.dead_peer_timeout_s = 120;
	twin.owes_ms = begin_ms - 120000;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_peer_process_set(&twin, 5);
	mesh_peer_process_set(&fixture.peers[0], 5);
	mesh_lock_release(&fixture.setup.process.lock);
	mesh_comm_close(comm);
	assert_true(mesh_clock_ms() - begin_ms < 60000);
	comm = fixture_comm_open(true);
	peer_says(MESH_FRAME_CLOSED, (struct mesh_frame_closed){0});
	assert_int_equal(twin.owes_ms, 0);
	mesh_comm_close(comm);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_peer_index_remove(&twin);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void test_receiver_without_grants(void **state)
{
	uint32_t seq;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	for (seq = 0; seq < 4; seq++) {
		struct mesh_request *request = fixture_post(comm, SMALL);

		fixture_data(comm, seq, SMALL);
		assert_true(fixture_is_done(request));
	}
	fixture_post(comm, SMALL); /* its grant is held back: no peer can write there */
	close_now();
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_false(was_cut_off());
	fixture_frame(MESH_FRAME_CLOSED); /* there was nothing to wait for */
	assert_true(fixture_no_frame());
}

/* The sender has sent CLOSED, and all its writes have arrived: nothing can touch our memory. */
static void test_receiver_with_grants(void **state)
{
	static const struct {
		struct mesh_frame_closed said;
		bool cut;
	} cases[] = {
		{{.writes = 1}, false},
		{{.writes = 1, .unclean = 1}, true},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fixture_setup(state);
		comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
		fixture_post(comm, LARGE);
		fixture_written(comm, 0, (struct mesh_immediate){.segment = 0});
		peer_says(MESH_FRAME_CLOSED, cases[i].said);
		close_now();
		assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
		assert_int_equal(was_cut_off(), cases[i].cut);
		assert_int_equal(fixture_teardown(state), 0);
	}
}

/* A comm that resumes counts its sender's writes if these were not acknowledged by the provider. */
static void test_receiver_of_unacked_writes(void **state)
{
	struct mesh_frame_closed said = {.writes = 2};

	for (said.unacked = 0; said.unacked < 2; said.unacked++) {
		fixture_setup(state);
		fixture.setup.process.config.recovery = 1;
		comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
		fixture_post(comm, LARGE);
		fixture_written(comm, 0, (struct mesh_immediate){.segment = 0});
		peer_says(MESH_FRAME_CLOSED, said);
		close_now();
		assert_int_equal(was_cut_off(), said.unacked);
		assert_int_equal(fixture_teardown(state), 0);
	}
}

/* A lost peer has not sent CLOSED. */
static void test_receiver_of_a_lost_peer(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, LARGE);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_peer_lost(comm);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(*comm_inside(comm).error, -ECONNRESET);
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, 1);
	close_now();
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_true(was_cut_off());
}

/* What NCCL closes anyway has not failed. */
static void test_loss_while_closing(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	*comm_inside(comm).closing = true;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_peer_lost(comm);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, 0);
	*comm_inside(comm).closing = false;
	close_now();
}

/* NCCL takes memory back that a request uses: the comm ends first. Other memory is its own. */
static void test_memory_in_use_is_taken_back(void **state)
{
	struct mesh_registration *other;
	struct mesh_request *request;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	other = fixture_register(comm, fixture_memory, 16);
	fixture_post(comm, LARGE);
	mesh_registration_close(comm, other);
	assert_false(*comm_inside(comm).closing);
	fixture_grant(comm, 0, 1, LARGE);
	fixture_peers_lose();
	mesh_registration_close(comm, fixture_registration(comm));
	assert_true(*comm_inside(comm).closing);
	assert_int_equal(mesh_comm_send(comm, NULL, 0, NULL, &request), -ECANCELED);
	fixture_frame(MESH_FRAME_CLOSE);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.writes, 1);
	mesh_comm_close(comm);
	assert_true(fixture_no_frame()); /* sent once */
	fixture_writes_complete(1);
	fixture_left_free(comm);
}

/* ---- the peer closes ------------------------------------------------------------------------- */

static void test_sender_closed_and_all_is_here(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_data(comm, 0, SMALL);
	peer_says(MESH_FRAME_CLOSED, (struct mesh_frame_closed){.sent = 1});
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).to_comm, FIXTURE_REMOTE_ID);
	assert_false(engine_polls());
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	fixture_post(comm, SMALL); /* what arrived is still delivered */
	fixture_request_fails(fixture_post(comm, SMALL), -EPIPE);
	tick();
	assert_true(fixture_no_frame());
	close_now();
}

static void test_sender_closed_and_some_is_on_its_way(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_data(comm, 0, SMALL);
	peer_says(MESH_FRAME_CLOSED, (struct mesh_frame_closed){.sent = 2});
	fixture_frame(MESH_FRAME_CLOSE); /* this process runs */
	assert_true(engine_polls());
	tick();
	assert_int_equal(*comm_inside(comm).error, 0);
	fixture_data(comm, 1, SMALL);
	tick();
	fixture_frame(MESH_FRAME_CLOSED);
	close_now();
}

static void test_sender_closed_and_some_is_missing(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	peer_says(MESH_FRAME_CLOSED, (struct mesh_frame_closed){.sent = 1});
	fixture_frame(MESH_FRAME_CLOSE);
	*comm_inside(comm).peer_end_ms -= 2000;
	tick();
	assert_failed(comm, -EIO, "not all of what it sent has arrived");
	fixture_frame(MESH_FRAME_CLOSED);
	close_now();
}

/* Before it has counted: receives go on, and the engine polls. */
static void test_sender_is_closing(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, SMALL);
	peer_says(MESH_FRAME_CLOSE, (struct mesh_frame_closed){0});
	fixture_frame(MESH_FRAME_CLOSE);
	assert_true(engine_polls());
	peer_says(MESH_FRAME_CLOSE, (struct mesh_frame_closed){0});
	assert_true(fixture_no_frame());
	fixture_data(comm, 0, SMALL);
	tick();
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_true(fixture_no_frame());
	peer_says(MESH_FRAME_CLOSED, (struct mesh_frame_closed){.sent = 1});
	fixture_frame(MESH_FRAME_CLOSED);
	assert_false(engine_polls());
	close_now();
}

static void test_sender_closed_before_our_receives(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, SMALL);
	peer_says(MESH_FRAME_CLOSED, (struct mesh_frame_closed){0});
	assert_failed(comm, -EPIPE, "or failed, while receives were posted");
	fixture_frame(MESH_FRAME_CLOSED);
	close_now();
}

/* Writes in flight end first; nothing new starts; then the receiver learns their number. */
static void test_receiver_closed(void **state)
{
	struct mesh_frame frame;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	peer_says(MESH_FRAME_CLOSE, (struct mesh_frame_closed){0});
	fixture_frame(MESH_FRAME_CLOSE);
	assert_true(engine_polls());
	fixture_post(comm, LARGE);
	fixture_grant(comm, 1, 1, LARGE);
	assert_int_equal(fake.writes.num, 1);
	tick();
	assert_true(fixture_no_frame());
	assert_int_equal(*comm_inside(comm).error, 0);
	fixture_writes_complete(1);
	tick();
	assert_failed(comm, -EPIPE, "the receiver closed the connection");
	frame = fixture_frame(MESH_FRAME_CLOSED);
	assert_int_equal(frame.closed.writes, 1);
	assert_int_equal(frame.closed.unclean, 0);
	fixture_comm_close(comm);
	assert_true(fixture_no_frame());
}

/* Nothing was left to send: that is how every job ends. */
static void test_receiver_closed_at_the_end(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, SMALL);
	fixture_sends_complete();
	peer_says(MESH_FRAME_CLOSE, (struct mesh_frame_closed){0});
	assert_int_equal(*comm_inside(comm).error, -EPIPE);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, 0);
	fixture_frame(MESH_FRAME_CLOSED);
	close_now();
}

/* As it comes from the control connection. */
static void frame_comes(enum mesh_frame_type type, uint32_t to_comm)
{
	struct mesh_peer *peer = &fixture.peers[0];
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.to_comm = to_comm;
	peer->in_size = mesh_frame_finish(&frame, type);
	memcpy(peer->in, &frame, peer->in_size);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_peer_frames_handle(peer);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(peer->in_size, 0);
}

/*
 * We have freed our end, and a write of the peer is still in flight to it: the engine polls
 * until the peer says that it is not, but not for ever, and not for a stranger.
 */
static void test_peer_drains_to_a_freed_comm(void **state)
{
	(void)state;
	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	frame_comes(MESH_FRAME_CLOSED, 9);
	assert_false(engine_polls());
	frame_comes(MESH_FRAME_CLOSE, 9);
	assert_true(engine_polls());
	frame_comes(MESH_FRAME_CLOSED, 8);
	assert_true(engine_polls());
	frame_comes(MESH_FRAME_CLOSED, 9);
	assert_false(engine_polls());
	frame_comes(MESH_FRAME_CLOSE, 9);
	asked_tick(mesh_clock_ms());
	assert_true(engine_polls());
	asked_tick(mesh_clock_ms() + 1001); /* it takes too long */
	assert_false(engine_polls());
	fixture.peers[0].state = MESH_PEER_GREETING;
	frame_comes(MESH_FRAME_CLOSE, 9);
	assert_false(engine_polls());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sender_reports_what_it_sent),
		TEST(test_sender_waits_for_its_writes),
		TEST(test_sender_reports_what_did_not_end),
		TEST(test_silent_peer_is_remembered),
		TEST(test_one_process_has_one_engine),
		TEST(test_receiver_without_grants),
		cmocka_unit_test(test_receiver_with_grants),
		cmocka_unit_test(test_receiver_of_unacked_writes),
		TEST(test_receiver_of_a_lost_peer),
		TEST(test_loss_while_closing),
		TEST(test_memory_in_use_is_taken_back),
		TEST(test_sender_closed_and_all_is_here),
		TEST(test_sender_closed_and_some_is_on_its_way),
		TEST(test_sender_closed_and_some_is_missing),
		TEST(test_sender_is_closing),
		TEST(test_sender_closed_before_our_receives),
		TEST(test_receiver_closed),
		TEST(test_receiver_closed_at_the_end),
		TEST(test_peer_drains_to_a_freed_comm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
