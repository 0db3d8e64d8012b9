/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_operations.c - the collectives' calls and expected results, against a simulation: three
 * ranks in one process whose NCCL moves and adds the elements in the plainest way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "operations.h"

#define WORLD 3
#define ELEMENTS 64
#define TRANSFERS_MAX (WORLD * WORLD * 2)

/* One rank's call of the simulated NCCL. */
struct transfer {
	enum {
		ALL_REDUCE,
		ALL_GATHER,
		REDUCE_SCATTER,
		BROADCAST,
		REDUCE,
		SEND,
		RECEIVE
	} what;
	const uint32_t *send;
	uint32_t *receive;
	size_t count;
	ncclDataType_t type;
	int rank, other; /* other: the root or the peer */
};

static struct transfer transfers[TRANSFERS_MAX];
static size_t num_transfers;
static uint32_t sent[WORLD][ELEMENTS], received[WORLD][ELEMENTS];

static ncclResult_t note(struct transfer transfer, ncclComm_t comm)
{
	transfer.rank = (int)(intptr_t)comm - 1;
	assert_true(num_transfers < TRANSFERS_MAX);
	transfers[num_transfers++] = transfer;
	return ncclSuccess;
}

static ncclResult_t all_reduce(const void *send, void *receive, size_t count, ncclDataType_t type,
			       ncclRedOp_t sum, ncclComm_t comm, cudaStream_t stream)
{
	assert_int_equal(sum, ncclSum);
	return note((struct transfer){ALL_REDUCE, send, receive, count, type, 0, 0}, comm);
}

static ncclResult_t all_gather(const void *send, void *receive, size_t count, ncclDataType_t type,
			       ncclComm_t comm, cudaStream_t stream)
{
	return note((struct transfer){ALL_GATHER, send, receive, count, type, 0, 0}, comm);
}

static ncclResult_t reduce_scatter(const void *send, void *receive, size_t count,
				   ncclDataType_t type, ncclRedOp_t sum, ncclComm_t comm,
				   cudaStream_t stream)
{
	assert_int_equal(sum, ncclSum);
	return note((struct transfer){REDUCE_SCATTER, send, receive, count, type, 0, 0}, comm);
}

static ncclResult_t broadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
			      int root, ncclComm_t comm, cudaStream_t stream)
{
	return note((struct transfer){BROADCAST, send, receive, count, type, 0, root}, comm);
}

static ncclResult_t reduce(const void *send, void *receive, size_t count, ncclDataType_t type,
			   ncclRedOp_t sum, int root, ncclComm_t comm, cudaStream_t stream)
{
	assert_int_equal(sum, ncclSum);
	return note((struct transfer){REDUCE, send, receive, count, type, 0, root}, comm);
}

static ncclResult_t send_to(const void *send, size_t count, ncclDataType_t type, int peer,
			    ncclComm_t comm, cudaStream_t stream)
{
	return note((struct transfer){SEND, send, NULL, count, type, 0, peer}, comm);
}

static ncclResult_t receive_from(void *receive, size_t count, ncclDataType_t type, int peer,
				 ncclComm_t comm, cudaStream_t stream)
{
	return note((struct transfer){RECEIVE, NULL, receive, count, type, 0, peer}, comm);
}

static ncclResult_t group(void)
{
	return ncclSuccess;
}

static uint32_t add(uint32_t one, uint32_t other, ncclDataType_t type)
{
	float a, b;

	if (type != ncclFloat)
		return one + other;
	memcpy(&a, &one, sizeof(a));
	memcpy(&b, &other, sizeof(b));
	a += b;
	memcpy(&one, &a, sizeof(one));
	return one;
}

/* The sum over the ranks of what each has at @position. */
static uint32_t sum_at(size_t position, ncclDataType_t type)
{
	uint32_t sum = transfers[0].send[position];

	for (size_t i = 1; i < WORLD; i++)
		sum = add(sum, transfers[i].send[position], type);
	return sum;
}

/* The transfer of @rank towards @other; for collectives, which have one each, any. */
static const struct transfer *transfer_of(int what, int rank, int other)
{
	for (size_t i = 0; i < num_transfers; i++)
		if ((int)transfers[i].what == what && transfers[i].rank == rank &&
		    (other < 0 || transfers[i].other == other))
			return &transfers[i];
	fail_msg("rank %d calls nothing for rank %d", rank, other);
	return NULL;
}

static void run_one(const struct transfer *at, size_t i)
{
	switch (at->what) {
	case ALL_REDUCE:
		at->receive[i] = sum_at(i, at->type);
		break;
	case REDUCE:
		if (at->rank == at->other)
			at->receive[i] = sum_at(i, at->type);
		break;
	case REDUCE_SCATTER:
		at->receive[i] = sum_at((size_t)at->rank * at->count + i, at->type);
		break;
	case ALL_GATHER:
		for (int rank = 0; rank < WORLD; rank++)
			at->receive[(size_t)rank * at->count + i] =
				transfer_of(ALL_GATHER, rank, -1)->send[i];
		break;
	case BROADCAST:
		at->receive[i] = transfer_of(BROADCAST, at->other, -1)->send[i];
		break;
	case RECEIVE:
		at->receive[i] = transfer_of(SEND, at->other, at->rank)->send[i];
		break;
	default:
		break;
	}
}

static void simulate(void)
{
	for (size_t transfer = 0; transfer < num_transfers; transfer++)
		for (size_t i = 0; i < transfers[transfer].count; i++)
			run_one(&transfers[transfer], i);
}

static struct job job_of(int rank)
{
	return (struct job){
		.api = {.ncclAllReduce = all_reduce,
			.ncclAllGather = all_gather,
			.ncclReduceScatter = reduce_scatter,
			.ncclBroadcast = broadcast,
			.ncclReduce = reduce,
			.ncclSend = send_to,
			.ncclRecv = receive_from,
			.ncclGroupStart = group,
			.ncclGroupEnd = group},
		.ranks = {.rank = rank, .world = WORLD},
	};
}

static size_t wrong_on(int rank, const struct call *call)
{
	struct job job = job_of(rank);

	return operation_wrong(&job, call, received[rank]);
}

/* All ranks call the simulated NCCL and find no error; one wrong element is found. */
static void run_call(const struct call *call)
{
	size_t checked = 0;

	num_transfers = 0;
	memset(received, VALUES_POISON_BYTE, sizeof(received));
	for (int rank = 0; rank < WORLD; rank++) {
		struct job job = job_of(rank);

		assert_true(operation_elements(&job, call) <= ELEMENTS);
		values_fill(sent[rank], call->kind, rank, 0, ELEMENTS);
		assert_int_equal(call->operation->start(&job, call, sent[rank], received[rank],
							(ncclComm_t)(intptr_t)(rank + 1), NULL),
				 ncclSuccess);
	}
	simulate();
	for (int rank = 0; rank < WORLD; rank++)
		assert_int_equal(wrong_on(rank, call), 0);
	for (int rank = 0; rank < WORLD; rank++) {
		received[rank][call->count - 1] ^= 1;
		checked += wrong_on(rank, call);
	}
	/* Every rank that receives anything sees it, and no rank sees more. */
	assert_int_equal(checked, call->operation->pairs			    ? 1
				  : call->operation->origin == operations[4].origin ? 1
										    : WORLD);
}

static void every_operation_moves_what_it_should(void **state)
{
	struct job job = job_of(0);

	for (size_t i = 0; i < num_operations; i++) {
		for (size_t bytes = 4; bytes <= 160; bytes *= 2) {
			struct call call = operation_call(&job, &operations[i], bytes);

			call.root = (int)(bytes % WORLD);
			call.peer = (call.root + 1) % WORLD;
			assert_true(operation_bytes(&job, &call) >= bytes);
			run_call(&call);
			if (!operations[i].sums)
				continue;
			call.kind = VALUES_SUMMED_FLOAT;
			run_call(&call);
		}
	}
}

static void sizes_are_rounded_up_to_whole_parts(void **state)
{
	struct job job = job_of(0);
	struct call call;

	call = operation_call(&job, &operations[0], 4);
	assert_int_equal(call.count, 1);
	/* all_gather: a part for each rank */
	call = operation_call(&job, &operations[1], 4);
	assert_int_equal(call.count, 1);
	assert_int_equal(operation_bytes(&job, &call), 4 * WORLD);
	call = operation_call(&job, &operations[1], 4096);
	assert_int_equal(call.count, 342);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_moves_what_it_should),
		cmocka_unit_test(sizes_are_rounded_up_to_whole_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
