/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_second_route.c - a path of a comm gets another circuit while another path carries on, which
 * may deliver late what was said about the earlier circuit: GRANT, RESUME, LEFT, CONNECT.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "fabric/mr.h"
#include "setup/events.h"
#include "transport/circuit_end.h"
#include "transport/comm_end.h"
#include "transport/comm_open.h"
#include "transport/frames.h"
#include "transport/path_relayed.h"
#include "transport/path_state.h"
#include "transport/question_wait.h"
#include "transport/questions.h"
#include "transport/recovery.h"
#include "transport/registration.h"
#include "transport/reroute.h"
#include "transport/route_wait.h"
#include "transport/stopped.h"
#include "wire/handle.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)256 << 10)
#define KEY 0x5eed
#define COOKIE 0xc0c0
#define RELAYS 3
#define REMOTE_ID(i) (FIXTURE_REMOTE_ID + (uint32_t)(i))
/* What a grant names: for each epoch other memory of the first path. */
#define TARGET(epoch) (0x1000000ull * (1 + (epoch)))
#define TARGET_OF_SECOND 0x900000000ull

static struct mesh_comm *comm;
static int frames[RELAYS]; /* the other ends of the relays' control connections */

static void nothing(struct mesh_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
}

static void process_take(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
}
static void process_release(void)
{
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The relays p, q and r, each at a NIC of its own. */
static void relays_open(bool incoming)
{
	static const char *const names[RELAYS] = {"p", "q", "r"};
	int i, ends[2];

	fixture.setup.process.config.recovery = 1;
	fixture.setup.process.config.recovery_timeout_s = 30;
	fixture.setup.process.config.dead_peer_timeout_s = 10;
	strcpy(fixture.setup.process.name, "here");
	fixture_paths_open(MESH_PROVIDER_TCP, RELAYS);
	frames[0] = fixture.frames;
	for (i = 0; i < RELAYS; i++) {
		fixture.peers[i].timer.expired = nothing;
		fixture.peers[i].incoming = incoming;
		strcpy(fixture.peers[i].name, names[i]);
		if (!i)
			continue;
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		fixture.peers[i].watch.fd = ends[0];
		frames[i] = ends[1];
	}
}

static int teardown(void **state)
{
	int i;

	for (i = 1; i < RELAYS; i++) {
		close(fixture.peers[i].watch.fd);
		close(frames[i]);
	}
	fixture.frames = frames[0];
	return fixture_teardown(state);
}

/* The next frame to relay @i of this type; others are skipped. */
static struct mesh_frame frame_to(int i, enum mesh_frame_type type)
{
	struct mesh_frame frame;

	fixture.frames = frames[i];
	do {
		assert_true(fixture_next_frame(&frame));
	} while (frame.header.type != type);
	fixture.frames = frames[0];
	return frame;
}

static bool no_frame_to(int i)
{
	bool none;

	fixture.frames = frames[i];
	none = fixture_no_frame();
	fixture.frames = frames[0];
	return none;
}

/* From relay @i, which carries path @path. */
static void circuit_comes(int i, int path, struct mesh_frame_circuit event)
{
	struct mesh_frame frame = {.circuit = event};

	frame.circuit.to_comm = comm->paths[path].sink.id;
	process_take();
	if (!mesh_stopped_event(&fixture.peers[i], &frame))
		mesh_path_circuit_event(&fixture.peers[i], &frame);
	process_release();
}

static void circuit_lost(int i, int path)
{
	circuit_comes(
		i, path,
		(struct mesh_frame_circuit){.event = MESH_CIRCUIT_LOST, .lost = "b", .by = "p"});
}

static void drained(int i, int path)
{
	circuit_comes(i, path, (struct mesh_frame_circuit){.event = MESH_CIRCUIT_DRAINED});
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

static const struct mesh_frame_opened opened = {
	.comm = FIXTURE_REMOTE_ID,
	.token = FIXTURE_REMOTE_TOKEN,
	.eager_limit = FIXTURE_EAGER_LIMIT,
	.address = 0xab0000,
	.key = 0xcd,
	.granule = 64 << 10,
	.via = "p",
};

static void sender_open(void)
{
	int i;

	relays_open(false);
	process_take();
	assert_int_equal(
		mesh_comm_open_relayed(&fixture.net, &fixture.peers[0], "b", KEY, 2, &comm), 0);
	assert_int_equal(mesh_comm_path_add_relayed(comm, &fixture.peers[1]), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(mesh_path_relayed_opened(&comm->paths[i], &opened), 0);
	mesh_comm_paths_learn(comm);
	for (i = 0; i < 2; i++)
		mesh_path_accepted(&comm->paths[i], REMOTE_ID(i), FIXTURE_REMOTE_TOKEN);
	comm->handle = calloc(1, sizeof(*comm->handle));
	process_release();
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
}

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
	sender_open();
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
	fixture_comm_close(comm);
}

/* One that was sent before the circuit was accepted comes behind one that was sent after it. */
static void test_grants_in_disorder(void **state)
{
	(void)state;
	sender_open();
	circuit_lost(0, 0);
	begin(2);
	grant_comes(0, 1);
	grant_comes(0, 0);
	opened_comes(2);
	fixture_post(comm, ROOM);
	assert_true(sent_with(0, 1) > 0);
	assert_int_equal(comm->send.first_pending, 1);
	fixture_comm_close(comm);
}

/* RESUME names the circuit that carried something, not the one that is asked for. */
static void test_resume_names_epoch(void **state)
{
	struct mesh_frame_resume resume;

	(void)state;
	sender_open();
	grant_comes(0, 0);
	fixture_post(comm, ROOM);
	circuit_lost(0, 0);
	fixture_writes_complete(fake.writes.num);
	fixture_sends_complete();
	second_arrived();
	recover();
	resume = frame_to(1, MESH_FRAME_RESUME).resume;
	assert_int_equal(resume.dead, 1);
	assert_int_equal(resume.ids[0], 0);
	begin(2);
	opened_comes(2);
	assert_int_equal(comm->paths[0].epoch, 1);
	circuit_lost(2, 0);
	recover();
	resume = frame_to(1, MESH_FRAME_RESUME).resume;
	assert_int_equal(resume.ids[0], 1);
	begin(0);
	mesh_comm_lock(comm);
	comm->requests[0].send.asked = false;
	mesh_comm_unlock(comm);
	mesh_comm_recover_soon(comm);
	recover();
	resume = frame_to(1, MESH_FRAME_RESUME).resume;
	assert_int_equal(resume.dead, 1);
	assert_int_equal(resume.ids[0], 1);
	fixture_comm_close(comm);
}

/* While another path leads there, a refusal says nothing of the comm. */
static void test_refused_beside(void **state)
{
	(void)state;
	sender_open();
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
	fixture_comm_close(comm);
}

/* LEFT about an earlier circuit ends none; one about a circuit that is asked for ends that. */
static void test_late_left(void **state)
{
	(void)state;
	sender_open();
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
	fixture_comm_close(comm);
}

/* ---- the receiving end --------------------------------------------------------------------- */

static const struct mesh_frame_connect first = {
	.cookie = COOKIE,
	.comm_key = KEY,
	.comm = 0xabc,
	.token = 0xdef,
	.num_paths = 2,
	.origin = "a",
	.via = "p",
};

static void receiver_open(void)
{
	int i;

	relays_open(true);
	process_take();
	assert_int_equal(mesh_comm_open(&fixture.net, false, &fixture.peers[0], KEY, 2, &comm), 0);
	assert_int_equal(mesh_comm_path_add(comm, &fixture.peers[1]), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(mesh_path_received_via(&comm->paths[i], &first), 0);
		mesh_path_accepted(&comm->paths[i], REMOTE_ID(i), FIXTURE_REMOTE_TOKEN);
	}
	comm->cookie = COOKIE;
	process_release();
	memset(fixture_memory, 0, FIXTURE_MEMORY);
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
	fixture_post(comm, ROOM);
	fixture_sends_complete();
}

/* CONNECT comes from relay @i for a path, with this epoch; returns whether it is accepted. */
static bool connect_accepted(int i, uint8_t path, uint32_t epoch)
{
	struct mesh_frame_connect connect = first;
	struct mesh_frame answer;

	connect.path = path;
	connect.epoch = epoch;
	assert_true(no_frame_to(i));
	process_take();
	assert_true(mesh_reroute_came(&fixture.peers[i], &connect));
	process_release();
	fixture.frames = frames[i];
	assert_true(fixture_next_frame(&answer));
	fixture.frames = frames[0];
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
	drained(0, 0);
	assert_true(connect_accepted(2, 0, 2));
	assert_int_equal(comm->num_up, 2);
	assert_int_equal(comm->paths[0].epoch, 2);
	assert_true(log_captured(MESH_LOG_WARN, "its messages go over it, too"));
	grant = fixture_last_sent(MESH_MESSAGE_GRANT, &payload);
	assert_int_equal(grant.epoch, 2);
	assert_int_equal(((const struct mesh_grant *)payload)->targets[0].key,
			 mesh_mr_key(fixture_registration(comm)->mrs[0]));
	/* What was asked for before comes late, and ends nothing. */
	frame_to(0, MESH_FRAME_CIRCUIT);
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
	fixture_comm_close(comm);
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
	drained(0, 0);
	assert_true(connect_accepted(2, 0, 1));
	resume_comes(1, 0);
	assert_int_equal(comm->num_up, 2);
	frame_to(1, MESH_FRAME_HAVE);
	resume_comes(1, 1);
	assert_int_equal(comm->paths[0].state, MESH_PATH_SUSPECT);
	assert_true(no_frame_to(1));
	drained(2, 0);
	frame_to(1, MESH_FRAME_HAVE);
	fixture_comm_close(comm);
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
	drained(0, 0);
	assert_true(connect_accepted(2, 0, 1));
	assert_int_equal(questions->paths, 2);
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

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
