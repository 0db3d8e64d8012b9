/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_connector.c - on verbs a send that connects may take seconds inside the provider. The fake
 * takes until the test lets it go on, and no other thread may wait for that.
 */
#include <pthread.h>
#include <sched.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/remote.h"
#include "fabric/buffer.h"

#include "domain_fixture.h"
#include "provider_gate.h"

static int sent, errors;

uint32_t __wrap_fi_version(void)
{
	return FI_VERSION(1, 20); /* a refused write is a fence */
}

void tests_setup(void)
{
	fake_setup();
	gate_init();
	sent = errors = 0;
	fake.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	fake.inject_size = 64;
	domain = fake_domain_open(MESH_PROVIDER_VERBS_RXM);
	fake.before = gate_pass;
}

void tests_teardown(void)
{
	domain_close();
	assert_int_equal(atomic_load(&gate.wrong), 0);
	domain_teardown();
}

/* A peer that nothing was sent to yet. */
static struct mesh_remote *stranger_open(uint16_t port)
{
	struct mesh_remote *peer = fake_remote_open(domain, port);

	peer->flow->connected = false;
	return peer;
}

static void sent_note(struct mesh_buffer *buffer, int error)
{
	assert_true(mesh_lock_held(&domain->lock));
	sent++;
	errors += error != 0;
}

static void message_send(struct mesh_remote *peer)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(domain, peer);

	assert_non_null(buffer);
	buffer->size = 24;
	buffer->sent = sent_note;
	mesh_remote_send(buffer);
}

/* The connector is not inside, and has nothing to do. */
static bool is_idle(void)
{
	const struct mesh_remote *peer;
	bool idle;

	mesh_lock_take(&domain->lock);
	mesh_lock_take(&domain->transmit_lock);
	idle = !mesh_endpoint_is_claimed(domain) && LIST_EMPTY(&domain->fences);
	LIST_FOREACH(peer, &domain->remotes, entry)
		idle &= domain->at_work != peer && !peer->wants_connection;
	mesh_lock_release(&domain->transmit_lock);
	mesh_lock_release(&domain->lock);
	return idle;
}

/*
 * True once @peer is connected, or all that it was to send has ended. Polls while the connector is
 * idle.
 */
static bool is_settled(struct mesh_remote *peer)
{
	bool over;

	if (!is_idle())
		return false;
	mesh_domain_poll(domain);
	mesh_lock_take(&domain->transmit_lock);
	over = peer->flow->connected || TAILQ_EMPTY(&peer->backlog);
	mesh_lock_release(&domain->transmit_lock);
	return over;
}

/* The gate is closed; a message to @peer is inside. */
static void send_inside(struct mesh_remote *peer)
{
	gate.closed = true;
	message_send(peer);
	sem_await(&gate.entered);
}

static void let_go(void)
{
	gate.closed = false;
	sem_post(&gate.open);
	AWAIT(is_idle());
}

/* Only sends on this NIC wait, and none of them holds a lock. */
TEST(no_other_thread_waits)
{
	struct mesh_remote *peer = stranger_open(1), *other = fake_remote_open(domain, 2), *third;
	struct mesh_sink sink = {0};
	struct mesh_write write = {.data = domain->slab, .size = 8, .mr = domain->slab_mr};
	struct mesh_op op = {0};

	send_inside(peer);
	assert_false(mesh_domain_poll(domain));
	message_send(peer);
	message_send(other);
	assert_int_equal(mesh_remote_inject(domain, other, "short", 5), -EAGAIN);
	assert_int_equal(mesh_domain_write(domain, other, &write, &op), -EAGAIN);
	/* What set-up does with this NIC, and what closing does. */
	assert_int_equal(mesh_sink_add(domain, &sink), 0);
	mesh_lock_take(&domain->lock);
	mesh_sink_remove(domain, &sink);
	mesh_lock_release(&domain->lock);
	third = fake_remote_open(domain, 3);
	mesh_remote_close(domain, third);
	assert_int_equal(fake.sends.num, 0);
	let_go();
	assert_true(peer->flow->connected);
	assert_int_equal(fake.sends.num, 1);
	poll_once();
	assert_int_equal(fake.sends.num, 3);
	message_send(peer); /* directly: it does not connect */
	assert_int_equal(fake.sends.num, 4);
}

/* A peer that is lost while its greeting connects: the message ends, after that. */
TEST(lost_inside)
{
	struct mesh_remote *peer = stranger_open(1);

	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	send_inside(peer);
	for (int i = 0; i < 3; i++)
		message_send(peer);
	remote_lose(peer);
	assert_int_equal(sent, 3);
	mesh_remote_close(domain, peer); /* the connector still has it */
	let_go();
	poll_once();
	assert_int_equal(sent, 4);
	assert_int_equal(errors, 4);
	assert_int_equal(fake.sends.num, 0);
	peer = fake_remote_open(domain, 2); /* frees the closed one */
	assert_ptr_equal(LIST_FIRST(&domain->remotes), peer);
	assert_null(LIST_NEXT(peer, entry));
}

/* A connection is made in several steps: the send is repeated, and polls come between. */
TEST(repeated)
{
	struct mesh_remote *peer = stranger_open(1);

	fake_fail(FAKE_SEND, 0, 3, -FI_EAGAIN);
	message_send(peer);
	AWAIT(is_settled(peer));
	assert_int_equal(fake.on[FAKE_SEND].calls, 4);
	assert_int_equal(fake.sends.num, 1);
	assert_true(fake.on[FAKE_CQ_READ].calls >= 3);
}

/* An address that cannot be resolved is an error of the message, from a poll. */
TEST(refused)
{
	struct mesh_remote *peer = stranger_open(1);

	fake_fail(FAKE_SEND, 0, 1, -FI_EHOSTUNREACH);
	message_send(peer);
	AWAIT(is_idle());
	assert_int_equal(sent, 0);
	poll_once();
	assert_int_equal(sent, 1);
	assert_int_equal(errors, 1);
	message_send(peer);
	AWAIT(is_settled(peer));
	assert_int_equal(fake.sends.num, 1);
}

/* The gate is closed: lets the post that is inside go, and waits for the next one. */
static void let_one_go(void)
{
	sem_post(&gate.open);
	sem_await(&gate.entered);
}

static bool is_connecting(struct mesh_remote *peer)
{
	bool connecting;

	mesh_lock_take(&domain->transmit_lock);
	connecting = domain->at_work == peer;
	mesh_lock_release(&domain->transmit_lock);
	return connecting;
}

static void fence_await(struct mesh_fence *fence, int result)
{
	int ret;

	AWAIT((ret = mesh_fence_step(fence)) != -EAGAIN);
	assert_int_equal(ret, result);
}

/* Each takes long, and wants to be tried again: they take turns, and a fence need not wait. */
TEST(turns)
{
	struct mesh_remote *first = stranger_open(1), *second = stranger_open(2);
	struct mesh_remote *third = stranger_open(3), *cut = fake_remote_open(domain, 4);
	struct mesh_fence *fence;

	fake.writes_end_with = 10;
	fake_fail(FAKE_SEND, 0, 3, -FI_EAGAIN);
	send_inside(third);
	message_send(second);
	message_send(first);
	fence = mesh_fence_begin(domain, cut);
	let_one_go();
	assert_false(is_connecting(first) || is_connecting(second)); /* the fence is inside */
	let_one_go();
	assert_int_equal(fake.on[FAKE_WRITE].calls, 1);
	assert_true(is_connecting(second));
	for (uint64_t begin_ms = mesh_clock_ms();
	     mesh_clock_ms() < begin_ms + 3;) /* one attempt in each */
		;
	message_send(third);
	let_one_go();
	assert_true(is_connecting(first));
	let_go();
	assert_true(third->flow->connected);
	fence_await(fence, 1);
	AWAIT(is_settled(first));
	AWAIT(is_settled(second));
}

/* An operation that fails has broken its connection: the next message connects again. */
TEST(after_a_break)
{
	struct mesh_remote *peer = fake_remote_open(domain, 1);
	struct mesh_remote *other = fake_remote_open(domain, 2);

	message_send(peer);
	fake_complete_status(fake.sends.posts[0].context, FI_EIO, 12);
	poll_once();
	assert_int_equal(errors, 1);
	assert_false(peer->flow->connected);
	assert_true(other->flow->connected);
	send_inside(peer);
	let_go();
	assert_int_equal(fake.sends.num, 2);
}

/* If only a write waits, an empty message connects; the peer ignores it. */
TEST(write_connects)
{
	struct mesh_write write = {.data = domain->slab, .size = 8, .mr = domain->slab_mr};
	struct mesh_remote *peer = stranger_open(1);
	struct mesh_op op = {0};

	assert_int_equal(mesh_domain_write(domain, peer, &write, &op), -EAGAIN);
	AWAIT(is_idle());
	assert_int_equal(fake.sends.num, 1);
	assert_int_equal(fake.sends.posts[0].size, 0);
	assert_int_equal(mesh_domain_write(domain, peer, &write, &op), 0);
	fake_complete(&fake.sends.posts[0]);
	fake_deliver("", 0);
	poll_once();
	assert_int_equal(atomic_load(&domain->strangers), 0);
	assert_int_equal(fake.receives.num, domain->num_receive_buffers + 1); /* posted again */
}

/* A fence waits for its turn, longer than it would for the provider, or for the peer. */
TEST(fence_waits)
{
	struct mesh_remote *peer = stranger_open(1), *other = fake_remote_open(domain, 2);
	uint64_t begin_ms = mesh_clock_ms();
	struct mesh_fence *fence;

	fake.writes_end_with = 10; /* a refusal of the peer's NIC */
	send_inside(peer);
	fence = mesh_fence_begin(domain, other);
	while (mesh_clock_ms() < begin_ms + 700) /* more than MESH_FENCE_MS */
		assert_int_equal(mesh_fence_step(fence), -EAGAIN);
	assert_int_equal(fake.on[FAKE_WRITE].calls, 0);
	let_go();
	assert_int_equal(fake.on[FAKE_WRITE].calls, 1);
	fence_await(fence, 1);
	assert_false(other->flow->connected);
}

/* The fence's write is inside. */
static struct mesh_fence *fence_inside(struct mesh_remote *peer)
{
	struct mesh_fence *fence;

	gate.closed = true;
	fence = mesh_fence_begin(domain, peer);
	sem_await(&gate.entered);
	return fence;
}

/* Its write may connect: who steps it does not wait, and no other thread does. */
TEST(fence_connects)
{
	struct mesh_remote *peer = stranger_open(1), *other = fake_remote_open(domain, 2);
	struct mesh_fence *fence = fence_inside(peer);

	fake.writes_end_with = 10;
	assert_int_equal(mesh_fence_step(fence), -EAGAIN);
	assert_false(mesh_domain_poll(domain));
	message_send(other);
	assert_int_equal(fake.sends.num, 0);
	let_go();
	fence_await(fence, 1);
	assert_int_equal(fake.sends.num, 1);
}

/* It takes longer than the caller waits, who closes the peer: it ends by itself. */
static void fence_outlasts(struct mesh_fence *fence, struct mesh_remote *peer)
{
	fence_await(fence, -ETIMEDOUT);
	mesh_remote_close(domain, peer);
	peer = fake_remote_open(domain, 3); /* would free the closed one */
	let_go();
	mesh_remote_close(domain, peer);
}

TEST(fence_outlasts)
{
	struct mesh_remote *peer = stranger_open(1);

	fence_outlasts(fence_inside(peer), peer);
	assert_false(LIST_EMPTY(&domain->abandoned));
	fake_complete_error(fake.writes.posts[0].context, FI_EIO);
	poll_once();
	assert_true(LIST_EMPTY(&domain->abandoned));
}

TEST(failed_fence_outlasts)
{
	struct mesh_remote *peer = stranger_open(1);

	fake_fail(FAKE_WRITE, 0, 1, -FI_EHOSTUNREACH);
	fence_outlasts(fence_inside(peer), peer);
	assert_true(LIST_EMPTY(&domain->abandoned));
}

static _Atomic(bool) domain_closed;

static void *close_main(void *arg)
{
	mesh_domain_close(arg);
	atomic_store(&domain_closed, true);
	return NULL;
}

/* A domain is closed only after the connector has returned from the provider. */
TEST(close_waits)
{
	struct mesh_remote *peer = stranger_open(1);
	pthread_t thread;

	atomic_store(&domain_closed, false);
	send_inside(peer);
	mesh_remote_close(domain, peer);
	assert_int_equal(pthread_create(&thread, NULL, close_main, domain), 0);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	assert_false(atomic_load(&domain_closed));
	gate.closed = false;
	sem_post(&gate.open);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&domain_closed));
	fake.before = NULL;
	domain = fake_domain_open(MESH_PROVIDER_VERBS_RXM);
}

/* The other providers connect without waiting: no thread, and the first message goes at once. */
TEST(tcp_has_none)
{
	struct mesh_domain *tcp;
	struct mesh_remote *peer;

	fake.before = NULL;
	tcp = fake_domain_open(MESH_PROVIDER_TCP);
	peer = fake_remote_open(tcp, 1);
	assert_false(tcp->has_connector);
	peer->flow->connected = false;
	fake.inject_size = 8;
	assert_int_equal(mesh_remote_inject(tcp, peer, "now", 4), 0);
	mesh_remote_close(tcp, peer);
	mesh_domain_close(tcp);
}
