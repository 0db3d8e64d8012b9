/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - streams, each a thread that does its work in order, and events. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

struct work {
	struct work *next;
	fake_work_fn *function;
	void *argument;
};

struct fake_stream {
	struct fake_stream *next; /* under streams_lock */
	pthread_t thread;
	pthread_mutex_t lock; /* covers what follows */
	pthread_cond_t changed;
	struct work *first, **last;
	bool busy;
	bool closing;
};

/* One cudaEventRecord: reached when its stream comes to it. What waits for it holds it. */
struct record {
	pthread_mutex_t lock; /* covers what follows */
	pthread_cond_t changed;
	bool reached;
	int holders;
};

/* The newest record counts; one that was never recorded is reached. */
struct fake_event {
	pthread_mutex_t lock;
	struct record *newest; /* under lock; may be NULL */
};

/* A driver is one for each process. */
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_stream *streams;	   /* under streams_lock */
static struct fake_stream *default_stream; /* under streams_lock */

static struct work *next_work(struct fake_stream *stream)
{
	struct work *work;

	pthread_mutex_lock(&stream->lock);
	stream->busy = false;
	pthread_cond_broadcast(&stream->changed);
	while (!stream->first && !stream->closing)
		pthread_cond_wait(&stream->changed, &stream->lock);
	work = stream->first;
	if (work) {
		stream->first = work->next;
		if (!stream->first)
			stream->last = &stream->first;
		stream->busy = true;
	}
	pthread_mutex_unlock(&stream->lock);
	return work;
}

static void *stream_main(void *argument)
{
	struct fake_stream *stream = argument;
	struct work *work;

	while ((work = next_work(stream))) {
		work->function(work->argument);
		free(work);
	}
	return NULL;
}

FAKE_EXPORT enum fake_error cudaStreamCreateWithFlags(struct fake_stream **created,
						      unsigned int flags)
{
	struct fake_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return FAKE_OUT_OF_MEMORY;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->changed, NULL);
	stream->last = &stream->first;
	if (pthread_create(&stream->thread, NULL, stream_main, stream)) {
		free(stream);
		return FAKE_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&streams_lock);
	stream->next = streams;
	streams = stream;
	pthread_mutex_unlock(&streams_lock);
	*created = stream;
	return FAKE_OK;
}

FAKE_ALIAS(cudaStreamCreateWithPriority, cudaStreamCreateWithFlags)

/* NULL, cudaStreamLegacy (1) and cudaStreamPerThread (2) are the default stream. */
static struct fake_stream *stream_of(struct fake_stream *stream)
{
	bool missing;

	if ((uintptr_t)stream > 2)
		return stream;
	pthread_mutex_lock(&streams_lock);
	missing = !default_stream;
	pthread_mutex_unlock(&streams_lock);
	if (missing && !cudaStreamCreateWithFlags(&stream, 0)) {
		pthread_mutex_lock(&streams_lock);
		if (!default_stream)
			default_stream = stream;
		pthread_mutex_unlock(&streams_lock);
	}
	return default_stream;
}

enum fake_error fake_stream_append(struct fake_stream *stream, fake_work_fn *function,
				   void *argument)
{
	struct work *work = calloc(1, sizeof(*work));

	if (!work)
		return FAKE_OUT_OF_MEMORY;
	work->function = function;
	work->argument = argument;
	stream = stream_of(stream);
	pthread_mutex_lock(&stream->lock);
	*stream->last = work;
	stream->last = &work->next;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return FAKE_OK;
}

static void drain(struct fake_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	while (stream->first || stream->busy)
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
}

FAKE_EXPORT enum fake_error cudaStreamSynchronize(struct fake_stream *stream)
{
	drain(stream_of(stream));
	return FAKE_OK;
}

FAKE_EXPORT enum fake_error cudaStreamQuery(struct fake_stream *stream)
{
	bool idle;

	stream = stream_of(stream);
	pthread_mutex_lock(&stream->lock);
	idle = !stream->first && !stream->busy;
	pthread_mutex_unlock(&stream->lock);
	return idle ? FAKE_OK : FAKE_NOT_READY;
}

void fake_streams_synchronize(void)
{
	struct fake_stream *stream;

	pthread_mutex_lock(&streams_lock);
	for (stream = streams; stream; stream = stream->next)
		drain(stream);
	pthread_mutex_unlock(&streams_lock);
}

FAKE_EXPORT enum fake_error cudaStreamDestroy(struct fake_stream *stream)
{
	struct fake_stream **link;

	pthread_mutex_lock(&streams_lock);
	for (link = &streams; *link && *link != stream; link = &(*link)->next)
		;
	if (*link)
		*link = stream->next;
	pthread_mutex_unlock(&streams_lock);
	pthread_mutex_lock(&stream->lock);
	stream->closing = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	/* What was appended is still done first. */
	pthread_join(stream->thread, NULL);
	free(stream);
	return FAKE_OK;
}

/* Nothing is ever captured into a graph. */
FAKE_EXPORT enum fake_error cudaStreamIsCapturing(struct fake_stream *stream, int *status)
{
	*status = 0;
	return FAKE_OK;
}

/* Later versions have more arguments, which are not written when nothing is captured. */
FAKE_EXPORT enum fake_error cudaStreamGetCaptureInfo(struct fake_stream *stream, int *status,
						     uint64_t *id)
{
	*status = 0;
	if (id)
		*id = 0;
	return FAKE_OK;
}

FAKE_ALIAS(cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo)
FAKE_ALIAS(cudaStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo)

FAKE_EXPORT enum fake_error cudaStreamGetId(struct fake_stream *stream, uint64_t *id)
{
	*id = (uintptr_t)stream;
	return FAKE_OK;
}

FAKE_ANSWER(enum fake_error, cudaThreadExchangeStreamCaptureMode, FAKE_OK)

/* --- events ------------------------------------------------------------------------------ */

/* A record with two holders: its event and the stream that will reach it. */
static struct record *record_new(void)
{
	struct record *record = calloc(1, sizeof(*record));

	if (!record)
		return NULL;
	pthread_mutex_init(&record->lock, NULL);
	pthread_cond_init(&record->changed, NULL);
	record->holders = 2;
	return record;
}

static void record_release(struct record *record)
{
	int left;

	if (!record)
		return;
	pthread_mutex_lock(&record->lock);
	left = --record->holders;
	pthread_mutex_unlock(&record->lock);
	if (!left)
		free(record);
}

static void record_reach(void *argument)
{
	struct record *record = argument;

	pthread_mutex_lock(&record->lock);
	record->reached = true;
	pthread_cond_broadcast(&record->changed);
	pthread_mutex_unlock(&record->lock);
	record_release(record);
}

/* Waits for a record and lets it go. */
static void record_await(void *argument)
{
	struct record *record = argument;

	pthread_mutex_lock(&record->lock);
	while (!record->reached)
		pthread_cond_wait(&record->changed, &record->lock);
	pthread_mutex_unlock(&record->lock);
	record_release(record);
}

/* The event's newest record, held for the caller; NULL if there is none. */
static struct record *newest_of(struct fake_event *event)
{
	struct record *record;

	pthread_mutex_lock(&event->lock);
	record = event->newest;
	if (record) {
		pthread_mutex_lock(&record->lock);
		record->holders++;
		pthread_mutex_unlock(&record->lock);
	}
	pthread_mutex_unlock(&event->lock);
	return record;
}

FAKE_EXPORT enum fake_error cudaEventCreateWithFlags(struct fake_event **created,
						     unsigned int flags)
{
	struct fake_event *event = calloc(1, sizeof(*event));

	if (!event)
		return FAKE_OUT_OF_MEMORY;
	pthread_mutex_init(&event->lock, NULL);
	*created = event;
	return FAKE_OK;
}

FAKE_ALIAS(cudaEventCreate, cudaEventCreateWithFlags)

FAKE_EXPORT enum fake_error cudaEventRecord(struct fake_event *event, struct fake_stream *stream)
{
	struct record *record = record_new(), *older;

	if (!record)
		return FAKE_OUT_OF_MEMORY;
	pthread_mutex_lock(&event->lock);
	older = event->newest;
	event->newest = record;
	pthread_mutex_unlock(&event->lock);
	record_release(older);
	return fake_stream_append(stream, record_reach, record);
}

FAKE_EXPORT enum fake_error cudaEventSynchronize(struct fake_event *event)
{
	struct record *record = newest_of(event);

	if (record)
		record_await(record);
	return FAKE_OK;
}

FAKE_EXPORT enum fake_error cudaEventQuery(struct fake_event *event)
{
	struct record *record = newest_of(event);
	bool reached = true;

	if (record) {
		pthread_mutex_lock(&record->lock);
		reached = record->reached;
		pthread_mutex_unlock(&record->lock);
		record_release(record);
	}
	return reached ? FAKE_OK : FAKE_NOT_READY;
}

FAKE_EXPORT enum fake_error cudaEventDestroy(struct fake_event *event)
{
	record_release(event->newest);
	free(event);
	return FAKE_OK;
}

/* A stream waits for what was recorded when the wait was requested, not for later records. */
FAKE_EXPORT enum fake_error cudaStreamWaitEvent(struct fake_stream *stream,
						struct fake_event *event, unsigned int flags)
{
	struct record *record = newest_of(event);

	return record ? fake_stream_append(stream, record_await, record) : FAKE_OK;
}

/* --- copies and callbacks ---------------------------------------------------------------- */

struct copy {
	void *to;
	const void *from; /* NULL: set to value */
	size_t bytes;
	int value;
	char staged[]; /* the source, if the caller may change it at once */
};

static void copy_run(void *argument)
{
	struct copy *copy = argument;

	if (copy->from)
		memmove(copy->to, copy->from, copy->bytes);
	else
		memset(copy->to, copy->value, copy->bytes);
	free(copy);
}

/* From ordinary memory, which was not allocated for the GPU, a copy is taken before we return. */
static enum fake_error copy_append(const struct copy *what, struct fake_stream *stream)
{
	bool stage = what->from && !fake_memory_ours(what->from);
	struct copy *copy = malloc(sizeof(*copy) + (stage ? what->bytes : 0));

	if (!copy)
		return FAKE_OUT_OF_MEMORY;
	*copy = *what;
	if (stage) {
		memcpy(copy->staged, what->from, what->bytes);
		copy->from = copy->staged;
	}
	return fake_stream_append(stream, copy_run, copy);
}

FAKE_EXPORT enum fake_error cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
					    struct fake_stream *stream)
{
	return copy_append(&(struct copy){.to = to, .from = from, .bytes = bytes}, stream);
}

FAKE_EXPORT enum fake_error cudaMemsetAsync(void *to, int value, size_t bytes,
					    struct fake_stream *stream)
{
	return copy_append(&(struct copy){.to = to, .bytes = bytes, .value = value}, stream);
}

FAKE_EXPORT enum fake_error cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	enum fake_error error = cudaMemcpyAsync(to, from, bytes, kind, NULL);

	return error ? error : cudaStreamSynchronize(NULL);
}

FAKE_EXPORT enum fake_error cudaMemset(void *to, int value, size_t bytes)
{
	enum fake_error error = cudaMemsetAsync(to, value, bytes, NULL);

	return error ? error : cudaStreamSynchronize(NULL);
}

FAKE_EXPORT enum fake_error cudaLaunchHostFunc(struct fake_stream *stream, fake_work_fn *function,
					       void *argument)
{
	return fake_stream_append(stream, function, argument);
}
