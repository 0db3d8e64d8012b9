/* SPDX-License-Identifier: Apache-2.0 */
/* test_sink.c - each message and write reaches its sink only; writes announce themselves. */
#include <rdma/fi_errno.h>

#include "fabric/mr.h"
#include "fabric/remote.h"
#include "fabric/buffer.h"

#include "domain_fixture.h"

#define TOKEN 0xfeed0001

struct test_sink {
	struct mesh_sink sink;
	int messages, writes;
	struct mesh_message_header header; /* of the last message */
	char payload[16];
	struct mesh_immediate immediate;
};

TESTS_USE(domain_setup, domain_teardown);

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

static void sink_add(struct test_sink *test)
{
	memset(test, 0, sizeof(*test));
	test->sink.token = TOKEN;
	test->sink.message = message_note;
	test->sink.written = write_note;
	assert_int_equal(mesh_sink_add(domain, &test->sink), 0);
}

static void sink_remove(struct test_sink *test)
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
	struct test_sink a, b;

	sink_add(&a);
	sink_add(&b);
	assert_int_not_equal(a.sink.id, b.sink.id);
	data_deliver(b.sink.id, TOKEN, 28);
	mesh_domain_poll(domain);
	assert_int_equal(a.messages, 0);
	assert_int_equal(b.messages, 1);
	assert_int_equal(b.header.seq, 17);
	assert_string_equal(b.payload, "abc");
	assert_true(domain->strangers == 0);
}

/* Noise, a wrong token, an unknown id, an old id: counted and dropped. An empty message is none. */
TEST(strangers)
{
	struct test_sink a;

	sink_add(&a);
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
	domain_close();
	assert_true(log_captured(MESH_LOG_INFO, "eth7: 5 messages or writes matched no"));
}

/* After a failed receive, what its buffer held before is not taken for a message. */
TEST_WITH(stale_bytes, fake_setup, domain_teardown)
{
	struct test_sink a;

	fake.rx_size = 1;
	domain_open(MESH_PROVIDER_TCP);
	sink_add(&a);
	data_deliver(a.sink.id, TOKEN, 28);
	mesh_domain_poll(domain);
	assert_int_equal(a.messages, 1);
	fake_complete_error(fake.receives.posts[1].context, FI_ECONNRESET);
	mesh_domain_poll(domain);
	assert_int_equal(a.messages, 1);
}

TEST(removed)
{
	struct test_sink a, b;
	uint32_t id;

	sink_add(&a);
	id = a.sink.id;
	sink_remove(&a);
	sink_add(&b); /* does not get the id of before */
	assert_int_not_equal(b.sink.id, id);
	data_deliver(id, TOKEN, 28);
	fake_deliver_immediate(immediate_to(id));
	mesh_domain_poll(domain);
	assert_int_equal(a.messages + a.writes + b.messages + b.writes, 0);
	assert_true(domain->strangers == 2);
	sink_remove(&b);
}

TEST(immediates)
{
	struct test_sink a, deaf;

	sink_add(&a);
	sink_add(&deaf);
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
}

/* All ids in use: an error, no overwriting; one that is given back is found again. */
TEST(full)
{
	struct test_sink *sinks = calloc(MESH_COMM_IDS, sizeof(*sinks)), late;

	assert_non_null(sinks);
	for (uint32_t i = 0; i < MESH_COMM_IDS; i++)
		sink_add(&sinks[i]);
	memset(&late, 0, sizeof(late));
	late.sink.written = write_note;
	late.sink.id = 77;
	assert_int_equal(mesh_sink_add(domain, &late.sink), -ENOSPC);
	assert_int_equal(late.sink.id, 77);
	sink_remove(&late); /* was never added: removes no other */
	data_deliver(sinks[77].sink.id, TOKEN, 28);
	mesh_domain_poll(domain);
	assert_int_equal(sinks[77].messages, 1);
	sink_remove(&sinks[500]);
	sink_add(&late);
	assert_int_equal(late.sink.id % MESH_COMM_IDS, sinks[500].sink.id % MESH_COMM_IDS);
	assert_int_not_equal(late.sink.id, sinks[500].sink.id);
	data_deliver(sinks[500].sink.id, TOKEN, 28); /* too late */
	data_deliver(late.sink.id, TOKEN, 28);
	fake_deliver_immediate(immediate_to(late.sink.id % MESH_COMM_IDS));
	mesh_domain_poll(domain);
	assert_int_equal(late.messages, 1);
	assert_int_equal(late.writes, 1);
	assert_int_equal(sinks[500].messages, 0);
	domain_close();
	free(sinks);
}

/* ---- writes -------------------------------------------------------------------------------- */

static int write_ends, write_error;

static void write_end(struct mesh_op *op, int error)
{
	write_ends++;
	write_error = error;
}

static struct {
	struct mesh_mr *mr;
	struct mesh_op op;
	char data[64];
	struct mesh_write write;
} test;

static void write_setup(void)
{
	fake_setup();
	fake.mr_mode |= FI_MR_LOCAL;
	domain_open(MESH_PROVIDER_TCP);
	memset(&test, 0, sizeof(test));
	write_ends = write_error = 0;
	test.op.complete = write_end;
	assert_int_equal(mesh_mr_open(domain, test.data, sizeof(test.data), &test.mr), 0);
	test.write = (struct mesh_write){
		.data = test.data,
		.size = sizeof(test.data),
		.mr = test.mr,
		.address = 0x123456789,
		.key = 0xabcdef,
		.immediate = immediate_to(9),
	};
}

static void write_teardown(void)
{
	mesh_mr_close(test.mr);
	domain_teardown();
}

static int write_start(void)
{
	return mesh_domain_write(domain, remote, &test.write, &test.op);
}

TEST_WITH(write, write_setup, write_teardown)
{
	const struct fake_post *write = &fake.writes.posts[0];

	assert_int_equal(write_start(), 0);
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
	mesh_domain_poll(domain);
	assert_int_equal(write_ends, 1);
	assert_int_equal(write_error, 0);
	assert_int_equal(write_start(), 0);
	fake_complete_error(fake.writes.posts[1].context, FI_EACCES);
	mesh_domain_poll(domain);
	assert_int_equal(write_error, -EACCES);
}

/* A message that is to follow the write. */
static struct mesh_buffer *behind_make(void)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(domain, remote);

	assert_non_null(buffer);
	memset(buffer->bytes, 0x77, 40);
	buffer->size = 40;
	return buffer;
}

/* The message is posted directly behind the write, which then has no immediate. */
TEST_WITH(behind, write_setup, write_teardown)
{
	test.write.behind = behind_make();
	assert_int_equal(write_start(), 0);
	assert_int_equal(fake.writes.num, 1);
	assert_false(fake.writes.posts[0].flags & FI_REMOTE_CQ_DATA);
	assert_int_equal(fake.sends.num, 1);
	assert_ptr_equal(fake.sends.posts[0].context, &test.write.behind->op.context);
	assert_int_equal(fake.sends.posts[0].size, 40);
	assert_true(fake.hints->tx_attr->msg_order & FI_ORDER_SAW);
	assert_true(fake.hints->rx_attr->msg_order & FI_ORDER_SAW);
}

/* The provider accepts the write and not the message: the caller has the buffer. */
TEST_WITH(behind_busy, write_setup, write_teardown)
{
	test.write.behind = behind_make();
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	assert_int_equal(write_start(), MESH_WRITE_ALONE);
	assert_int_equal(fake.writes.num, 1);
	mesh_domain_poll(domain);
	assert_int_equal(fake.sends.num, 0);
	fake_complete(&fake.writes.posts[0]);
	mesh_domain_poll(domain);
	assert_int_equal(write_ends, 1);
	mesh_buffer_put(test.write.behind);
}

/* Nothing starts that could not be announced, or goes to a lost remote. */
TEST_WITH(behind_refused, write_setup, write_teardown)
{
	test.write.behind = behind_make();
	fake_fail(FAKE_WRITE, 0, 1, -FI_EINVAL);
	assert_int_equal(write_start(), -EINVAL);
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	mesh_remote_send(behind_make()); /* into the backlog */
	assert_int_equal(write_start(), -EAGAIN);
	assert_int_equal(fake.writes.num + fake.sends.num, 0);
	mesh_domain_poll(domain);
	assert_int_equal(fake.sends.num, 1);
	remote_lose(remote);
	assert_int_equal(write_start(), -ECONNRESET);
	mesh_buffer_put(test.write.behind);
}
