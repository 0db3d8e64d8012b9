/* SPDX-License-Identifier: Apache-2.0 */
/* test_messages.c - messages through a provider that is busy, breaks off or loses its peer. */
#include <rdma/fi_errno.h>

#include "wire/message.h"

#include "domain_fixture.h"

#define PAYLOAD_MAX 4096

struct ends {
	int numbers[512]; /* of the messages, in the order in which they ended */
	int errors[512];
	int num;
};

static struct ends ends;

static void setup(void)
{
	memset(&ends, 0, sizeof(ends));
	domain_setup();
}

TESTS_USE(setup, domain_teardown);

static void end_note(struct mesh_buffer *buffer, int error)
{
	assert_true(mesh_lock_held(&buffer->domain->lock));
	assert_false(mesh_lock_held(&buffer->domain->transmit_lock));
	assert_true(ends.num < 512);
	ends.numbers[ends.num] = *(int *)buffer->bytes;
	ends.errors[ends.num] = error;
	ends.num++;
}

static void message_send(struct mesh_remote *to, int number)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(domain, to);

	assert_non_null(buffer);
	memcpy(buffer->bytes, &number, sizeof(number));
	buffer->size = 24;
	buffer->sent = end_note;
	mesh_remote_send(buffer);
}

static int sent_number(int i)
{
	int number;

	assert_true(i < fake.sends.num);
	memcpy(&number, fake.sends.posts[i].bytes, sizeof(number));
	return number;
}

TEST(send)
{
	message_send(remote, 5);
	assert_int_equal(fake.sends.num, 1);
	assert_int_equal(sent_number(0), 5);
	assert_int_equal(fake.sends.posts[0].size, 24);
	assert_int_equal(fake.sends.posts[0].to, 100);
	assert_true(TAILQ_EMPTY(&remote->backlog));
	assert_true(mesh_domain_poll(domain));
	assert_int_equal(ends.num, 0); /* not before it is done */
	fake_complete(&fake.sends.posts[0]);
	mesh_domain_poll(domain);
	assert_int_equal(ends.num, 1);
	assert_int_equal(ends.errors[0], 0);
}

/*
 * What the provider does not accept waits, and all later messages behind it; they are sent in
 * order.
 */
TEST(backlog_order)
{
	fake_fail(FAKE_SEND, 2, 3, -FI_EAGAIN);
	for (int i = 0; i < 6; i++)
		message_send(remote, i);
	assert_int_equal(fake.sends.num, 2);
	assert_int_equal(fake.on[FAKE_SEND].calls, 3); /* those behind it do not even try */
	assert_false(TAILQ_EMPTY(&remote->backlog));
	mesh_domain_poll(domain);
	mesh_domain_poll(domain);
	assert_int_equal(fake.sends.num, 2);
	mesh_domain_poll(domain);
	assert_int_equal(fake.sends.num, 6);
	assert_true(TAILQ_EMPTY(&remote->backlog));
	for (int i = 0; i < 6; i++)
		assert_int_equal(sent_number(i), i);
	assert_int_equal(ends.num, 0);
}

/* A stalled peer does not block the others. */
TEST(backlogs_apart)
{
	struct mesh_remote *busy = fake_remote_open(domain, 1),
			   *other = fake_remote_open(domain, 2);

	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	message_send(busy, 1);
	message_send(other, 2);
	assert_int_equal(fake.sends.num, 1);
	assert_int_equal(sent_number(0), 2);
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN); /* the first of the backlog: still busy */
	message_send(other, 3);
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	mesh_domain_poll(domain);
	assert_int_equal(fake.sends.num, 2);
	assert_int_equal(sent_number(1), 3);
	assert_false(TAILQ_EMPTY(&busy->backlog));
	mesh_domain_poll(domain);
	assert_int_equal(sent_number(2), 1);
}

/* A message that cannot be sent ends alone, from the next poll, with its error. */
TEST(one_fails)
{
	fake_fail(FAKE_SEND, 0, 2, -FI_EIO);
	for (int i = 0; i < 3; i++)
		message_send(remote, i);
	assert_int_equal(ends.num, 0); /* never from inside the send */
	mesh_domain_poll(domain);
	assert_int_equal(ends.num, 1);
	assert_int_equal(ends.numbers[0], 0);
	assert_int_equal(ends.errors[0], -EIO);
	assert_int_equal(fake.sends.num, 2);
	assert_int_equal(sent_number(0), 1);
	assert_int_equal(sent_number(1), 2);
	assert_true(TAILQ_EMPTY(&remote->backlog));
}

TEST(lost_remote)
{
	struct mesh_remote *again;

	fake_fail(FAKE_SEND, 1, 1, -FI_EAGAIN);
	for (int i = 0; i < 4; i++)
		message_send(remote, i);
	remote_lose(remote);
	assert_int_equal(ends.num, 3); /* at once; the first is the provider's */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ends.numbers[i], i + 1);
		assert_int_equal(ends.errors[i], -ECONNRESET);
	}
	assert_true(TAILQ_EMPTY(&remote->backlog));
	fake_complete_error(fake.sends.posts[0].context, FI_ECONNABORTED);
	mesh_domain_poll(domain);
	assert_int_equal(ends.num, 4);
	assert_int_equal(ends.errors[3], -ECONNABORTED);
	/* Later messages do not reach the provider. */
	message_send(remote, 4);
	assert_int_equal(ends.num, 4);
	mesh_domain_poll(domain);
	assert_int_equal(ends.num, 5);
	assert_int_equal(ends.errors[4], -ECONNRESET);
	assert_int_equal(fake.sends.num, 1);
	/* A new connection with the same endpoint begins afresh. */
	again = fake_remote_open(domain, 1);
	assert_ptr_not_equal(again, remote);
	message_send(again, 9);
	assert_int_equal(fake.sends.num, 2);
	remote_lose(remote); /* idempotent */
}

/* Two peers at one endpoint (we connect, and are connected to): the end of one spares the other. */
TEST(remotes_at_one_endpoint)
{
	struct mesh_remote *a = fake_remote_open(domain, 2), *b = fake_remote_open(domain, 2);

	assert_ptr_not_equal(a, b);
	remote_lose(a);
	message_send(b, 1);
	assert_int_equal(fake.sends.num, 1);
	mesh_remote_close(domain, a);
	message_send(b, 2);
	assert_int_equal(fake.sends.num, 2);
}

/* What waits for a remote that was closed ends with an error; then it is freed (ASan). */
TEST(remote_closed_with_backlog)
{
	struct mesh_remote *a = fake_remote_open(domain, 2);

	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	message_send(a, 1);
	mesh_remote_close(domain, a);
	assert_int_equal(ends.num, 0);
	mesh_domain_poll(domain);
	assert_int_equal(ends.num, 1);
	assert_int_equal(ends.errors[0], -ECONNRESET);
	mesh_remote_close(domain, fake_remote_open(domain, 3));
	assert_ptr_equal(LIST_FIRST(&domain->remotes), remote); /* the fixture's */
	assert_null(LIST_NEXT(remote, entry));
	assert_int_equal(domain->num_flows, 1);
}

TEST(remote_refused)
{
	struct mesh_remote *refused = (struct mesh_remote *)&ends;

	assert_int_equal(mesh_remote_open(domain, domain->name, 28, &refused), -EPROTO);
	assert_int_equal(mesh_remote_open(domain, domain->name, 0, &refused), -EPROTO);
	assert_int_equal(fake.on[FAKE_AV_INSERT].calls, 1); /* the fixture's */
	fake_fail(FAKE_AV_INSERT, 0, 1, -FI_ENOMEM);
	assert_int_equal(mesh_remote_open(domain, domain->name, domain->name_len, &refused),
			 -ENOMEM);
	assert_true(log_captured(MESH_LOG_WARN, "peer's endpoint name"));
	fake_fail(FAKE_AV_INSERT, 0, 1, -FI_EADDRNOTAVAIL); /* 0 inserted */
	assert_true(mesh_remote_open(domain, domain->name, domain->name_len, &refused) < 0);
	assert_ptr_equal(refused, &ends);
	assert_int_equal(mesh_remote_open(domain, domain->name, domain->name_len, &refused), 0);
}

/* A send that fails later, by a completion. */
TEST(completion_error)
{
	for (int i = 0; i < 3; i++)
		message_send(remote, i);
	fake_complete_error(fake.sends.posts[1].context, FI_ETOOSMALL); /* beyond errno's range */
	fake_complete(&fake.sends.posts[0]);
	fake_complete_error(NULL, FI_ECONNRESET); /* a peer's write was interrupted: no owner */
	fake_complete_error(fake.sends.posts[2].context, FI_ETIMEDOUT);
	for (int i = 0; i < 4; i++)
		mesh_domain_poll(domain);
	assert_int_equal(ends.num, 3);
	assert_int_equal(ends.numbers[0], 1);
	assert_int_equal(ends.errors[0], -EIO);
	assert_int_equal(ends.errors[1], 0);
	assert_int_equal(ends.numbers[2], 2);
	assert_int_equal(ends.errors[2], -ETIMEDOUT);
}

/* The number of buffers is limited, and each is returned, however its message ended. */
TEST(buffers)
{
	struct mesh_buffer *buffer;
	int total = 0, round, i;

	for (round = 0; round < 4; round++) {
		int sends = fake.sends.num;

		fake_fail(FAKE_SEND, 2, round == 1 ? 1000 : 0, -FI_EIO);
		for (i = 0; (buffer = mesh_remote_buffer_get(domain, remote)); i++) {
			memset(buffer->bytes, i, sizeof(struct mesh_message_header) + PAYLOAD_MAX);
			buffer->size = 24;
			buffer->sent = NULL;
			mesh_remote_send(buffer);
		}
		if (!round)
			total = i;
		assert_int_equal(i, total);
		assert_in_range(total, 32, 512);
		for (i = sends; i < fake.sends.num; i++)
			fake_complete(&fake.sends.posts[i]);
		for (i = 0; i < 10; i++)
			mesh_domain_poll(domain);
	}
	buffer = mesh_remote_buffer_get(domain, remote);
	assert_non_null(buffer);
	mesh_buffer_put(buffer);
}

/* ---- waiters ------------------------------------------------------------------------------- */

struct test_waiter {
	struct mesh_waiter waiter;
	int resumed;
	bool again;
};

static void waiter_resume(struct mesh_waiter *waiter)
{
	struct test_waiter *test = (struct test_waiter *)waiter;

	assert_true(mesh_lock_held(&domain->lock));
	assert_false(mesh_lock_held(&domain->transmit_lock));
	test->resumed++;
	assert_true(test->resumed < 100);
	if (test->again)
		mesh_domain_wait(domain, waiter);
}

TEST(waiters)
{
	struct test_waiter a = {.waiter.resume = waiter_resume};
	struct test_waiter b = a, c = a;

	a.again = true;
	mesh_domain_wait(domain, &a.waiter);
	mesh_domain_wait(domain, &c.waiter);
	mesh_domain_wait(domain, &b.waiter);
	mesh_domain_wait(domain, &b.waiter); /* counts once */
	wait_cancel(&c.waiter);
	wait_cancel(&c.waiter);
	mesh_domain_poll(domain);
	assert_int_equal(a.resumed, 1); /* asks again, and is not called twice in one poll */
	assert_int_equal(b.resumed, 1);
	assert_int_equal(c.resumed, 0);
	mesh_domain_poll(domain);
	assert_int_equal(a.resumed, 2);
	assert_int_equal(b.resumed, 1);
	a.again = false;
	mesh_domain_poll(domain);
	mesh_domain_poll(domain);
	assert_int_equal(a.resumed, 3);
	mesh_domain_wait(domain, &b.waiter); /* the list still works */
	mesh_domain_poll(domain);
	assert_int_equal(b.resumed, 2);
}

/* Only one thread polls; the later one returns at once. */
TEST(poll_busy)
{
	uint64_t polls = domain->polls;

	assert_true(mesh_domain_poll(domain));
	assert_true(domain->polls == polls + 1);
	mesh_lock_take(&domain->lock);
	assert_false(mesh_domain_poll(domain));
	assert_true(domain->polls == polls + 1);
	mesh_lock_release(&domain->lock);
}

/* A queue that cannot be read only ends the poll; this is reported once. */
TEST(poll_fails)
{
	fake_fail(FAKE_CQ_READ, 0, 3, -FI_EOVERRUN);
	while (fake.on[FAKE_CQ_READ].calls < 3)
		assert_true(mesh_domain_poll(domain));
	assert_true(domain->polls == 3);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "eth7"));
	fake_deliver_immediate(0); /* what comes after all is taken */
	mesh_domain_poll(domain);
	assert_true(domain->strangers == 1);
}

/* However much has arrived, a poll ends, and the next one handles the rest. */
TEST(poll_bounded)
{
	for (int i = 0; i < 1000; i++)
		fake_deliver_immediate(0);
	mesh_domain_poll(domain);
	assert_in_range(fake.read, 16, 500);
	for (int polls = 1; fake.read < 1000; polls++) {
		assert_true(polls < 100);
		mesh_domain_poll(domain);
	}
	assert_true(domain->strangers == 1000);
}

/* ---- receives ------------------------------------------------------------------------------ */

static void noise_deliver(void)
{
	fake_deliver("noise", 5);
}

TEST_WITH(receive_posted_again, fake_setup, domain_teardown)
{
	int i, posted;

	fake.rx_size = 4;
	domain_open(MESH_PROVIDER_TCP);
	for (i = 0; i < 20; i++) {
		posted = fake.receives.num;
		noise_deliver();
		mesh_domain_poll(domain);
		assert_int_equal(fake.receives.num, posted + 1);
		assert_ptr_equal(fake.receives.posts[posted].buffer,
				 fake.receives.posts[fake.receives_taken - 1].buffer);
	}
	assert_true(domain->strangers == 20);
}

/* The provider does not take it now: it is not forgotten. */
TEST_WITH(receive_busy, fake_setup, domain_teardown)
{
	fake.rx_size = 4;
	domain_open(MESH_PROVIDER_TCP);
	fake_fail(FAKE_RECV, 0, 6, -FI_EAGAIN);
	for (int i = 0; i < 4; i++)
		noise_deliver();
	mesh_domain_poll(domain); /* all four fail, and once more in the same poll */
	assert_int_equal(fake.receives.num, 4);
	for (int i = 0; i < 5; i++)
		mesh_domain_poll(domain);
	assert_int_equal(fake.receives.num, 8);
	noise_deliver();
	mesh_domain_poll(domain);
	assert_int_equal(fake.receives.num, 9);
}

/* A receive that failed is posted again, also one that the provider took back itself. */
TEST_WITH(receive_error, fake_setup, domain_teardown)
{
	fake.rx_size = 4;
	domain_open(MESH_PROVIDER_TCP);
	fake_complete_error(fake.receives.posts[0].context, FI_ECONNRESET);
	fake_complete_error(fake.receives.posts[1].context, FI_ETRUNC);
	fake_complete_error(fake.receives.posts[2].context, FI_ECANCELED);
	mesh_domain_poll(domain);
	assert_int_equal(fake.receives.num, 7);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(fake.receives.posts[4 + i].buffer, fake.receives.posts[i].buffer);
}
