/* SPDX-License-Identifier: Apache-2.0 */
/* test_sink.c - each message and write reaches its sink only; writes announce themselves. */
#include <rdma/fi_errno.h>

#include "fabric/mr.h"
#include "fabric/sink.h"
#include "fabric/write.h"

#include "fake_fabric.h"
#include "log_capture.h"
#include "unit.h"

#define TOKEN 0xfeed0001

struct test_sink {
	struct mesh_sink sink;
	int messages, writes;
	struct mesh_message_header header; /* of the last message */
	char payload[16];
	struct mesh_immediate immediate;
};

static int setup(void)
{
	fake_reset();
	return 0;
}

TESTS_USE(setup, fake_teardown);

static void message_note(struct mesh_sink *sink, const struct mesh_message_header *header,
			 const void *payload)
{
	struct test_sink *test = (struct test_sink *)sink;

	test->messages++;
	test->header = *header;
	memcpy(test->payload, payload,
	       header->length < sizeof(test->payload) ? header->length : sizeof(test->payload));
}

static void write_note(struct mesh_sink *sink, const struct mesh_immediate *immediate)
{
	struct test_sink *test = (struct test_sink *)sink;

	test->writes++;
	test->immediate = *immediate;
}

static void sink_add(struct mesh_domain *domain, struct test_sink *test)
{
	memset(test, 0, sizeof(*test));
	test->sink.token = TOKEN;
	test->sink.message = message_note;
	test->sink.written = write_note;
	assert_int_equal(mesh_sink_add(domain, &test->sink), 0);
}

static void sink_remove(struct mesh_domain *domain, struct test_sink *test)
{
	mesh_lock_take(&domain->lock);
	mesh_sink_remove(domain, &test->sink);
	mesh_lock_release(&domain->lock);
}

/* A DATA message of 4 bytes. */
static void data_deliver(uint32_t comm, uint32_t token, size_t size)
{
	struct {
		struct mesh_message_header header;
		char payload[4];
	} message = {
		.header = {.type = MESH_MESSAGE_DATA,
			   .length = 4,
			   .comm = comm,
			   .token = token,
			   .seq = 17},
		.payload = "abc",
	};

	fake_deliver(&message, size);
}

static uint64_t immediate_to(uint32_t comm)
{
	struct mesh_immediate immediate = {.comm = comm, .seq = 3, .segment = 5, .last = true};

	return mesh_immediate_encode(&immediate);
}

TEST(message)
{
	struct mesh_domain *domain = fake_domain_open(MESH_PROVIDER_TCP);
	struct test_sink a, b;

	sink_add(domain, &a);
	sink_add(domain, &b);
	assert_int_not_equal(a.sink.id, b.sink.id);
	data_deliver(b.sink.id, TOKEN, 28);
	mesh_domain_poll(domain);
	assert_int_equal(a.messages, 0);
	assert_int_equal(b.messages, 1);
	assert_int_equal(b.header.seq, 17);
	assert_string_equal(b.payload, "abc");
	assert_true(domain->strangers == 0);
	mesh_domain_close(domain);
}

/* Noise, a wrong token, an unknown id, an old id: counted and dropped. An empty message is none. */
TEST(strangers)
{
	struct mesh_domain *domain = fake_domain_open(MESH_PROVIDER_TCP);
	struct test_sink a;

	sink_add(domain, &a);
	data_deliver(a.sink.id, TOKEN + 1, 28);
	data_deliver(a.sink.id + 1, TOKEN, 28);
	data_deliver(a.sink.id + MESH_COMM_IDS, TOKEN, 28); /* same place, another generation */
	data_deliver(UINT32_MAX, TOKEN, 28);
	data_deliver(a.sink.id, TOKEN, 27);
	data_deliver(a.sink.id, TOKEN, 0);
	mesh_domain_poll(domain);
	assert_int_equal(a.messages, 0);
	assert_true(domain->strangers == 5);
	data_deliver(a.sink.id, TOKEN, 28);
	mesh_domain_poll(domain);
	assert_int_equal(a.messages, 1);
	assert_true(domain->strangers == 5);
	log_capture_start();
	mesh_domain_close(domain);
	assert_true(log_captured(MESH_LOG_INFO, "eth7: 5 messages or writes matched no"));
	log_capture_stop();
}

/* After a failed receive, what its buffer held before is not taken for a message. */
TEST(stale_bytes)
{
	struct mesh_domain *domain;
	struct test_sink a;

	fake.rx_size = 1;
	domain = fake_domain_open(MESH_PROVIDER_TCP);
	sink_add(domain, &a);
	data_deliver(a.sink.id, TOKEN, 28);
	mesh_domain_poll(domain);
	assert_int_equal(a.messages, 1);
	fake_complete_error(fake.receives.posts[1].context, FI_ECONNRESET);
	mesh_domain_poll(domain);
	assert_int_equal(a.messages, 1);
	mesh_domain_close(domain);
}

TEST(removed)
{
	struct mesh_domain *domain = fake_domain_open(MESH_PROVIDER_TCP);
	struct test_sink a, b;
	uint32_t id;

	sink_add(domain, &a);
	id = a.sink.id;
	sink_remove(domain, &a);
	sink_add(domain, &b); /* does not get the id of before */
	assert_int_not_equal(b.sink.id, id);
	data_deliver(id, TOKEN, 28);
	fake_deliver_immediate(immediate_to(id));
	mesh_domain_poll(domain);
	assert_int_equal(a.messages + a.writes + b.messages + b.writes, 0);
	assert_true(domain->strangers == 2);
	sink_remove(domain, &b);
	mesh_domain_close(domain);
}

TEST(immediates)
{
	struct mesh_domain *domain = fake_domain_open(MESH_PROVIDER_TCP);
	struct test_sink a, deaf;

	sink_add(domain, &a);
	sink_add(domain, &deaf);
	deaf.sink.written = NULL;
	fake_deliver_immediate(immediate_to(a.sink.id));
	mesh_domain_poll(domain);
	assert_int_equal(a.writes, 1);
	assert_int_equal(a.immediate.seq, 3);
	assert_int_equal(a.immediate.segment, 5);
	assert_true(a.immediate.last);
	assert_true(domain->strangers == 0);
	fake_deliver_immediate(immediate_to(deaf.sink.id));
	fake_deliver_immediate(immediate_to(MESH_COMM_IDS - 1));
	mesh_domain_poll(domain);
	assert_true(domain->strangers == 2);
	mesh_domain_close(domain);
}

/* All ids in use: an error, no overwriting; one that is given back is found again. */
TEST(full)
{
	struct mesh_domain *domain = fake_domain_open(MESH_PROVIDER_TCP);
	struct test_sink *sinks = calloc(MESH_COMM_IDS, sizeof(*sinks)), late;
	uint32_t i;

	assert_non_null(sinks);
	for (i = 0; i < MESH_COMM_IDS; i++)
		sink_add(domain, &sinks[i]);
	memset(&late, 0, sizeof(late));
	late.sink.written = write_note;
	late.sink.id = 77;
	assert_int_equal(mesh_sink_add(domain, &late.sink), -ENOSPC);
	assert_int_equal(late.sink.id, 77);
	sink_remove(domain, &late); /* was never added: removes no other */
	data_deliver(sinks[77].sink.id, TOKEN, 28);
	mesh_domain_poll(domain);
	assert_int_equal(sinks[77].messages, 1);
	sink_remove(domain, &sinks[500]);
	sink_add(domain, &late);
	assert_int_equal(late.sink.id % MESH_COMM_IDS, sinks[500].sink.id % MESH_COMM_IDS);
	assert_int_not_equal(late.sink.id, sinks[500].sink.id);
	data_deliver(sinks[500].sink.id, TOKEN, 28); /* too late */
	data_deliver(late.sink.id, TOKEN, 28);
	fake_deliver_immediate(immediate_to(late.sink.id % MESH_COMM_IDS));
	mesh_domain_poll(domain);
	assert_int_equal(late.messages, 1);
	assert_int_equal(late.writes, 1);
	assert_int_equal(sinks[500].messages, 0);
	mesh_domain_close(domain);
	free(sinks);
}

/* A node has as many comms in one direction as in the other: those that send need no immediates. */
TEST(directions_share_no_ids)
{
	struct mesh_domain *domain = fake_domain_open(MESH_PROVIDER_TCP);
	struct test_sink *sinks = calloc(2 * MESH_COMM_IDS, sizeof(*sinks));
	uint32_t i, count = 0;

	assert_non_null(sinks);
	for (i = 0; i < MESH_COMM_IDS; i++)
		sink_add(domain, &sinks[i]);
	for (; i < 2 * MESH_COMM_IDS; i++) {
		sinks[i].sink.token = TOKEN;
		sinks[i].sink.message = message_note;
		assert_int_equal(mesh_sink_add(domain, &sinks[i].sink), 0);
	}
	data_deliver(sinks[5].sink.id, TOKEN, 28);
	data_deliver(sinks[MESH_COMM_IDS + 5].sink.id, TOKEN, 28);
	fake_deliver_immediate(immediate_to(sinks[MESH_COMM_IDS + 9].sink.id % MESH_COMM_IDS));
	mesh_domain_poll(domain);
	for (i = 0; i < 2 * MESH_COMM_IDS; i++)
		count += (uint32_t)sinks[i].messages;
	assert_int_equal(count, 2);
	assert_int_equal(sinks[5].messages, 1);
	assert_int_equal(sinks[MESH_COMM_IDS + 5].messages, 1);
	for (i = 0, count = 0; i < 2 * MESH_COMM_IDS; i++)
		count += (uint32_t)sinks[i].writes;
	assert_int_equal(count, 1); /* it is a receiving comm's */
	mesh_domain_close(domain);
	free(sinks);
}

/* ---- writes -------------------------------------------------------------------------------- */

static int write_ends, write_error;

static void write_end(struct mesh_op *op, int error)
{
	(void)op;
	write_ends++;
	write_error = error;
}

struct write_test {
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	struct mesh_mr *mr;
	struct mesh_op op;
	char data[64];
	struct mesh_write write;
};

static void write_test_open(struct write_test *test, enum mesh_provider_id provider)
{
	struct mesh_domain *domain = fake_domain_open(provider);

	memset(test, 0, sizeof(*test));
	write_ends = write_error = 0;
	test->domain = domain;
	test->op.complete = write_end;
	strcpy(test->data, "written");
	assert_int_equal(mesh_remote_open(domain, domain->name, domain->name_len, &test->remote),
			 0);
	assert_int_equal(mesh_mr_open(domain, test->data, sizeof(test->data), &test->mr), 0);
	test->write = (struct mesh_write){
		.data = test->data,
		.size = sizeof(test->data),
		.mr = test->mr,
		.address = 0x123456789,
		.key = 0xabcdef,
		.immediate = immediate_to(9),
	};
}

static int write_start(struct write_test *test)
{
	return mesh_domain_write(test->domain, test->remote, &test->write, &test->op);
}

static void write_test_close(struct write_test *test)
{
	mesh_mr_close(test->mr);
	mesh_remote_close(test->domain, test->remote);
	mesh_domain_close(test->domain);
}

TEST(write)
{
	const struct fake_post *write = &fake.writes.posts[0];
	struct write_test test;

	fake.mr_mode |= FI_MR_LOCAL;
	write_test_open(&test, MESH_PROVIDER_TCP);
	assert_int_equal(write_start(&test), 0);
	assert_int_equal(fake.writes.num, 1);
	assert_ptr_equal(write->context, &test.op);
	assert_ptr_equal(write->buffer, test.data);
	assert_int_equal(write->size, 64);
	assert_true(write->address == 0x123456789 && write->key == 0xabcdef);
	assert_true(write->data == immediate_to(9));
	assert_ptr_equal(write->desc, mesh_mr_desc(test.mr));
	assert_non_null(write->desc);
	assert_true(write->flags & FI_REMOTE_CQ_DATA);
	assert_int_equal(fake.sends.num, 0);
	fake_complete(write);
	mesh_domain_poll(test.domain);
	assert_int_equal(write_ends, 1);
	assert_int_equal(write_error, 0);
	assert_int_equal(write_start(&test), 0);
	fake_complete_error(fake.writes.posts[1].context, FI_EACCES);
	mesh_domain_poll(test.domain);
	assert_int_equal(write_error, -EACCES);
	write_test_close(&test);
}

/* A message that is to follow the write. */
static struct mesh_buffer *behind_make(struct write_test *test)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(test->domain, test->remote);

	assert_non_null(buffer);
	memset(buffer->bytes, 0x77, 40);
	buffer->size = 40;
	return buffer;
}

/* The message is posted directly behind the write, which then has no immediate. */
TEST(behind)
{
	struct write_test test;

	write_test_open(&test, MESH_PROVIDER_TCP);
	test.write.behind = behind_make(&test);
	assert_int_equal(write_start(&test), 0);
	assert_int_equal(fake.writes.num, 1);
	assert_false(fake.writes.posts[0].flags & FI_REMOTE_CQ_DATA);
	assert_int_equal(fake.sends.num, 1);
	assert_ptr_equal(fake.sends.posts[0].context, &test.write.behind->op.context);
	assert_int_equal(fake.sends.posts[0].size, 40);
	assert_true(fake.hints->tx_attr->msg_order & FI_ORDER_SAW);
	assert_true(fake.hints->rx_attr->msg_order & FI_ORDER_SAW);
	write_test_close(&test);
}

/* The provider accepts the write and not the message: the caller has the buffer. */
TEST(behind_busy)
{
	struct write_test test;

	write_test_open(&test, MESH_PROVIDER_TCP);
	test.write.behind = behind_make(&test);
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	assert_int_equal(write_start(&test), MESH_WRITE_ALONE);
	assert_int_equal(fake.writes.num, 1);
	mesh_domain_poll(test.domain);
	assert_int_equal(fake.sends.num, 0);
	fake_complete(&fake.writes.posts[0]);
	mesh_domain_poll(test.domain);
	assert_int_equal(write_ends, 1);
	mesh_buffer_put(test.write.behind);
	write_test_close(&test);
}

/* Nothing starts that could not be announced, or goes to a lost remote. */
TEST(behind_refused)
{
	struct write_test test;

	write_test_open(&test, MESH_PROVIDER_TCP);
	test.write.behind = behind_make(&test);
	fake_fail(FAKE_WRITE, 0, 1, -FI_EINVAL);
	assert_int_equal(write_start(&test), -EINVAL);
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	mesh_remote_send(behind_make(&test)); /* into the backlog */
	assert_int_equal(write_start(&test), -EAGAIN);
	assert_int_equal(fake.writes.num + fake.sends.num, 0);
	mesh_domain_poll(test.domain);
	assert_int_equal(fake.sends.num, 1);
	mesh_domain_lock(test.domain);
	mesh_remote_lose(test.domain, test.remote);
	mesh_domain_unlock(test.domain);
	assert_int_equal(write_start(&test), -ECONNRESET);
	mesh_buffer_put(test.write.behind);
	write_test_close(&test);
}
