/* SPDX-License-Identifier: Apache-2.0 */
/* test_flow.c - several users of one flow: its room, its buffers, and short messages. */
#include <rdma/fi_errno.h>

#include "base/clock.h"

#include "domain_fixture.h"

TESTS_USE(domain_setup, domain_teardown);

/* A remote that takes nothing leaves as many buffers free as it holds: others always find some. */
TEST(buffers_shared)
{
	struct mesh_remote *stuck[4], *other;
	struct mesh_buffer *buffer;
	int i;

	fake_fail(FAKE_SEND, 0, 1 << 30, -FI_EAGAIN);
	for (i = 0; i < 4; i++) {
		stuck[i] = fake_remote_open(domain, (uint16_t)(i + 1));
		while ((buffer = mesh_remote_buffer_get(domain, stuck[i]))) {
			buffer->size = 24;
			mesh_remote_send(buffer);
		}
	}
	other = fake_remote_open(domain, 9);
	for (i = 0; (buffer = mesh_remote_buffer_get(domain, other)); i++) {
		buffer->size = 24;
		mesh_remote_send(buffer);
	}
	assert_true(i >= 4);
	for (i = 0; i < 4; i++)
		mesh_remote_close(domain, stuck[i]);
}

/* ---- the flow itself ------------------------------------------------------------------------ */

/* All users of one endpoint share its flow; another endpoint has another flow. */
TEST(flow_shared)
{
	struct mesh_remote *a = fake_remote_open(domain, 2), *b = fake_remote_open(domain, 2);
	struct mesh_remote *c = fake_remote_open(domain, 3);
	struct mesh_flow *flow = a->flow;

	assert_ptr_equal(a->flow, b->flow);
	assert_ptr_not_equal(a->flow, c->flow);
	mesh_remote_close(domain, a);
	mesh_remote_close(domain, c);
	assert_int_equal(flow->users, 1);
	assert_ptr_equal(LIST_FIRST(&domain->flows), flow);
	assert_ptr_equal(LIST_NEXT(flow, entry), remote->flow);
	assert_null(LIST_NEXT(remote->flow, entry));
	mesh_remote_close(domain, b);
	assert_ptr_equal(LIST_FIRST(&domain->flows), remote->flow);
}

/* A flow with something in flight outlives its remotes, and is found again. */
TEST(flow_outlives)
{
	struct mesh_flow *flow = remote->flow;

	mesh_pace_posted(&flow->pace, 100, 1);
	mesh_remote_close(domain, remote);
	remote = fake_remote_open(domain, 1);
	assert_ptr_equal(remote->flow, flow);
}

/* The window of a new flow with this provider. */
static uint64_t window_of(enum mesh_provider_id provider)
{
	struct mesh_remote *fresh;
	uint64_t window;

	domain_change(provider);
	fresh = fake_remote_open(domain, 2);
	window = atomic_load(&fresh->flow->pace.window);
	mesh_remote_close(domain, fresh);
	return window;
}

/* What the cache holds where a processor copies; several segments where it does not. */
TEST(window_of_the_provider)
{
	assert_int_equal(window_of(MESH_PROVIDER_TCP), 2 << 20);
	assert_int_equal(window_of(MESH_PROVIDER_TCP_RXM), 2 << 20);
	assert_int_equal(window_of(MESH_PROVIDER_VERBS_RXM), 16 << 20);
}

/* ---- waiting for room ------------------------------------------------------------------------ */

struct customer {
	struct mesh_waiter waiter;
	uint64_t piece; /* bytes of one write */
	uint64_t wants; /* bytes; posts no more than the room there is */
	uint64_t got;
	int turns;
};

static void post(struct mesh_flow *flow, uint64_t bytes)
{
	mesh_lock_take(&domain->transmit_lock);
	mesh_pace_posted(&flow->pace, bytes, mesh_clock_ns());
	mesh_lock_release(&domain->transmit_lock);
}

static void complete(struct mesh_flow *flow, size_t bytes)
{
	mesh_lock_take(&domain->lock);
	mesh_flow_completed(domain, flow, bytes, mesh_clock_ns(), false);
	mesh_lock_release(&domain->lock);
	assert_true(mesh_domain_poll(domain)); /* which resumes those that wait */
}

/* As a comm does it, whether it is called from a completion or from isend. */
static void customer_push(struct customer *customer)
{
	uint64_t piece = customer->piece;

	while (customer->wants && mesh_flow_has_room(domain, remote->flow)) {
		post(remote->flow, piece);
		customer->wants -= piece;
		customer->got += piece;
	}
	if (customer->wants)
		mesh_flow_wait(domain, remote->flow, &customer->waiter);
}

static void customer_turn(struct mesh_waiter *waiter)
{
	struct customer *customer = (struct customer *)waiter;

	assert_true(mesh_lock_held(&domain->lock));
	assert_false(mesh_lock_held(&domain->transmit_lock));
	assert_true(++customer->turns < 1000);
	customer_push(customer);
}

/* Each poll with a completion resumes the longest waiter; no waiter is skipped. */
TEST(turns)
{
	struct mesh_flow *flow = remote->flow;
	struct customer customers[3];

	post(flow, MESH_PACE_WINDOW_MIN);
	for (int i = 0; i < 3; i++) {
		customers[i] = (struct customer){
			.waiter.resume = customer_turn,
			.piece = 256 << 10,
			.wants = 16 << 20,
		};
		customer_push(&customers[i]);
		customer_push(&customers[i]); /* counts once */
	}
	for (int i = 0; i < 30; i++) {
		assert_int_equal(mesh_pace_in_flight(&flow->pace), MESH_PACE_WINDOW_MIN);
		complete(flow, 256 << 10);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(customers[i].got, 10 * (256 << 10));
	wait_cancel(&customers[1].waiter);
	for (int i = 0; i < 10; i++)
		complete(flow, 256 << 10);
	assert_int_equal(customers[1].got, 10 * (256 << 10));
	assert_int_equal(customers[0].got + customers[2].got, 30 * (256 << 10));
	wait_cancel(&customers[0].waiter);
	wait_cancel(&customers[2].waiter);
}

/* Large segments get as much as small ones, which need no more room than they do. */
TEST(large_beside_small)
{
	struct customer large = {
		.waiter.resume = customer_turn,
		.piece = 512 << 10,
		.wants = 4 << 20,
	};
	struct customer small = large;

	small.piece = 64 << 10;
	small.wants = 32 << 20;
	customer_push(&small); /* fills the window */
	customer_push(&large);
	for (int i = 0; large.got < 4 << 20; i++) {
		assert_true(i < 400);
		complete(remote->flow, small.piece);
		customer_push(&small); /* a new message of a busy comm */
	}
	assert_true(large.turns <= 8); /* and it is not resumed before there is room for it */
	wait_cancel(&small.waiter);
	assert_int_equal(remote->flow->num_waiters, 0);
}

static void count_turn(struct mesh_waiter *waiter);

/*
 * A comm waits on all of its paths, also on one that has room but would take longer. There it looks
 * again after each completion, and not in each poll.
 */
TEST(wait_with_room)
{
	struct mesh_flow *flow = remote->flow;
	struct customer looker = {.waiter.resume = count_turn};

	for (int i = 0; i < 4; i++)
		post(flow, 1000);
	complete(flow, 1000);
	mesh_flow_wait(domain, flow, &looker.waiter);
	assert_true(mesh_flow_has_room(domain, flow));
	for (int i = 0; i < 3; i++)
		mesh_domain_poll(domain);
	assert_int_equal(looker.turns, 0);
	complete(flow, 1000);
	assert_int_equal(looker.turns, 1);
	complete(flow, 1000);
	assert_int_equal(looker.turns, 1); /* it no longer waits */
	mesh_flow_wait(domain, flow, &looker.waiter);
	mesh_lock_take(&domain->lock);
	mesh_flow_forget(domain, flow, 1000);
	mesh_lock_release(&domain->lock);
	mesh_domain_poll(domain);
	assert_int_equal(looker.turns, 2);
}

static void posted(struct mesh_flow *flow, uint64_t bytes)
{
	mesh_lock_take(&domain->transmit_lock);
	mesh_flow_posted(domain, flow, bytes, mesh_clock_ns());
	mesh_lock_release(&domain->transmit_lock);
}

/* Where the provider copies, it copies only so much between two polls, on all flows together. */
TEST(copies)
{
	struct mesh_remote *other = fake_remote_open(domain, 2);
	struct customer customer = {.waiter.resume = count_turn};

	for (int i = 0; i < 2; i++) {
		posted(remote->flow, MESH_COPY_MAX - 1);
		assert_true(mesh_flow_has_room(domain, other->flow));
		posted(remote->flow, 1);
		assert_false(mesh_flow_has_room(domain, remote->flow));
		assert_false(mesh_flow_has_room(domain, other->flow));
		mesh_domain_poll(domain);
		assert_true(mesh_flow_has_room(domain, other->flow));
	}
	assert_false(mesh_flow_has_room(domain, remote->flow)); /* its window is full by now */
	/* The next poll resumes the comms that waited for that, though nothing has completed. */
	posted(other->flow, MESH_COPY_MAX);
	mesh_flow_wait(domain, other->flow, &customer.waiter);
	mesh_domain_poll(domain);
	assert_int_equal(customer.turns, 1);
}

/* What a poll has copied itself, because the socket was full before, counts as well. */
TEST(copies_of_a_poll)
{
	struct mesh_remote *other = fake_remote_open(domain, 2);

	post(remote->flow, MESH_COPY_MAX);
	assert_true(mesh_domain_poll(domain));
	mesh_lock_take(&domain->lock);
	mesh_flow_completed(domain, remote->flow, MESH_COPY_MAX - 1, mesh_clock_ns(), false);
	assert_true(mesh_flow_has_room(domain, other->flow));
	mesh_flow_completed(domain, remote->flow, 1, mesh_clock_ns(), false);
	assert_false(mesh_flow_has_room(domain, other->flow));
	mesh_lock_release(&domain->lock);
	assert_true(mesh_domain_poll(domain));
	assert_true(mesh_flow_has_room(domain, other->flow));
}

/* On verbs the NIC copies, whatever we do meanwhile. */
TEST(no_copies)
{
	domain_change(MESH_PROVIDER_VERBS_RXM);
	posted(remote->flow, 15 << 20);
	assert_true(mesh_flow_has_room(domain, remote->flow));
	complete(remote->flow, 15 << 20);
	assert_true(mesh_flow_has_room(domain, remote->flow));
}

/* The last completion arrives between the check for room and the wait: the next poll resumes. */
TEST(wait_on_idle)
{
	struct customer customer = {.waiter.resume = count_turn};

	mesh_flow_wait(domain, remote->flow, &customer.waiter);
	mesh_domain_poll(domain);
	assert_int_equal(customer.turns, 1);
}

static void count_turn(struct mesh_waiter *waiter)
{
	((struct customer *)waiter)->turns++;
}

/* A waiter of a flow that finds the provider busy waits for the next poll instead. */
TEST(line_changed)
{
	struct customer customer = {.waiter.resume = count_turn};

	post(remote->flow, 100);
	mesh_flow_wait(domain, remote->flow, &customer.waiter);
	mesh_domain_poll(domain);
	assert_int_equal(customer.turns, 0);
	mesh_domain_wait(domain, &customer.waiter);
	mesh_flow_wait(domain, remote->flow, &customer.waiter); /* a poll comes first anyway */
	complete(remote->flow, 100);				/* with that poll */
	assert_int_equal(customer.turns, 1);
	mesh_domain_poll(domain);
	assert_int_equal(customer.turns, 1);
}

/* ---- short messages ----------------------------------------------------------------------- */

TEST_WITH(inject, fake_setup, domain_teardown)
{
	const char text[] = "short";
	struct mesh_buffer *buffer;

	fake.inject_size = sizeof(text);
	domain_open(MESH_PROVIDER_TCP);
	assert_int_equal(mesh_remote_inject(domain, remote, text, sizeof(text)), 0);
	assert_int_equal(fake.injects.num, 1);
	assert_int_equal(fake.injects.posts[0].to, 100);
	assert_memory_equal(fake.injects.posts[0].bytes, text, sizeof(text));
	/* One byte too long: the provider would accept it, and read beyond the buffer. */
	assert_int_equal(mesh_remote_inject(domain, remote, text, sizeof(text) + 1), -EAGAIN);
	assert_int_equal(fake.on[FAKE_INJECT].calls, 1);
	/* Whatever the provider returns, the path with a completion reports more. */
	fake_fail(FAKE_INJECT, 0, 1, -FI_ENETUNREACH);
	assert_int_equal(mesh_remote_inject(domain, remote, text, sizeof(text)), -EAGAIN);
	/* Nothing passes by those that wait. */
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	buffer = mesh_remote_buffer_get(domain, remote);
	buffer->size = 24;
	mesh_remote_send(buffer);
	assert_int_equal(mesh_remote_inject(domain, remote, text, sizeof(text)), -EAGAIN);
	mesh_domain_poll(domain);
	assert_int_equal(mesh_remote_inject(domain, remote, text, sizeof(text)), 0);
	remote_lose(remote);
	assert_int_equal(mesh_remote_inject(domain, remote, text, sizeof(text)), -EAGAIN);
}
