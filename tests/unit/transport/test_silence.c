/* SPDX-License-Identifier: Apache-2.0 */
/* test_silence.c - long waits: when a comm asks, what is answered, when it gives up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_life.h"
#include "transport/receive.h"
#include "transport/request.h"
#include "transport/stall.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define SMALL ((size_t)64)
#define LARGE ((size_t)64 << 10)
#define ASK_MS 3000 /* stall.c */
#define START_MS 1000000
#define NS_PER_S 1000000000ull

static struct mesh_comm *comm;

static void tick(uint64_t now_ms)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_stall_tick(comm, now_ms);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void asked(uint32_t seq)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_stall_asked(comm, seq);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void answered(uint32_t seq)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_stall_answered(comm, seq);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void data(uint32_t seq)
{
	fixture_data(comm, seq, SMALL);
	assert_true(fixture_is_done(mesh_comm_request(comm, seq)));
}

/* About the oldest, after three seconds, and then every three seconds. */
static void test_asks_about_the_oldest(void **state)
{
	uint64_t now = START_MS;
	struct mesh_frame frame;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	tick(now);
	tick(now + 10 * ASK_MS);
	assert_true(fixture_no_frame()); /* nothing is posted */
	fixture_post(comm, SMALL);
	fixture_post(comm, SMALL);
	now += 20 * ASK_MS;
	tick(now);
	tick(now + ASK_MS - 1);
	assert_true(fixture_no_frame());
	tick(now + ASK_MS);
	frame = fixture_frame(MESH_FRAME_ASK);
	assert_int_equal(frame.ask.seq, 0);
	assert_int_equal(frame.to_comm, FIXTURE_REMOTE_ID);
	tick(now + 2 * ASK_MS - 1);
	assert_true(fixture_no_frame());
	tick(now + 2 * ASK_MS);
	fixture_frame(MESH_FRAME_ASK);
	/* Another one is the oldest now: the time starts again. */
	data(0);
	tick(now + 3 * ASK_MS);
	assert_true(fixture_no_frame());
	tick(now + 4 * ASK_MS);
	assert_int_equal(fixture_frame(MESH_FRAME_ASK).ask.seq, 1);
	/* A peer that has sent CLOSED is not asked. */
	*comm_inside(comm).peer_end = MESH_END_CLOSED;
	tick(now + 9 * ASK_MS);
	assert_true(fixture_no_frame());
	fixture_comm_close(comm);
}

/* Whichever of the requests that a comm can have is the oldest one, it is asked about. */
static void test_asks_about_each(void **state)
{
	uint64_t now = START_MS;
	uint32_t seq;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	for (seq = 0; seq < MESH_COMM_REQUESTS; seq++)
		fixture_post(comm, SMALL);
	for (seq = 0; seq < MESH_COMM_REQUESTS; seq++) {
		tick(now);
		assert_true(fixture_no_frame());
		now += ASK_MS;
		tick(now);
		assert_int_equal(fixture_frame(MESH_FRAME_ASK).ask.seq, seq);
		data(seq);
	}
	tick(now);
	tick(now + ASK_MS);
	assert_true(fixture_no_frame()); /* all have arrived */
	fixture_comm_close(comm);
}

/* A sender answers if all of it is sent, however long ago. */
static void test_sender_is_asked(void **state)
{
	int i;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	asked(0);
	assert_true(fixture_no_frame()); /* not even begun */
	fixture_post(comm, LARGE);
	asked(0);
	assert_true(fixture_no_frame());
	fake.writes_end_with = -1;
	fixture_grant(comm, 0, 1, LARGE);
	fixture_poll();
	asked(0);
	assert_int_equal(fixture_frame(MESH_FRAME_SENT).sent.seq, 0);
	assert_true(fixture_is_done(mesh_comm_request(comm, 0)));
	asked(0);
	fixture_frame(MESH_FRAME_SENT);
	for (i = 1; i <= MESH_COMM_REQUESTS; i++) /* its slot has been reused by one that waits */
		fixture_post(comm, LARGE);
	asked(0);
	fixture_frame(MESH_FRAME_SENT);
	asked(MESH_COMM_REQUESTS);
	assert_true(fixture_no_frame());
	fixture_comm_close(comm);
}

/* What was sent and does not arrive within the limit is lost. */
static void test_sent_and_not_here(void **state)
{
	uint64_t limit_ms = 1000, now;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, SMALL);
	now = mesh_clock_ms();
	answered(0); /* not asked yet */
	tick(now);
	answered(1); /* of another */
	tick(now + 2 * limit_ms);
	assert_int_equal(*comm_inside(comm).error, 0);
	answered(0);
	assert_true(*comm_inside(comm).sent_ms >= now);
	now -= 10;
	*comm_inside(comm).sent_ms = now;
	answered(0); /* says nothing new */
	assert_true(*comm_inside(comm).sent_ms == now);
	tick(now + limit_ms - 1);
	assert_int_equal(*comm_inside(comm).error, 0);
	tick(now + limit_ms);
	assert_failed(comm, -EIO, "message 0 was sent and has not arrived after 1 s");
	fixture_comm_close(comm);
}

/* A receiver answers if the receive is posted: then the sender has its grant, or it is lost. */
static void test_receiver_is_asked(void **state)
{
	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	asked(0);
	assert_true(fixture_no_frame());
	fixture_post(comm, LARGE);
	asked(0);
	assert_int_equal(fixture_frame(MESH_FRAME_SENT).sent.seq, 0);
	asked(1);
	assert_true(fixture_no_frame());
	fixture_comm_close(comm);
}

/* A grant that was sent and does not arrive within the limit is lost. The peer is informed. */
static void test_granted_and_not_here(void **state)
{
	uint64_t limit_ms = 1000, now;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, LARGE);
	fixture_post(comm, LARGE);
	now = mesh_clock_ms();
	tick(now);
	answered(0);
	assert_true(*comm_inside(comm).sent_ms >= now);
	fake.writes_end_with = -1;
	fixture_grant(comm, 0, 1, LARGE); /* it was only slow */
	fixture_poll();
	tick(now);
	assert_int_equal(*comm_inside(comm).sent_ms, 0);
	answered(1);
	*comm_inside(comm).sent_ms = now;
	tick(now + limit_ms - 1);
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_true(fixture_no_frame());
	tick(now + limit_ms);
	assert_failed(comm, -EIO, "the grant of message 1 was sent and has not arrived after 1 s");
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.sent, 1);
	tick(now + 2 * limit_ms);
	assert_true(fixture_no_frame()); /* once */
	fixture_comm_close(comm);
}

/* A comm that has failed informs its peer, whether NCCL has noticed the error or not. */
static void test_failure_is_reported(void **state)
{
	uint64_t now = START_MS;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	fixture_post(comm, LARGE);
	tick(now);
	assert_true(fixture_no_frame());
	fixture_fail(comm, -EIO);
	tick(now);
	fixture_frame(MESH_FRAME_CLOSE);
	tick(now);
	assert_true(fixture_no_frame());
	fixture_comm_close(comm);
}

/* As if it had been posted so long ago. */
static void write_is_old(uint64_t seconds)
{
	struct mesh_pace *pace = &fixture.peers[0].remote->flow->pace;

	atomic_store(&pace->busy_ns, mesh_clock_ns() - seconds * NS_PER_S);
}

/* The engine's work for all comms and links. */
static void links_tick(uint64_t now_ms)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_link *link = fixture.peers[0].link;
	struct mesh_comm *each;

	mesh_lock_take(&process->lock);
	LIST_FOREACH(each, &process->comms, entry)
		mesh_stall_tick(each, now_ms);
	link->timer.expired(&link->timer, now_ms);
	mesh_lock_release(&process->lock);
}

static struct mesh_link *link_join(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_link_watch(&fixture.peers[0]);
	mesh_lock_release(&fixture.setup.process.lock);
	return fixture.peers[0].link;
}

static void link_leave(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_link_leave(&fixture.peers[0]);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* A write on a link that is watched, because its comm has waited for half a second. */
static const struct mesh_link *write_waits(enum mesh_provider_id provider, uint32_t writes)
{
	const struct mesh_link *link;
	uint32_t i;

	comm = fixture_open(provider, 1, true);
	link = link_join();
	for (i = 0; i < writes; i++)
		fixture_post(comm, LARGE);
	fixture_grant(comm, 0, writes, LARGE);
	links_tick(START_MS);
	links_tick(START_MS + 500);
	assert_int_equal(link->liveness.state, MESH_LIVENESS_WATCHED);
	assert_int_equal(link->silent_ms, 0);
	return link;
}

/* All comms of the link share its fate, and the other node learns of it. */
static void test_silent_nic(void **state)
{
	struct mesh_peer *peer = &fixture.peers[0];
	uint64_t now = START_MS + 600;
	const struct mesh_link *link;
	struct mesh_comm *receiver;

	(void)state;
	link = write_waits(MESH_PROVIDER_VERBS_RXM, 1);
	receiver = fixture_comm_open(false);
	write_is_old(2);
	links_tick(now);
	assert_int_equal(link->silent_ms, now); /* a process that was stopped has not polled yet */
	links_tick(now + 1000);
	assert_int_equal(peer->state, MESH_PEER_UP);
	fixture_poll();
	fixture_poll();
	links_tick(now + 1100);
	assert_int_equal(peer->state, MESH_PEER_LOST);
	assert_true(log_captured(MESH_LOG_WARN, "lost node b"));
	assert_true(log_captured(MESH_LOG_WARN, "no RDMA write has been answered on eth7 for 1 s"));
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_int_equal(fixture_frame(MESH_FRAME_REFUSE).refuse.refusal, MESH_REFUSAL_NO_WRITES);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_peer_tick(peer, mesh_clock_ms());
	mesh_lock_release(&fixture.setup.process.lock);
	assert_true(*comm_inside(comm).error);
	assert_true(*comm_inside(receiver).error);
	fixture_writes_complete(1);
	fixture_comm_close(receiver);
	fixture_comm_close(comm);
}

/* A process that was stopped for long polls first. */
static void test_silence_without_polls(void **state)
{
	uint64_t now = START_MS + 600;

	(void)state;
	write_waits(MESH_PROVIDER_VERBS_RXM, 1);
	write_is_old(9);
	for (; now < START_MS + 5000; now += 100)
		links_tick(now);
	assert_int_equal(fixture.peers[0].state, MESH_PEER_UP);
	link_leave();
	fixture_writes_complete(1);
	fixture_comm_close(comm);
}

/* Nothing waits for the writes: they are a closed comm's. */
static void test_silence_without_a_waiter(void **state)
{
	struct mesh_comm *receiver;
	struct mesh_link *link;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_VERBS_RXM, 1, true);
	link = link_join();
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	write_is_old(9);
	receiver = fixture_comm_open(false);
	fixture_post(receiver, SMALL);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_stall_tick(receiver, START_MS);
	mesh_stall_tick(receiver, START_MS + 500);
	link->timer.expired(&link->timer, START_MS + 500);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(link->liveness.state, MESH_LIVENESS_WATCHED);
	assert_int_equal(link->silent_ms, 0);
	link_leave();
	fixture_writes_complete(1);
	fixture_comm_close(receiver);
	fixture_comm_close(comm);
}

/* The receiver has closed: nothing is asked, but a link on which writes are stuck is found. */
static void test_silence_after_closed(void **state)
{
	const struct mesh_link *link;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	link = link_join();
	fixture_post(comm, LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	*comm_inside(comm).peer_end = MESH_END_CLOSED;
	links_tick(START_MS);
	assert_int_equal(link->liveness.state, MESH_LIVENESS_IDLE);
	links_tick(START_MS + 500);
	assert_int_equal(link->liveness.state, MESH_LIVENESS_WATCHED);
	tick(START_MS + 2 * ASK_MS);
	assert_true(fixture_no_frame());
	link_leave();
	fixture_writes_complete(1);
	fixture_comm_close(comm);
}

/* An answer ends the silence. */
static void test_nic_that_answers(void **state)
{
	const struct mesh_link *link;

	(void)state;
	link = write_waits(MESH_PROVIDER_VERBS_RXM, 2);
	write_is_old(2);
	links_tick(START_MS + 600);
	assert_true(link->silent_ms);
	fixture_writes_complete(1);
	links_tick(START_MS + 1200);
	assert_int_equal(link->silent_ms, 0);
	link_leave();
	fixture_writes_complete(1);
	fixture_comm_close(comm);
}

/* On tcp the peer's process takes part, and may be stopped: the control connection decides. */
static void test_silent_socket(void **state)
{
	const struct mesh_link *link;

	(void)state;
	link = write_waits(MESH_PROVIDER_TCP, 1);
	write_is_old(9);
	links_tick(START_MS + 600);
	assert_int_equal(link->silent_ms, 0);
	link_leave();
	fixture_writes_complete(1);
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_asks_about_the_oldest), TEST(test_asks_about_each),
		TEST(test_sender_is_asked),	  TEST(test_sent_and_not_here),
		TEST(test_receiver_is_asked),	  TEST(test_granted_and_not_here),
		TEST(test_failure_is_reported),	  TEST(test_silent_nic),
		TEST(test_silence_without_polls), TEST(test_silence_without_a_waiter),
		TEST(test_silence_after_closed),  TEST(test_nic_that_answers),
		TEST(test_silent_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
