/* SPDX-License-Identifier: Apache-2.0 */
/* test_comm.c - a comm over a provider whose results the test sets: its segments, and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "control/peer_fence.h"
#include "nic/rdma_error.h"
#include "setup/listener.h"
#include "setup/setup.h"
#include "transport/answer.h"
#include "transport/close.h"
#include "transport/comm.h"
#include "transport/comm_open.h"
#include "transport/linger.h"
#include "transport/place.h"
#include "transport/rejoin.h"
#include "transport/send.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define MESSAGE ((size_t)512 << 10)

static int setup(void **state)
{
	fixture_setup(state);
	fixture.setup.process.config.segment_bytes = MESSAGE;
	return 0;
}

static void message_post(struct mesh_comm *comm, uint32_t seq)
{
	fixture_post(comm, MESSAGE);
	fixture_grant(comm, seq, 1, MESSAGE);
}

/* ---- segments ------------------------------------------------------------------------------- */

/* Whole lines, and none longer than the provider's largest write, which may end within a line. */
static void test_odd_segment_limit(void **state)
{
	const size_t limit = MESSAGE / 4 + 100;
	size_t sum = 0;
	struct mesh_comm *comm;
	int i;

	(void)state;
	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	fixture.domains[0]->segment_max = limit;
	fake.writes_end_with = -1;
	comm = fixture_comm_open(true);
	message_post(comm, 0);
	for (i = 0; i < fake.writes.num; i++) {
		assert_true(fake.writes.posts[i].size <= limit);
		assert_int_equal(fake.writes.posts[i].size % MESH_LINE_BYTES, 0);
		sum += fake.writes.posts[i].size;
	}
	assert_int_equal(sum, MESSAGE);
	fixture_peers_lose();
	mesh_comm_close(comm);
}

/* The limits of a comm are the lowest of its paths, in any order. */
static void test_limits_of_paths(void **state)
{
	struct mesh_comm *comm;
	int first;

	(void)state;
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	fixture.domains[1]->segment_max = MESSAGE / 4 + 100;
	for (first = 0; first < 2; first++) {
		mesh_lock_take(&fixture.setup.process.lock);
		assert_int_equal(
			mesh_comm_open(&fixture.net, true, &fixture.peers[first], 1, 2, &comm), 0);
		assert_int_equal(mesh_comm_path_add(comm, &fixture.peers[!first]), 0);
		mesh_lock_release(&fixture.setup.process.lock);
		assert_int_equal(*comm_inside(comm).segment_max, MESSAGE / 4);
		fixture_comm_close(comm);
	}
}

/* NCCL opens a thousand of them: an idle one is small, and a receiver has nothing of a sender. */
static void test_memory(void **state)
{
	int sending;

	for (sending = 0; sending < 2; sending++) {
		struct mesh_comm *comm;

		fixture_setup(state);
		comm = fixture_open(MESH_PROVIDER_TCP, 1, sending);
		assert_in_range(malloc_usable_size(comm), 1, sending ? 5 * 1024 : 4 * 1024);
		fixture_comm_close(comm);
		assert_int_equal(fixture_teardown(state), 0);
	}
}

/* ---- the end -------------------------------------------------------------------------------- */

/* A write that never ends takes no room in the flow, even if it ends later. */
static void test_unfinished_writes(void **state)
{
	struct mesh_comm *stuck, *other;
	const struct mesh_pace *pace;
	uint32_t i;
	int polls;

	(void)state;
	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	pace = &fixture.peers[0].remote->flow->pace;
	stuck = fixture_comm_open(true);
	other = fixture_comm_open(true);
	for (i = 0; i < MESH_PACE_WINDOW_MIN / MESSAGE; i++)
		message_post(stuck, i);
	message_post(other, 0);
	for (polls = 0; polls < 4; polls++)
		fixture_poll();		      /* on tcp each of them lets some more be copied */
	assert_int_equal(fake.writes.num, i); /* the other waits for room */
	fixture_peers_lose();
	mesh_comm_close(stuck);
	assert_true(log_captured(MESH_LOG_INFO, "keeps 4 operations that never ended"));
	fixture_poll();
	assert_int_equal(fake.writes.num, i + 1);
	assert_int_equal(mesh_pace_in_flight(pace), MESSAGE);
	fake_complete(&fake.writes.posts[0]);
	fixture_poll();
	assert_int_equal(mesh_pace_in_flight(pace), MESSAGE);
	fake_complete(&fake.writes.posts[i]);
	fixture_poll();
	assert_int_equal(mesh_pace_in_flight(pace), 0);
	mesh_comm_close(other);
	fixture_left_free(stuck);
}

/* Completes while a comm gives its peer back: its paths are closed by then. */
static const struct fake_post *ends_late;

void __real_mesh_peer_user_remove(struct mesh_peer *given, struct mesh_peer_user *user);
void __wrap_mesh_peer_user_remove(struct mesh_peer *given, struct mesh_peer_user *user);

void __wrap_mesh_peer_user_remove(struct mesh_peer *given, struct mesh_peer_user *user)
{
	__real_mesh_peer_user_remove(given, user);
	if (!ends_late)
		return;
	fake_complete(ends_late);
	ends_late = NULL;
	fixture_poll();
}

/* Another thread that polls may be in the callback of an operation which ends during the close. */
static void test_write_ends_in_close(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
	message_post(comm, 0);
	fixture_peers_lose();
	ends_late = &fake.writes.posts[0];
	mesh_comm_close(comm);
	assert_null(ends_late);
	assert_true(log_captured(MESH_LOG_INFO, "keeps 1 operations that never ended"));
	fixture_left_free(comm);
}

/* On verbs, where a fence is a short write. */
static int fences_posted(void)
{
	int i, count = 0;

	for (i = 0; i < fake.writes.num; i++)
		count += fake.writes.posts[i].size == sizeof(uint64_t);
	return count;
}

/* A sender whose writes do not end cuts its peer off once: closing takes no longer than that. */
static void test_sender_fences_once(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_VERBS_RXM, 1, true);
	message_post(comm, 0);
	assert_int_equal(fake.writes.num, 1);
	fixture_peers_lose();
	fake.writes_end_with = MESH_RDMA_FLUSHED;
	mesh_comm_close(comm);
	assert_int_equal(fences_posted(), 1);
	fake_complete(&fake.writes.posts[0]);
	fixture_poll();
	fixture_left_free(comm);
}

/* Its bytes may be in flight on any of its paths. */
static void test_every_path_is_fenced(void **state)
{
	struct mesh_comm *comm;
	int i, fenced = 0;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_VERBS_RXM, 2, true);
	message_post(comm, 0);
	i = fake.writes.num;
	fixture_peers_lose();
	fake.writes_end_with = MESH_RDMA_FLUSHED;
	mesh_comm_close(comm);
	assert_int_equal(fences_posted(), 2);
	fixture_writes_complete(i);
	for (; i < fake.writes.num; i++)
		fenced |= 1 << (fake.writes.posts[i].to - FAKE_ADDR_FIRST);
	assert_int_equal(fenced, 3);
	fixture_left_free(comm);
}

/* For what else was on the connection the link is lost; nothing of it needs another fence. */
static void fence_loses_link(bool recovers)
{
	struct mesh_comm *comm, *other;

	fixture.setup.process.config.recovery = recovers;
	fixture_paths_open(MESH_PROVIDER_VERBS_RXM, 1);
	mesh_lock_take(&fixture.setup.process.lock);
	LIST_INSERT_HEAD(&fixture.setup.process.peers, &fixture.peers[0], entry);
	mesh_lock_release(&fixture.setup.process.lock);
	other = fixture_comm_open(true);
	comm = fixture_comm_open(true);
	message_post(comm, 0);
	fake.writes_end_with = MESH_RDMA_FLUSHED;
	mesh_comm_quiesce(comm);
	assert_int_equal(*comm_inside(comm).peer_end, MESH_END_CUT);
	assert_int_equal(fixture.peers[0].state, MESH_PEER_LOST);
	assert_true(log_captured(MESH_LOG_WARN, "was not answered in time, and is cut off here"));
	assert_int_equal(*comm_inside(other).error, recovers ? 0 : -ECONNRESET);
	fixture_frame(MESH_FRAME_CLOSE);
	assert_int_equal(fixture_frame(MESH_FRAME_CLOSED).closed.unclean, 1);
	fake_complete(&fake.writes.posts[0]);
	fixture_poll();
	mesh_comm_close(comm);
	mesh_comm_close(other);
	assert_true(fences_posted() >= 1);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_rejoins_close(&fixture.setup.process);
	mesh_peer_fence_end(&fixture.peers[0]);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void test_fence_loses_link(void **state)
{
	(void)state;
	fence_loses_link(true);
}

static void test_fence_without_recovery(void **state)
{
	(void)state;
	fence_loses_link(false);
}

/* A peer that answers, and whose data does not pass, is called neither stopped nor overloaded. */
static void test_fence_of_a_peer_that_answers(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	fixture_paths_open(MESH_PROVIDER_VERBS_RXM, 1);
	mesh_lock_take(&fixture.setup.process.lock);
	LIST_INSERT_HEAD(&fixture.setup.process.peers, &fixture.peers[0], entry);
	mesh_lock_release(&fixture.setup.process.lock);
	comm = fixture_comm_open(true);
	message_post(comm, 0);
	fake.writes_end_with = MESH_RDMA_FLUSHED;
	*comm_inside(comm).peer_end = MESH_END_CLOSED;
	mesh_comm_quiesce(comm);
	assert_true(log_captured(MESH_LOG_WARN, "answered the end of a connection, but nothing"));
	fixture_frame(MESH_FRAME_CLOSE);
	fixture_frame(MESH_FRAME_CLOSED);
	fake_complete(&fake.writes.posts[0]);
	fixture_poll();
	mesh_comm_close(comm);
}

/* A receiver that could still be written to also fences once. */
static void test_receiver_fences_once(void **state)
{
	struct mesh_comm *comm;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_VERBS_RXM, 1, false);
	fixture_post(comm, MESSAGE);
	assert_int_equal(fake.sends.num, 1); /* the grant, which does not end */
	fixture_peers_lose();
	fake.writes_end_with = MESH_RDMA_FLUSHED;
	mesh_comm_close(comm);
	assert_int_equal(fences_posted(), 1);
	fake_complete(&fake.sends.posts[0]);
	fixture_poll();
	fixture_left_free(comm);
}

static int entries_count(const struct mesh_stats_page *page, enum mesh_stats_entry_state state)
{
	int i, count = 0;

	for (i = 0; i < MESH_STATS_PATHS; i++)
		count += page->entries[i].state == state;
	return count;
}

/* `fi_mesh watch` shows each path while its comm lives; what it counted remains, as one sum. */
static void test_counters_are_given_back(void **state)
{
	static struct mesh_stats_page page;
	const uint64_t payload = 7;
	struct mesh_comm *comm;
	int round;

	(void)state;
	mesh_stats_init(&page, 1, 2, "a", "test", 3);
	fixture.setup.process.stats.page = &page;
	fixture_paths_open(MESH_PROVIDER_TCP, 1);
	for (round = 1; round <= 3; round++) {
		fixture.peers[0].state = MESH_PEER_UP;
		comm = fixture_comm_open(false);
		assert_int_equal(entries_count(&page, MESH_STATS_OPEN), 1);
		assert_string_equal(mesh_stats_via_text(page.entries[0].via), "direct");
		fixture_message(comm, 0, MESH_MESSAGE_DATA, 0, &payload, sizeof(payload));
		fixture_comm_close(comm);
		assert_int_equal(entries_count(&page, MESH_STATS_OPEN), 0);
		assert_int_equal(entries_count(&page, MESH_STATS_CLOSED), 1);
		assert_int_equal(page.entries[0].paths, round);
		assert_int_equal(page.entries[0].counters.small, round);
	}
	/* A routed path is not called direct. */
	fixture.peers[0].state = MESH_PEER_UP;
	fixture.peers[0].routed = true;
	comm = fixture_comm_open(false);
	assert_string_equal(mesh_stats_via_text(page.entries[1].via), "routed");
	fixture_comm_close(comm);
	fixture.setup.process.stats.page = NULL;
}

/* CLOSED may overtake what was sent before it: a listener keeps the comm until that is here. */
static void test_close_overtakes_message(void **state)
{
	const struct mesh_frame_closed asks = {.sent = 1};
	struct mesh_listener listener = {.net = &fixture.net, .num_waiting = 1};
	const uint64_t payload = 7;
	struct mesh_comm *comm, *accepted;

	(void)state;
	comm = fixture_open(MESH_PROVIDER_TCP, 1, false);
	listener.waiting[0] = comm;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_closed_came(comm, &asks);
	mesh_listener_tick(&listener);
	assert_int_equal(listener.num_waiting, 1);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_message(comm, 0, MESH_MESSAGE_DATA, 0, &payload, sizeof(payload));
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_tick(comm);
	mesh_listener_tick(&listener);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(mesh_listener_accept(&listener, &accepted), 0);
	assert_ptr_equal(accepted, comm);
	mesh_comm_close(comm);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_odd_segment_limit),	    TEST(test_limits_of_paths),
		cmocka_unit_test(test_memory),	    TEST(test_unfinished_writes),
		TEST(test_write_ends_in_close),	    TEST(test_sender_fences_once),
		TEST(test_receiver_fences_once),    TEST(test_fence_loses_link),
		TEST(test_fence_without_recovery),  TEST(test_fence_of_a_peer_that_answers),
		TEST(test_close_overtakes_message), TEST(test_every_path_is_fenced),
		TEST(test_counters_are_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
