/* SPDX-License-Identifier: Apache-2.0 */
/* test_rejoin.c - a path that was lost joins its comm again, over a new peer of the same link. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/link_settle.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"
#include "transport/rejoin_frames.h"
#include "wire/stats.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)
#define PROCESS_ID 0x1234
#define OWN_ID 0x77
#define PORT 999
#define LONG_MS 100000

static struct mesh_comm *comm;
static struct mesh_peer again; /* the second path's link, when it works again */
static int again_frames;       /* its peer's end of the control connection */

/* The second link has a new peer, which is up. */
static void again_open(bool incoming)
{
	struct mesh_peer *before = &fixture.peers[1];
	int ends[2];

	memset(&again, 0, sizeof(again));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	again.process = before->process;
	again.domain = before->domain;
	again.address = before->address;
	again.state = MESH_PEER_UP;
	again.watch.fd = ends[0];
	again_frames = ends[1];
	mesh_lock_take(&fixture.setup.process.lock);
	assert_int_equal(mesh_remote_open(again.domain, before->remote->name,
					  before->remote->name_len, &again.remote),
			 0);
	fixture_peer_enter(&again, PROCESS_ID, incoming ? 0 : PORT);
	mesh_lock_release(&fixture.setup.process.lock);
}

static struct mesh_comm *open_two(bool sending)
{
	int i;

	fixture.setup.process.config.recovery = 1;
	fixture.setup.process.process_id = OWN_ID;
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < 2; i++)
		fixture_peer_enter(&fixture.peers[i], PROCESS_ID, sending ? PORT : 0);
	mesh_lock_release(&fixture.setup.process.lock);
	memset(fixture_memory, 0, FIXTURE_MEMORY);
	return fixture_comm_open(sending);
}

static int teardown(void **state)
{
	struct mesh_peer *attempt;

	mesh_lock_init(&fixture.setup.process.lock); /* a test that failed may hold it */
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_rejoins_close(&fixture.setup.process);
	while ((attempt = LIST_FIRST(&fixture.setup.process.peers)))
		mesh_peer_free(attempt);
	if (again.process) {
		mesh_peer_index_remove(&again);
		mesh_remote_close(again.domain, again.remote);
		close(again.watch.fd);
		close(again_frames);
		free(again.out);
	}
	memset(&again, 0, sizeof(again));
	mesh_lock_release(&fixture.setup.process.lock);
	return fixture_teardown(state);
}

static void comm_close(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	again.state = MESH_PEER_LOST;
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_comm_close(comm);
}

/* The second path is lost. */
static void second_lose(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_lock_take(&comm->lock);
	mesh_path_suspect(&comm->paths[1], -ECONNRESET);
	mesh_lock_release(&comm->lock);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void timers_run(uint64_t after_ms)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_timers_run(&fixture.setup.process.engine.timers, mesh_clock_ms() + after_ms);
	mesh_lock_release(&fixture.setup.process.lock);
}

static bool again_no_frame(void)
{
	const int first = fixture.frames;
	bool none;

	fixture.frames = again_frames;
	none = fixture_no_frame();
	fixture.frames = first;
	return none;
}

static struct mesh_frame again_frame(enum mesh_frame_type type)
{
	const int first = fixture.frames;
	struct mesh_frame frame;

	fixture.frames = again_frames;
	frame = fixture_frame(type);
	fixture.frames = first;
	return frame;
}

/* ---- the sending end ----------------------------------------------------------------------- */

static bool accept_comes(struct mesh_peer *peer, uint32_t id)
{
	const struct mesh_frame_accept accept = {.to_comm = id, .comm = 0xabc, .token = 0xdef};
	bool mine;

	mesh_lock_take(&fixture.setup.process.lock);
	mine = mesh_rejoin_accepted(peer, &accept);
	mesh_lock_release(&fixture.setup.process.lock);
	return mine;
}

static void test_path_joins_again(void **state)
{
	struct mesh_frame join;
	uint32_t before;
	int i, second = 0;

	(void)state;
	comm = open_two(true);
	before = comm_path(comm, 1).sink->id;
	second_lose();
	assert_int_equal(comm->paths[1].state, MESH_PATH_DOWN);
	again_open(false);
	timers_run(0);
	join = again_frame(MESH_FRAME_JOIN);
	assert_int_equal(comm->paths[1].state, MESH_PATH_JOINING);
	assert_true(join.connect.cookie == PROCESS_ID && join.connect.comm_key == 1);
	assert_int_equal(join.connect.listen_id, 0);
	assert_int_equal(join.connect.path, 1);
	assert_int_equal(join.connect.num_paths, 2);
	assert_int_equal(join.connect.comm, comm_path(comm, 1).sink->id);
	assert_int_equal(join.connect.token, comm_path(comm, 1).sink->token);
	assert_int_not_equal(join.connect.comm, before);
	timers_run(LONG_MS);
	assert_true(again_no_frame()); /* asked once */
	assert_int_equal(*comm_inside(comm).num_paths, 2);
	/* Nothing goes there before the answer, and only the right one counts. */
	fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	for (i = 0; i < fake.writes.num; i++)
		assert_int_equal(fake.writes.posts[i].to, FAKE_ADDR_FIRST);
	assert_false(accept_comes(&again, before));
	assert_false(accept_comes(&fixture.peers[0], join.connect.comm));
	assert_true(accept_comes(&again, join.connect.comm));
	assert_int_equal(comm->paths[1].state, MESH_PATH_UP);
	assert_false(accept_comes(&again, join.connect.comm));
	fixture_writes_complete(fake.writes.num - fixture.writes_completed);
	fixture_post(comm, ROOM);
	fixture_grant(comm, 1, 1, ROOM);
	for (; i < fake.writes.num; i++) {
		if (fake.writes.posts[i].to == FAKE_ADDR_FIRST)
			continue;
		second++;
		assert_int_equal(mesh_immediate_decode(fake.writes.posts[i].data).comm, 0xabc);
	}
	assert_true(second);
	fixture_writes_complete(fake.writes.num - fixture.writes_completed);
	comm_close();
}

/* The attempts for a routed path say so in their HELLO: the peer asks its kernel for the route. */
static void test_routed_path_joins_again(void **state)
{
	const struct mesh_peer *attempt;

	(void)state;
	comm = open_two(true);
	fixture.peers[1].routed = true;
	second_lose();
	timers_run(0);
	attempt = LIST_FIRST(&fixture.setup.process.peers);
	assert_non_null(attempt);
	assert_true(attempt->routed);
	comm_close();
}

/* Operations of the path's earlier life must have ended. */
static void test_path_that_is_busy(void **state)
{
	struct mesh_request *request;
	int i;

	(void)state;
	comm = open_two(true);
	request = fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	second_lose();
	again_open(false);
	mesh_lock_take(&fixture.setup.process.lock);
	assert_false(mesh_link_is_quiet(&again));
	assert_false(mesh_link_settle(&again));
	mesh_lock_release(&fixture.setup.process.lock);
	timers_run(0);
	assert_true(again_no_frame());
	for (i = 0; i < fake.writes.num; i++) {
		fake_complete_error(fake.writes.posts[i].context, FI_ECONNRESET);
		fake.completions[fake.completed - 1].domain = fake.writes.posts[i].domain;
	}
	fixture.writes_completed = fake.writes.num;
	fixture_poll();
	mesh_lock_take(&fixture.setup.process.lock);
	assert_true(mesh_link_is_quiet(&again));
	assert_true(mesh_link_settle(&again));
	mesh_lock_release(&fixture.setup.process.lock);
	timers_run(LONG_MS);
	again_frame(MESH_FRAME_JOIN);
	assert_int_equal(fixture_test(request), -1);
	comm_close();
}

static void test_refused(void **state)
{
	struct mesh_frame_refuse refuse = {.refusal = MESH_REFUSAL_RESOURCES};
	struct mesh_frame join;

	(void)state;
	comm = open_two(true);
	second_lose();
	again_open(false);
	timers_run(0);
	join = again_frame(MESH_FRAME_JOIN);
	refuse.comm = join.connect.comm;
	mesh_lock_take(&fixture.setup.process.lock);
	assert_false(mesh_rejoin_refused(&fixture.peers[0], &refuse));
	assert_true(mesh_rejoin_refused(&again, &refuse));
	assert_false(mesh_rejoin_refused(&again, &refuse));
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(comm->paths[1].state, MESH_PATH_DOWN);
	timers_run(LONG_MS);
	assert_int_not_equal(again_frame(MESH_FRAME_JOIN).connect.comm, join.connect.comm);
	comm_close();
}

/* The new peer is lost before it answers. */
static void test_lost_while_joining(void **state)
{
	(void)state;
	comm = open_two(true);
	second_lose();
	again_open(false);
	timers_run(0);
	again_frame(MESH_FRAME_JOIN);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_lock_take(&fixture.domains[1]->lock);
	again.state = MESH_PEER_LOST;
	mesh_path_lost(&comm->paths[1]);
	mesh_lock_release(&fixture.domains[1]->lock);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(comm->paths[1].state, MESH_PATH_DOWN);
	assert_int_equal(*comm_inside(comm).error, 0);
	comm_close();
}

/* Each loss is followed by a longer pause, up to 10 s. */
static void test_flapping(void **state)
{
	static const uint64_t pauses[] = {250, 500, 1000, 2000, 4000, 8000, 10000, 10000};
	struct mesh_timers *timers = &fixture.setup.process.engine.timers;
	size_t i;

	(void)state;
	comm = open_two(true);
	second_lose();
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_timers_cancel(timers, &fixture.peers[1].timer);
	for (i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		fixture.peers[1].state_ms = 1000000 + i;
		/* All comms of the link lose it at once. */
		mesh_rejoin_want(&comm->paths[1]);
		mesh_rejoin_want(&comm->paths[1]);
		assert_int_equal(timers->first->due_ms, 1000000 + i + pauses[i]);
	}
	mesh_lock_release(&fixture.setup.process.lock);
	comm_close();
}

/* ---- no path is left ----------------------------------------------------------------------- */

static void path_lose(int path)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_lock_take(&comm->lock);
	mesh_path_suspect(&comm->paths[path], -ECONNRESET);
	mesh_lock_release(&comm->lock);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void paths_lose(void)
{
	path_lose(1);
	path_lose(0);
}

/* It waits for NCCL_MESH_RECOVERY_TIMEOUT, at each end, from the last answer on. */
static void test_wait_ends(void **state)
{
	uint64_t now_ms = mesh_clock_ms();
	int sending, i;

	for (sending = 0; sending < 2; sending++) {
		if (sending)
			assert_int_equal(fixture_setup(state), 0);
		fixture.setup.process.config.recovery_timeout_s = 30;
		comm = open_two(sending);
		paths_lose();
		assert_int_equal(*comm_inside(comm).error, 0);
		for (i = 0; i < 2; i++)
			fixture.peers[i].heard_ms = now_ms;
		timers_run(29000);
		assert_int_equal(*comm_inside(comm).error, 0);
		timers_run(31000);
		assert_failed(comm, -ETIMEDOUT, "has not come back over any path for 30 s");
		comm_close();
		if (!sending)
			assert_int_equal(teardown(state), 0);
	}
}

/* A JOIN that is refused for now is an answer: the time to wait counts from the link's return. */
static void test_wait_for_one_that_is_busy(void **state)
{
	struct mesh_frame_refuse refuse = {.refusal = MESH_REFUSAL_RESOURCES};
	uint64_t now_ms = mesh_clock_ms();

	(void)state;
	fixture.setup.process.config.recovery_timeout_s = 30;
	comm = open_two(true);
	paths_lose();
	fixture.peers[0].heard_ms = fixture.peers[1].heard_ms = now_ms - 29000;
	again_open(false);
	again.state_ms = now_ms;
	timers_run(0);
	refuse.comm = again_frame(MESH_FRAME_JOIN).connect.comm;
	mesh_lock_take(&fixture.setup.process.lock);
	assert_true(mesh_rejoin_refused(&again, &refuse));
	mesh_lock_release(&fixture.setup.process.lock);
	timers_run(2000);
	assert_int_equal(*comm_inside(comm).error, 0);
	again_frame(MESH_FRAME_JOIN);
	mesh_lock_take(&fixture.setup.process.lock);
	again.state = MESH_PEER_LOST;
	again.heard_ms = now_ms;
	mesh_lock_release(&fixture.setup.process.lock);
	timers_run(31000);
	assert_failed(comm, -ETIMEDOUT, "has not come back over any path for 30 s");
	comm_close();
}

/* The other end was ended while no path led there: at each end the comm waits no longer. */
static void test_abandoned(void **state)
{
	struct mesh_frame_refuse refuse = {.refusal = MESH_REFUSAL_ENDED};
	struct mesh_frame join;
	int sending;

	for (sending = 0; sending < 2; sending++) {
		if (sending)
			assert_int_equal(fixture_setup(state), 0);
		fixture.setup.process.config.recovery_timeout_s = 30;
		comm = open_two(sending);
		fixture.peers[1].listens_at = PORT;
		paths_lose();
		fixture.peers[0].heard_ms = mesh_clock_ms();
		again_open(false);
		timers_run(0);
		join = again_frame(MESH_FRAME_JOIN);
		assert_int_equal(join.connect.asks, !sending);
		assert_true(join.connect.comm_key == 1 && join.connect.cookie == PROCESS_ID);
		refuse.comm = join.connect.comm + 4;
		mesh_lock_take(&fixture.setup.process.lock);
		assert_false(mesh_rejoin_refused(&again, &refuse));
		refuse.comm = join.connect.comm;
		assert_int_equal(*comm_inside(comm).error, 0);
		assert_true(mesh_rejoin_refused(&again, &refuse));
		mesh_lock_release(&fixture.setup.process.lock);
		assert_failed(comm, -ECONNRESET, "had ended a connection meanwhile");
		comm_close();
		if (!sending)
			assert_int_equal(teardown(state), 0);
	}
}

/* ---- the receiving end --------------------------------------------------------------------- */

static void join_comes(struct mesh_peer *peer, uint64_t cookie, uint64_t key, uint8_t path,
		       uint8_t num_paths)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.connect.cookie = cookie;
	frame.connect.comm_key = key;
	frame.connect.comm = 0xabc;
	frame.connect.token = 0xdef;
	frame.connect.path = path;
	frame.connect.num_paths = num_paths;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_rejoin_asked(peer, &frame);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void assert_refused(void)
{
	assert_int_equal(again_frame(MESH_FRAME_REFUSE).refuse.comm, 0xabc);
	assert_int_not_equal(comm->paths[1].state, MESH_PATH_JOINING);
}

static void test_receiver_takes_it_back(void **state)
{
	struct mesh_frame accept;
	uint32_t before;

	(void)state;
	comm = open_two(false);
	before = comm_path(comm, 1).sink->id;
	again_open(true);
	join_comes(&again, OWN_ID, 1, 1, 2); /* it is up */
	assert_refused();
	second_lose();
	assert_int_equal(comm->paths[1].state, MESH_PATH_SUSPECT);
	join_comes(&again, OWN_ID, 1, 1, 2); /* the sender has not stopped */
	assert_refused();
	mesh_lock_take(&fixture.setup.process.lock);
	again.state = MESH_PEER_HELLO;
	assert_true(mesh_link_settle(&again));
	again.state = MESH_PEER_UP;
	mesh_rejoin_peer_up(&again);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(comm->paths[1].state, MESH_PATH_DOWN);
	assert_true(log_captured(MESH_LOG_WARN, "its messages go over this path, too"));
	/* Ones that lie. */
	join_comes(&again, OWN_ID + 1, 1, 1, 2);
	assert_refused();
	join_comes(&again, OWN_ID, 2, 1, 2);
	assert_refused();
	join_comes(&again, OWN_ID, 1, 0, 2);
	assert_refused();
	join_comes(&again, OWN_ID, 1, 1, 3);
	assert_refused();
	join_comes(&again, OWN_ID, 1, 7, 8);
	assert_refused();
	assert_int_equal(fixture.setup.process.own_counters.refused, 7);
	assert_int_equal(comm->paths[1].state, MESH_PATH_DOWN);
	join_comes(&again, OWN_ID, 1, 1, 2);
	accept = again_frame(MESH_FRAME_ACCEPT);
	assert_int_equal(comm->paths[1].state, MESH_PATH_UP);
	assert_int_equal(accept.accept.to_comm, 0xabc);
	assert_int_equal(accept.accept.comm, comm_path(comm, 1).sink->id);
	assert_int_equal(accept.accept.token, comm_path(comm, 1).sink->token);
	assert_int_not_equal(accept.accept.comm, before);
	assert_int_equal(*comm_path(comm, 1).remote_id, 0xabc);
	assert_int_equal(*comm_path(comm, 1).remote_token, 0xdef);
	comm_close();
}

/* What a receiving end asks: answered only if the comm has ended. */
static void test_does_it_live(void **state)
{
	struct mesh_frame ask = {.connect = {.cookie = OWN_ID, .comm = 0xabc, .asks = 1}};
	int i;

	(void)state;
	comm = open_two(true);
	paths_lose();
	again_open(true);
	for (i = 0; i < 3; i++) {
		ask.connect.comm_key = i == 1 ? 2 : 1;
		mesh_lock_take(&fixture.setup.process.lock);
		mesh_rejoin_asked(&again, &ask);
		mesh_lock_release(&fixture.setup.process.lock);
		if (i)
			assert_int_equal(again_frame(MESH_FRAME_REFUSE).refuse.refusal,
					 MESH_REFUSAL_ENDED);
		assert_true(again_no_frame());
		fixture_fail(comm, i ? -EIO : 0);
	}
	comm_close();
}

/* A HELLO of another process, or with another name for this one, is none of a lost link. */
static void test_which_hello(void **state)
{
	static const struct mesh_frame_hello hellos[] = {
		{.process_id = PROCESS_ID, .cookie = OWN_ID}, /* the only right one */
		{.process_id = PROCESS_ID, .cookie = OWN_ID + 1},
		{.process_id = PROCESS_ID, .cookie = OWN_ID, .listen_id = 1},
		{.process_id = PROCESS_ID + 1, .cookie = OWN_ID},
	};
	const struct mesh_process *process = &fixture.setup.process;
	int i;

	(void)state;
	comm = open_two(false);
	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < 4; i++)
		assert_int_equal(mesh_rejoin_admits(process, &hellos[i]), !i);
	fixture.peers[0].over = fixture.peers[1].over = true;
	assert_false(mesh_rejoin_admits(process, &hellos[0]));
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_comm_close(comm);
}

/* An end that has not noticed the loss learns of it from the HELLO. */
static void test_stale_peer(void **state)
{
	(void)state;
	comm = open_two(false);
	again_open(true);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_link_join(&fixture.peers[1]);
	again.state = MESH_PEER_HELLO;
	assert_true(mesh_link_settle(&again));
	assert_int_equal(fixture.peers[1].state, MESH_PEER_LOST);
	assert_int_equal(fixture.peers[0].state, MESH_PEER_UP);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_true(log_captured(MESH_LOG_WARN, "its process connects anew"));
	comm_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_path_joins_again),
		TEST(test_routed_path_joins_again),
		TEST(test_path_that_is_busy),
		TEST(test_refused),
		TEST(test_lost_while_joining),
		TEST(test_flapping),
		TEST(test_wait_ends),
		TEST(test_wait_for_one_that_is_busy),
		TEST(test_abandoned),
		TEST(test_does_it_live),
		TEST(test_receiver_takes_it_back),
		TEST(test_which_hello),
		TEST(test_stale_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
