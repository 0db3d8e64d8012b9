/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_second_route.c - a path of a comm gets another circuit while another path carries on, which
 * may deliver late what was said about the earlier circuit: GRANT, RESUME, LEFT, CONNECT.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "fabric/mr.h"
#include "setup/events.h"
#include "transport/comm_end.h"
#include "transport/frames.h"
#include "transport/question_wait.h"
#include "transport/questions.h"
#include "transport/recovery.h"
#include "transport/registration.h"
#include "transport/reroute.h"
#include "transport/route_wait.h"

#include "log_capture.h"
#include "relays_fixture.h"

#define ROOM ((size_t)256 << 10)
#define RELAYS 3
/* What a grant names: for each epoch other memory of the first path. */
#define TARGET(epoch) (0x1000000ull * (1 + (epoch)))
#define TARGET_OF_SECOND 0x900000000ull

/* The next frame to relay @i of this type; others are skipped. */
static struct mesh_frame found_to(int i, enum mesh_frame_type type)
{
	struct mesh_frame frame;

	do {
		assert_true(next_frame_to(i, &frame));
	} while (frame.header.type != type);
	return frame;
}

static bool no_frame_to(int i)
{
	bool none;

	fixture.frames = relay_frames[i];
	none = fixture_no_frame();
	fixture.frames = relay_frames[0];
	return none;
}

static void circuit_lost(int i, int path)
{
	circuit_comes(
		i, path,
		(struct mesh_frame_circuit){.event = MESH_CIRCUIT_LOST, .lost = "b", .by = "p"});
}

/* Over the second path: the other end has left the first one's circuit of this epoch. */
static void left_comes(uint32_t epoch)
{
	circuit_comes(1, 1,
		      (struct mesh_frame_circuit){
			      .event = MESH_CIRCUIT_LEFT, .epoch = epoch, .lost = "p", .by = "b"});
}

static void recover(void)
{
	process_take();
	mesh_comms_recover(&fixture.setup.process);
	process_release();
}

/* ---- the sending end ----------------------------------------------------------------------- */

/* The first path asks relay @i. */
static void begin(int i)
{
	process_take();
	assert_int_equal(mesh_reroute_begin(&comm->paths[0], &fixture.peers[i]), 0);
	process_release();
}

static void opened_comes(int i)
{
	struct mesh_path *path;

	process_take();
	path = mesh_reroute_find(&fixture.peers[i], comm->paths[0].sink.id);
	assert_ptr_equal(path, &comm->paths[0]);
	assert_true(mesh_reroute_opened(path, &opened));
	process_release();
}

/* Over the second path: a grant that was sent in this epoch. */
static void grant_comes(uint32_t seq, uint32_t epoch)
{
	const struct mesh_message_header header = {
		.type = MESH_MESSAGE_GRANT, .count = 1, .paths = 2, .seq = seq, .epoch = epoch};
	const struct mesh_grant grant = {
		.size = ROOM,
		.targets = {{.address = TARGET(epoch)}, {.address = TARGET_OF_SECOND}}};

	mesh_domain_lock(fixture.domains[1]);
	comm->paths[1].sink.message(&comm->paths[1].sink, &header, &grant);
	mesh_domain_unlock(fixture.domains[1]);
}

/* Ends all that was posted; returns how many segments of the message were for the first path. */
static int sent_with(uint32_t seq, uint32_t epoch)
{
	struct mesh_message_relayed relayed;
	struct mesh_message_header header;
	int i, count = 0;

	fixture_writes_complete(fake.writes.num - fixture.writes_completed);
	fixture_sends_complete();
	for (i = 0; i < fake.sends.num; i++) {
		memcpy(&header, fake.sends.posts[i].bytes, sizeof(header));
		if (header.type != MESH_MESSAGE_RELAYED || header.seq != seq)
			continue;
		memcpy(&relayed, fake.sends.posts[i].bytes + sizeof(header), sizeof(relayed));
		if (relayed.address >= TARGET_OF_SECOND)
			continue;
		assert_true(relayed.address >= TARGET(epoch) &&
			    relayed.address < TARGET(epoch) + ROOM);
		count++;
	}
	return count;
}

/* Whatever went over the second path has arrived. */
static void second_arrived(void)
{
	const struct mesh_message_arrived arrived = {.granules = UINT64_MAX};
	const struct mesh_message_header header = {.type = MESH_MESSAGE_ARRIVED,
						   .length = sizeof(arrived)};

	mesh_domain_lock(fixture.domains[1]);
	comm->paths[1].sink.message(&comm->paths[1].sink, &header, &arrived);
	mesh_domain_unlock(fixture.domains[1]);
}

static bool lacks_path(void)
{
	bool lacks;

	process_take();
	lacks = mesh_comm_lacks_path(comm);
	process_release();
	return lacks;
}

/* A grant of before the circuit names another NIC's memory, however late it comes. */
static void test_late_grant(void **state)
{
	(void)state;
	relayed_sender_open(RELAYS, 2);
	assert_false(lacks_path());
	circuit_lost(0, 0);
	assert_true(lacks_path() && fixture.setup.process.routeless);
	begin(2);
	assert_true(lacks_path());
	assert_int_equal(comm->epoch, 1);
	grant_comes(0, 0); /* for the second path it is as good as before */
	fixture_post(comm, ROOM);
	assert_int_equal(sent_with(0, 1), 0);
	assert_true(fake.writes.num > 0);
	grant_comes(1, 0); /* the message comes later: held */
	opened_comes(2);
	assert_false(lacks_path());
	assert_true(log_captured(MESH_LOG_WARN, "another route leads there: its messages go over "
						"it, too"));
	assert_int_equal(comm->num_up, 2);
	fixture_post(comm, ROOM);
	assert_int_equal(sent_with(1, 1), 0);
	assert_int_equal(comm->send.first_pending, 1);
	grant_comes(1, 0);
	assert_int_equal(sent_with(1, 1), 0);
	assert_int_equal(comm->send.first_pending, 1);
	grant_comes(1, 1);
	assert_true(sent_with(1, 1) > 0);
	assert_int_equal(comm->send.first_pending, 2);
	relayed_close();
}

/* One that was sent before the circuit was accepted comes behind one that was sent after it. */
static void test_grants_in_disorder(void **state)
{
	(void)state;
	relayed_sender_open(RELAYS, 2);
	circuit_lost(0, 0);
	begin(2);
	grant_comes(0, 1);
	grant_comes(0, 0);
	opened_comes(2);
	fixture_post(comm, ROOM);
	assert_true(sent_with(0, 1) > 0);
	assert_int_equal(comm->send.first_pending, 1);
	relayed_close();
}

/* RESUME names the circuit that carried something, not the one that is asked for. */
static void test_resume_names_epoch(void **state)
{
	struct mesh_frame_resume resume;

	(void)state;
	relayed_sender_open(RELAYS, 2);
	grant_comes(0, 0);
	fixture_post(comm, ROOM);
	circuit_lost(0, 0);
	fixture_writes_complete(fake.writes.num);
	fixture_sends_complete();
	second_arrived();
	recover();
	resume = found_to(1, MESH_FRAME_RESUME).resume;
	assert_int_equal(resume.dead, 1);
	assert_int_equal(resume.ids[0], 0);
	begin(2);
	opened_comes(2);
	assert_int_equal(comm->paths[0].epoch, 1);
	circuit_lost(2, 0);
	recover();
	resume = found_to(1, MESH_FRAME_RESUME).resume;
	assert_int_equal(resume.ids[0], 1);
	begin(0);
	mesh_comm_lock(comm);
	comm->requests[0].send.asked = false;
	mesh_comm_unlock(comm);
	mesh_comm_recover_soon(comm);
	recover();
	resume = found_to(1, MESH_FRAME_RESUME).resume;
	assert_int_equal(resume.dead, 1);
	assert_int_equal(resume.ids[0], 1);
	relayed_close();
}

/* While another path leads there, a refusal says nothing of the comm. */
static void test_refused_beside(void **state)
{
	(void)state;
	relayed_sender_open(RELAYS, 2);
	circuit_lost(0, 0);
	begin(2);
	process_take();
	mesh_reroute_refused(&comm->paths[0], MESH_REFUSAL_COOKIE);
	process_release();
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	assert_true(lacks_path());
	/* A comm whose peer closes needs no further path. */
	mesh_comm_lock(comm);
	mesh_comm_peer_end_learn(comm, MESH_END_CLOSING);
	mesh_comm_unlock(comm);
	assert_false(lacks_path());
	relayed_close();
}

/* LEFT about an earlier circuit ends none; one about a circuit that is asked for ends that. */
static void test_late_left(void **state)
{
	(void)state;
	relayed_sender_open(RELAYS, 2);
	circuit_lost(0, 0);
	begin(2);
	left_comes(0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_JOINING);
	opened_comes(2);
	left_comes(0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
	left_comes(1);
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	begin(0);
	left_comes(2);
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	assert_int_equal(comm->paths[1].state, MESH_PATH_UP);
	process_take();
	assert_null(mesh_reroute_find(&fixture.peers[0], comm->paths[0].sink.id));
	process_release();
	relayed_close();
}

/* ---- the receiving end --------------------------------------------------------------------- */

static void receiver_open(void)
{
	relayed_receiver_open(RELAYS, 2);
	fixture_post(comm, ROOM);
	fixture_sends_complete();
}

/* CONNECT comes from relay @i for a path, with this epoch; returns whether it is accepted. */
static bool connect_accepted(int i, uint8_t path, uint32_t epoch)
{
	struct mesh_frame_connect connect = request;
	struct mesh_frame answer;

	connect.path = path;
	connect.epoch = epoch;
	assert_true(no_frame_to(i));
	process_take();
	assert_true(mesh_reroute_came(&fixture.peers[i], &connect));
	process_release();
	assert_true(next_frame_to(i, &answer));
	return answer.header.type == MESH_FRAME_ACCEPT;
}

static void resume_comes(uint32_t dead, uint32_t epoch)
{
	struct mesh_frame frame = {.resume = {.dead = dead, .ids = {epoch}, .round = 1}};

	frame.resume.to_comm = comm->paths[1].sink.id;
	process_take();
	mesh_resume_frame_handle(&fixture.peers[1], &frame);
	process_release();
}

/* The first path gets another circuit, and the second one carries on. */
static void test_receiver(void **state)
{
	const void *payload;
	struct mesh_message_header grant;

	(void)state;
	receiver_open();
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_GRANT, NULL).epoch, 0);
	/* The circuit that is lost to the sending end is up here: its relay has to report. */
	assert_false(connect_accepted(2, 0, 1));
	assert_true(comm->rerouted); /* WITHDRAW of the relay must not end the comm */
	assert_int_equal(comm->paths[0].state, MESH_PATH_SUSPECT);
	assert_int_equal(comm->paths[1].state, MESH_PATH_UP);
	assert_int_equal(comm->epoch, 0);
	circuit_drained(0, 0);
	assert_true(connect_accepted(2, 0, 2));
	assert_int_equal(comm->num_up, 2);
	assert_int_equal(comm->paths[0].epoch, 2);
	assert_true(log_captured(MESH_LOG_WARN, "its messages go over it, too"));
	grant = fixture_last_sent(MESH_MESSAGE_GRANT, &payload);
	assert_int_equal(grant.epoch, 2);
	assert_int_equal(((const struct mesh_grant *)payload)->targets[0].key,
			 mesh_mr_key(fixture_registration(comm)->mrs[0]));
	/* What was asked for before comes late, and ends nothing. */
	found_to(0, MESH_FRAME_CIRCUIT);
	assert_false(connect_accepted(0, 0, 1));
	assert_false(connect_accepted(0, 0, 2));
	assert_false(connect_accepted(0, 1, 2));
	assert_false(connect_accepted(0, 0, 0));
	assert_int_equal(comm->num_up, 2);
	left_comes(0);
	assert_int_equal(comm->num_up, 2);
	left_comes(2);
	assert_int_equal(comm->paths[0].state, MESH_PATH_SUSPECT);
	assert_int_equal(comm->paths[1].state, MESH_PATH_UP);
	relayed_close();
}

/*
 * RESUME about the earlier circuit is late: that was fenced. The answer takes the path of the
 * question: the sending end may not know the new circuit yet, or give it back.
 */
static void test_late_resume(void **state)
{
	(void)state;
	receiver_open();
	circuit_lost(0, 0);
	circuit_drained(0, 0);
	assert_true(connect_accepted(2, 0, 1));
	resume_comes(1, 0);
	assert_int_equal(comm->num_up, 2);
	found_to(1, MESH_FRAME_HAVE);
	resume_comes(1, 1);
	assert_int_equal(comm->paths[0].state, MESH_PATH_SUSPECT);
	assert_true(no_frame_to(1));
	circuit_drained(2, 0);
	found_to(1, MESH_FRAME_HAVE);
	relayed_close();
}

/* A question waits for one path; meanwhile another one, about which it asked, too, is new. */
static void test_question_outlives_circuit(void **state)
{
	struct mesh_questions *questions;

	(void)state;
	receiver_open();
	circuit_lost(0, 0);
	resume_comes(1, 0);
	questions = comm->receive.questions;
	assert_int_equal(questions->num, 1);
	process_take();
	questions->paths |= 2; /* as if the second one had been stopped as well */
	process_release();
	mesh_comm_lock(comm);
	mesh_path_suspect(&comm->paths[1], -EIO);
	mesh_comm_unlock(comm);
	circuit_drained(0, 0);
	assert_true(connect_accepted(2, 0, 1));
	assert_int_equal(questions->paths, 2);
	relayed_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, relays_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_late_grant),	       TEST(test_grants_in_disorder),
		TEST(test_resume_names_epoch), TEST(test_refused_beside),
		TEST(test_late_left),	       TEST(test_receiver),
		TEST(test_late_resume),	       TEST(test_question_outlives_circuit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
