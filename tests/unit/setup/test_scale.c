/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_scale.c - what a peer costs does not depend on how many there are: set-up, idling and
 * closing with 512 simulated peers, with 8 comms each in each direction.
 *
 * What is compared is CPU time of the engine and of the thread that calls, not the time on a wall:
 * other processes do not change it.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/threads.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "setup/setup.h"

#include "log_capture.h"
#include "simulated_peers.h"
#include "transport/comm_life.h"

#define COMMS SIMULATED_COMMS_MAX
#define BLOCK 64 /* peers that are set up and closed together */
#define BLOCKS (SIMULATED_PEERS_MAX / BLOCK)
/* A listener has room for the comms of so many peers. */
#define DIALS (MESH_LISTENER_QUEUE / COMMS)
#define WAKES 400
#define IDLE_ROUNDS 5
/*
 * The last blocks may cost this much more than the first ones. With walks over all peers and
 * descriptors the last one cost 10 to 29 times as much as the first one.
 */
#define RATIO_MAX 4
/* Less is not compared: CPU clocks are coarse, above all where the processor is emulated. */
#define FLOOR_NS 2000000
#define COMPARED 3
#define LIMIT_MS 60000

static struct mesh_net *net;
static struct mesh_comm *sending[SIMULATED_PEERS_MAX][COMMS];
static struct mesh_comm *receiving[SIMULATED_PEERS_MAX][COMMS];

/* ---- what it costs ------------------------------------------------------------------------- */

/* Nanoseconds of CPU that the engine and this thread have used so far. */
struct cost {
	uint64_t engine_ns, own_ns;
};

static struct cost cost_now(void)
{
	struct cost cost = {0};
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(net->process->engine.thread, &clock), 0);
	cost.engine_ns = mesh_clock_read_ns(clock);
	cost.own_ns = mesh_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	return cost;
}

static struct cost cost_since(struct cost before)
{
	struct cost now = cost_now();

	return (struct cost){
		.engine_ns = now.engine_ns - before.engine_ns,
		.own_ns = now.own_ns - before.own_ns,
	};
}

/* The least of so many blocks from @first on: what else runs makes CPU time dearer at times. */
static uint64_t least(const uint64_t *blocks, int first)
{
	uint64_t ns = blocks[first];

	for (int i = first + 1; i < first + COMPARED; i++) {
		if (blocks[i] < ns)
			ns = blocks[i];
	}
	return ns;
}

static void assert_alike(const char *what, const uint64_t *blocks)
{
	uint64_t few_ns = least(blocks, 0), many_ns = least(blocks, BLOCKS - COMPARED);

	if (few_ns < FLOOR_NS)
		few_ns = FLOOR_NS;
	printf("%s: %.2f times\n", what, (double)many_ns / (double)few_ns);
	assert_true(many_ns <= RATIO_MAX * few_ns);
}

/* ---- setting up ---------------------------------------------------------------------------- */

/* Connects to a block of peers, with all comms at once, as NCCL does: by calling again. */
static void block_connect(int block)
{
	static uint8_t handles[BLOCK][COMMS][MESH_HANDLE_BYTES];
	const uint64_t until_ms = mesh_clock_ms() + LIMIT_MS;
	int i, k, num = 0;

	for (i = 0; i < BLOCK; i++) {
		for (k = 0; k < COMMS; k++)
			simulated_handle(block * BLOCK + i, handles[i][k]);
	}
	while (num < BLOCK * COMMS) {
		assert_true(mesh_clock_ms() < until_ms);
		for (i = 0; i < BLOCK * COMMS; i++) {
			struct mesh_comm **comm = &sending[block * BLOCK + i / COMMS][i % COMMS];

			if (*comm)
				continue;
			assert_int_equal(
				mesh_net_connect(net, 0, handles[i / COMMS][i % COMMS], comm), 0);
			num += *comm != NULL;
		}
		sched_yield();
	}
}

/* So many peers connect to one listener. */
static void dials_accept(int first)
{
	const uint64_t until_ms = mesh_clock_ms() + LIMIT_MS;
	uint8_t bytes[MESH_HANDLE_BYTES];
	struct mesh_listener *listener;
	struct mesh_handle handle;

	assert_int_equal(mesh_net_listen(net, 0, bytes, &listener), 0);
	assert_int_equal(mesh_handle_decode(bytes, &handle), 0);
	for (int i = 0; i < DIALS; i++)
		simulated_dial(first + i, &handle, COMMS);
	for (int i = 0; i < DIALS * COMMS;) {
		struct mesh_comm **comm = &receiving[first + i / COMMS][i % COMMS];

		assert_true(mesh_clock_ms() < until_ms);
		assert_int_equal(mesh_listener_accept(listener, comm), 0);
		i += *comm != NULL;
		if (!*comm)
			sched_yield();
	}
	mesh_listener_close(listener);
}

static struct cost block_open(int block)
{
	struct cost before = cost_now();

	block_connect(block);
	for (int i = 0; i < BLOCK; i += DIALS)
		dials_accept(block * BLOCK + i);
	return cost_since(before);
}

/* ---- idling and closing -------------------------------------------------------------------- */

/* The engine wakes so often, and finds nothing to do. */
static struct cost wakes(void)
{
	struct mesh_process *process = net->process;
	struct pollfd wake = {.fd = process->engine.wake_fd, .events = POLLIN};
	struct cost before = cost_now();

	for (int i = 0; i < WAKES; i++) {
		mesh_engine_wake(&process->engine);
		while (poll(&wake, 1, 0))
			sched_yield();
		mesh_process_lock(process); /* its turn is over */
		mesh_process_unlock(process);
	}
	return cost_since(before);
}

/* It takes 2 ms, which other work on the machine may make three times as long. */
static struct cost idle(void)
{
	struct cost cost = wakes(), again;

	for (int i = 1; i < IDLE_ROUNDS; i++) {
		again = wakes();
		if (again.engine_ns < cost.engine_ns)
			cost = again;
	}
	return cost;
}

static struct cost block_close(int block)
{
	struct cost before = cost_now();

	for (int i = block * BLOCK; i < (block + 1) * BLOCK; i++) {
		for (int k = 0; k < COMMS; k++) {
			mesh_comm_close(sending[i][k]);
			mesh_comm_close(receiving[i][k]);
		}
	}
	return cost_since(before);
}

/* ---- the test ------------------------------------------------------------------------------ */

TEST(cost_of_a_peer_is_constant)
{
	uint64_t opened[BLOCKS], idled[BLOCKS], engine[BLOCKS], calls[BLOCKS];
	struct cost closed;

	for (int i = 0; i < BLOCKS; i++) {
		/* This thread's part depends on how often it calls before a comm is ready. */
		opened[i] = block_open(i).engine_ns;
		idled[i] = idle().engine_ns;
	}
	for (int i = BLOCKS - 1; i >= 0; i--) {
		closed = block_close(i);
		engine[i] = closed.engine_ns;
		calls[i] = closed.own_ns;
	}
	assert_alike("set-up", opened);
	assert_alike("idling", idled);
	assert_alike("closing, engine", engine);
	assert_alike("closing, calls", calls);
}

/* No close waits for an answer but the last one, which waits for all. */
TEST(comms_close_together)
{
	struct mesh_process *process = net->process;

	memset(sending, 0, sizeof(sending));
	block_connect(0);
	simulated_answers_hold(BLOCK * COMMS);
	log_capture_start();
	for (int i = 0; i < BLOCK * COMMS; i++)
		mesh_comm_close(sending[i / COMMS][i % COMMS]);
	mesh_process_lock(process);
	assert_true(LIST_EMPTY(&process->lingering));
	assert_true(LIST_EMPTY(&process->comms));
	/* As exit() does it, which may have interrupted a thread that holds the lock. */
	mesh_comms_linger_await(process);
	mesh_process_unlock(process);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0); /* each one was answered */
	simulated_answers_hold(0);
}

void tests_setup(void)
{
	struct mesh_listener *listener;
	uint8_t bytes[MESH_HANDLE_BYTES];
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(mesh_net_open(&net), 0);
	/* A listener starts the engine; the domains open in threads. */
	assert_int_equal(mesh_net_listen(net, 0, bytes, &listener), 0);
	mesh_threads_await();
	mesh_listener_close(listener);
	simulated_peers_start(net->process, SIMULATED_PEERS_MAX);
}

void tests_teardown(void)
{
	simulated_peers_stop();
	mesh_net_close(net);
}

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("NCCL_MESH_PROVIDER", "tcp", 1);
}
