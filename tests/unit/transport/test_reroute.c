/* SPDX-License-Identifier: Apache-2.0 */
/* test_reroute.c - a comm whose only circuit breaks gets another one, over another NIC. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "fabric/mr.h"
#include "setup/events.h"
#include "transport/answer.h"
#include "transport/linger.h"
#include "transport/recovery.h"
#include "transport/registration.h"
#include "transport/rejoin_frames.h"
#include "transport/reroute.h"
#include "transport/route_wait.h"

#include "log_capture.h"
#include "relays_fixture.h"

#define ROOM ((size_t)64 << 10)
#define RELAYS 2

static void circuit_lost(int i, bool ended)
{
	circuit_comes(
		i, 0,
		(struct mesh_frame_circuit){
			.event = MESH_CIRCUIT_LOST, .unclean = ended, .lost = "b", .by = "p"});
}

/* ---- the sending end ----------------------------------------------------------------------- */

static void sender_open(void)
{
	relayed_sender_open(RELAYS, 1);
	fixture.num_paths = 1; /* in grants */
}

static int begin(int relay)
{
	int ret;

	process_take();
	ret = mesh_reroute_begin(comm->paths, &fixture.peers[relay]);
	fixture.epoch = comm->epoch;
	process_release();
	return ret;
}

/* OPENED comes from the second relay; returns whether it suffices. */
static bool opened_comes(const struct mesh_frame_opened *frame)
{
	struct mesh_path *path;
	bool suffices;

	process_take();
	path = mesh_reroute_find(&fixture.peers[1], comm->paths[0].sink.id);
	assert_ptr_equal(path, &comm->paths[0]);
	suffices = mesh_reroute_opened(path, frame);
	process_release();
	return suffices;
}

static bool lacks_route(void)
{
	bool lacks;

	process_take();
	lacks = mesh_comm_lacks_route(comm);
	process_release();
	return lacks;
}

/* Goes on over the second relay, from a break with one message in flight. */
static void test_sender(void **state)
{
	struct mesh_frame_opened second = opened;
	struct mesh_frame frame;
	struct mesh_frame_have have = {0};
	const struct mesh_mr *before;
	uint32_t id;

	(void)state;
	sender_open();
	before = fixture_registration(comm)->mrs[0];
	fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	assert_int_equal(fake.writes.num, 1);
	id = comm->paths[0].sink.id;
	assert_false(lacks_route());
	circuit_lost(0, false);
	assert_true(lacks_route() && fixture.setup.process.routeless);
	assert_int_equal(frame_to(0, MESH_FRAME_CIRCUIT).circuit.event, MESH_CIRCUIT_SHUT);
	assert_int_equal(begin(1), -EAGAIN); /* the write into p's memory is in flight */
	fixture.num_paths = 2;
	fixture_writes_complete(1);
	fixture_sends_complete();
	fixture.num_paths = 1;
	assert_int_equal(begin(1), 0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_JOINING);
	assert_ptr_equal(comm_path(comm, 0).domain, fixture.domains[1]);
	assert_true(fixture_registration(comm)->mrs[0] != before);
	/* A circuit that passes less than what was agreed on is given back. */
	second.eager_limit--;
	assert_false(opened_comes(&second));
	assert_true(lacks_route());
	assert_int_equal(begin(1), 0);
	assert_true(comm->paths[0].sink.id != id);
	second.eager_limit++;
	strcpy(second.via, "q,r");
	second.address = 0xef0000;
	assert_true(opened_comes(&second));
	assert_false(lacks_route());
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
	assert_string_equal(comm->paths[0].via, "q,r");
	assert_true(log_captured(MESH_LOG_WARN, "another route leads there"));
	/* What was in doubt is asked for; no path has to be fenced for it. */
	process_take();
	mesh_comms_recover(&fixture.setup.process);
	process_release();
	frame = frame_to(1, MESH_FRAME_RESUME);
	assert_int_equal(frame.resume.dead, 0);
	have.seq = frame.resume.seq;
	have.round = frame.resume.round;
	mesh_have_came(comm, &have);
	assert_int_equal(fake.writes.num, 1); /* the grant of before names another NIC's memory */
	fixture_grant(comm, 0, 1, ROOM);
	assert_int_equal(fake.writes.num, 2);
	assert_int_equal(fake.writes.posts[1].address, 0xef0000);
	fixture.num_paths = 2;
	fixture_writes_complete(1);
	relayed_close();
}

/* It may happen as often as it likes; each time the path has another id. */
static void test_sender_often(void **state)
{
	uint32_t ids[20];
	int i, k;

	(void)state;
	sender_open();
	for (i = 0; i < 20; i++) {
		ids[i] = comm->paths[0].sink.id;
		for (k = 0; k < i; k++)
			assert_true(ids[k] != ids[i] || i % 2 != k % 2); /* of one NIC */
		circuit_lost(i % 2, false);
		frame_to(i % 2, MESH_FRAME_CIRCUIT);
		assert_int_equal(begin(1 - i % 2), 0);
		process_take();
		assert_true(mesh_reroute_opened(&comm->paths[0], &opened));
		process_release();
		assert_int_equal(*comm_inside(comm).num_paths, 1);
	}
	relayed_close();
}

/*
 * The link to the relay was drained: what the relay still had is sent again all the same. A relay
 * answers OPEN with OPENED, which says where its memory is: ACCEPT says nothing of that.
 */
static void test_sender_is_accepted(void **state)
{
	struct mesh_frame_accept accept = {.comm = 1, .token = 2};

	(void)state;
	sender_open();
	comm->paths[0].park = MESH_PARK_DRAINED;
	comm->paths[0].unflushed = false;
	circuit_lost(0, false);
	assert_int_equal(comm->send.round, 1);
	assert_int_equal(begin(1), 0);
	accept.to_comm = comm->paths[0].sink.id;
	process_take();
	assert_false(mesh_rejoin_accepted(&fixture.peers[1], &accept));
	process_release();
	assert_int_equal(comm->paths[0].state, MESH_PATH_JOINING);
	relayed_close();
}

static void wait_check(uint64_t now_ms)
{
	process_take();
	mesh_route_wait_check(comm, now_ms);
	process_release();
}

/* Without a route the error names the relay and what it has lost. */
static void test_wait_ends(void **state)
{
	uint64_t now_ms = mesh_clock_ms();

	(void)state;
	sender_open();
	wait_check(now_ms);
	circuit_lost(0, false);
	wait_check(now_ms);
	wait_check(now_ms + TIMEOUT_S * 1000 - 1);
	assert_int_equal(*comm_inside(comm).error, 0);
	wait_check(now_ms + TIMEOUT_S * 1000);
	assert_failed(comm, -ETIMEDOUT,
		      "no route has led there for 30 s (NCCL_MESH_RECOVERY_TIMEOUT), since node p, "
		      "through which this path leads, has lost node b (path via p)");
	relayed_close();
}

/* No route leads to a process that has ended, or to a comm that has. */
static void test_end_is_over(void **state)
{
	(void)state;
	sender_open();
	circuit_lost(0, true);
	assert_failed(comm, -ECONNRESET, "has lost node b, whose process has ended");
	relayed_close();
	assert_int_equal(relays_close(state), 0);
	assert_int_equal(fixture_setup(state), 0);
	sender_open();
	circuit_lost(0, false);
	assert_int_equal(begin(1), 0);
	process_take();
	mesh_reroute_refused(&comm->paths[0], MESH_REFUSAL_RELAY_LINK);
	assert_true(mesh_comm_lacks_route(comm));
	process_release();
	assert_int_equal(begin(1), 0);
	process_take();
	mesh_reroute_refused(&comm->paths[0], MESH_REFUSAL_ENDED);
	process_release();
	assert_failed(comm, -ECONNRESET, "the peer has ended this connection meanwhile");
	relayed_close();
}

/* Many comms end at the same time: a few lines say so, and each is counted. */
static void test_many_end(void **state)
{
	(void)state;
	sender_open();
	circuit_lost(0, false);
	fixture.setup.process.limits.abandoned =
		(struct mesh_log_limit){.since_ms = mesh_clock_ms(), .lines = 100};
	process_take();
	mesh_reroute_refused(&comm->paths[0], MESH_REFUSAL_ENDED);
	process_release();
	assert_false(log_captured(MESH_LOG_WARN, "has ended this connection meanwhile"));
	assert_int_equal(fixture.setup.process.own_counters.comms_failed, 1);
	relayed_close();
}

/* A comm without recovery fails at once, with what the relay has reported. */
static void test_off(void **state)
{
	(void)state;
	sender_open();
	comm->resumes = false;
	circuit_comes(0, 0, (struct mesh_frame_circuit){.event = MESH_CIRCUIT_LOST, .error = EIO});
	assert_failed(comm, -ECONNRESET, "an operation failed: Input/output error");
	relayed_close();
}

/* ---- the receiving end --------------------------------------------------------------------- */

static void receiver_open(void)
{
	relayed_receiver_open(RELAYS, 1);
	fixture.num_paths = 1;
	fixture_post(comm, ROOM);
	fixture_sends_complete();
}

/* CONNECT comes from the second relay, anew. False: it is not for a comm that is here. */
static bool connect_comes(struct mesh_frame_connect connect)
{
	bool came;

	connect.epoch = comm->epoch + 1;
	process_take();
	came = mesh_reroute_came(&fixture.peers[1], &connect);
	process_release();
	return came;
}

static void test_receiver(void **state)
{
	const struct mesh_frame_hello hello = {.cookie = COOKIE}, stranger = {.cookie = COOKIE + 1};
	struct mesh_message_header grant;
	struct mesh_frame accept;
	const struct mesh_mr *before;
	const void *payload;

	(void)state;
	receiver_open();
	before = fixture_registration(comm)->mrs[0];
	process_take();
	assert_true(mesh_reroute_admits(&fixture.setup.process, &hello));
	assert_false(mesh_reroute_admits(&fixture.setup.process, &stranger));
	process_release();
	/* The sender has given up a circuit that is up here: its relay has to report first. */
	assert_true(connect_comes(request));
	assert_int_equal(frame_to(1, MESH_FRAME_REFUSE).refuse.refusal, MESH_REFUSAL_RESOURCES);
	assert_int_equal(frame_to(0, MESH_FRAME_CIRCUIT).circuit.event, MESH_CIRCUIT_LOST);
	assert_int_equal(comm->paths[0].state, MESH_PATH_SUSPECT);
	assert_true(connect_comes(request)); /* not asked twice */
	frame_to(1, MESH_FRAME_REFUSE);
	assert_true(fixture_no_frame());
	process_take();
	mesh_path_drained(&comm->paths[0]);
	process_release();
	assert_true(connect_comes(request));
	accept = frame_to(1, MESH_FRAME_ACCEPT);
	assert_int_equal(accept.accept.to_comm, 0xabc);
	assert_int_equal(accept.accept.comm, comm->paths[0].sink.id);
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
	/* The open receive is granted again, with the memory of the other NIC. */
	grant = fixture_last_sent(MESH_MESSAGE_GRANT, &payload);
	assert_int_equal(grant.comm, 0xabc);
	assert_true(fixture_registration(comm)->mrs[0] != before);
	assert_int_equal(((const struct mesh_grant *)payload)->targets[0].key,
			 mesh_mr_key(fixture_registration(comm)->mrs[0]));
	/* The connecting end did not wait for this circuit: its relay reports so, without more. */
	circuit_lost(1, false);
	circuit_drained(1, 0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	fixture.num_paths = 2;
	fixture_sends_complete();
	assert_true(connect_comes(request));
	frame_to(1, MESH_FRAME_ACCEPT);
	circuit_lost(1, false);
	assert_int_equal(*comm_inside(comm).error, 0);
	relayed_close();
}

/*
 * A comm of two routes: the sending end has lost both, and asks for another one. The receiving end,
 * which knows of no loss, sends nothing more over the second one.
 */
static void test_receiver_of_two(void **state)
{
	struct mesh_frame_connect second;

	(void)state;
	relayed_receiver_open(RELAYS, 2);
	second = request;
	circuit_lost(0, false);
	circuit_drained(0, 0);
	second.alone = 1;
	assert_true(connect_comes(second));
	assert_int_equal(frame_to(1, MESH_FRAME_CIRCUIT).to_comm, FIXTURE_REMOTE_ID + 1);
	frame_to(1, MESH_FRAME_ACCEPT);
	assert_int_equal(comm->num_up, 1);
	assert_ptr_equal(comm->up[0], &comm->paths[0]);
	relayed_close();
}

/* A relay that does not report is left with its link. */
static void test_receiver_without_report(void **state)
{
	(void)state;
	receiver_open();
	assert_true(connect_comes(request));
	process_take();
	comm->paths[0].drain_asked_ms = mesh_clock_ms() - 3000;
	process_release();
	frame_to(1, MESH_FRAME_REFUSE);
	assert_true(connect_comes(request));
	assert_int_equal(fixture.peers[0].state, MESH_PEER_LOST);
	frame_to(1, MESH_FRAME_ACCEPT);
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
	relayed_close();
}

/* The small message that the open receive waits for. */
static void message_arrives(void)
{
	const struct mesh_message_header header = {.type = MESH_MESSAGE_DATA, .length = 8};
	static const uint8_t bytes[8];

	mesh_domain_lock(fixture.domains[0]);
	comm->paths[0].sink.message(&comm->paths[0].sink, &header, bytes);
	mesh_domain_unlock(fixture.domains[0]);
}

/*
 * NCCL has closed the receiving end, which has all, and the route broke before the sending end knew
 * that: the end that lingers takes the new circuit, and says so.
 */
static void test_receiver_lingers(void **state)
{
	const struct mesh_frame_hello hello = {.cookie = COOKIE};
	struct mesh_comm *other;
	struct mesh_frame word;

	(void)state;
	receiver_open();
	other = fixture_comm_open(false); /* so that no close is the last one, which waits */
	message_arrives();
	fixture_sends_complete();
	assert_int_equal(fixture_test(&comm->requests[0]), 8);
	mesh_comm_close(comm);
	assert_int_equal(frame_to(0, MESH_FRAME_CLOSED).closed.sent, 1);
	circuit_lost(0, false);
	circuit_drained(0, 0);
	process_take();
	assert_true(mesh_reroute_admits(&fixture.setup.process, &hello));
	process_release();
	assert_true(connect_comes(request));
	frame_to(1, MESH_FRAME_ACCEPT);
	process_take();
	mesh_comms_recover(&fixture.setup.process);
	word = frame_to(1, MESH_FRAME_CLOSED);
	assert_int_equal(word.to_comm, 0xabc);
	assert_int_equal(word.closed.sent, 1);
	mesh_comm_closed_came(comm, &(struct mesh_frame_closed){.sent = 1});
	mesh_comm_linger_check(comm);
	assert_true(LIST_EMPTY(&fixture.setup.process.lingering));
	process_release();
	fixture.num_paths = 2;
	fixture_comm_close(other);
}

/* Another key, cookie, origin, path: no comm of that name is here. One that failed has ended. */
static void test_receiver_lies(void **state)
{
	struct mesh_frame_connect lies[5];
	int i;

	(void)state;
	receiver_open();
	for (i = 0; i < 5; i++)
		lies[i] = request;
	lies[0].comm_key++;
	lies[1].cookie++;
	strcpy(lies[2].origin, "x");
	lies[3].path = 1;
	lies[4].num_paths = 2;
	for (i = 0; i < 5; i++)
		assert_false(connect_comes(lies[i]));
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
	fixture_fail(comm, -EIO);
	assert_true(connect_comes(request));
	assert_int_equal(frame_to(1, MESH_FRAME_REFUSE).refuse.refusal, MESH_REFUSAL_ENDED);
	relayed_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, relays_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sender),
		TEST(test_sender_often),
		TEST(test_sender_is_accepted),
		TEST(test_wait_ends),
		TEST(test_end_is_over),
		TEST(test_many_end),
		TEST(test_off),
		TEST(test_receiver),
		TEST(test_receiver_of_two),
		TEST(test_receiver_without_report),
		TEST(test_receiver_lingers),
		TEST(test_receiver_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
