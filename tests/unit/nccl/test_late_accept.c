/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_late_accept.c - comms that are connected, used and closed before NCCL calls accept at the
 * other end: each one is handed over with all that was sent on it, in every version of the ABI.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wire/handle.h"

#include "nccl_versions.h"
#include "unit.h"

#define ROUNDS 29 /* of each version: 203 together */
#define COMMS_MAX 64
#define MESSAGES_MAX 3
#define BYTES_MAX 8192 /* all of them leave without a grant */
#define LIMIT_MS 60000

static const struct version *nccl;
static void *context;
static uint8_t memory[BYTES_MAX];

static void log_nothing(enum nccl_level level, unsigned long flags, const char *file, int line,
			const char *format, ...)
{
	(void)level, (void)flags, (void)file, (void)line, (void)format;
}

/* ---- what a round does: known at both ends ------------------------------------------------- */

/* Once for each version as many as NCCL has at most, else few. */
static int num_comms(int round)
{
	return round == ROUNDS / 2 ? COMMS_MAX : 1 + round % 8;
}

static int num_messages(int round, int comm)
{
	return (round + comm) % (MESSAGES_MAX + 1);
}

static size_t message_size(int round, int comm, int message)
{
	return (size_t)(round * 2731 + comm * 517 + message * 99) % (BYTES_MAX + 1);
}

static void message_fill(uint8_t *bytes, size_t size, int round, int comm, int message)
{
	size_t i;

	for (i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 7 + (size_t)(round * 31 + comm * 5 + message));
}

/* ---- one end ------------------------------------------------------------------------------- */

static int request_finish(void *request)
{
	uint64_t until_ms = mesh_clock_ms() + LIMIT_MS;
	int done = 0, size = -1;

	while (!done) {
		assert_true(mesh_clock_ms() < until_ms);
		assert_int_equal(nccl->test(request, &done, &size), NCCL_RESULT_SUCCESS);
		sched_yield();
	}
	return size;
}

static void comm_send(void *comm, int round, int index)
{
	void *registration, *request;
	int message;
	size_t size;

	assert_int_equal(
		nccl->reg_mr(comm, memory, sizeof(memory), NCCL_POINTER_HOST, &registration),
		NCCL_RESULT_SUCCESS);
	for (message = 0; message < num_messages(round, index); message++) {
		size = message_size(round, index, message);
		message_fill(memory, size, round, index, message);
		request = NULL;
		while (!request)
			assert_int_equal(nccl->isend(comm, memory, size, 0, registration, &request),
					 NCCL_RESULT_SUCCESS);
		request_finish(request);
	}
	assert_int_equal(nccl->dereg_mr(comm, registration), NCCL_RESULT_SUCCESS);
	assert_int_equal(nccl->close_send(comm), NCCL_RESULT_SUCCESS);
}

static void comm_receive(void *comm, int round, int index)
{
	uint8_t expected[BYTES_MAX];
	void *data = memory, *registration, *request;
	size_t room = sizeof(memory), size;
	int message, tag = 0;

	assert_int_equal(
		nccl->reg_mr(comm, memory, sizeof(memory), NCCL_POINTER_HOST, &registration),
		NCCL_RESULT_SUCCESS);
	for (message = 0; message < num_messages(round, index); message++) {
		size = message_size(round, index, message);
		request = NULL;
		assert_int_equal(nccl->irecv(comm, 1, &data, &room, &tag, &registration, &request),
				 NCCL_RESULT_SUCCESS);
		assert_non_null(request);
		assert_int_equal(request_finish(request), size);
		message_fill(expected, size, round, index, message);
		assert_memory_equal(memory, expected, size);
	}
	assert_int_equal(nccl->dereg_mr(comm, registration), NCCL_RESULT_SUCCESS);
	assert_int_equal(nccl->close_receive(comm), NCCL_RESULT_SUCCESS);
}

/* ---- rounds -------------------------------------------------------------------------------- */

static void *connected(void *handle)
{
	uint64_t until_ms = mesh_clock_ms() + LIMIT_MS;
	struct nccl_device_handle *device = NULL;
	void *comm = NULL;

	while (!comm) {
		assert_true(mesh_clock_ms() < until_ms);
		assert_int_equal(nccl->connect(context, 0, handle, &comm, &device),
				 NCCL_RESULT_SUCCESS);
		sched_yield();
	}
	return comm;
}

static void *accepted(void *listener)
{
	uint64_t until_ms = mesh_clock_ms() + LIMIT_MS;
	struct nccl_device_handle *device = NULL;
	void *comm = NULL;

	while (!comm) {
		assert_true(mesh_clock_ms() < until_ms);
		assert_int_equal(nccl->accept(listener, &comm, &device), NCCL_RESULT_SUCCESS);
		sched_yield();
	}
	return comm;
}

static void round_run(int round)
{
	uint8_t handles[COMMS_MAX][MESH_HANDLE_BYTES];
	void *listeners[COMMS_MAX];
	int i;

	for (i = 0; i < num_comms(round); i++)
		assert_int_equal(nccl->listen(context, 0, handles[i], &listeners[i]),
				 NCCL_RESULT_SUCCESS);
	for (i = 0; i < num_comms(round); i++)
		comm_send(connected(handles[i]), round, i);
	for (i = 0; i < num_comms(round); i++) {
		comm_receive(accepted(listeners[i]), round, i);
		assert_int_equal(nccl->close_listen(listeners[i]), NCCL_RESULT_SUCCESS);
	}
}

TEST(closed_before_accept)
{
	struct version versions[VERSIONS];
	int v, round;

	versions_get(versions);
	for (v = 0; v < VERSIONS; v++) {
		nccl = &versions[v];
		context = NULL;
		assert_int_equal(nccl->init(log_nothing, &context), NCCL_RESULT_SUCCESS);
		for (round = 0; round < ROUNDS; round++)
			round_run(round);
		if (nccl->finalize)
			assert_int_equal(nccl->finalize(context), NCCL_RESULT_SUCCESS);
	}
}

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
}
