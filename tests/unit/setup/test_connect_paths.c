/* SPDX-License-Identifier: Apache-2.0 */
/* test_connect_paths.c - a connection whose peers are up: it asks for one path after the other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "setup/connect.h"
#include "setup/connect_try.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define COOKIE 0xabcdef

static struct mesh_connect *attempt;
static uint64_t start_ms;
static int second_frames; /* the peer's end of the second control connection */

static int setup(void **state)
{
	int i, ends[2];

	fixture_setup(state);
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fixture.peers[1].watch.fd = ends[0];
	second_frames = ends[1];
	start_ms = mesh_clock_ms();
	attempt = calloc(1, sizeof(*attempt));
	assert_non_null(attempt);
	attempt->net = &fixture.net;
	attempt->state = MESH_CONNECT_PEERS;
	attempt->handle.node_id = 2;
	attempt->handle.cookie = COOKIE;
	attempt->handle.listen_id = 3;
	attempt->started_ms = attempt->try_ms = start_ms;
	attempt->deadline_ms = start_ms + 60000;
	attempt->choice.num_candidates = 2;
	fixture.setup.process.config.max_paths = 8;
	for (i = 0; i < 2; i++) {
		struct mesh_peer *peer = &fixture.peers[i];

		fixture.setup.process.endpoints[i].nic = (uint8_t)i;
		fixture.setup.process.domains[i] = fixture.domains[i];
		attempt->handle.endpoints[i] = peer->address;
		attempt->choice.candidates[i] =
			(struct mesh_path_candidate){.local = (uint8_t)i, .remote = (uint8_t)i};
		LIST_INSERT_HEAD(&fixture.setup.process.peers, peer, entry);
	}
	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < 2; i++)
		mesh_peer_index_add(&fixture.peers[i]);
	LIST_INSERT_HEAD(&fixture.setup.connects, attempt, entry);
	LIST_INSERT_HEAD(&fixture.setup.connects_by_id[0], attempt, id_entry);
	assert_int_equal(mesh_connect_try_start(attempt, start_ms), 0);
	assert_int_equal(attempt->num_peers, 2);
	return 0;
}

static int teardown(void **state)
{
	if (attempt)
		mesh_connect_free(attempt);
	mesh_lock_release(&fixture.setup.process.lock);
	close(fixture.peers[1].watch.fd);
	close(second_frames);
	return fixture_teardown(state);
}

/* From peer @i's end. */
static struct mesh_frame frame_of(int i, enum mesh_frame_type type)
{
	const int first = fixture.frames;
	struct mesh_frame frame;

	fixture.frames = i ? second_frames : first;
	frame = fixture_frame(type);
	fixture.frames = first;
	return frame;
}

static void advance(void)
{
	mesh_connect_advance(attempt, start_ms + 10);
}

/* The listener is informed that this comm is dropped. */
static void withdrawn(uint64_t key)
{
	const struct mesh_frame frame = frame_of(0, MESH_FRAME_WITHDRAW);

	assert_true(frame.withdraw.cookie == COOKIE);
	assert_int_equal(frame.withdraw.listen_id, 3);
	assert_true(key && frame.withdraw.comm_key == key && !frame.withdraw.final);
}

/* ACCEPT from peer @i's end, for the path with id @comm. */
static void accepted(int i, uint32_t comm, uint32_t id, uint32_t token)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.accept.to_comm = comm;
	frame.accept.comm = id;
	frame.accept.token = token;
	mesh_connect_accept_handle(&fixture.peers[i], &frame);
}

static uint32_t latest_path_id(void)
{
	return attempt->comm->paths[attempt->comm->num_paths - 1].sink.id;
}

static void refused(enum mesh_refusal refusal)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.refuse.comm = latest_path_id();
	frame.refuse.refusal = refusal;
	mesh_connect_refuse_handle(&fixture.peers[attempt->num_accepted], &frame);
}

static void test_one_path_after_the_other(void **state)
{
	struct mesh_frame first, second;
	struct mesh_comm *comm;

	(void)state;
	advance();
	assert_int_equal(attempt->state, MESH_CONNECT_SENT);
	comm = attempt->comm;
	first = frame_of(0, MESH_FRAME_CONNECT);
	assert_true(first.connect.cookie == COOKIE);
	assert_int_equal(first.connect.listen_id, 3);
	assert_int_equal(first.connect.path, 0);
	assert_int_equal(first.connect.num_paths, 2);
	assert_int_equal(first.connect.comm, comm_path(comm, 0).sink->id);
	assert_int_equal(first.connect.token, comm_path(comm, 0).sink->token);
	/* Its answer is known by the peer and the path. */
	accepted(1, first.connect.comm, 70, 700);
	accepted(0, first.connect.comm + 1, 70, 700);
	assert_int_equal(attempt->num_accepted, 0);
	attempt->relay = (struct mesh_relay_try *)attempt; /* a relay answers with OPENED */
	accepted(0, first.connect.comm, 70, 700);
	attempt->relay = NULL;
	assert_int_equal(attempt->num_accepted, 0);
	accepted(0, first.connect.comm, 70, 700);
	assert_int_equal(attempt->num_accepted, 1);
	assert_int_equal(attempt->state, MESH_CONNECT_SENT);
	second = frame_of(1, MESH_FRAME_CONNECT);
	assert_int_equal(second.connect.path, 1);
	assert_true(second.connect.comm_key == first.connect.comm_key);
	accepted(0, first.connect.comm, 72, 702);
	assert_int_equal(attempt->num_accepted, 1);
	accepted(1, second.connect.comm, 71, 701);
	assert_int_equal(attempt->state, MESH_CONNECT_DONE);
	accepted(1, second.connect.comm, 72, 702); /* nothing waits for it */
	assert_int_equal(*comm_inside(comm).num_paths, 2);
	assert_int_equal(*comm_path(comm, 1).remote_id, 71);
	assert_int_equal(*comm_path(comm, 1).remote_token, 701);
	advance(); /* changes nothing more */
	assert_int_equal(attempt->state, MESH_CONNECT_DONE);
}

/*
 * A path breaks before all are accepted: the listener's end is closed, and the attempt starts
 * again.
 */
static void test_cut_on_the_way(void **state)
{
	struct mesh_peer *other;
	uint64_t key;

	(void)state;
	advance();
	key = frame_of(0, MESH_FRAME_CONNECT).connect.comm_key;
	advance(); /* nothing has happened */
	assert_true(fixture_no_frame());
	accepted(attempt->num_accepted, latest_path_id(), 70, 700);
	frame_of(1, MESH_FRAME_CONNECT);
	fixture.peers[1].state = MESH_PEER_LOST;
	fixture.peers[1].refusal = 0;
	advance();
	withdrawn(key);
	/* The next try has another peer for the second pair, which is not up yet. */
	assert_int_equal(attempt->state, MESH_CONNECT_PEERS);
	assert_null(attempt->comm);
	assert_int_equal(attempt->num_accepted, 0);
	assert_int_equal(attempt->num_peers, 2);
	other = attempt->peers[1];
	assert_ptr_not_equal(other, &fixture.peers[1]);
	mesh_connect_try_end(attempt);
	mesh_peer_free(other);
}

/* The listener may have made its end, with its ACCEPT in flight. */
static void test_given_up_before_any_answer(void **state)
{
	uint64_t key;
	int i;

	(void)state;
	advance();
	key = frame_of(0, MESH_FRAME_CONNECT).connect.comm_key;
	mesh_connect_free(attempt);
	attempt = NULL;
	withdrawn(key);
	for (i = 0; i < 2; i++) /* the listener learns of it, over each path */
		assert_int_equal(frame_of(i, MESH_FRAME_WITHDRAW).withdraw.final, 1);
	assert_true(LIST_EMPTY(&fixture.setup.process.comms));
	assert_int_equal(fixture.peers[0].users + fixture.peers[1].users, 0);
}

static void test_refused_on_the_way(void **state)
{
	uint64_t key;

	(void)state;
	advance();
	accepted(attempt->num_accepted, latest_path_id(), 70, 700);
	refused(MESH_REFUSAL_RESOURCES);
	assert_int_equal(attempt->state, MESH_CONNECT_FAILED);
	assert_int_equal(attempt->error, -ECONNREFUSED);
	assert_true(log_captured(MESH_LOG_WARN, "refused a connection: it is out of memory"));
	key = frame_of(0, MESH_FRAME_CONNECT).connect.comm_key;
	withdrawn(key);
	assert_null(attempt->comm);
}

/* The time is over while an answer is missing. */
static void test_no_accept_in_time(void **state)
{
	(void)state;
	advance();
	mesh_connect_advance(attempt, attempt->deadline_ms - 1);
	assert_int_equal(attempt->state, MESH_CONNECT_SENT);
	mesh_connect_advance(attempt, attempt->deadline_ms);
	assert_int_equal(attempt->state, MESH_CONNECT_FAILED);
	assert_int_equal(attempt->error, -ETIMEDOUT);
	assert_true(log_captured(MESH_LOG_WARN, "it does not answer our request"));
}

/* The NICs that HELLO has added are all without a carrier: the attempt waits for one. */
static void test_learned_without_carrier(void **state)
{
	static const struct mesh_nic nic = {.netdev = "no-such-nic"};
	struct mesh_process *process = &fixture.setup.process;

	(void)state;
	process->nics[2] = &nic;
	process->providers[2] = MESH_PROVIDER_TCP;
	process->dev_states[2] = MESH_DEV_FAILED;
	process->endpoints[2].nic = 2;
	attempt->choice.num_candidates = 1;
	attempt->choice.candidates[0] = (struct mesh_path_candidate){
		.local = 2,
		.provider = MESH_PROVIDER_TCP,
	};
	attempt->learning = true;
	advance();
	assert_int_equal(attempt->state, MESH_CONNECT_PEERS);
	assert_true(attempt->away);
	assert_true(log_captured(MESH_LOG_WARN, "no-such-nic has no carrier"));
	advance();
	assert_int_equal(attempt->state, MESH_CONNECT_PEERS);
	assert_int_equal(fixture.peers[0].users + fixture.peers[1].users, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_path_after_the_other),   TEST(test_cut_on_the_way),
		TEST(test_given_up_before_any_answer), TEST(test_refused_on_the_way),
		TEST(test_no_accept_in_time),	       TEST(test_learned_without_carrier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
