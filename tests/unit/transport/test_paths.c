/* SPDX-License-Identifier: Apache-2.0 */
/* test_paths.c - a comm whose paths do not all live: what still gets across, and over which. */
#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "control/peer_end.h"
#include "control/peer_index.h"
#include "fabric/buffer.h"
#include "transport/frames.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"
#include "wire/stats.h"
#include "transport/stall.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)

static struct mesh_comm *comm;

/* The first control connection has ended; what the peer reads is the second's. */
static void first_peer_lose(void)
{
	fixture.peers[1].watch.fd = fixture.peers[0].watch.fd;
	fixture.peers[0].watch.fd = -1;
	fixture.peers[0].state = MESH_PEER_LOST;
}

/* Frames go over the control connection that is up, and name the comm as that path's peer does. */
static void test_frames_leave_over_a_living_path(void **state)
{
	struct mesh_frame frame = {0};

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_frame_send(comm, &frame, MESH_FRAME_ASK);
	assert_int_equal(fixture_frame(MESH_FRAME_ASK).to_comm, FIXTURE_REMOTE_ID);
	first_peer_lose();
	mesh_comm_frame_send(comm, &frame, MESH_FRAME_ASK);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(fixture_frame(MESH_FRAME_ASK).to_comm, FIXTURE_REMOTE_ID + 1);
	fixture_comm_close(comm);
}

/* A comm is found by its id on the path that the frame came over, whichever that is. */
static void test_frames_come_over_each_path(void **state)
{
	struct mesh_frame frame = {.header = {.type = MESH_FRAME_ASK}};
	int i;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 2, false);
	fixture_post(comm, ROOM);
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 1);
	for (i = 0; i < 2; i++) {
		mesh_lock_take(&fixture.setup.process.lock);
		frame.to_comm = comm_path(comm, i).sink->id + 1; /* of no comm */
		mesh_comm_frame_handle(&fixture.peers[i], &frame);
		assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 1 + i);
		frame.to_comm = comm_path(comm, i).sink->id;
		mesh_comm_frame_handle(&fixture.peers[i], &frame);
		mesh_lock_release(&fixture.setup.process.lock);
		assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 2 + i);
	}
	fixture_comm_close(comm);
}

/* ---- states -------------------------------------------------------------------------------- */

static void test_path_steps(void **state)
{
	static const bool legal[MESH_PATH_STATES][MESH_PATH_STATES] = {
		[MESH_PATH_JOINING] =
			{[MESH_PATH_UP] = true, [MESH_PATH_DOWN] = true, [MESH_PATH_GONE] = true},
		[MESH_PATH_UP] = {[MESH_PATH_SUSPECT] = true, [MESH_PATH_GONE] = true},
		[MESH_PATH_SUSPECT] = {[MESH_PATH_DOWN] = true, [MESH_PATH_GONE] = true},
		[MESH_PATH_DOWN] = {[MESH_PATH_JOINING] = true, [MESH_PATH_GONE] = true},
	};
	int from, to;

	(void)state;
	for (from = 0; from < MESH_PATH_STATES; from++)
		for (to = 0; to < MESH_PATH_STATES; to++)
			assert_int_equal(mesh_path_may_become(from, to), legal[from][to]);
}

/* ---- one of two paths is lost -------------------------------------------------------------- */

static enum mesh_path_state state_of(int path)
{
	return comm->paths[path].state;
}

static void tick(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void frame_comes(enum mesh_frame_type type, struct mesh_frame *frame)
{
	mesh_lock_take(&fixture.setup.process.lock);
	if (type == MESH_FRAME_HAVE)
		mesh_have_frame_handle(&fixture.peers[0], frame);
	else
		mesh_resume_frame_handle(&fixture.peers[0], frame);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The receiver's answer: it has these of the first 64 segments. */
static void have_comes(uint32_t seq, uint32_t round, uint64_t arrived)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.have.to_comm = comm_path(comm, 0).sink->id;
	frame.have.seq = seq;
	frame.have.round = round;
	frame.have.arrived[0] = arrived;
	frame_comes(MESH_FRAME_HAVE, &frame);
}

static struct mesh_comm *resuming_open(bool sending)
{
	fixture.setup.process.config.recovery = 1;
	return fixture_open(MESH_PROVIDER_TCP, 2, sending);
}

static int write_path(int i)
{
	return (int)(fake.writes.posts[i].to - FAKE_ADDR_FIRST);
}

static uint32_t write_segment(int i)
{
	return mesh_immediate_decode(fake.writes.posts[i].data).segment;
}

/* A posted operation ends with the reset of its connection. */
static void fail_reset(const struct fake_post *post)
{
	fake_complete_error(post->context, FI_ECONNRESET);
	fake.completions[fake.completed - 1].domain = post->domain;
}

/* All writes so far on @path fail, the others arrive. Returns bits: the segments that failed. */
static uint64_t writes_end(int path)
{
	uint64_t failed = 0;

	for (; fixture.writes_completed < fake.writes.num; fixture.writes_completed++) {
		if (write_path(fixture.writes_completed) != path) {
			fake_complete(&fake.writes.posts[fixture.writes_completed]);
			continue;
		}
		fail_reset(&fake.writes.posts[fixture.writes_completed]);
		failed |= 1ull << write_segment(fixture.writes_completed);
	}
	fixture_poll();
	return failed;
}

/* The receiver is asked, over the other path; what it lacks goes there, and nothing else. */
static void test_segments_go_over_the_other_path(void **state)
{
	struct mesh_request *request;
	struct mesh_frame frame;
	uint64_t failed, missing, again = 0;
	int first, i;

	(void)state;
	comm = resuming_open(true);
	request = fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	failed = writes_end(1);
	missing = failed & (failed - 1);
	assert_true(missing); /* two for each path, or as the clock sees them */
	assert_int_equal(state_of(1), MESH_PATH_SUSPECT);
	assert_int_equal(fixture_test(request), -1);
	tick();
	assert_int_equal(state_of(1), MESH_PATH_DOWN);
	assert_int_equal(fixture.peers[1].state, MESH_PEER_LOST);
	assert_true(log_captured(MESH_LOG_WARN, "its messages go over the other paths now"));
	tick();
	frame = fixture_frame(MESH_FRAME_RESUME);
	assert_int_equal(frame.resume.to_comm, FIXTURE_REMOTE_ID);
	assert_int_equal(frame.resume.seq, 0);
	assert_int_equal(frame.resume.dead, 1 << 1);
	assert_int_equal(frame.resume.ids[1], FIXTURE_REMOTE_ID + 1);
	tick();
	assert_true(fixture_no_frame()); /* it is asked once */
	first = fake.writes.num;
	have_comes(0, frame.resume.round - 1, 0); /* an older question's answer */
	have_comes(1, frame.resume.round, 0);
	assert_int_equal(fake.writes.num, first);
	/* It has one of them; that it claims to lack others, or to have more, means nothing. */
	have_comes(0, frame.resume.round, (failed & -failed) | 1ull << 63);
	assert_int_equal(fixture.setup.process.own_counters.refused, 1);
	assert_int_equal(fake.writes.num, first + __builtin_popcountll(missing));
	for (i = first; i < fake.writes.num; i++) {
		assert_int_equal(write_path(i), 0);
		again |= 1ull << write_segment(i);
		assert_ptr_equal(fake.writes.posts[i].buffer,
				 fixture_memory + write_segment(i) * (ROOM / 4));
	}
	assert_true(again == missing);
	have_comes(0, frame.resume.round, 0);
	assert_int_equal(fake.writes.num, i);
	fixture_writes_complete(__builtin_popcountll(missing));
	assert_int_equal(comm_path(comm, 1).counters->losses, 1);
	assert_int_equal(comm_path(comm, 0).counters->losses, 0);
	assert_int_equal(comm_path(comm, 0).counters->resent,
			 __builtin_popcountll(missing) * (ROOM / 4));
	assert_int_equal(fixture_test(request), ROOM);
	assert_int_equal(*comm_inside(comm).error, 0);
	fixture_comm_close(comm);
}

/* A segment that fails after the question was sent is asked about again. */
static void test_doubt_that_grows(void **state)
{
	struct mesh_request *request;
	uint32_t round;
	int first;

	(void)state;
	comm = resuming_open(true);
	request = fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	writes_end(1);
	tick();
	tick();
	round = fixture_frame(MESH_FRAME_RESUME).resume.round;
	have_comes(0, round, 0);
	first = fixture.writes_completed;
	assert_int_equal(fake.writes.num, first + 2);
	/* One of the two that were sent again arrives, but its completion says otherwise. */
	fake_complete(&fake.writes.posts[fixture.writes_completed++]);
	fail_reset(&fake.writes.posts[fixture.writes_completed++]);
	fixture_poll();
	assert_int_equal(state_of(0), MESH_PATH_SUSPECT);
	have_comes(0, round, ~0ull);
	assert_int_equal(fixture_test(request), -1);
	fixture_comm_close(comm);
}

/* The copies of what the receiver may lack go again, also of requests that NCCL has back. */
static void test_small_messages_go_again(void **state)
{
	const struct mesh_message_header *header;
	struct mesh_request *request;
	uint32_t seq;
	int first, i;

	(void)state;
	comm = resuming_open(true);
	for (seq = 0; seq < MESH_EAGER_WINDOW; seq++) {
		fixture_memory[0] = (char)(seq + 1);
		request = fixture_post(comm, 8);
		fixture_sends_complete();
		assert_true(fixture_is_done(request));
	}
	fixture_memory[0] = 0;
	/* A receiver that has posted 37 has had the first five. */
	fixture_message(comm, 0, MESH_MESSAGE_POSTED, MESH_COMM_REQUESTS + 5, NULL, 0);
	first = fake.sends.num;
	mesh_lock_take(&comm->lock);
	mesh_path_suspect(&comm->paths[1], -ECONNRESET);
	mesh_lock_release(&comm->lock);
	tick();
	assert_int_equal(fake.sends.num, first + MESH_EAGER_WINDOW - 5);
	for (i = first; i < fake.sends.num; i++) {
		header = (const struct mesh_message_header *)fake.sends.posts[i].bytes;
		assert_int_equal(header->seq, i - first + 5);
		assert_int_equal(header->comm, FIXTURE_REMOTE_ID);
		assert_int_equal(fake.sends.posts[i].bytes[sizeof(*header)], header->seq + 1);
	}
	fixture_comm_close(comm);
}

/* The second path is lost; the engine has its turn. */
static void second_path_lose(void)
{
	mesh_lock_take(&comm->lock);
	mesh_path_suspect(&comm->paths[1], -ECONNRESET);
	mesh_lock_release(&comm->lock);
	tick();
}

/* Of all sizes the copy has the bytes that were sent, whatever NCCL writes there afterwards. */
static void test_copies_are_whole(void **state)
{
	static const size_t sizes[] = {
		1, 8, MESH_COPY_NEAR, MESH_COPY_NEAR + 1, 700, FIXTURE_EAGER_LIMIT};
	const int num = sizeof(sizes) / sizeof(sizes[0]);
	const struct fake_post *post;
	size_t byte;
	int i;

	(void)state;
	comm = resuming_open(true);
	for (i = 0; i < num; i++) {
		memset(fixture_memory, i + 1, sizes[i]);
		fixture_post(comm, sizes[i]);
		fixture_sends_complete();
	}
	memset(fixture_memory, 0, FIXTURE_EAGER_LIMIT);
	second_path_lose();
	assert_int_equal(fake.sends.num, 2 * num);
	for (i = 0; i < num; i++) {
		post = &fake.sends.posts[num + i];
		assert_int_equal(post->size, sizeof(struct mesh_message_header) + sizes[i]);
		for (byte = sizeof(struct mesh_message_header); byte < post->size; byte++)
			assert_int_equal(post->buffer[byte], i + 1);
	}
	fixture_comm_close(comm);
}

/* A message that had to wait for a buffer is not sent twice when a path is lost meanwhile. */
static void test_message_that_waits(void **state)
{
	struct mesh_buffer *taken[1024];
	struct mesh_request *request;
	int i, num = 0;

	(void)state;
	comm = resuming_open(true);
	for (i = 0; i < 2; i++)
		while ((taken[num] = mesh_remote_buffer_get(fixture.domains[i],
							    fixture.peers[i].remote)))
			num++;
	request = fixture_post(comm, 700);
	assert_int_equal(fake.sends.num, 0);
	while (num)
		mesh_buffer_put(taken[--num]);
	second_path_lose();
	fixture_poll();
	assert_int_equal(fake.sends.num, 1);
	fixture_sends_complete();
	assert_true(fixture_is_done(request));
	fixture_comm_close(comm);
}

/* NCCL may send nothing from no address; memcpy() requires one even then (UBSan). */
static void test_empty_message_is_kept(void **state)
{
	struct mesh_request *request = NULL;

	(void)state;
	comm = resuming_open(true);
	assert_int_equal(mesh_comm_send(comm, NULL, 0, NULL, &request), 0);
	fixture_sends_complete();
	assert_true(fixture_is_done(request));
	fixture_comm_close(comm);
}

/* What a message says that was lost is said again; the failure of a message fails nothing. */
static void test_message_that_fails(void **state)
{
	struct mesh_request *request;

	(void)state;
	comm = resuming_open(true);
	request = fixture_post(comm, 8);
	assert_int_equal(fake.sends.num, 1);
	fail_reset(&fake.sends.posts[fixture.sends_completed++]);
	fixture_poll();
	assert_true(fixture_is_done(request)); /* there is a copy */
	assert_int_equal(*comm_inside(comm).error, 0);
	tick();
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 2);
	fixture_comm_close(comm);
}

/* ---- the receiving end --------------------------------------------------------------------- */

static void resume_comes(uint32_t seq, uint32_t id)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.resume.to_comm = comm_path(comm, 0).sink->id;
	frame.resume.seq = seq;
	frame.resume.round = 7;
	frame.resume.dead = 1 << 1 | 1u << 31;
	frame.resume.ids[1] = id;
	frame_comes(MESH_FRAME_RESUME, &frame);
}

/* It grants again, counts what still arrives, and answers once the path is fenced. */
static void test_receiver_answers(void **state)
{
	struct mesh_request *request;
	struct mesh_frame frame;
	uint64_t immediate;

	(void)state;
	comm = resuming_open(false);
	request = fixture_post(comm, ROOM);
	fixture_written(comm, 1, (struct mesh_immediate){.segment = 2});
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 1);
	mesh_lock_take(&comm->lock);
	mesh_path_suspect(&comm->paths[1], -ECONNRESET);
	mesh_lock_release(&comm->lock);
	tick();
	assert_int_equal(state_of(1), MESH_PATH_SUSPECT);
	assert_int_equal(fixture_sent(MESH_MESSAGE_GRANT), 2);
	fixture_written(comm, 1, (struct mesh_immediate){.segment = 65});
	resume_comes(0, comm_path(comm, 1).sink->id + 1); /* another life of the path */
	assert_int_equal(fixture_frame(MESH_FRAME_HAVE).have.round, 7);
	assert_int_equal(state_of(1), MESH_PATH_SUSPECT);
	resume_comes(0, comm_path(comm, 1).sink->id);
	assert_int_equal(state_of(1), MESH_PATH_DOWN);
	frame = fixture_frame(MESH_FRAME_HAVE);
	assert_int_equal(frame.have.to_comm, FIXTURE_REMOTE_ID);
	assert_int_equal(frame.have.complete, 0);
	assert_true(frame.have.arrived[0] == 1 << 2);
	assert_true(frame.have.arrived[1] == 1 << 1);
	/* What arrives after the fence finds no comm. */
	immediate = mesh_immediate_encode(&(struct mesh_immediate){
		.comm = comm_path(comm, 1).sink->id, .segment = 3, .last = true});
	fake_deliver_immediate(immediate);
	mesh_domain_poll(fixture.domains[1]);
	assert_int_equal(fixture.domains[1]->strangers, 1);
	fixture_written(comm, 0, (struct mesh_immediate){.segment = 0});
	assert_int_equal(fixture_test(request), -1);
	resume_comes(1, 0); /* a message that no receive is posted for */
	assert_int_equal(fixture_frame(MESH_FRAME_HAVE).have.complete, 0);
	/* Each of these named a path that the comm does not have. */
	assert_int_equal(fixture.setup.process.own_counters.refused, 3);
	/* For no comm of this peer, as from another process. */
	memset(&frame, 0, sizeof(frame));
	frame.to_comm = comm_path(comm, 0).sink->id + 1;
	frame_comes(MESH_FRAME_RESUME, &frame);
	frame_comes(MESH_FRAME_HAVE, &frame);
	assert_int_equal(fixture.setup.process.own_counters.refused, 5);
	assert_true(fixture_no_frame());
	fixture_comm_close(comm);
}

static void test_receiver_has_it_all(void **state)
{
	struct mesh_request *request;

	(void)state;
	comm = resuming_open(false);
	request = fixture_post(comm, ROOM);
	fixture_written(comm, 1, (struct mesh_immediate){.segment = 0, .last = true});
	assert_int_equal(fixture_test(request), ROOM);
	resume_comes(0, comm_path(comm, 1).sink->id);
	assert_int_equal(fixture_frame(MESH_FRAME_HAVE).have.complete, 1);
	assert_int_equal(state_of(1), MESH_PATH_DOWN);
	fixture_comm_close(comm);
}

/* A sender is not asked what it has, and a comm that ends with its first path resumes nothing. */
static void test_who_does_not_answer(void **state)
{
	(void)state;
	comm = resuming_open(true);
	resume_comes(0, comm_path(comm, 1).sink->id);
	assert_true(fixture_no_frame());
	assert_int_equal(fixture.setup.process.own_counters.refused, 1);
	assert_int_equal(state_of(1), MESH_PATH_UP);
	fixture_comm_close(comm);
}

/* With recovery off an operation that fails ends the comm, however many paths it has. */
static void test_recovery_off(void **state)
{
	int i;

	for (i = 1; i <= 2; i++) {
		fixture_setup(state);
		fixture.setup.process.config.recovery = 0;
		comm = fixture_open(MESH_PROVIDER_TCP, i, true);
		fixture_post(comm, ROOM);
		fixture_grant(comm, 0, 1, ROOM);
		writes_end(0);
		assert_failed(comm, -ECONNRESET, "was not delivered");
		fixture_comm_close(comm);
		assert_int_equal(fixture_teardown(state), 0);
	}
}

/* Both are lost: the comm waits, unless the process has ended. */
static void test_last_path(void **state)
{
	struct mesh_process *process = &fixture.setup.process;
	int i;

	(void)state;
	comm = resuming_open(true);
	mesh_lock_take(&process->lock);
	for (i = 0; i < 2; i++)
		mesh_peer_process_set(&fixture.peers[i], 77);
	mesh_lock_release(&process->lock);
	fixture_post(comm, ROOM);
	for (i = 1; i >= 0; i--) {
		mesh_lock_take(&comm->lock);
		mesh_path_suspect(&comm->paths[i], -ECONNRESET);
		mesh_lock_release(&comm->lock);
		tick();
		assert_int_equal(state_of(i), MESH_PATH_DOWN);
		assert_int_equal(*comm_inside(comm).error, 0);
	}
	assert_true(log_captured(MESH_LOG_WARN, "its messages wait for a path"));
	/* What is sent meanwhile waits, too. */
	fixture_post(comm, 8);
	assert_int_equal(fixture_sent(MESH_MESSAGE_DATA), 0);
	mesh_lock_take(&process->lock);
	mesh_peer_process_ended(&fixture.peers[0], "it was killed");
	mesh_rejoins_close(process);
	mesh_lock_release(&process->lock);
	assert_int_equal(*comm_inside(comm).error, -ECONNRESET);
	assert_true(log_captured(MESH_LOG_WARN, "does not come back: it was killed"));
	fixture_comm_close(comm);
}

/* The links that were lost are remembered. */
static int teardown(void **state)
{
	struct mesh_process *process = &fixture.setup.process;

	mesh_lock_take(&process->lock);
	mesh_rejoins_close(process);
	mesh_lock_release(&process->lock);
	return fixture_teardown(state);
}

/* The only path of a comm is lost: it waits, too. */
static void test_only_path(void **state)
{
	(void)state;
	fixture.setup.process.config.recovery = 1;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	fixture_post(comm, ROOM);
	fixture_grant(comm, 0, 1, ROOM);
	writes_end(0);
	tick();
	assert_int_equal(state_of(0), MESH_PATH_DOWN);
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_true(log_captured(MESH_LOG_WARN, "its messages wait for a path"));
	fixture_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_frames_leave_over_a_living_path),
		TEST(test_frames_come_over_each_path),
		cmocka_unit_test(test_path_steps),
		TEST(test_segments_go_over_the_other_path),
		TEST(test_doubt_that_grows),
		TEST(test_small_messages_go_again),
		TEST(test_copies_are_whole),
		TEST(test_message_that_waits),
		TEST(test_empty_message_is_kept),
		TEST(test_message_that_fails),
		TEST(test_receiver_answers),
		TEST(test_receiver_has_it_all),
		TEST(test_who_does_not_answer),
		cmocka_unit_test(test_recovery_off),
		TEST(test_last_path),
		TEST(test_only_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
