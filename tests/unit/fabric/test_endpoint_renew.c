/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_endpoint_renew.c - an endpoint of verbs is closed, as a fence, and another one is opened:
 * everything that was in flight ends exactly once, nothing is posted meanwhile, and what is posted
 * afterwards uses the new one.
 */
#include <stdatomic.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/remote.h"

#include "domain_fixture.h"

static int sent, written, last_error;
static _Atomic(int) tries; /* to open an endpoint */

/* Runs in each call of the provider, also in the connector's. */
static void provider_enter(enum fake_call call)
{
	if (call == FAKE_ENABLE)
		atomic_fetch_add(&tries, 1);
}

static void sent_note(struct mesh_buffer *buffer, int error)
{
	assert_true(mesh_lock_held(&domain->lock));
	sent++;
	last_error = error;
}

static void written_note(struct mesh_op *op, int error)
{
	assert_true(mesh_lock_held(&domain->lock));
	written++;
	last_error = error;
}

static void setup(void)
{
	fake_setup();
	sent = written = last_error = 0;
	atomic_store(&tries, 0);
	fake.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	fake.inject_size = 64;
	fake.before = provider_enter;
	domain = fake_domain_open(MESH_PROVIDER_VERBS_RXM);
}

TESTS_USE(setup, domain_teardown);

static void message_send(struct mesh_remote *peer)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(domain, peer);

	assert_non_null(buffer);
	buffer->size = 24;
	buffer->sent = sent_note;
	mesh_remote_send(buffer);
}

static int write_post(struct mesh_remote *peer, struct mesh_op *op)
{
	const struct mesh_write write = {.data = domain->slab, .size = 8, .mr = domain->slab_mr};

	op->complete = written_note;
	return mesh_domain_write(domain, peer, &write, op);
}

/* Until the connector's thread has opened another endpoint; the fake is that thread's till then. */
static void open_await(void)
{
	AWAIT(atomic_load(&domain->endpoint_state) == MESH_ENDPOINT_OPEN &&
	      !atomic_load(&domain->claimed));
}

/* As its users do: the write is refused while the connector's thread has the domain. */
static void write_await(struct mesh_remote *peer, struct mesh_op *op)
{
	int ret;

	AWAIT((ret = write_post(peer, op)) != -EAGAIN);
	assert_int_equal(ret, 0);
}

/* Nor does a message end while the connector's thread tries its peer. */
static void sent_await(void)
{
	AWAIT((poll_once(), sent));
	assert_int_equal(sent, 1);
}

static void endpoint_renew(void)
{
	mesh_endpoint_close(domain);
	open_await();
}

/* The provider says nothing about them; their owners hear of it when the endpoint is closed. */
TEST(all_ends_once)
{
	struct mesh_remote *peer = fake_remote_open(domain, 1);
	struct mesh_op ops[3] = {0};
	int i, endpoints = fake.on[FAKE_ENDPOINT].calls;

	message_send(peer);
	for (i = 0; i < 3; i++)
		write_await(peer, &ops[i]);
	fake_complete(&fake.writes.posts[1]);
	poll_once();
	assert_int_equal(written, 1);
	fake_complete(&fake.writes.posts[2]); /* nobody has polled since */
	endpoint_renew();
	assert_int_equal(sent, 1);
	assert_int_equal(written, 3);
	assert_int_equal(last_error, -ECONNABORTED);
	assert_true(LIST_EMPTY(&domain->in_flight));
	assert_int_equal(fake.on[FAKE_ENDPOINT].calls, endpoints + 1);
	assert_int_equal(fake.open[FAKE_ENDPOINT], 1);
	poll_once();
	assert_int_equal(written, 3);
	assert_int_equal(sent, 1);
}

/* The peer of an earlier endpoint is lost; another one of the same peer is not. */
TEST(remotes)
{
	struct mesh_remote *old = fake_remote_open(domain, 1), *fresh;
	struct mesh_op op = {0};

	endpoint_renew();
	assert_true(mesh_remote_is_outdated(domain, old));
	assert_int_equal(write_post(old, &op), -ECONNRESET);
	message_send(old);
	sent_await();
	assert_int_equal(last_error, -ECONNRESET);
	fresh = fake_remote_open(domain, 1);
	assert_false(mesh_remote_is_outdated(domain, fresh));
	write_await(fresh, &op);
	fake_complete(&fake.writes.posts[0]);
	poll_once();
	assert_int_equal(written, 1);
	assert_int_equal(last_error, 0);
}

/*
 * A message that was not read yet is read before the endpoint is closed, which posts its receive
 * there once more. Then every receive is posted to the new endpoint.
 */
TEST(receives)
{
	int receives = domain->num_receive_buffers;

	assert_int_equal(fake.receives.num, receives);
	fake_deliver("", 0);
	endpoint_renew();
	assert_int_equal(fake.receives.num, receives + 1 + receives);
	assert_true(TAILQ_EMPTY(&domain->unposted));
}

static int resumed;

static void resume_note(struct mesh_waiter *waiter)
{
	(void)waiter;
	assert_true(mesh_lock_held(&domain->lock));
	resumed++;
}

/* What waits for a poll, or for room on the old endpoint, is asked once the new one is open. */
TEST(waiters)
{
	struct mesh_remote *full = fake_remote_open(domain, 1), *idle = fake_remote_open(domain, 2);
	struct mesh_waiter line[3] = {
		{.resume = resume_note}, {.resume = resume_note}, {.resume = resume_note}};
	struct mesh_op op = {0};

	write_await(full, &op);
	poll_once();
	resumed = 0;
	mesh_flow_wait(domain, full->flow, &line[0]);
	poll_once();
	assert_int_equal(resumed, 0); /* until something completes */
	mesh_endpoint_close(domain);
	mesh_flow_wait(domain, idle->flow, &line[1]);
	mesh_domain_wait(domain, &line[2]);
	open_await();
	assert_int_equal(written, 1);
	mesh_domain_lock(domain);
	mesh_flow_completed(domain, full->flow, 8, 0, false); /* as the write's owner does */
	mesh_domain_unlock(domain);
	poll_once();
	assert_int_equal(resumed, 3);
	assert_true(TAILQ_EMPTY(&domain->waiters));
}

static bool is_old;

uint32_t __real_fi_version(void);

uint32_t __wrap_fi_version(void)
{
	return is_old ? FI_VERSION(1, 19) : __real_fi_version();
}

/* A spent endpoint works on, until a HELLO would name it. From 1.20 on none is spent. */
TEST(spent)
{
	struct mesh_remote *peer = fake_remote_open(domain, 1);
	struct mesh_op op = {0};

	is_old = true;
	mesh_endpoint_spend(domain);
	write_await(peer, &op);
	fake_complete(&fake.writes.posts[0]);
	poll_once();
	assert_int_equal(written, 1);
	assert_int_equal(last_error, 0);
	assert_false(mesh_remote_is_outdated(domain, peer));
	assert_false(mesh_endpoint_is_open(domain));
	open_await();
	assert_true(mesh_remote_is_outdated(domain, peer));
	assert_true(mesh_endpoint_is_open(domain));
	mesh_endpoint_spend(domain);
	mesh_endpoint_close(domain); /* by a fence */
	open_await();
	assert_true(mesh_endpoint_is_open(domain));
	is_old = false;
}

/* A fence after that has nothing to do: it does not write, and it does not wait. */
TEST(fence_is_over)
{
	struct mesh_remote *peer = fake_remote_open(domain, 1);

	endpoint_renew();
	assert_int_equal(mesh_fence_step(mesh_fence_begin(domain, peer)), 0);
	assert_int_equal(fake.on[FAKE_WRITE].calls, 0);
}

/* While no endpoint can be opened nothing is posted, and nobody waits; later one can. */
static void cannot_open(enum fake_call call)
{
	struct mesh_remote *peer = fake_remote_open(domain, 1), *fresh;
	struct mesh_op op = {0};

	fake_fail(call, 0, 1, -FI_ENODEV);
	mesh_endpoint_close(domain);
	mesh_endpoint_close(domain); /* there is none */
	AWAIT(atomic_load(&tries) >= 2);
	fresh = fake_remote_open(domain, 1);
	assert_int_equal(write_post(fresh, &op), -EAGAIN);
	assert_false(mesh_domain_poll(domain));
	AWAIT(mesh_endpoint_is_open(domain));
	open_await();
	assert_int_equal(fake.open[FAKE_ENDPOINT], 1);
	write_await(fresh, &op);
	fake_complete(&fake.writes.posts[0]);
	poll_once();
	assert_int_equal(written, 1);
	mesh_remote_close(domain, peer);
	mesh_remote_close(domain, fresh);
}

TEST(cannot_open)
{
	cannot_open(FAKE_ENABLE);
}

/* It is open, and cannot be used. */
TEST(has_no_name)
{
	cannot_open(FAKE_GETNAME);
}
