/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_resend_memory.c - the segments that a lost path may have dropped: a message has memory for
 * them before its first write leaves, or does not begin; and they wait for the right answer.
 */
#include <rdma/fi_errno.h>

#include "transport/comm_life.h"
#include "transport/resend.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define MESSAGE ((size_t)1 << 20)
#define SEGMENTS 4 /* of it: two for each path */

TESTS_USE(fixture_setup, fixture_teardown);

void *__real_calloc(size_t count, size_t size);

static struct mesh_comm *comm;
static bool memory_is_short;

void *__wrap_calloc(size_t count, size_t size)
{
	return memory_is_short && size == sizeof(struct mesh_lost) ? NULL
								   : __real_calloc(count, size);
}

static struct mesh_request *large_begin(void)
{
	struct mesh_request *request;

	comm = fixture_open(MESH_PROVIDER_TCP, 2, true);
	request = fixture_post(comm, MESSAGE);
	fixture_poll();
	return request;
}

static void writes_fail(void)
{
	for (int i = 0; i < fake.writes.num; i++) {
		fake_complete_error(fake.writes.posts[i].context, FI_ECONNRESET);
		fake.completions[fake.completed - 1].domain = fake.writes.posts[i].domain;
	}
	fixture_poll();
}

/* All of it failed: the receiver is asked, and nothing is reported as done before. */
TEST(lost_without_memory)
{
	struct mesh_request *request;

	request = large_begin();
	fixture_grant(comm, 0, 1, MESSAGE);
	fixture_poll();
	assert_int_equal(fake.writes.num, SEGMENTS);
	memory_is_short = true;
	writes_fail();
	memory_is_short = false;
	assert_false(fixture_is_done(request));
	assert_int_equal(*comm_inside(comm).error, 0);
	mesh_lock_take(&comm->lock);
	assert_int_equal(request->send.num_lost, SEGMENTS);
	assert_true(mesh_send_is_in_doubt(comm, true));
	mesh_lock_release(&comm->lock);
}

/* What the receiver has said before it knew of a loss is no reason to write there again. */
TEST(answer_before_the_loss)
{
	const struct mesh_frame_have none = {.seq = 0};
	struct mesh_request *request;

	request = large_begin();
	fixture_grant(comm, 0, 1, MESSAGE);
	fixture_poll();
	writes_fail();
	process_take();
	mesh_have_came(comm, &none);
	process_release();
	mesh_lock_take(&comm->lock);
	assert_int_equal(request->send.num_lost, SEGMENTS);
	assert_true(mesh_send_is_in_doubt(comm, true));
	mesh_lock_release(&comm->lock);
}

TEST(no_memory_to_begin)
{
	struct mesh_request *request;

	request = large_begin();
	memory_is_short = true;
	fixture_grant(comm, 0, 1, MESSAGE);
	memory_is_short = false;
	assert_int_equal(fake.writes.num, 0);
	assert_failed(comm, -ENOMEM, "no memory to send segments again");
	fixture_request_fails(request, -ENOMEM);
}
