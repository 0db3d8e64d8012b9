/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plugin.c - the contracts of NCCL's net ABI that the top layer keeps, through the table of
 * every version: connections and messages. Each test_trap_* is named after a way in which NCCL
 * punishes a plugin.
 */
#include <limits.h>
#include <pthread.h>

#include <tests/driver/clock.h>

#include "plugin_fixture.h"

/* --- init; the next four run first, in this order: v6 to v10 have no context yet --- */

TEST(trap_calls_before_init_are_refused)
{
	char handle[NCCL_HANDLE_SIZE];
	void *comm;

	for (int i = 0; i < VERSIONS; i++) {
		comm = STALE;
		assert_int_equal(versions[i].listen(NULL, 0, handle, &comm),
				 NCCL_RESULT_INVALID_ARGUMENT);
		assert_null(comm);
		comm = STALE;
		assert_int_equal(versions[i].connect(NULL, 0, handle, &comm, NULL),
				 NCCL_RESULT_INVALID_ARGUMENT);
		assert_null(comm);
	}
	assert_int_equal(fake.calls, 0);
}

/* NCCL 2.28 finalizes a context whose init failed. */
TEST(trap_failed_init_leaves_no_context)
{
	fake.error = -ENODEV;
	for (int i = 0; i < VERSIONS; i++) {
		context = STALE;
		assert_int_equal(versions[i].init(logger, &context), NCCL_RESULT_SYSTEM_ERROR);
		if (!versions[i].finalize)
			continue;
		assert_null(context);
		assert_int_equal(versions[i].finalize(context), NCCL_RESULT_SUCCESS);
	}
	assert_int_equal(atomic_load(&fake.opens), VERSIONS);
	assert_int_equal(fake.closed_nets, 0);
}

static void *init_in_thread(void *arg)
{
	const struct version *version = arg;

	return version->init(logger, NULL) ? arg : NULL;
}

/* v6 to v10 may be initialised again and again, and are never finalized. */
TEST(trap_versions_without_context_share_one)
{
	pthread_t threads[2 * VERSIONS];
	int i, n = 0;
	void *failed;

	for (i = 0; i < 2 * VERSIONS; i++)
		if (!versions[i / 2].finalize)
			assert_int_equal(pthread_create(&threads[n++], NULL, init_in_thread,
							&versions[i / 2]),
					 0);
	assert_int_equal(n, 10);
	for (i = 0; i < n; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(atomic_load(&fake.opens), 1);
}

/* isend, irecv or test. */
static enum nccl_result message_call(int call)
{
	void *data = NULL, *registration = NULL, *request;
	size_t size = 8;
	int tag = 0, done;

	if (call == 0)
		return v->isend(FAKE_COMM, data, size, tag, registration, &request);
	if (call == 1)
		return v->irecv(FAKE_COMM, 1, &data, &size, &tag, &registration, &request);
	return v->test(FAKE_REQUEST, &done, NULL);
}

/*
 * NCCL before 2.28 loses the error of a message, or repeats test() without end: its tables warn
 * once in a process, and return slowly.
 */
TEST(trap_failed_messages_are_logged_and_slow)
{
	uint64_t begin_ns;
	int round, done;

	for (v = versions; v < versions + VERSIONS; v++) {
		assert_int_equal(v->init(logger, &context), NCCL_RESULT_SUCCESS);
		memset(&logged, 0, sizeof(logged));
		assert_int_equal(v->test(FAKE_REQUEST, &done, NULL), NCCL_RESULT_SUCCESS);
		assert_int_equal(logged.warnings, 0); /* nothing has failed */
		fake.error = -ECONNRESET;
		for (round = 0; round < 9; round++) {
			begin_ns = now_ns();
			assert_int_equal(message_call(round % 3), NCCL_RESULT_REMOTE_ERROR);
			assert_true(v->number > 10 || now_ns() - begin_ns >= NS_PER_MS);
		}
		fake.error = 0;
		assert_int_equal(logged.warnings, v == versions);
		assert_true(v != versions || strstr(logged.text, "2.28"));
		if (v->finalize)
			v->finalize(context);
	}
	v = NULL;
}

TEST_EACH(trap_each_init_has_its_own_context)
{
	void *second = NULL;

	if (!v->finalize)
		return;
	assert_int_equal(v->init(logger, &second), NCCL_RESULT_SUCCESS);
	assert_int_equal(atomic_load(&fake.opens), 2);
	assert_int_equal(v->finalize(second), NCCL_RESULT_SUCCESS);
	assert_int_equal(fake.closed_nets, 1);
}

TEST_EACH(trap_finalize_of_null_succeeds)
{
	if (v->finalize)
		assert_int_equal(v->finalize(NULL), NCCL_RESULT_SUCCESS);
	assert_int_equal(fake.closed_nets, 0);
}

/* --- listen, connect, accept --- */

TEST_EACH(connection_calls_reach_the_transport)
{
	char handle[NCCL_HANDLE_SIZE];
	void *listener = STALE, *sender = STALE, *receiver = STALE;

	assert_int_equal(v->listen(context, 1, handle, &listener), NCCL_RESULT_SUCCESS);
	assert_ptr_equal(listener, FAKE_LISTENER);
	assert_ptr_equal(fake.net, FAKE_NET);
	assert_int_equal(fake.dev, 1);
	assert_ptr_equal(fake.handle, handle);
	fake.net = fake.handle = NULL;
	assert_int_equal(v->connect(context, 0, handle, &sender, NULL), NCCL_RESULT_SUCCESS);
	assert_ptr_equal(sender, FAKE_COMM);
	assert_ptr_equal(fake.net, FAKE_NET);
	assert_int_equal(fake.dev, 0);
	assert_ptr_equal(fake.handle, handle);
	assert_int_equal(v->accept(listener, &receiver, NULL), NCCL_RESULT_SUCCESS);
	assert_ptr_equal(receiver, FAKE_COMM);
	assert_ptr_equal(fake.comm, FAKE_LISTENER);
}

TEST_EACH(trap_connection_not_ready_is_success_with_null)
{
	char handle[NCCL_HANDLE_SIZE];
	void *comm = STALE;

	fake.not_ready = true;
	assert_int_equal(v->connect(context, 0, handle, &comm, NULL), NCCL_RESULT_SUCCESS);
	assert_null(comm);
	comm = STALE;
	assert_int_equal(v->accept(FAKE_LISTENER, &comm, NULL), NCCL_RESULT_SUCCESS);
	assert_null(comm);
}

/* NCCL closes whatever stands in the output, twice. */
TEST_EACH(trap_failed_connection_leaves_null)
{
	char handle[NCCL_HANDLE_SIZE];
	void *comm = STALE;

	fake.error = -ETIMEDOUT;
	fake.poison = STALE;
	assert_int_equal(v->connect(context, 0, handle, &comm, NULL), NCCL_RESULT_REMOTE_ERROR);
	assert_null(comm);
	comm = STALE;
	assert_int_equal(v->accept(FAKE_LISTENER, &comm, NULL), NCCL_RESULT_REMOTE_ERROR);
	assert_null(comm);
	comm = STALE;
	assert_int_equal(v->listen(context, 0, handle, &comm), NCCL_RESULT_REMOTE_ERROR);
	assert_null(comm);
}

TEST_EACH(trap_device_handle_is_left_alone)
{
	char handle[NCCL_HANDLE_SIZE];
	struct nccl_device_handle *device = NULL;
	void *comm;

	assert_int_equal(v->connect(context, 0, handle, &comm, &device), NCCL_RESULT_SUCCESS);
	assert_null(device);
	assert_int_equal(v->accept(FAKE_LISTENER, &comm, &device), NCCL_RESULT_SUCCESS);
	assert_null(device);
}

/* An error here stops NCCL from freeing everything else. */
TEST_EACH(trap_closing_always_succeeds)
{
	fake.error = -EIO;
	assert_int_equal(v->close_send(NULL), NCCL_RESULT_SUCCESS);
	assert_int_equal(v->close_receive(NULL), NCCL_RESULT_SUCCESS);
	assert_int_equal(v->close_listen(NULL), NCCL_RESULT_SUCCESS);
	assert_int_equal(v->dereg_mr(FAKE_COMM, NULL), NCCL_RESULT_SUCCESS);
	assert_int_equal(fake.closed_comms + fake.closed_listeners + fake.closed_registrations, 0);
	assert_int_equal(v->close_send(FAKE_COMM), NCCL_RESULT_SUCCESS);
	assert_int_equal(v->close_receive(FAKE_COMM), NCCL_RESULT_SUCCESS);
	assert_int_equal(v->close_listen(FAKE_LISTENER), NCCL_RESULT_SUCCESS);
	assert_int_equal(v->dereg_mr(FAKE_COMM, FAKE_REGISTRATION), NCCL_RESULT_SUCCESS);
	assert_int_equal(fake.closed_comms, 2);
	assert_int_equal(fake.closed_listeners, 1);
	assert_int_equal(fake.closed_registrations, 1);
}

/* --- registrations --- */

TEST_EACH(host_memory_is_registered)
{
	void *registration = STALE;
	char data[8];

	assert_int_equal(v->reg_mr(FAKE_COMM, data, INT_MAX, NCCL_POINTER_HOST, &registration),
			 NCCL_RESULT_SUCCESS);
	assert_ptr_equal(registration, FAKE_REGISTRATION);
	assert_ptr_equal(fake.comm, FAKE_COMM);
	assert_ptr_equal(fake.data, data);
	assert_int_equal(fake.size, INT_MAX);
	fake.error = -ENOMEM;
	fake.poison = STALE;
	registration = STALE;
	assert_int_equal(v->reg_mr(FAKE_COMM, data, 8, NCCL_POINTER_HOST, &registration),
			 NCCL_RESULT_SYSTEM_ERROR);
	assert_null(registration);
}

TEST_EACH(trap_gpu_memory_is_refused_in_words)
{
	void *registration = STALE;
	char data[8];

	assert_refused_in_words(v->reg_mr(FAKE_COMM, data, 8, NCCL_POINTER_CUDA, &registration));
	assert_null(registration);
	assert_non_null(strstr(logged.text, "GPU memory"));
	assert_int_equal(v->reg_mr(FAKE_COMM, data, 8, NCCL_POINTER_DMABUF, &registration),
			 NCCL_RESULT_INVALID_ARGUMENT);
}

TEST_EACH(trap_large_registrations_are_not_cut)
{
	size_t size = (size_t)5 << 30;
	void *registration;

	if (v->number < 8)
		return;
	assert_int_equal(v->reg_mr(FAKE_COMM, NULL, size, NCCL_POINTER_HOST, &registration),
			 NCCL_RESULT_SUCCESS);
	assert_int_equal(fake.size, size);
}

/* --- send, receive, test --- */

static enum nccl_result receive(int n, size_t size, void **request)
{
	static char memory[2][8];
	void *data[] = {memory[0], memory[1]};
	size_t sizes[] = {size, 8};
	int tags[] = {3, 4};
	void *registrations[] = {FAKE_REGISTRATION, NULL};
	enum nccl_result result = v->irecv(FAKE_COMM, n, data, sizes, tags, registrations, request);

	if (fake.calls)
		assert_ptr_equal(fake.data, memory[0]);
	return result;
}

static void assert_message_started(void *request, size_t size)
{
	assert_ptr_equal(request, FAKE_REQUEST);
	assert_ptr_equal(fake.comm, FAKE_COMM);
	assert_ptr_equal(fake.registration, FAKE_REGISTRATION);
	assert_int_equal(fake.size, size);
	fake.comm = fake.registration = NULL;
}

TEST_EACH(messages_reach_the_transport)
{
	const size_t sizes[] = {0, 1, INT_MAX, (size_t)1 << 31, (size_t)3 << 32};
	/* v6 to v8 have no larger sizes than INT_MAX */
	size_t i, n = v->number < 9 ? 3 : 5;
	void *request;
	char data[8];

	for (i = 0; i < n; i++) {
		request = STALE;
		assert_int_equal(
			v->isend(FAKE_COMM, data, sizes[i], 0, FAKE_REGISTRATION, &request),
			NCCL_RESULT_SUCCESS);
		assert_ptr_equal(fake.data, data);
		assert_message_started(request, sizes[i]);
		request = OPTIONAL_COMPLETION;
		assert_int_equal(receive(1, sizes[i], &request), NCCL_RESULT_SUCCESS);
		assert_message_started(request, sizes[i]);
	}
}

/* NCCL would test the old request, or the address 1. */
TEST_EACH(trap_stale_request_is_cleared)
{
	void *stale[] = {STALE, OPTIONAL_COMPLETION};
	const int errors[] = {0, -ECONNRESET};
	void *request;

	fake.not_ready = true;
	fake.poison = STALE;
	for (size_t i = 0; i < 4; i++) {
		enum nccl_result expected = i / 2 ? NCCL_RESULT_REMOTE_ERROR : NCCL_RESULT_SUCCESS;

		fake.error = errors[i / 2];
		request = stale[i % 2];
		assert_int_equal(v->isend(FAKE_COMM, NULL, 0, 0, NULL, &request), expected);
		assert_null(request);
		request = stale[i % 2];
		assert_int_equal(receive(1, 8, &request), expected);
		assert_null(request);
	}
}

TEST_EACH(trap_grouped_receive_is_refused)
{
	const int counts[] = {2, 0, -1};
	void *request;

	for (size_t i = 0; i < 3; i++) {
		logged.warnings = 0;
		request = OPTIONAL_COMPLETION;
		assert_refused_in_words(receive(counts[i], 8, &request));
		assert_null(request);
	}
	/* nothing is read of arrays that are empty */
	request = OPTIONAL_COMPLETION;
	assert_int_equal(ncclNetPlugin_v6.irecv(FAKE_COMM, 0, NULL, NULL, NULL, NULL, &request),
			 NCCL_RESULT_INVALID_ARGUMENT);
	assert_null(request);
}

/* The older versions have int sizes. */
TEST_EACH(trap_negative_sizes_are_refused)
{
	void *request = STALE, *registration = STALE;

	if (v->number > 8)
		return;
	assert_refused_in_words(v->isend(FAKE_COMM, NULL, (size_t)-1, 0, NULL, &request));
	assert_null(request);
	logged.warnings = 0;
	request = STALE;
	assert_refused_in_words(receive(1, (size_t)-1, &request));
	assert_null(request);
	logged.warnings = 0;
	if (v->number > 7)
		return;
	assert_refused_in_words(
		v->reg_mr(FAKE_COMM, NULL, (size_t)-1, NCCL_POINTER_HOST, &registration));
	assert_null(registration);
}

TEST_EACH(trap_flush_has_nothing_to_wait_for)
{
	void *request = STALE;

	assert_int_equal(v->iflush(FAKE_COMM, 1, NULL, NULL, NULL, &request), NCCL_RESULT_SUCCESS);
	assert_null(request);
}

TEST_EACH(trap_done_is_always_written)
{
	int sizes[2] = {-1, -1};
	int done = -1;

	assert_int_equal(v->test(FAKE_REQUEST, &done, sizes), NCCL_RESULT_SUCCESS);
	assert_int_equal(done, 0);
	assert_int_equal(sizes[0], -1);
	done = -1;
	fake.error = -ECONNRESET;
	assert_int_equal(v->test(FAKE_REQUEST, &done, sizes), NCCL_RESULT_REMOTE_ERROR);
	assert_int_equal(done, 0);
	assert_int_equal(sizes[0], -1);
	done = -1;
	fake.error = 0;
	fake.done = true;
	fake.done_size = NCCL_MESSAGE_BYTES_MAX;
	assert_int_equal(v->test(FAKE_REQUEST, &done, sizes), NCCL_RESULT_SUCCESS);
	assert_int_equal(done, 1);
	assert_int_equal(sizes[0], NCCL_MESSAGE_BYTES_MAX);
	assert_int_equal(sizes[1], -1);
}

TEST_EACH(trap_zero_bytes_complete_with_size_zero)
{
	int size = -1, done = -1;

	fake.done = true;
	assert_int_equal(v->test(FAKE_REQUEST, &done, &size), NCCL_RESULT_SUCCESS);
	assert_int_equal(done, 1);
	assert_int_equal(size, 0);
}

/* The bootstrap path and flushes pass no sizes. */
TEST_EACH(trap_test_without_sizes)
{
	int done = -1;

	fake.done = true;
	fake.done_size = 8;
	assert_int_equal(v->test(FAKE_REQUEST, &done, NULL), NCCL_RESULT_SUCCESS);
	assert_int_equal(done, 1);
}
