/* SPDX-License-Identifier: Apache-2.0 */
/* test_silence.c - whoever waits for long: when it asks, what is answered, when it gives up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define SMALL ((size_t)64)
#define LARGE ((size_t)64 << 10)
#define ASK_MS 3000 /* stall.c */
#define START_MS 1000000
#define NS_PER_S 1000000000ull

static char memory[LARGE], payload[SMALL];
static struct mesh_comm *comm;
static struct mesh_registration *registration;

static void opened(enum mesh_provider_id provider, bool sending)
{
	fixture_paths_open(provider, 1);
	comm = fixture_comm_open(sending);
	registration = fixture_register(comm, memory, sizeof(memory));
}

static void post(size_t size)
{
	struct mesh_request *request = NULL;

	if (comm->sending)
		mesh_comm_send(comm, memory, size, registration, &request);
	else
		mesh_comm_receive(comm, memory, size, registration, &request);
	assert_non_null(request);
}

static void tick(uint64_t now_ms)
{
	mesh_lock_take(&fixture.node.lock);
	mesh_stall_tick(comm, now_ms);
	mesh_lock_release(&fixture.node.lock);
}

static void asked(uint32_t seq)
{
	mesh_lock_take(&fixture.node.lock);
	mesh_stall_asked(comm, seq);
	mesh_lock_release(&fixture.node.lock);
}

static void answered(uint32_t seq)
{
	mesh_lock_take(&fixture.node.lock);
	mesh_stall_answered(comm, seq);
	mesh_lock_release(&fixture.node.lock);
}

static void data(uint32_t seq)
{
	struct mesh_request *request = &comm->requests[seq];
	bool done = false;
	size_t size;

	fixture_message(comm, 0, MESH_MESSAGE_DATA, seq, payload, SMALL);
	assert_int_equal(mesh_request_test(request, &done, &size), 0);
	assert_true(done);
}

/* About the oldest, after three seconds, and then every three seconds. */
static void test_asks_about_the_oldest(void **state)
{
	uint64_t now = START_MS;
	struct mesh_frame frame;

	(void)state;
	opened(MESH_PROVIDER_TCP, false);
	tick(now);
	tick(now + 10 * ASK_MS);
	assert_true(fixture_no_frame()); /* nothing is posted */
	post(SMALL);
	post(SMALL);
	now += 20 * ASK_MS;
	tick(now);
	tick(now + ASK_MS - 1);
	assert_true(fixture_no_frame());
	tick(now + ASK_MS);
	frame = fixture_frame(MESH_FRAME_ASK);
	assert_int_equal(frame.comm.sent, 0);
	assert_int_equal(frame.comm.to_comm, FIXTURE_REMOTE_ID);
	tick(now + 2 * ASK_MS - 1);
	assert_true(fixture_no_frame());
	tick(now + 2 * ASK_MS);
	fixture_frame(MESH_FRAME_ASK);
	/* Another one is the oldest now: the time starts again. */
	data(0);
	tick(now + 3 * ASK_MS);
	assert_true(fixture_no_frame());
	tick(now + 4 * ASK_MS);
	assert_int_equal(fixture_frame(MESH_FRAME_ASK).comm.sent, 1);
	/* A peer that said it is closed is not asked. */
	comm->peer_end = MESH_END_CLOSED;
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
	opened(MESH_PROVIDER_TCP, false);
	for (seq = 0; seq < MESH_COMM_REQUESTS; seq++)
		post(SMALL);
	for (seq = 0; seq < MESH_COMM_REQUESTS; seq++) {
		tick(now);
		assert_true(fixture_no_frame());
		now += ASK_MS;
		tick(now);
		assert_int_equal(fixture_frame(MESH_FRAME_ASK).comm.sent, seq);
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
	bool done = false;
	size_t size;
	int i;

	(void)state;
	opened(MESH_PROVIDER_TCP, true);
	asked(0);
	assert_true(fixture_no_frame()); /* not even begun */
	post(LARGE);
	asked(0);
	assert_true(fixture_no_frame());
	fake.writes_end_with = -1;
	fixture_grant(comm, 0, 1, LARGE);
	fixture_poll();
	asked(0);
	assert_int_equal(fixture_frame(MESH_FRAME_SENT).comm.sent, 0);
	assert_int_equal(mesh_request_test(&comm->requests[0], &done, &size), 0);
	assert_true(done);
	asked(0);
	fixture_frame(MESH_FRAME_SENT);
	for (i = 1; i <= MESH_COMM_REQUESTS; i++) /* its slot is another's, which waits */
		post(LARGE);
	asked(0);
	fixture_frame(MESH_FRAME_SENT);
	asked(MESH_COMM_REQUESTS);
	assert_true(fixture_no_frame());
	fixture_comm_close(comm);
}

/* What was sent and does not come is lost, once the limit is over. */
static void test_sent_and_not_here(void **state)
{
	uint64_t limit_ms = 1000, now;

	(void)state;
	opened(MESH_PROVIDER_TCP, false);
	post(SMALL);
	now = mesh_clock_ms();
	answered(0); /* nobody asked yet */
	tick(now);
	answered(1); /* of another */
	tick(now + 2 * limit_ms);
	assert_int_equal(atomic_load(&comm->error), 0);
	answered(0);
	assert_true(comm->stall.sent_ms >= now);
	now -= 10;
	comm->stall.sent_ms = now;
	answered(0); /* says nothing new */
	assert_true(comm->stall.sent_ms == now);
	tick(now + limit_ms - 1);
	assert_int_equal(atomic_load(&comm->error), 0);
	tick(now + limit_ms);
	assert_failed(comm, -EIO, "message 0 was sent and has not arrived after 1 s");
	fixture_comm_close(comm);
}

/* As if it had been posted so long ago. */
static void write_is_old(uint64_t seconds)
{
	struct mesh_pace *pace = &fixture.peers[0].remote->flow->pace;

	atomic_store(&pace->busy_ns, mesh_clock_ns() - seconds * NS_PER_S);
}

static void test_silent_nic(void **state)
{
	struct mesh_path *path;

	(void)state;
	opened(MESH_PROVIDER_VERBS_RXM, true);
	path = &comm->paths[0];
	write_is_old(5); /* nothing is in flight */
	tick(START_MS);
	assert_int_equal(path->silent_ns, 0);
	post(LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	tick(START_MS);
	assert_int_equal(path->silent_ns, 0);
	write_is_old(2);
	tick(START_MS);
	assert_true(path->silent_ns); /* noted; whoever was stopped has not polled yet */
	fixture_poll();
	fixture_poll();
	tick(START_MS);
	assert_int_equal(atomic_load(&comm->error), 0); /* nor had the time */
	path->silent_ns -= NS_PER_S;
	path->silent_polls = path->domain->polls - 1;
	tick(START_MS);
	assert_int_equal(atomic_load(&comm->error), 0);
	path->silent_polls--;
	tick(START_MS);
	assert_failed(comm, -ETIMEDOUT, "no RDMA write has been answered on eth7 for 1 s");
	fixture_writes_complete(1);
	fixture_comm_close(comm);
}

/* Who waits for nothing does not fail for what another comm waits for on the same way. */
static void test_silence_of_another(void **state)
{
	struct mesh_comm *idle, *waiting;

	(void)state;
	opened(MESH_PROVIDER_VERBS_RXM, true);
	waiting = comm;
	idle = fixture_comm_open(true);
	post(LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	write_is_old(9);
	comm = idle;
	tick(START_MS);
	assert_int_equal(comm->paths[0].silent_ns, 0);
	fixture_writes_complete(1);
	fixture_comm_close(idle);
	fixture_comm_close(waiting);
}

/* An answer ends the silence. */
static void test_nic_that_answers(void **state)
{
	struct mesh_path *path;

	(void)state;
	opened(MESH_PROVIDER_VERBS_RXM, true);
	path = &comm->paths[0];
	post(LARGE);
	post(LARGE);
	fixture_grant(comm, 0, 2, LARGE);
	write_is_old(2);
	tick(START_MS);
	assert_true(path->silent_ns);
	fixture_writes_complete(1);
	tick(START_MS);
	assert_int_equal(path->silent_ns, 0);
	fixture_writes_complete(1);
	fixture_comm_close(comm);
}

/* On tcp the peer's process takes part, and may be stopped: the control connection decides. */
static void test_silent_socket(void **state)
{
	(void)state;
	opened(MESH_PROVIDER_TCP, true);
	post(LARGE);
	fixture_grant(comm, 0, 1, LARGE);
	write_is_old(9);
	tick(START_MS);
	assert_int_equal(comm->paths[0].silent_ns, 0);
	fixture_writes_complete(1);
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_asks_about_the_oldest),
		TEST(test_asks_about_each),
		TEST(test_sender_is_asked),
		TEST(test_sent_and_not_here),
		TEST(test_silent_nic),
		TEST(test_silence_of_another),
		TEST(test_nic_that_answers),
		TEST(test_silent_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
