/* SPDX-License-Identifier: Apache-2.0 */
/* test_breakage.c - messages and actions when a connection of verbs breaks. */
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/mr.h"
#include "fabric/poll.h"
#include "fabric/remote.h"
#include "nic/rdma_port.h"

#include "domain_fixture.h"

static char memory[4096];
static int ends, end_error;

/*
 * Only waiting takes time, apart from a microsecond for each look at the clock: so bounds hold on
 * any machine.
 */
static _Atomic(uint64_t) clock_ns = 1000000000000;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t ns;

	ns = atomic_fetch_add(&clock_ns, 1000) + 1000;
	now->tv_sec = (time_t)(ns / 1000000000);
	now->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

/* The connector's thread needs none of it. */
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
	bool idle = false;

	while (!idle) {
		mesh_lock_take(&domain->lock);
		idle = LIST_EMPTY(&domain->fences) && !atomic_load(&domain->claimed);
		mesh_lock_release(&domain->lock);
	}
	clock_ns += (uint64_t)pause->tv_sec * 1000000000 + (uint64_t)pause->tv_nsec;
	return 0;
}

static void opened(enum mesh_provider_id provider)
{
	fake.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	domain = fake_domain_open(provider);
	remote = fake_remote_open(domain, 4321);
	log_capture_start();
}

static void setup(void)
{
	fake_reset();
	ends = end_error = 0;
	opened(MESH_PROVIDER_VERBS_RXM);
}

TESTS_USE(setup, domain_teardown);

static void end_note(struct mesh_op *op, int error)
{
	ends++;
	end_error = error;
}

/* A write that ends with FI_@error and this status of the NIC's. */
static void write_fails(struct mesh_op *op, int error, int status)
{
	struct mesh_write write = {.data = memory, .size = sizeof(memory)};
	struct mesh_mr *mr;

	op->complete = end_note;
	remote->flow->connected = true; /* again, after the one before */
	assert_int_equal(mesh_mr_open(domain, memory, sizeof(memory), &mr), 0);
	write.mr = mr;
	assert_int_equal(mesh_domain_write(domain, remote, &write, op), 0);
	fake_complete_status(op, error, status);
	assert_true(mesh_domain_poll(domain));
	mesh_mr_close(mr);
}

/* The first error of a connection is logged, with both addresses, cause and remedy. */
TEST(said)
{
	struct mesh_op op = {0};

	write_fails(&op, FI_EIO, MESH_RDMA_RETRIES_EXCEEDED);
	assert_int_equal(ends, 1);
	assert_int_equal(end_error, -ETIMEDOUT);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "eth7: RDMA with mlx5_7 port 1 from 10.7.0.1 to "
						"10.7.0.2 failed"));
	assert_true(log_captured(MESH_LOG_WARN, "transport retry counter exceeded"));
	assert_true(log_captured(MESH_LOG_WARN, "UDP port 4791"));
}

/* A peer can connect and break the connection any number of times. */
TEST(said_seldom)
{
	struct mesh_op ops[20];

	memset(ops, 0, sizeof(ops));
	for (int i = 0; i < 20; i++)
		write_fails(&ops[i], FI_EIO, MESH_RDMA_RETRIES_EXCEEDED);
	assert_int_equal(ends, 20);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 8);
}

/* rdma_cm timed out: that counts as no answer, too. Other errors are reported as they are. */
TEST(silence)
{
	char text[MESH_RDMA_ERROR_MAX];

	mesh_silence_explain(domain, 4321, -ECONNRESET, text);
	assert_non_null(strstr(text, "UDP port 4791"));
	mesh_silence_explain(domain, 4321, -ENOMEM, text);
	assert_string_equal(text, "verbs;ofi_rxm could not send to it: Cannot allocate memory");
}

/* The rest of the connection's operations is flushed, which is not logged again. */
TEST(flushed)
{
	struct mesh_op op = {0};

	write_fails(&op, FI_ECANCELED, MESH_RDMA_FLUSHED);
	assert_int_equal(end_error, -ECONNRESET);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

TEST(message)
{
	struct mesh_buffer *buffer = mesh_remote_buffer_get(domain, remote);

	buffer->size = 8;
	mesh_remote_send(buffer);
	fake_complete_status(fake.sends.posts[0].context, FI_EIO, MESH_RDMA_REMOTE_OPERATION);
	mesh_domain_poll(domain);
	assert_true(log_captured(MESH_LOG_WARN, "to 10.7.0.2 failed: the peer's NIC failed"));
}

/* A receive has no address: any peer may send to it. */
TEST(receive)
{
	fake_complete_status(fake.receives.posts[0].context, FI_EIO, MESH_RDMA_LOCAL_PROTECTION);
	mesh_domain_poll(domain);
	assert_true(log_captured(MESH_LOG_WARN, "to a peer failed"));
	assert_true(log_captured(MESH_LOG_WARN, "local protection error"));
}

/* On tcp the provider's own number means something else. */
TEST(tcp)
{
	char text[MESH_RDMA_ERROR_MAX];
	struct mesh_op op = {0};

	domain_teardown();
	opened(MESH_PROVIDER_TCP);
	mesh_silence_explain(domain, 4321, 0, text);
	assert_non_null(strstr(text, "tcp does not answer on port 4321"));
	mesh_silence_explain(domain, 4321, -ECONNRESET, text);
	assert_string_equal(text, "tcp could not send to it: Connection reset by peer");
	mesh_silence_explain(domain, 4321, -EMFILE, text);
	assert_non_null(strstr(text, "ulimit -n"));
	write_fails(&op, FI_ECONNABORTED, 12);
	assert_int_equal(end_error, -ECONNABORTED);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

/* ---- the fence ----------------------------------------------------------------------------- */

static uint32_t version = FI_VERSION(1, 20);

uint32_t __wrap_fi_version(void)
{
	return version;
}

static int fence_await(struct mesh_fence *fence)
{
	const struct timespec pause = {.tv_nsec = 500000};
	int ret;

	while ((ret = mesh_fence_step(fence)) == -EAGAIN)
		nanosleep(&pause, NULL);
	return ret;
}

static int fence(void)
{
	return fence_await(mesh_fence_begin(domain, remote));
}

/* The peer's NIC refuses a write to nowhere, which ends the connection; that is no failure. */
TEST(fence)
{
	fake.writes_end_with = MESH_RDMA_REMOTE_ACCESS;
	assert_int_equal(fence(), 1);
	assert_int_equal(fake.writes.num, 1);
	assert_true(fake.writes.posts[0].address == 0);
	assert_true(fake.writes.posts[0].key == 0);
	assert_true(fake.writes.posts[0].size > 0); /* or the key would not be looked at */
	assert_true(fake.writes.posts[0].flags == FI_COMPLETION);
	assert_non_null(fake.writes.posts[0].desc);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

/* Before 1.20 libfabric keeps the broken connection: only another endpoint can connect again. */
TEST(fence_of_the_last)
{
	version = FI_VERSION(1, 19);
	fake.writes_end_with = MESH_RDMA_REMOTE_ACCESS;
	mesh_endpoint_spend(domain);
	assert_int_equal(fence(), 1);
	version = FI_VERSION(1, 20);
	assert_false(mesh_remote_is_outdated(domain, remote));
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_false(mesh_endpoint_is_open(domain)); /* the next HELLO */
	assert_true(mesh_remote_is_outdated(domain, remote));
	mesh_endpoint_close_await(domain);
	while (!mesh_endpoint_is_open(domain))
		sched_yield();
}

/* The caller is to close the endpoint. */
static void fence_fails(int error)
{
	assert_int_equal(fence(), error);
	assert_false(mesh_remote_is_outdated(domain, remote));
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

/* A remote that is already lost is fenced as well: that is the usual case. */
TEST(fence_lost)
{
	fake.writes_end_with = MESH_RDMA_FLUSHED;
	remote_lose(remote);
	fence();
	assert_int_equal(fake.writes.num, 1);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

/* Without a connection libfabric takes no write, and nothing can arrive. */
TEST(fence_not_connected)
{
	remote->flow->connected = false;
	fake_fail(FAKE_WRITE, 0, 1 << 20, -FI_EAGAIN);
	fence();
	assert_true(fake.on[FAKE_WRITE].calls > 1);
	assert_false(mesh_remote_is_outdated(domain, remote));
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

/* With one its queue may be full, of what the peer's NIC does not answer. */
TEST(fence_behind_a_full_queue)
{
	remote->flow->connected = true;
	fake_fail(FAKE_WRITE, 0, 1 << 20, -FI_EAGAIN);
	fence_fails(-ETIMEDOUT);
}

/* The peer's NIC is gone: the write ends with our endpoint. */
TEST(fence_unanswered)
{
	fence_fails(-ETIMEDOUT);
	assert_int_equal(fake.writes.num, 1);
	mesh_endpoint_close(domain);
	mesh_endpoint_close_await(domain);
	assert_true(LIST_EMPTY(&domain->abandoned));
}

/* Several wait at the same time. */
TEST(fences_side_by_side)
{
	struct mesh_fence *first = mesh_fence_begin(domain, remote);
	struct mesh_fence *second = mesh_fence_begin(domain, remote);

	assert_int_equal(fence_await(first), -ETIMEDOUT);
	assert_int_equal(fence_await(second), -ETIMEDOUT);
	assert_int_equal(fake.writes.num, 2);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
}

/* A NIC that accepts a write to an invalid address makes no fence. */
TEST(fence_taken)
{
	fake.writes_end_with = -1;
	fence_fails(-EIO);
}

TEST(fence_impossible)
{
	fake_fail(FAKE_WRITE, 0, 1, -FI_ENOMEM);
	fence_fails(-ENOMEM);
}
