/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pinning.c - a path moves to another NIC on verbs, where the comm's memory is pinned for it,
 * for as long as the test wants: no thread that NCCL calls with waits for that.
 */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <rdma/fi_errno.h>

#include "base/threads.h"
#include "fabric/mr.h"
#include "setup/setup.h"
#include "transport/comm_life.h"

#define RELAYS_PROVIDER MESH_PROVIDER_VERBS_RXM
#include "log_capture.h"
#include "relays_fixture.h"

#define ROOM ((size_t)64 << 10)
#define RELAYS 2
/* A call that waits for what the test holds back never ends. */
#define LIMIT_S 60

static pthread_t tester;
static bool moves;     /* the test calls what moves a path, with process->lock held */
static bool slow;      /* memory is pinned only when the test says so */
static sem_t pins, go; /* a thread is inside; it may go on */
static int inside;     /* times that the test itself pinned or unpinned memory in a move */

static void sem_take(sem_t *sem)
{
	while (sem_wait(sem))
		assert_int_equal(errno, EINTR);
}

static void provider_enter(enum fake_call call)
{
	if (call != FAKE_MR)
		return;
	if (pthread_equal(pthread_self(), tester)) {
		inside += moves;
		return;
	}
	sem_post(&pins);
	if (slow)
		sem_take(&go);
}

void __real_mesh_mr_close(struct mesh_mr *mr);
void __wrap_mesh_mr_close(struct mesh_mr *mr)
{
	if (pthread_equal(pthread_self(), tester))
		inside += mr && moves;
	__real_mesh_mr_close(mr);
}

void tests_setup(void)
{
	tester = pthread_self();
	moves = slow = false;
	inside = 0;
	sem_init(&pins, 0, 0);
	sem_init(&go, 0, 0);
	alarm(LIMIT_S);
	fixture_setup();
}

void tests_teardown(void)
{
	mesh_threads_await();
	alarm(0);
	assert_int_equal(inside, 0);
	relays_close();
}

static void circuit_breaks(void)
{
	circuit_comes(
		0, 0,
		(struct mesh_frame_circuit){.event = MESH_CIRCUIT_LOST, .lost = "b", .by = "p"});
}

static void hold(void)
{
	process_take();
	moves = true;
}

static void let_go(void)
{
	moves = false;
	process_release();
}

static const struct mesh_mr *registered(void)
{
	return fixture_registration(comm)->mrs[0];
}

/* ---- the sending end ----------------------------------------------------------------------- */

/* The comm has lost its only circuit. */
static void sender_open(void)
{
	relayed_sender_open(RELAYS, 1);
	fixture.num_paths = 1;
	fake.before = provider_enter;
	circuit_breaks();
	frame_to(0, MESH_FRAME_CIRCUIT);
}

static int begin(void)
{
	int ret;

	hold();
	ret = mesh_attach_begin(&comm->paths[0], &fixture.peers[1], true);
	let_go();
	return ret;
}

/* The sending end asks for the circuit, and has it. */
static void sender_goes_on(void)
{
	struct mesh_frame_opened answer = opened;

	assert_int_equal(begin(), 0);
	assert_ptr_equal(mesh_mr_domain(registered()), fixture.domains[1]);
	answer.to_comm = comm->paths[0].sink.id;
	hold();
	assert_true(mesh_attach_opened(&fixture.peers[1], &answer));
	let_go();
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
}

TEST(sender)
{
	struct mesh_request *waiting;
	int open_before, made_before;

	sender_open();
	slow = true;
	open_before = fake.open[FAKE_MR];
	made_before = fake.num_mrs;
	assert_int_equal(begin(), -EAGAIN);
	sem_take(&pins);
	/* Meanwhile the lock is free, and NCCL's calls return. */
	assert_int_equal(begin(), -EAGAIN);
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	assert_ptr_equal(mesh_mr_domain(registered()), fixture.domains[0]);
	waiting = fixture_post(comm, ROOM);
	assert_int_equal(fixture_test(waiting), -1);
	atomic_store(&comm->process->routeless, false);
	sem_post(&go);
	mesh_threads_await();
	assert_true(comm->process->routeless); /* the engine looks at once */
	sender_goes_on();
	mesh_threads_await();
	assert_int_equal(fake.num_mrs, made_before + 1);
	assert_int_equal(fake.open[FAKE_MR], open_before); /* the other NIC's is closed */
	relayed_close();
}

/* Without a registration the way is of no use; the comm waits for another one. */
TEST(sender_fails)
{
	sender_open();
	log_capture_start();
	fake_fail(FAKE_MR, 0, 1, -FI_ENOMEM);
	assert_int_equal(begin(), -EAGAIN);
	mesh_threads_await();
	assert_int_equal(begin(), -ENOMEM);
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(begin(), -EAGAIN);
	mesh_threads_await();
	sender_goes_on();
	relayed_close();
}

/* NCCL registers more memory before the path has moved: that is not registered for the new NIC. */
TEST(sender_registers_more)
{
	static char more[4096];
	struct mesh_registration *registration;

	sender_open();
	assert_int_equal(begin(), -EAGAIN);
	mesh_threads_await();
	registration = fixture_register(comm, more, sizeof(more));
	assert_int_equal(begin(), -EAGAIN);
	mesh_threads_await();
	sender_goes_on();
	assert_ptr_equal(mesh_mr_domain(registration->mrs[0]), fixture.domains[1]);
	relayed_close();
}

/* NCCL closes the comm meanwhile: it waits, for its memory is in use, and frees it then. */
TEST(sender_is_closed)
{
	sender_open();
	slow = true;
	assert_int_equal(begin(), -EAGAIN);
	sem_take(&pins);
	sem_post(&go);
	relayed_close();
}

/* ---- the receiving end --------------------------------------------------------------------- */

static void life_comes(int path, uint32_t epoch)
{
	struct mesh_frame_connect connect = request;

	connect.path = (uint8_t)path;
	connect.epoch = epoch;
	hold();
	assert_true(mesh_attach_came(&fixture.peers[1], &connect));
	let_go();
}

static void connect_comes(void)
{
	life_comes(0, comm->paths[0].epoch + 1);
}

/* It refuses, and OPEN comes again. */
TEST(receiver)
{
	struct mesh_message_header grant;
	struct mesh_frame accept;
	const void *payload;

	relayed_receiver_open(RELAYS, 1);
	fixture.num_paths = 1;
	fixture_post(comm, ROOM);
	fixture_sends_complete();
	fake.before = provider_enter;
	slow = true;
	circuit_breaks();
	connect_comes();
	assert_int_equal(frame_to(1, MESH_FRAME_REFUSE).refuse.refusal, MESH_REFUSAL_RESOURCES);
	/* It is pinned when the earlier circuit is fenced: until then that has its memory. */
	circuit_drained(0, 0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_DOWN);
	assert_ptr_equal(mesh_mr_domain(registered()), fixture.domains[0]);
	connect_comes();
	frame_to(1, MESH_FRAME_REFUSE);
	sem_take(&pins);
	connect_comes();
	frame_to(1, MESH_FRAME_REFUSE);
	sem_post(&go);
	mesh_threads_await();
	connect_comes();
	accept = frame_to(1, MESH_FRAME_ACCEPT);
	assert_int_equal(accept.accept.comm, comm->paths[0].sink.id);
	grant = fixture_last_sent(MESH_MESSAGE_GRANT, &payload);
	assert_int_equal(grant.comm, 0xabc);
	assert_ptr_equal(mesh_mr_domain(registered()), fixture.domains[1]);
	assert_int_equal(((const struct mesh_grant *)payload)->targets[0].key,
			 mesh_mr_key(registered()));
	relayed_close();
}
