/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c - messages of a comm: slots, isend, irecv, test, verification. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "comm.h"

/* How long bytes may come after an optional completion. */
#define LANDING_NS (5 * NS_PER_S)
/* NCCL gives test an array of so many sizes (NCCL_PROXY_MAX_SUBS and more). */
#define TEST_SIZES 64
/* In the measured part, messages up to this are verified in full, too. */
#define SAMPLE_ABOVE 4096
/* How much larger than the message a receive is where every byte is checked, and looked at. */
#define FULL_SLACK 16384

static const char no_request;	   /* its address is one that no plugin returns */
static const char profiler_handle; /* the same: handed over as NCCL's phandle */

static int message_failed(struct comm *comm, uint64_t index, const char *words)
{
	char name[120];

	comm_describe(comm, name, sizeof(name));
	snprintf(comm->error, COMM_ERROR_MAX, "%s, message %" PRIu64 " of %" PRIu64 " bytes: %s",
		 name, comm->first_sequence + index, plan_message_size(&comm->plan, index), words);
	return -EIO;
}

static int call_failed(struct comm *comm, uint64_t index, const char *call, enum nccl_result result)
{
	char words[100];

	snprintf(words, sizeof(words), "%s() returned %s", call, adapter_result_text(result));
	return message_failed(comm, index, words);
}

int comm_begin(struct comm *comm, const struct plan *plan)
{
	size_t slot = phase_slot_bytes(comm->regions[plan->protocol].bytes, plan->window);

	if (plan->count && plan->offset + plan->size + PATTERN_GUARD > slot)
		return -EPROTO;
	comm->plan = *plan;
	comm->filled = comm->posted = comm->done = comm->attempts = 0;
	comm->landing_ns = 0;
	comm->stamps = NULL;
	return 0;
}

bool comm_finished(const struct comm *comm)
{
	return comm->done == comm->plan.count;
}

void comm_end(struct comm *comm)
{
	comm->first_sequence += comm->plan.count;
	memset(&comm->plan, 0, sizeof(comm->plan));
	comm->filled = comm->posted = comm->done = 0;
	comm->stamps = NULL;
}

static uint8_t *slot_of(const struct comm *comm, uint64_t index)
{
	const struct comm_region *region = &comm->regions[comm->plan.protocol];
	size_t slot = phase_slot_bytes(region->bytes, comm->plan.window);

	return region->base + index % comm->plan.window * slot;
}

static uint8_t *message_of(const struct comm *comm, uint64_t index)
{
	return slot_of(comm, index) + comm->plan.offset;
}

/*
 * Bytes that the receiver posts for a message. NCCL posts the whole slot; where all of what is
 * posted is filled and looked at, less will do.
 */
static size_t capacity_of(const struct comm *comm, uint64_t index)
{
	size_t slot = phase_slot_bytes(comm->regions[comm->plan.protocol].bytes, comm->plan.window);
	size_t size = plan_message_size(&comm->plan, index);
	size_t most = slot - comm->plan.offset - PATTERN_GUARD;

	if (comm->plan.exact)
		return size ? size : 1;
	return comm->plan.full && most > size + FULL_SLACK ? size + FULL_SLACK : most;
}

static enum pattern_depth depth_of(const struct comm *comm, uint64_t index)
{
	if (comm->plan.full || plan_message_size(&comm->plan, index) <= SAMPLE_ABOVE)
		return PATTERN_FULL;
	return PATTERN_SAMPLED;
}

static void stamp_done(struct comm *comm)
{
	if (comm->stamps)
		comm->stamps[comm->done] = now_ns();
	comm->done++;
}

/*
 * What *request holds before a call. NCCL does not reset it: it is the last request, which the
 * plugin has forgotten, or in a new pool whatever lay there.
 */
static void *stale_request(const struct comm *comm)
{
	return comm->stale && comm->attempts % 2 ? comm->stale : (void *)&no_request;
}

/* NULL means "try again". Returns 1 if there is a request, 0 if not, negative if it is none. */
static int judge_request(struct comm *comm, uint64_t index, const char *call, void *request)
{
	char words[160];

	if (!request)
		return 0;
	if (request == &no_request || request == (void *)NCCL_REQUEST_OPTIONAL_COMPLETION) {
		snprintf(words, sizeof(words),
			 "%s() left *request as it was; it must store NULL when it cannot start",
			 call);
		return message_failed(comm, index, words);
	}
	comm->requests[index % comm->plan.window] = request;
	comm->stale = request;
	comm->posted++;
	return 1;
}

/* Asks for the oldest request. Returns 1 if it is done, 0 if not, negative on an error. */
static int test_oldest(struct comm *comm, int *sizes)
{
	int done;
	enum nccl_result result;

	memset(&done, ADAPTER_POISON, sizeof(done));
	result = adapter_test(comm->adapter, comm->requests[comm->done % comm->plan.window], &done,
			      sizes);
	if (result)
		return call_failed(comm, comm->done, "test", result);
	if (done != 0 && done != 1)
		return message_failed(comm, comm->done, "test() did not write done");
	return done;
}

/* --- sending --- */

static int send_slot(struct comm *comm)
{
	uint64_t index = comm->posted;
	void *request = stale_request(comm);
	enum nccl_result result;

	comm->attempts++;
	result = adapter_isend(comm->adapter, comm->plugin_comm, message_of(comm, index),
			       plan_message_size(&comm->plan, index), (int)comm->from,
			       comm->regions[comm->plan.protocol].registration,
			       (void *)&profiler_handle, &request);
	if (result)
		return call_failed(comm, index, "isend", result);
	return judge_request(comm, index, "isend", request);
}

/* The plugin must not have touched what it sent, and may report nothing but its size. */
static int judge_sent(struct comm *comm, int reported)
{
	size_t size = plan_message_size(&comm->plan, comm->done), offset;
	char words[100];

	if (reported != -1 && (size_t)reported != size) {
		snprintf(words, sizeof(words), "test() reported %d bytes sent", reported);
		return message_failed(comm, comm->done, words);
	}
	if (comm->plan.full &&
	    !pattern_check(message_of(comm, comm->done), size, comm->stream,
			   comm->first_sequence + comm->done, PATTERN_FULL, &offset))
		return message_failed(comm, comm->done, "the plugin changed the send buffer");
	stamp_done(comm);
	return 1;
}

int comm_send_pass(struct comm *comm, uint64_t allowed)
{
	uint64_t index = comm->filled;
	int rc = 0, sizes[TEST_SIZES] = {-1};

	if (index < comm->plan.count && index < allowed && index < comm->done + comm->plan.window) {
		pattern_fill(message_of(comm, index), plan_message_size(&comm->plan, index),
			     comm->stream, comm->first_sequence + index, depth_of(comm, index));
		comm->filled++;
		return 1;
	}
	if (comm->posted < comm->filled)
		rc = send_slot(comm);
	if (rc || comm->done == comm->posted)
		return rc;
	rc = test_oldest(comm, sizes);
	return rc > 0 ? judge_sent(comm, sizes[0]) : rc;
}

/* --- receiving --- */

int comm_post_pass(struct comm *comm)
{
	uint64_t index = comm->posted;
	void *request;
	enum nccl_result result;
	uint8_t *slot;

	if (index == comm->plan.count || index == comm->done + comm->plan.window)
		return 0;
	slot = slot_of(comm, index);
	if (comm->plan.full)
		memset(slot, PATTERN_POISON,
		       comm->plan.offset + capacity_of(comm, index) + PATTERN_GUARD);
	request = stale_request(comm);
	if (comm->plan.protocol != PHASE_SIMPLE)
		request = (void *)NCCL_REQUEST_OPTIONAL_COMPLETION;
	comm->attempts++;
	/* The tag is the sender's rank on both sides. */
	result = adapter_irecv(comm->adapter, comm->plugin_comm, message_of(comm, index),
			       capacity_of(comm, index), (int)comm->from,
			       comm->regions[comm->plan.protocol].registration,
			       (void *)&profiler_handle, &request);
	if (result)
		return call_failed(comm, index, "irecv", result);
	return judge_request(comm, index, "irecv", request);
}

/* With an optional completion the GPU looks at the bytes only; the size may be 0. */
static int judge_size(struct comm *comm, int reported)
{
	uint64_t size = plan_message_size(&comm->plan, comm->done);
	char words[100];

	if ((uint64_t)reported == size || (!reported && comm->plan.protocol != PHASE_SIMPLE))
		return 0;
	snprintf(words, sizeof(words), "test() reported a size of %d bytes instead of %" PRIu64,
		 reported, size);
	return message_failed(comm, comm->done, words);
}

/* Where every byte counts: those around the message, too. */
static int judge_surroundings(struct comm *comm)
{
	size_t size = plan_message_size(&comm->plan, comm->done), offset;
	size_t capacity = capacity_of(comm, comm->done);
	const uint8_t *message = message_of(comm, comm->done);
	char words[200];

	if (!comm->plan.full)
		return 0;
	if (!pattern_untouched(slot_of(comm, comm->done), comm->plan.offset, &offset))
		return message_failed(comm, comm->done,
				      "bytes in front of the receive buffer were overwritten");
	if (pattern_untouched(message + size, capacity - size + PATTERN_GUARD, &offset))
		return 0;
	snprintf(words, sizeof(words),
		 "the byte %zu after the end of the message was overwritten (posted were %zu "
		 "bytes)",
		 offset + 1, capacity);
	return message_failed(comm, comm->done, words);
}

/* True if the message is there; @offset: the first wrong word otherwise. */
static bool message_is_right(const struct comm *comm, size_t *offset)
{
	return pattern_check(message_of(comm, comm->done),
			     plan_message_size(&comm->plan, comm->done), comm->stream,
			     comm->first_sequence + comm->done, depth_of(comm, comm->done), offset);
}

static int wrong_bytes(struct comm *comm, size_t offset)
{
	char words[400];

	pattern_explain(message_of(comm, comm->done), plan_message_size(&comm->plan, comm->done),
			comm->stream, comm->first_sequence + comm->done, offset, words,
			sizeof(words));
	return message_failed(comm, comm->done, words);
}

static int accept_message(struct comm *comm)
{
	size_t offset;
	enum nccl_result result;
	int rc;

	if (!message_is_right(comm, &offset)) {
		if (comm->plan.protocol == PHASE_SIMPLE)
			return wrong_bytes(comm, offset);
		if (!comm->landing_ns)
			comm->landing_ns = now_ns();
		return now_ns() - comm->landing_ns > LANDING_NS ? wrong_bytes(comm, offset) : 0;
	}
	rc = judge_surroundings(comm);
	if (rc)
		return rc;
	result = adapter_consumed(comm->adapter, comm->plugin_comm,
				  comm->requests[comm->done % comm->plan.window]);
	if (result)
		return call_failed(comm, comm->done, "irecvConsumed", result);
	comm->landing_ns = 0;
	stamp_done(comm);
	return 1;
}

int comm_test_pass(struct comm *comm)
{
	int sizes[TEST_SIZES] = {0};
	int rc;

	if (comm->done == comm->posted)
		return 0;
	/* Once a request is done it is not tested again. */
	if (comm->landing_ns)
		return accept_message(comm);
	rc = test_oldest(comm, sizes);
	if (rc <= 0)
		return rc;
	rc = judge_size(comm, sizes[0]);
	return rc ? rc : accept_message(comm);
}
