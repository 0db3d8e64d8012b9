/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_addresses.c - which addresses of peers libfabric has: each once, as long as something may
 * use it. libfabric uses memory that is freed if an operation names one that was removed.
 */
#include <rdma/fi_errno.h>

#include "fabric/remote.h"

#include "domain_fixture.h"

static void setup(void)
{
	fake_setup();
	domain = fake_domain_open(MESH_PROVIDER_TCP);
}

TESTS_USE(setup, domain_teardown);

static void assert_calls(int inserted, int removed)
{
	assert_int_equal(fake.on[FAKE_AV_INSERT].calls, inserted);
	assert_int_equal(fake.on[FAKE_AV_REMOVE].calls, removed);
}

/* As when a link flaps on verbs: each time the peer has a new endpoint. */
TEST(each_is_removed)
{
	for (int i = 1; i <= 100; i++) {
		mesh_remote_close(domain, fake_remote_open(domain, (uint16_t)i));
		assert_calls(i, i);
	}
}

/* libfabric counts the uses of an equal address, but not those in ofi_rxm's own table. */
TEST(equal_ones)
{
	struct mesh_remote *first = fake_remote_open(domain, 1), *second, *third;

	second = fake_remote_open(domain, 1);
	assert_int_equal(first->fi_addr, second->fi_addr);
	mesh_remote_close(domain, first);
	assert_calls(1, 0);
	mesh_remote_close(domain, second);
	assert_calls(1, 1);
	third = fake_remote_open(domain, 1);
	assert_calls(2, 1);
	mesh_remote_close(domain, third);
	assert_calls(2, 2);
}

/* Nothing is removed that was not inserted. */
TEST(refused)
{
	struct mesh_remote *peer;

	fake_fail(FAKE_AV_INSERT, 0, 1, -FI_ENOMEM);
	assert_true(mesh_remote_open(domain, domain->name, domain->name_len, &peer) < 0);
	assert_calls(1, 0);
	assert_int_equal(mesh_remote_open(domain, domain->name, domain->name_len, &peer), 0);
	mesh_remote_close(domain, peer);
	assert_calls(2, 1);
}

static void nothing(struct mesh_buffer *buffer, int error)
{
}

/* A message may complete, or fail, after the peer is gone. */
TEST(in_flight)
{
	struct mesh_remote *peer = fake_remote_open(domain, 1);
	struct mesh_buffer *buffer = mesh_remote_buffer_get(domain, peer);

	assert_non_null(buffer);
	buffer->size = 10;
	buffer->sent = nothing;
	mesh_remote_send(buffer);
	assert_int_equal(fake.sends.num, 1);
	mesh_remote_close(domain, peer);
	mesh_remote_close(domain, fake_remote_open(domain, 2));
	assert_calls(2, 1);
	fake_complete(&fake.sends.posts[0]);
	mesh_domain_poll(domain);
	mesh_remote_close(domain, fake_remote_open(domain, 3));
	assert_calls(3, 3);
}
