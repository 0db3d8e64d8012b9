/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - messages in one direction at full rate, over one comm or several, and one message
 * there and back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "lane_tcp.h"
#include "stamp.h"

#define SLOTS 8
#define COMMS_MAX 32

struct pair {
	struct bench *bench;
	struct lane out, in;	      /* of this rank, in a ping-pong */
	struct lane lanes[COMMS_MAX]; /* of a stream, in its direction */
	unsigned int comms;	      /* of them that are used */
	struct lane_stream stream;
	uint32_t *samples;
};

static void stream(void *argument, uint64_t count)
{
	struct pair *pair = argument;

	lanes_stream(&pair->stream, pair->lanes, pair->comms, count);
}

static int compare_samples(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Receives are posted ahead, as NCCL posts them. */
static void await_message(struct pair *pair, uint64_t number, uint64_t end)
{
	uint64_t idle = 0;

	while (pair->in.done < number) {
		/* A socket may have taken only a part of the last answer. */
		if (pair->out.done < pair->out.posted)
			lane_test(&pair->out, pair->stream.size);
		if (lane_test(&pair->in, pair->stream.size))
			lane_check(&pair->stream, &pair->in, pair->in.done - 1);
		else
			bench_idle(++idle, YIELD_SELDOM);
	}
	while (pair->in.posted < end && pair->in.posted < pair->in.done + pair->stream.window &&
	       lane_receive(&pair->in, pair->stream.size))
		continue;
}

static void send_message(struct pair *pair)
{
	struct lane *lane = &pair->out;
	uint64_t idle = 0;

	/* What was sent before has arrived, because its answer has: NCCL does not wait for it. */
	if (lane->done < lane->posted)
		lane_test(lane, pair->stream.size);
	while (lane->posted == lane->done + pair->stream.window &&
	       !lane_test(lane, pair->stream.size))
		bench_idle(++idle, YIELD_SELDOM);
	stamp_put(lane_slot(lane, lane->posted), pair->stream.size, lane->posted,
		  pair->stream.step);
	while (!lane_send(lane, pair->stream.size))
		bench_idle(++idle, YIELD_SELDOM);
}

static void pingpong(void *argument, uint64_t count)
{
	struct pair *pair = argument;
	const bool first = pair->bench->rank == 0;
	uint64_t start = pair->in.done, end = start + count, before, now;

	await_message(pair, start, end); /* posts the first receives */
	meet_barrier(&pair->bench->meet);
	before = now_ns();
	for (uint64_t i = 1; i <= count; i++) {
		if (!first)
			await_message(pair, start + i, end);
		send_message(pair);
		if (!first)
			continue;
		await_message(pair, start + i, end);
		now = now_ns();
		pair->samples[i - 1] = (uint32_t)(now - before);
		before = now;
	}
	while (pair->out.done < pair->out.posted)
		lane_test(&pair->out, pair->stream.size);
}

static size_t slot_bytes(const struct bench *bench)
{
	size_t largest = 8;

	if (bench->ranks != 2)
		fatal("%s is for two ranks", bench->workload);
	for (unsigned int i = 0; i < bench->num_sizes; i++)
		if (bench->sizes[i] > largest)
			largest = bench->sizes[i];
	return (largest + 4095) / 4096 * 4096;
}

/* Every byte of the first messages is looked at, before anything is measured. */
static void verify(struct pair *pair, void (*part)(void *argument, uint64_t count))
{
	pair->stream.step = STAMP_ALL;
	part(pair, 2 * SLOTS + 3);
	pair->stream.step = STAMP_PAGES;
}

static void report_stream(const struct pair *pair, uint64_t count, const struct usage *usage)
{
	double bytes = (double)pair->stream.size * (double)count * pair->comms;

	printf("{\"workload\": \"stream\", \"bytes\": %zu, \"comms\": %u, \"inflight\": %u, "
	       "\"messages\": %llu, \"seconds\": %.6f, \"gbit_s\": %.4f, "
	       "\"cpu_s_per_gib\": %.4f, \"system_s_per_gib\": %.4f}\n",
	       pair->stream.size, pair->comms, pair->stream.window, (unsigned long long)count,
	       usage->wall, bytes * 8 / 1e9 / usage->wall,
	       (usage->user + usage->system) / (bytes / (1 << 30)),
	       usage->system / (bytes / (1 << 30)));
}

/* All sizes over so many comms. */
static void streams(struct bench *bench, struct pair *pair, unsigned int comms)
{
	const bool first = bench->rank == 0;
	struct usage usage;
	uint64_t count;

	if (comms > COMMS_MAX)
		fatal("at most %d comms", COMMS_MAX);
	pair->comms = comms;
	lanes_open(&bench->maker, &bench->meet, first ? 1 : -1, first ? -1 : 0, pair->lanes,
		   pair->lanes, comms, SLOTS, slot_bytes(bench));
	for (unsigned int i = 0; i < bench->num_sizes * bench->num_inflight; i++) {
		pair->stream.size = bench->sizes[i / bench->num_inflight];
		pair->stream.window = bench->inflight[i % bench->num_inflight];
		if (pair->stream.window > SLOTS)
			fatal("at most %d in flight", SLOTS);
		verify(pair, stream);
		count = bench_calibrate(bench, &usage, pair->stream.size > 65536 ? 32 : 256, stream,
					pair);
		if (first)
			report_stream(pair, count, &usage);
	}
	for (unsigned int i = 0; i < comms; i++)
		lane_close(&pair->lanes[i]);
}

void bench_stream(struct bench *bench)
{
	static struct pair pair; /* large */

	pair.bench = bench;
	for (unsigned int i = 0; i < bench->num_comms; i++)
		streams(bench, &pair, bench->comms[i]);
}

static void report_pingpong(const struct pair *pair, uint64_t count)
{
	qsort(pair->samples, count, sizeof(pair->samples[0]), compare_samples);
	printf("{\"workload\": \"pingpong\", \"bytes\": %zu, \"messages\": %llu, "
	       "\"half_rtt_us\": %.3f, \"half_rtt_p99_us\": %.3f, \"half_rtt_min_us\": %.3f}\n",
	       pair->stream.size, (unsigned long long)count, pair->samples[count / 2] / 2000.0,
	       pair->samples[count - 1 - count / 100] / 2000.0, pair->samples[0] / 2000.0);
}

void bench_pingpong(struct bench *bench)
{
	static struct pair pair; /* large */
	const int other = 1 - bench->rank;
	struct usage usage;
	uint64_t count;

	pair.bench = bench;
	pair.stream.window = SLOTS;
	pair.out.fd = pair.in.fd = -1;
	lanes_open(&bench->maker, &bench->meet, other, other, &pair.out, &pair.in, 1, SLOTS,
		   slot_bytes(bench));
	if (bench->maker.address)
		lane_tcp_share(bench->rank ? &pair.in : &pair.out,
			       bench->rank ? &pair.out : &pair.in);
	pair.samples = calloc(4000000, sizeof(pair.samples[0]));
	if (!pair.samples)
		fatal("no memory for samples");
	for (unsigned int i = 0; i < bench->num_sizes; i++) {
		pair.stream.size = bench->sizes[i];
		verify(&pair, pingpong);
		count = bench_calibrate(bench, &usage, 256, pingpong, &pair);
		if (bench->rank == 0)
			report_pingpong(&pair, count);
	}
	free(pair.samples);
	lane_close(&pair.out);
	lane_close(&pair.in);
}
