/* SPDX-License-Identifier: Apache-2.0 */
/* test_late_path.c - a path that a comm did not have when it was made joins it. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "fabric/mr.h"
#include "transport/comm_open.h"
#include "transport/path_state.h"
#include "transport/registration.h"
#include "transport/rejoin.h"
#include "transport/rejoin_frames.h"

#include "comm_fixture.h"

#define ROOM ((size_t)1 << 20)
#define PROCESS_ID 0x1234
#define OWN_ID 0x77
#define PORT 999
#define LATER_MS 100000

static struct mesh_comm *comm;
static int late_frames; /* the peer's end of the late link's control connection */
static bool sends_at_once;

void __real_mesh_path_accepted(struct mesh_path *path, uint32_t remote_id, uint32_t remote_token);
void __wrap_mesh_path_accepted(struct mesh_path *path, uint32_t remote_id, uint32_t remote_token);

/* NCCL's thread may send as soon as the path is up. */
void __wrap_mesh_path_accepted(struct mesh_path *path, uint32_t remote_id, uint32_t remote_token)
{
	const int first = fake.writes.num;

	__real_mesh_path_accepted(path, remote_id, remote_token);
	if (!sends_at_once)
		return;
	sends_at_once = false;
	fixture_post(path->comm, ROOM);
	assert_int_equal(fake.writes.num, first);
}

/* A comm with one path, with a process to which a second link is up. */
static void open_one(bool sending, uint64_t max_paths)
{
	struct mesh_process *process = &fixture.setup.process;
	int i, ends[2];

	process->config.recovery = 1;
	process->config.max_paths = max_paths;
	process->process_id = OWN_ID;
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	assert_int_equal(mesh_addr_parse("10.7.1.2", &fixture.peers[1].address.addr), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fixture.peers[1].watch.fd = ends[0];
	late_frames = ends[1];
	mesh_lock_take(&process->lock);
	for (i = 0; i < 2; i++)
		fixture_peer_enter(&fixture.peers[i], PROCESS_ID, sending ? PORT : 0);
	assert_int_equal(mesh_comm_open(&fixture.net, sending, &fixture.peers[0], 1, 1, &comm), 0);
	mesh_path_accepted(&comm->paths[0], FIXTURE_REMOTE_ID, FIXTURE_REMOTE_TOKEN);
	mesh_lock_release(&process->lock);
	memset(fixture_memory, 0, FIXTURE_MEMORY);
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
}

static int teardown(void **state)
{
	mesh_lock_init(&fixture.setup.process.lock); /* a test that failed may hold it */
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_rejoins_close(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
	close(fixture.peers[1].watch.fd);
	close(late_frames);
	return fixture_teardown(state);
}

static struct mesh_frame late_frame(enum mesh_frame_type type)
{
	const int first = fixture.frames;
	struct mesh_frame frame;

	fixture.frames = late_frames;
	frame = fixture_frame(type);
	fixture.frames = first;
	return frame;
}

static bool late_no_frame(void)
{
	const int first = fixture.frames;
	bool none;

	fixture.frames = late_frames;
	none = fixture_no_frame();
	fixture.frames = first;
	return none;
}

/* The late link is tried, and tried again. */
static void link_try(void)
{
	struct mesh_process *process = &fixture.setup.process;

	mesh_lock_take(&process->lock);
	mesh_rejoin_new(&fixture.peers[0], fixture.domains[1], &fixture.peers[1].address);
	mesh_timers_run(&process->engine.timers, mesh_clock_ms());
	mesh_timers_run(&process->engine.timers, mesh_clock_ms() + LATER_MS);
	mesh_lock_release(&process->lock);
}

/* Writes since @first that went over the late path. */
static int late_writes(int first)
{
	int i, count = 0;

	for (i = first; i < fake.writes.num; i++) {
		if (fake.writes.posts[i].to == FAKE_ADDR_FIRST)
			continue; /* the first path's */
		count++;
		assert_int_equal(mesh_immediate_decode(fake.writes.posts[i].data).comm, 0xabc);
	}
	return count;
}

/* ---- the sending end ----------------------------------------------------------------------- */

static void join_accepted(const struct mesh_frame *join)
{
	const struct mesh_frame_accept accept = {
		.to_comm = join->connect.comm, .comm = 0xabc, .token = 0xdef};

	mesh_lock_take(&fixture.setup.process.lock);
	assert_true(mesh_rejoin_accepted(&fixture.peers[1], &accept));
	mesh_lock_release(&fixture.setup.process.lock);
}

static void test_sender(void **state)
{
	struct mesh_frame join;
	int first;

	(void)state;
	open_one(true, 8);
	link_try();
	join = late_frame(MESH_FRAME_JOIN);
	assert_true(late_no_frame()); /* asked once */
	assert_true(join.connect.cookie == PROCESS_ID && join.connect.comm_key == 1);
	assert_int_equal(join.connect.path, 1);
	assert_int_equal(join.connect.num_paths, 2);
	assert_int_equal(join.connect.comm, comm_path(comm, 1).sink->id);
	assert_int_equal(join.connect.token, comm_path(comm, 1).sink->token);
	assert_int_equal(comm->paths[1].state, MESH_PATH_JOINING);
	assert_non_null(fixture_registration(comm)->mrs[1]);
	/* The receiver does not know of it yet. */
	fixture.num_paths = 1;
	fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	fixture_poll();
	fixture_writes_complete(fake.writes.num);
	assert_int_equal(late_writes(0), 0);
	fixture_grant(comm, 1, 1, ROOM);
	/* Grants without a target there do not count: this one, and one that was on its way. */
	first = fake.writes.num;
	sends_at_once = true;
	join_accepted(&join);
	assert_false(sends_at_once);
	assert_int_equal(comm->paths[1].state, MESH_PATH_UP);
	fixture_grant(comm, 1, 1, ROOM);
	assert_int_equal(fake.writes.num, first);
	fixture.num_paths = 2;
	fixture_grant(comm, 1, 1, ROOM);
	fixture_poll();
	assert_true(late_writes(first) > 0);
	assert_true(late_writes(first) < fake.writes.num - first);
	fixture_writes_complete(fake.writes.num - fixture.writes_completed);
	/* What is registered from now on has both; the teardown finds what is not closed. */
	assert_non_null(fixture_register(comm, fixture_memory + ROOM, ROOM)->mrs[1]);
	fixture_comm_close(comm);
}

/* What is posted may have to go again: the grant with a target for the path is kept for it. */
static void test_sender_keeps_grants(void **state)
{
	const struct mesh_held_grant *held;
	struct mesh_frame join;

	(void)state;
	open_one(true, 8);
	link_try();
	join = late_frame(MESH_FRAME_JOIN);
	fixture.num_paths = 1;
	fixture_post(comm, ROOM);
	fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 2, ROOM);
	fixture_poll();
	join_accepted(&join);
	fixture.num_paths = 2;
	fixture_grant(comm, 0, 2, ROOM);
	mesh_lock_take(&comm->lock);
	held = mesh_comm_held_grant(comm, 0);
	assert_true(held->valid && !held->seq && held->paths == 2);
	mesh_lock_release(&comm->lock);
	fixture_writes_complete(fake.writes.num - fixture.writes_completed);
	/* Not for one that is done. */
	fixture_grant(comm, 0, 1, 2 * ROOM);
	mesh_lock_take(&comm->lock);
	assert_true(held->grant.size == ROOM);
	mesh_lock_release(&comm->lock);
	fixture_comm_close(comm);
}

/* No room, no memory, another kind, small messages do not fit: the comm goes on as it is. */
static void test_sender_without(void **state)
{
	int i;

	for (i = 0; i < 6; i++) {
		open_one(true, i ? 8 : 1);
		if (i == 1)
			fake_fail(FAKE_MR, 0, 100, -FI_ENOMEM);
		mesh_lock_take(&fixture.setup.process.lock);
		fixture.peers[0].routed = i == 2;
		if (i == 3)
			fixture.peers[1].eager_limit = (uint32_t)comm->eager_limit - 1;
		if (i == 4)
			fixture.domains[1]->payload_max = comm->eager_limit - 1;
		if (i == 5)
			fixture.peers[1].address = fixture.peers[0].address;
		mesh_lock_release(&fixture.setup.process.lock);
		link_try();
		assert_true(late_no_frame());
		assert_int_equal(*comm_inside(comm).num_paths, 1);
		assert_int_equal(*comm_inside(comm).error, 0);
		assert_null(fixture_registration(comm)->mrs[1]);
		fixture_comm_close(comm);
		if (i == 5)
			break;
		assert_int_equal(teardown(state), 0);
		assert_int_equal(fixture_setup(state), 0);
	}
}

/* ---- the receiving end --------------------------------------------------------------------- */

static void join_comes(uint8_t path, uint8_t num_paths)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.connect.cookie = OWN_ID;
	frame.connect.comm_key = 1;
	frame.connect.comm = 0xabc;
	frame.connect.token = 0xdef;
	frame.connect.path = path;
	frame.connect.num_paths = num_paths;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_rejoin_asked(&fixture.peers[1], &frame);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void test_receiver(void **state)
{
	static const uint8_t lies[][2] = {{2, 3}, {1, 3}, {0, 1}, {7, 8}, {1, 1}};
	struct mesh_message_header grant;
	struct mesh_frame accept;
	const void *payload;
	unsigned int i;

	(void)state;
	open_one(false, 8);
	fixture_post(comm, ROOM);
	assert_int_equal(fixture_last_sent(MESH_MESSAGE_GRANT, &payload).paths, 1);
	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		join_comes(lies[i][0], lies[i][1]);
		assert_int_equal(late_frame(MESH_FRAME_REFUSE).refuse.comm, 0xabc);
		assert_int_equal(*comm_inside(comm).num_paths, 1);
	}
	join_comes(1, 2);
	accept = late_frame(MESH_FRAME_ACCEPT);
	assert_int_equal(accept.accept.to_comm, 0xabc);
	assert_int_equal(accept.accept.comm, comm_path(comm, 1).sink->id);
	assert_int_equal(accept.accept.token, comm_path(comm, 1).sink->token);
	assert_int_equal(comm->paths[1].state, MESH_PATH_UP);
	assert_int_equal(*comm_path(comm, 1).remote_id, 0xabc);
	/* The grant that is out goes once more, with a target for the path. */
	grant = fixture_last_sent(MESH_MESSAGE_GRANT, &payload);
	assert_int_equal(grant.paths, 2);
	assert_int_equal(grant.seq, 0);
	assert_int_equal(((const struct mesh_grant *)payload)->targets[1].key,
			 mesh_mr_key(fixture_registration(comm)->mrs[1]));
	fixture_comm_close(comm);
}

/* A peer gets no more paths than there is room for. */
static void test_receiver_is_full(void **state)
{
	uint8_t path;

	(void)state;
	open_one(false, 8);
	for (path = 1; path < 8 && *comm_inside(comm).num_paths == path; path++)
		join_comes(path, (uint8_t)(path + 1));
	assert_int_equal(*comm_inside(comm).num_paths, 3);
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sender),   TEST(test_sender_keeps_grants), TEST(test_sender_without),
		TEST(test_receiver), TEST(test_receiver_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
