/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.h - commands that move bytes and look at every one of them. */
#ifndef FAULT_DRIVER_TRANSFER_H
#define FAULT_DRIVER_TRANSFER_H

#include <sched.h>
#include <sys/mman.h>

#include "driver.h"
#include "longest.h"

#define POISON 0xa5
/* Messages that transfer keeps in flight: NCCL_STEPS. */
#define DEPTH_MAX 8

/* Between two messages of a bystander. */
#define STREAM_GAP_US 5000

/* ---- buffers --------------------------------------------------------------------------- */

/* buffer B SIZE: pages of its own. */
static int command_buffer(struct driver *d, int argc, char **argv)
{
	struct buffer *buffer = &d->buffers[slot(argv[1])];

	buffer->size = number(argv[2]);
	buffer->data = mmap(NULL, buffer->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	if (buffer->data == MAP_FAILED)
		return wrong("no memory for buffer %s", argv[1]);
	memset(buffer->data, 0, buffer->size);
	return OUTCOME_OK;
}

/*
 * remap B: maps other memory in place of the buffer's. In one call: between an unmapping and a
 * mapping another thread may be given the address for memory of its own.
 */
static int command_remap(struct driver *d, int argc, char **argv)
{
	struct buffer *buffer = &d->buffers[slot(argv[1])];

	if (mmap(buffer->data, buffer->size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return wrong("cannot map again");
	memset(buffer->data, POISON, buffer->size);
	return OUTCOME_OK;
}

static int command_poison(struct driver *d, int argc, char **argv)
{
	struct buffer *buffer = &d->buffers[slot(argv[1])];

	memset(buffer->data, POISON, buffer->size);
	return OUTCOME_OK;
}

/*
 * Counts the bytes of poison from a sample of one byte in @stride. Reads memory that may be written
 * meanwhile: a race by design.
 */
__attribute__((no_sanitize_thread)) static size_t poison_count(const struct buffer *buffer,
							       size_t stride)
{
	size_t i, count = 0;

	for (i = 0; i < buffer->size; i += stride)
		count += (uint8_t)buffer->data[i] == POISON;
	return count * stride;
}

/* clean B MS: for so long no byte of the poisoned buffer changes. */
static int command_clean(struct driver *d, int argc, char **argv)
{
	const struct buffer *buffer = &d->buffers[slot(argv[1])];
	uint64_t deadline = clock_ms() + number(argv[2]);
	size_t poison;

	do {
		poison = poison_count(buffer, 1);
		if (poison != buffer->size)
			return wrong("%zu bytes were written into memory that was given back",
				     buffer->size - poison);
		pause_us(20000);
	} while (clock_ms() < deadline);
	return OUTCOME_OK;
}

/* written B BYTES: waits until about so many bytes of the poisoned buffer have been written. */
static int command_written(struct driver *d, int argc, char **argv)
{
	const struct buffer *buffer = &d->buffers[slot(argv[1])];
	uint64_t deadline = clock_ms() + d->limit_ms;
	size_t bytes;

	while ((bytes = buffer->size - poison_count(buffer, 256)) < number(argv[2])) {
		if (clock_ms() > deadline)
			return OUTCOME_LATE;
		pause_us(1000);
	}
	printf("note %zu bytes written\n", bytes);
	return OUTCOME_OK;
}

/* reg M C B */
static int command_reg(struct driver *d, int argc, char **argv)
{
	struct registration *registration = &d->registrations[slot(argv[1])];
	const struct buffer *buffer = &d->buffers[slot(argv[3])];

	registration->comm = slot(argv[2]);
	registration->buffer = slot(argv[3]);
	return d->net->reg_mr(d->comms[registration->comm].comm, buffer->data, buffer->size,
			      NCCL_POINTER_HOST, &registration->handle);
}

static int command_dereg(struct driver *d, int argc, char **argv)
{
	struct registration *registration = &d->registrations[slot(argv[1])];

	return d->net->dereg_mr(d->comms[registration->comm].comm, registration->handle);
}

/* ---- single messages ------------------------------------------------------------------- */

/* Starts one message in either direction; one attempt. */
static int message_try(struct driver *d, const struct comm *comm,
		       const struct registration *registration, size_t offset, size_t size,
		       void **request)
{
	void *data = d->buffers[registration->buffer].data + offset;
	void *handle = registration->handle;
	struct call call = call_begin();
	int tag = 0, result;

	*request = (void *)NCCL_REQUEST_OPTIONAL_COMPLETION; /* stale, as NCCL's is */
	if (!comm->sending)
		*request = NULL;
	if (comm->sending)
		result = d->net->isend(comm->comm, data, size, tag, handle, NULL, request);
	else
		result = d->net->irecv(comm->comm, 1, &data, &size, &tag, &handle, NULL, request);
	call_end(d, &call);
	return result;
}

static int message_start(struct driver *d, const struct comm *comm,
			 const struct registration *registration, size_t offset, size_t size,
			 void **request)
{
	uint64_t start = clock_ms();
	int result;

	do {
		result = message_try(d, comm, registration, offset, size, request);
		if (result || *request)
			return result;
		poll_pause(start * NS_PER_MS);
	} while (clock_ms() < start + d->limit_ms);
	return OUTCOME_LATE;
}

static int request_wait(struct driver *d, void *request, int *size)
{
	uint64_t start = clock_ms();
	struct call call;
	int result, done;

	do {
		done = -1;
		call = call_begin();
		result = d->net->test(request, &done, size);
		call_end(d, &call);
		if (!result && done != 0 && done != 1)
			return wrong("test left done at %d", done);
		if (result || done)
			return result;
		poll_pause(start * NS_PER_MS);
	} while (clock_ms() < start + d->limit_ms);
	return OUTCOME_LATE;
}

/* post R M OFFSET SIZE: isend or irecv, as the comm of registration M does. */
static int command_post(struct driver *d, int argc, char **argv)
{
	const struct registration *registration = &d->registrations[slot(argv[2])];

	return message_start(d, &d->comms[registration->comm], registration, number(argv[3]),
			     number(argv[4]), &d->requests[slot(argv[1])]);
}

/* test R: until it is done. */
static int command_test(struct driver *d, int argc, char **argv)
{
	int sizes[64] = {0};

	return request_wait(d, d->requests[slot(argv[1])], sizes);
}

/* pending R MS: for so long it is tested, and is not done. */
static int command_pending(struct driver *d, int argc, char **argv)
{
	uint64_t deadline = clock_ms() + number(argv[2]);
	int result, done, size;

	while (clock_ms() < deadline) {
		result = d->net->test(d->requests[slot(argv[1])], &done, &size);
		if (result)
			return result;
		if (done)
			return wrong("request %s is done", argv[1]);
		pause_us(200);
	}
	return OUTCOME_OK;
}

/* ---- many messages --------------------------------------------------------------------- */

/* Any byte of message @k of flow @seed. */
static uint8_t pattern(uint64_t seed, uint64_t k, size_t i)
{
	uint64_t x = (seed << 40) + (k << 20) * 0x9e3779b97f4a7c15ull + (i >> 3);

	x *= 0xff51afd7ed558ccdull;
	return (uint8_t)(x >> (32 + (i & 7)));
}

static void pattern_fill(char *data, size_t size, uint64_t seed, uint64_t k)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (char)pattern(seed, k, i);
}

static int pattern_check(const char *data, size_t size, uint64_t seed, uint64_t k)
{
	for (size_t i = 0; i < size; i++) {
		if ((uint8_t)data[i] != pattern(seed, k, i))
			return wrong("message %" PRIu64 " of flow %" PRIu64 ": byte %zu of %zu "
				     "is 0x%02x, not 0x%02x",
				     k, seed, i, size, (uint8_t)data[i], pattern(seed, k, i));
	}
	return OUTCOME_OK;
}

struct flow {
	const struct comm *comm;
	const struct registration *registration;
	size_t size, room; /* bytes: of each message, and of its slot and receive */
	uint64_t seed, posted, reaped;
	unsigned int depth;
	void *requests[DEPTH_MAX];
	size_t sizes[DEPTH_MAX];
};

/* @room: bytes of each receive; 0: exactly a message's */
static int flow_open(struct driver *d, struct flow *flow, char **argv, size_t room)
{
	size_t memory;

	memset(flow, 0, sizeof(*flow));
	flow->registration = &d->registrations[slot(argv[1])];
	flow->comm = &d->comms[flow->registration->comm];
	flow->size = number(argv[2]);
	flow->seed = number(argv[4]);
	flow->room = room > flow->size ? room : flow->size;
	memory = d->buffers[flow->registration->buffer].size;
	flow->depth = flow->room ? (unsigned int)(memory / flow->room) : DEPTH_MAX;
	if (flow->depth > DEPTH_MAX)
		flow->depth = DEPTH_MAX;
	return flow->depth ? OUTCOME_OK : wrong("the buffer is too small");
}

static int flow_post(struct driver *d, struct flow *flow, size_t size)
{
	unsigned int i = (unsigned int)(flow->posted % flow->depth);
	char *data = d->buffers[flow->registration->buffer].data + i * flow->room;

	if (flow->comm->sending)
		pattern_fill(data, size, flow->seed, flow->posted);
	else
		memset(data, POISON, flow->room);
	flow->sizes[i] = size;
	flow->posted++;
	return message_start(d, flow->comm, flow->registration, i * flow->room,
			     flow->comm->sending ? size : flow->room, &flow->requests[i]);
}

/* @size: what came; may be less than the room if @last_empty allows an empty one. */
static int flow_reap(struct driver *d, struct flow *flow, int *size)
{
	unsigned int i = (unsigned int)(flow->reaped % flow->depth);
	const char *data = d->buffers[flow->registration->buffer].data + i * flow->room;
	int sizes[64] = {0};
	int outcome = request_wait(d, flow->requests[i], sizes);

	if (outcome)
		return outcome;
	*size = sizes[0];
	if ((size_t)sizes[0] != flow->sizes[i] && (flow->comm->sending || sizes[0]))
		return wrong("message %" PRIu64 " has %d bytes, not %zu", flow->reaped, sizes[0],
			     flow->sizes[i]);
	if (!flow->comm->sending)
		outcome = pattern_check(data, (size_t)sizes[0], flow->seed, flow->reaped);
	flow->reaped++;
	return outcome;
}

/*
 * transfer M SIZE COUNT SEED: the same command on both sides; the receiver checks each byte.
 * transfer_into M SIZE COUNT SEED ROOM: the same into receives of ROOM bytes.
 */
static int command_transfer(struct driver *d, int argc, char **argv)
{
	uint64_t count = number(argv[3]);
	struct flow flow;
	int size, outcome = flow_open(d, &flow, argv, argc > 5 ? number(argv[5]) : 0);

	while (!outcome && flow.reaped < count) {
		if (flow.posted < count && flow.posted - flow.reaped < flow.depth)
			outcome = flow_post(d, &flow, flow.size);
		else
			outcome = flow_reap(d, &flow, &size);
	}
	if (outcome)
		printf("note transfer ended after %" PRIu64 " of %" PRIu64 " messages\n",
		       flow.reaped, count);
	return outcome;
}

/*
 * stream M SIZE FILE SEED: as transfer, until FILE appears at the sender, which then sends an
 * empty message. One message at a time.
 */
static int command_stream(struct driver *d, int argc, char **argv)
{
	int size = 1, outcome;
	struct flow flow;
	bool last = false;

	outcome = flow_open(d, &flow, argv, 0);
	while (!outcome && !last) {
		last = flow.comm->sending && !access(argv[3], F_OK);
		outcome = flow_post(d, &flow, last ? 0 : flow.size);
		if (!outcome)
			outcome = flow_reap(d, &flow, &size);
		last |= !size;
		if (flow.comm->sending)
			pause_us(STREAM_GAP_US);
	}
	printf("note stream %s moved %" PRIu64 " messages\n", argv[4], flow.reaped);
	return outcome;
}

#endif
