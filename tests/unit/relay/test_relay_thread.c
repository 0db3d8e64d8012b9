/* SPDX-License-Identifier: Apache-2.0 */
/* test_relay_thread.c - the thread that relays sleeps while nothing moves, and wakes up at once. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "fabric/readiness.h"
#include "relay/relay.h"
#include "setup/setup.h"
#include "transport/comm.h"
#include "transport/receive.h"
#include "transport/send.h"

#include "transport_pair.h"

#define QUIET_MS 500
/* Turns in QUIET_MS, some for what the engine sends. A look each millisecond would be 500. */
#define QUIET_TURNS 20
/* Longer than the test. */
#define NEVER_MS 3600000

static struct pair pair;
static struct mesh_relay_thread *thread;

static void pause_ms(long ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* The thread polls the domain of a pair, as if a circuit led through it. */
static int setup(void **state)
{
	struct mesh_process *process;

	(void)state;
	pair_open(&pair);
	process = pair.net->process;
	mesh_lock_take(&process->lock);
	thread = &process->relay->thread;
	assert_int_equal(mesh_readiness_open(process->domains[0]), 0);
	assert_int_equal(mesh_readiness_open(process->domains[0]), 0);
	assert_int_equal(mesh_relay_thread_start(thread), 0);
	assert_int_equal(mesh_relay_thread_start(thread), 0);
	mesh_lock_release(&process->lock);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mesh_relay_thread_domains_set(thread, 0);
	pair_close(&pair);
	return 0;
}

static uint64_t turns(void)
{
	return atomic_load(&thread->turns);
}

/* Waits until the thread has polled again after @before turns. */
static void turn_await(uint64_t before)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS;

	while (turns() == before)
		assert_true(mesh_clock_ms() < deadline_ms);
}

/* Waits until it has slept for @ms, so that only an event can wake it. */
static void rest_await(long ms)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS, before;

	do {
		assert_true(mesh_clock_ms() < deadline_ms);
		before = turns();
		pause_ms(ms);
	} while (turns() != before);
}

/* Other threads do not poll here: what the engine does ends a second after NCCL's last poll. */
static void test_idle(void **state)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS, before, took;

	(void)state;
	mesh_relay_thread_domains_set(thread, 1);
	do {
		before = turns();
		pause_ms(QUIET_MS);
		took = turns() - before;
		assert_true(mesh_clock_ms() < deadline_ms);
	} while (took > QUIET_TURNS);
	atomic_store(&thread->look_ms, 1); /* and it looks now and then */
	mesh_relay_thread_wake(thread);
	before = turns();
	turn_await(before);
	turn_await(before + 1);
}

static void test_no_circuit(void **state)
{
	uint64_t before;

	(void)state;
	turn_await(0); /* it has begun */
	rest_await(QUIET_MS);
	before = turns();
	pause_ms(QUIET_MS);
	assert_int_equal(turns(), before);
	mesh_relay_thread_domains_set(thread, 1);
	turn_await(before);
}

/* Waits until the engine does not poll either. */
static void engine_await(void)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS;

	while (atomic_load(&pair.net->process->engine.awake))
		assert_true(mesh_clock_ms() < deadline_ms);
}

/* Waits until the message is received, without polling for it. */
static void arrival_await(struct mesh_request *receive)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS;

	while (atomic_load(&receive->state) != MESH_REQUEST_DONE)
		assert_true(mesh_clock_ms() < deadline_ms);
}

/* A message arrives while every thread sleeps. Returns true if this thread wakes up for it. */
static bool arrival_wakes(void)
{
	struct transfer t;
	uint64_t before;
	bool woke;

	transfer_open(&pair, &t, 64, 64);
	pattern_fill(t.source, 64, 7);
	assert_int_equal(mesh_comm_receive(pair.receive, t.target, 64, t.to, &t.receive), 0);
	engine_await();
	rest_await(50);
	before = turns();
	assert_int_equal(mesh_comm_send(pair.send, t.source, 64, t.from, &t.send), 0);
	arrival_await(t.receive);
	pause_ms(10); /* the turn is counted after the poll */
	woke = turns() != before;
	request_finish(t.receive, 64);
	request_finish(t.send, 64);
	assert_memory_equal(t.source, t.target, 64);
	transfer_close(&pair, &t);
	return woke;
}

/* A poll that the sending thread makes may find the message first. */
static void test_arrival(void **state)
{
	int tries = 20;

	(void)state;
	atomic_store(&thread->look_ms, NEVER_MS);
	mesh_relay_thread_domains_set(thread, 1);
	while (!arrival_wakes())
		assert_true(--tries);
}

/* What another thread forwards wakes it, because the completion may make no event. */
static void test_moved(void **state)
{
	uint64_t before;
	int i;

	(void)state;
	atomic_store(&thread->look_ms, NEVER_MS);
	mesh_relay_thread_domains_set(thread, 1);
	rest_await(100);
	for (i = 0; i < 100; i++) {
		before = turns();
		mesh_relay_thread_moved(thread, true);
		turn_await(before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_circuit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arrival, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved, setup, teardown),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
