/* SPDX-License-Identifier: Apache-2.0 */
/* fake_queue.c - the completion queues of the libfabric that a test controls. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "check.h"
#include "fake_object.h"

/* ---- what the test puts in ------------------------------------------------------------------ */

/* Like a queue of libfabric, which the connectors and the thread that polls may use at once. */
static pthread_mutex_t queueing = PTHREAD_MUTEX_INITIALIZER;

static void completion_add(const struct fake_completion *completion)
{
	pthread_mutex_lock(&queueing);
	check(fake.completed < FAKE_POSTS_MAX);
	fake.completions[fake.completed++] = *completion;
	pthread_mutex_unlock(&queueing);
}

void fake_complete(const struct fake_post *post)
{
	const struct fake_completion completion = {
		.domain = post->domain,
		.entry.op_context = post->context,
		.entry.flags = FI_MSG | FI_SEND,
		.entry.len = post->size,
	};

	completion_add(&completion);
}

void fake_complete_error(void *context, int error)
{
	fake_complete_status(context, error, 0);
}

void fake_complete_status(void *context, int error, int prov_errno)
{
	const struct fake_completion completion = {
		.entry.op_context = context,
		.error = error,
		.prov_errno = prov_errno,
	};

	completion_add(&completion);
}

void fake_deliver(const void *bytes, size_t size)
{
	struct fake_post *receive = &fake.receives.posts[fake.receives_taken];
	const struct fake_completion completion = {
		.entry.op_context = receive->context,
		.entry.flags = FI_MSG | FI_RECV,
		.entry.len = size,
	};

	check(fake.receives_taken < fake.receives.num);
	fake.receives_taken++;
	check(size <= receive->size);
	memcpy(receive->buffer, bytes, size);
	completion_add(&completion);
}

void fake_deliver_immediate(uint64_t immediate)
{
	const struct fake_completion completion = {
		.entry.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.entry.data = immediate,
	};

	completion_add(&completion);
}

void fake_write_fail(const struct fake_post *post, int prov_errno)
{
	const struct fake_completion completion = {
		.domain = post->domain,
		.entry.op_context = post->context,
		.error = FI_EIO,
		.prov_errno = prov_errno,
	};

	completion_add(&completion);
}

/* ---- what is read --------------------------------------------------------------------------- */

/* The next completion, if it is this queue's; those of all domains come in one order. */
static const struct fake_completion *completion_next(const struct fid_cq *cq)
{
	const struct fake_completion *next = &fake.completions[fake.read];

	if (fake.read == fake.completed)
		return NULL;
	return !next->domain || next->domain == ((const struct fake_object *)cq)->owner ? next
											: NULL;
}

static ssize_t completions_take(const struct fid_cq *cq, struct fi_cq_data_entry *entries,
				size_t count)
{
	size_t n = 0;

	while (n < count && completion_next(cq)) {
		if (fake.completions[fake.read].error)
			return n ? (ssize_t)n : -FI_EAVAIL;
		entries[n++] = fake.completions[fake.read++].entry;
	}
	return n ? (ssize_t)n : -FI_EAGAIN;
}

static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	ssize_t ret = fake_called(FAKE_CQ_READ);

	if (ret)
		return ret;
	pthread_mutex_lock(&queueing);
	ret = completions_take(cq, buf, count);
	pthread_mutex_unlock(&queueing);
	return ret;
}

static ssize_t error_take(const struct fid_cq *cq, struct fi_cq_err_entry *entry)
{
	const struct fake_completion *completion = completion_next(cq);

	if (!completion || !completion->error)
		return -FI_EAGAIN;
	entry->op_context = completion->entry.op_context;
	entry->err = completion->error;
	entry->prov_errno = completion->prov_errno;
	fake.read++;
	return 1;
}

static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags)
{
	ssize_t ret;

	pthread_mutex_lock(&queueing);
	ret = error_take(cq, entry);
	pthread_mutex_unlock(&queueing);
	return ret;
}

struct fi_ops_cq fake_queue_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readerr = cq_readerr,
};
