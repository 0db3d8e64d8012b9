/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_endpoint_fence.c - on verbs the fence of a lost link takes up to some seconds. Nobody waits
 * for it with process->lock held; until it is over the link is not used again, and no question
 * about what has arrived is answered.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/container.h"
#include "control/link_settle.h"
#include "control/peer_end.h"
#include "control/peer_fence.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "fabric/endpoint_renew.h"
#include "fabric/fence.h"
#include "transport/frames.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define ROOM ((size_t)1 << 20)
#define PROCESS_ID 0x1234
#define LIMIT_S 30

static struct mesh_comm *comm;
static struct mesh_peer again; /* connects from the other end of the lost link */

static _Atomic(bool) is_gated; /* closing an endpoint waits, and a fence's write */
static _Atomic(bool) in_close, in_write, lock_taken;

/* Runs in each call of the provider: these two are the connector's. */
static void provider_enter(enum fake_call call)
{
	if (call != FAKE_ENDPOINT_CLOSE && call != FAKE_WRITE)
		return;
	atomic_store(call == FAKE_WRITE ? &in_write : &in_close, true);
	while (atomic_load(&is_gated))
		usleep(100);
}

static void condition_await(_Atomic(bool) *condition)
{
	while (!atomic_load(condition))
		usleep(100); /* alarm() ends the test */
}

static void peer_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	mesh_peer_tick(mesh_container_of(timer, struct mesh_peer, timer), now_ms);
}

static int setup(void **state)
{
	int ret = fixture_setup(state);

	memset(&again, 0, sizeof(again));
	fake.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	fake.before = provider_enter;
	fixture.setup.process.config.recovery = 1;
	atomic_store(&is_gated, false);
	atomic_store(&in_close, false);
	atomic_store(&in_write, false);
	atomic_store(&lock_taken, false);
	alarm(LIMIT_S);
	return ret;
}

static int teardown(void **state)
{
	struct mesh_process *process = &fixture.setup.process;

	alarm(0);
	fake.before = NULL;
	mesh_lock_take(&process->lock);
	mesh_rejoins_close(process);
	mesh_lock_release(&process->lock);
	return fixture_teardown(state);
}

static void peer_enter(struct mesh_peer *peer)
{
	peer->incoming = true;
	peer->timer.expired = peer_expired;
	mesh_peer_process_set(peer, PROCESS_ID);
	mesh_peer_index_add(peer);
}

/* A receiver with two paths over verbs. */
static void receiver_open(void)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_peer *before;
	int i;

	fixture_paths_open(MESH_PROVIDER_VERBS_RXM, 2);
	before = &fixture.peers[1];
	again.process = process;
	again.domain = before->domain;
	again.address = before->address;
	again.watch.fd = -1;
	again.state = MESH_PEER_HELLO;
	mesh_lock_take(&process->lock);
	for (i = 0; i < 2; i++)
		peer_enter(&fixture.peers[i]);
	peer_enter(&again);
	mesh_lock_release(&process->lock);
	comm = fixture_comm_open(false);
	fixture_post(comm, ROOM);
}

static void receiver_close(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_peer_index_remove(&again);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_comm_close(comm);
}

/* The second link is lost. @reported: the other end noticed it first, and said so. */
static void second_lose(bool reported)
{
	struct mesh_peer *peer = &fixture.peers[1];

	mesh_lock_take(&fixture.setup.process.lock);
	mesh_peer_lose(peer, "its cable is gone");
	peer->reported = reported;
	mesh_peer_bury(peer);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void endpoint_await(enum mesh_endpoint_state state)
{
	struct mesh_domain *domain = fixture.domains[1];

	while (atomic_load(&domain->endpoint_state) != state ||
	       (state == MESH_ENDPOINT_OPEN && atomic_load(&domain->claimed)))
		usleep(100);
}

/* The connector has posted what a fence was to write. */
static void write_await(void)
{
	struct mesh_domain *domain = fixture.domains[1];
	bool posted = false;

	while (!posted) {
		mesh_lock_take(&domain->lock);
		posted = LIST_EMPTY(&domain->fences) && !atomic_load(&domain->claimed);
		mesh_lock_release(&domain->lock);
	}
	assert_int_equal(fake.writes.num, 1);
}

static void timers_run(void)
{
	struct mesh_process *process = &fixture.setup.process;

	mesh_lock_take(&process->lock);
	mesh_timers_run(&process->engine.timers, mesh_clock_ms());
	mesh_lock_release(&process->lock);
}

static bool is_settled(void)
{
	bool settled;

	mesh_lock_take(&fixture.setup.process.lock);
	settled = mesh_link_is_quiet(&again);
	assert_true(mesh_link_settle(&again) == settled);
	mesh_lock_release(&fixture.setup.process.lock);
	return settled;
}

static bool is_fencing(void)
{
	bool fencing;

	mesh_lock_take(&fixture.setup.process.lock);
	fencing = mesh_peer_is_fencing(&fixture.peers[1]);
	mesh_lock_release(&fixture.setup.process.lock);
	return fencing;
}

/* The sender asks what has arrived. */
static void question_comes(void)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.resume.to_comm = comm_path(comm, 0).sink->id;
	frame.resume.round = 1;
	frame.resume.dead = 1 << 1;
	frame.resume.ids[1] = comm_path(comm, 1).sink->id;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_resume_frame_handle(&fixture.peers[0], &frame);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* Another thread, which opens the gate once it has had process->lock. */
static void *lock_taker(void *arg)
{
	condition_await(arg);
	mesh_lock_take(&fixture.setup.process.lock);
	atomic_store(&lock_taken, true);
	mesh_lock_release(&fixture.setup.process.lock);
	atomic_store(&is_gated, false);
	return NULL;
}

/* Set-up and the engine go on while the connector is inside the provider: they need that lock. */
static void lock_is_free(bool reported, _Atomic(bool) *inside)
{
	pthread_t thread;

	receiver_open();
	atomic_store(&is_gated, true);
	assert_int_equal(pthread_create(&thread, NULL, lock_taker, inside), 0);
	second_lose(reported);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&lock_taken));
}

static void test_lock_is_free(void **state)
{
	(void)state;
	lock_is_free(false, &in_close);
	endpoint_await(MESH_ENDPOINT_OPEN);
	receiver_close();
}

/* The write of a fence may connect, for up to 2 s. */
static void test_lock_is_free_in_write(void **state)
{
	(void)state;
	lock_is_free(true, &in_write);
	write_await();
	fake_complete_error(fake.writes.posts[0].context, FI_EIO);
	while (is_fencing())
		timers_run();
	assert_true(is_settled());
	receiver_close();
}

/* What is in flight may still arrive: who asks waits, and nobody connects there. */
static void test_question_waits(void **state)
{
	(void)state;
	receiver_open();
	atomic_store(&is_gated, true);
	second_lose(false);
	condition_await(&in_close);
	question_comes();
	timers_run();
	assert_int_equal(comm->paths[1].state, MESH_PATH_SUSPECT);
	assert_true(fixture_no_frame());
	assert_false(is_settled());
	assert_true(is_fencing());
	atomic_store(&is_gated, false);
	endpoint_await(MESH_ENDPOINT_OPEN);
	while (fixture_no_frame())
		timers_run();
	assert_int_equal(fixture_frame(MESH_FRAME_HAVE).have.round, 1);
	assert_int_equal(comm->paths[1].state, MESH_PATH_DOWN);
	assert_true(is_settled());
	timers_run();
	assert_true(fixture_no_frame()); /* it is answered once */
	receiver_close();
}

/* Nobody asks: the new connection of the link finds the path fenced. */
static void test_settle(void **state)
{
	(void)state;
	receiver_open();
	atomic_store(&is_gated, true);
	second_lose(false);
	condition_await(&in_close);
	assert_false(is_settled());
	assert_int_equal(comm->paths[1].state, MESH_PATH_SUSPECT);
	atomic_store(&is_gated, false);
	endpoint_await(MESH_ENDPOINT_OPEN);
	assert_true(is_settled());
	assert_int_equal(comm->paths[1].state, MESH_PATH_DOWN);
	receiver_close();
}

/* A comm that is cut off gives its memory back: its fence lasts until nothing arrives. */
static void test_fence_of_closing_endpoint(void **state)
{
	struct mesh_fence fence;

	(void)state;
	receiver_open();
	atomic_store(&is_gated, true);
	second_lose(false);
	condition_await(&in_close);
	fence = (struct mesh_fence){
		.domain = fixture.domains[1],
		.remote = fixture.peers[1].remote,
	};
	mesh_fence_begin(&fence);
	assert_true(mesh_fence_step(&fence));
	atomic_store(&is_gated, false);
	endpoint_await(MESH_ENDPOINT_OPEN);
	assert_false(mesh_fence_step(&fence));
	assert_int_equal(fence.result, 0);
	receiver_close();
}

/* The peer's NIC refuses the write: the endpoint, and its other connections, stay. */
static void test_refused(void **state)
{
	(void)state;
	receiver_open();
	second_lose(true);
	write_await();
	assert_true(is_fencing());
	assert_false(is_settled());
	question_comes();
	assert_true(fixture_no_frame());
	fake_complete_error(fake.writes.posts[0].context, FI_EIO);
	while (fixture_no_frame())
		timers_run();
	assert_int_equal(fixture_frame(MESH_FRAME_HAVE).have.round, 1);
	assert_int_equal(comm->paths[1].state, MESH_PATH_DOWN);
	assert_false(is_fencing());
	assert_true(is_settled());
	assert_false(atomic_load(&in_close));
	receiver_close();
}

/* It does not answer: then the endpoint is closed after a moment. */
static void test_not_refused(void **state)
{
	(void)state;
	receiver_open();
	second_lose(true);
	write_await();
	while (!atomic_load(&in_close))
		timers_run();
	endpoint_await(MESH_ENDPOINT_OPEN);
	assert_int_equal(fake.writes.num, 1);
	while (is_fencing())
		timers_run();
	assert_true(is_settled());
	receiver_close();
}

/* The process ends meanwhile: the fence is left to the provider. */
static void test_peer_is_freed(void **state)
{
	(void)state;
	receiver_open();
	second_lose(true);
	write_await();
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_peer_fence_end(&fixture.peers[1]);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_false(is_fencing());
	assert_false(LIST_EMPTY(&fixture.domains[1]->abandoned));
	fake_complete_error(fake.writes.posts[0].context, FI_EIO);
	fixture_poll();
	assert_true(LIST_EMPTY(&fixture.domains[1]->abandoned));
	receiver_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lock_is_free),
		TEST(test_lock_is_free_in_write),
		TEST(test_question_waits),
		TEST(test_settle),
		TEST(test_fence_of_closing_endpoint),
		TEST(test_refused),
		TEST(test_not_refused),
		TEST(test_peer_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
