/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - a ring all-reduce as NCCL's proxy thread sees one.
 *
 * Each channel has a comm to the next rank and one from the previous rank, both busy at once, and
 * one thread serves all channels. A stand-in for the GPU works through NCCL's ring program
 * (all_reduce.h): it reduces or copies slices out of receive slots into send slots, so a slice is
 * sent only after the one it depends on has come, and a slot is used again only when it was read.
 *
 *   step p of 2N-1 handles chunk (rank + 2N - 1 - p) mod N;
 *   it receives if p > 0, sends if p < 2N-2, adds the local part if p < N, and stores if p >= N-1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* NCCL's SIMPLE protocol: a buffer of 8 steps of 512 KiB, slices of 2 steps, chunks of 2 slices. */
#define SLICE_BYTES (1u << 20)
#define SLICES 2
#define SLOTS 4
#define CHUNK_WORDS (SLICES * SLICE_BYTES / sizeof(uint64_t))
/* Small operations are not cut finer than this (prims_simple.h). */
#define SLICE_WORDS_LEAST (32768 / sizeof(uint64_t))
/* Results that are checked in the measured part: one in so many, and the last of a slice. */
#define CHECK_STRIDE 512
#define FACTOR 0x9e3779b97f4a7c15u

struct ring;

struct channel {
	struct ring *ring;
	struct lane send, receive;
	uint64_t *local, *result;
	size_t first, words; /* this channel's part of the whole vector */
	uint64_t loops;	     /* of the ring program in one operation */
	uint64_t operation;  /* slices that the GPU has worked on */
	uint64_t filled;     /* send slots that it has filled */
	uint64_t consumed;   /* receive slots that it has read */
	uint64_t send_end, receive_end, gpu_end;
};

struct ring {
	struct bench *bench;
	unsigned int ranks, rank, num_channels;
	size_t words;
	struct channel *channels;
};

/* Which part of a channel's vector a slice is. */
struct slice {
	uint64_t iteration;
	unsigned int step;
	size_t first, words; /* from the start of the channel's part; words may be 0 */
};

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Slice number @index of those that a channel has in steps @first_step and on, @steps of them. */
static struct slice slice_at(const struct channel *channel, uint64_t index, unsigned int first_step,
			     unsigned int steps)
{
	const unsigned int n = channel->ring->ranks;
	const uint64_t per_loop = (uint64_t)steps * SLICES, in_loop = index % per_loop;
	const size_t begin = index / per_loop % channel->loops * n * CHUNK_WORDS;
	const size_t chunk = smaller(CHUNK_WORDS, (channel->words - begin + n - 1) / n);
	struct slice slice = {.iteration = index / per_loop / channel->loops,
			      .step = first_step + (unsigned int)(in_loop / SLICES)};
	size_t number = (channel->ring->rank + 2 * n - 1 - slice.step) % n, end, size;

	slice.first = begin + number * chunk;
	end = smaller(slice.first + chunk, channel->words);
	size = (chunk + SLICES - 1) / SLICES;
	if (size < SLICE_WORDS_LEAST)
		size = SLICE_WORDS_LEAST;
	slice.first += in_loop % SLICES * size;
	slice.words = slice.first < end ? smaller(size, end - slice.first) : 0;
	return slice;
}

static size_t sent_bytes(const struct channel *channel, uint64_t index)
{
	return slice_at(channel, index, 0, 2 * channel->ring->ranks - 2).words * sizeof(uint64_t);
}

static size_t received_bytes(const struct channel *channel, uint64_t index)
{
	return slice_at(channel, index, 1, 2 * channel->ring->ranks - 2).words * sizeof(uint64_t);
}

/* --- the stand-in for the GPU --- */

static uint64_t local_word(const struct ring *ring, size_t at)
{
	return (at + 1) * FACTOR * (ring->rank + 1);
}

static uint64_t sum_word(const struct ring *ring, size_t at, uint64_t iteration)
{
	const uint64_t n = ring->ranks;

	return (at + 1) * FACTOR * (n * (n + 1) / 2) + n * iteration;
}

static void check_word(const struct channel *channel, size_t at, uint64_t iteration)
{
	if (channel->result[at] != sum_word(channel->ring, channel->first + at, iteration))
		fatal("wrong sum at word %zu of operation %llu", channel->first + at,
		      (unsigned long long)iteration);
}

static void check_slice(const struct channel *channel, const struct slice *slice)
{
	if (!slice->words)
		return;
	for (size_t i = 0; i < slice->words; i += CHECK_STRIDE)
		check_word(channel, slice->first + i, slice->iteration);
	check_word(channel, slice->first + slice->words - 1, slice->iteration);
}

/* The input of operation number @iteration is the vector plus that number. */
static void combine(uint64_t *to, const uint64_t *received, const uint64_t *local, size_t words,
		    uint64_t iteration)
{
	if (received && local)
		for (size_t i = 0; i < words; i++)
			to[i] = received[i] + local[i] + iteration;
	else if (local)
		for (size_t i = 0; i < words; i++)
			to[i] = local[i] + iteration;
	else
		memcpy(to, received, words * sizeof(*to));
}

/* Works on the next slice if its slots are ready. */
static bool gpu_pass(struct channel *channel)
{
	const unsigned int n = channel->ring->ranks, last = 2 * n - 2;
	struct slice slice = slice_at(channel, channel->operation, 0, last + 1);
	const bool receives = slice.step > 0, sends = slice.step < last;
	const bool adds = slice.step < n, stores = slice.step >= n - 1;
	const uint64_t *received = NULL, *local = adds ? channel->local + slice.first : NULL;
	uint64_t *slot = NULL, *result = channel->result + slice.first;

	if (channel->operation == channel->gpu_end)
		return false;
	if ((receives && channel->consumed == channel->receive.done) ||
	    (sends && channel->filled == channel->send.done + SLOTS))
		return false;
	if (receives)
		received = (uint64_t *)(void *)lane_slot(&channel->receive, channel->consumed++);
	if (sends)
		slot = (uint64_t *)(void *)lane_slot(&channel->send, channel->filled++);
	combine(sends ? slot : result, received, local, slice.words, slice.iteration);
	if (sends && stores)
		memcpy(result, slot, slice.words * sizeof(*slot));
	if (stores)
		check_slice(channel, &slice);
	channel->operation++;
	return true;
}

/* --- the proxy: at most one thing for each comm in a pass, as in NCCL's net.cc --- */

static bool send_pass(struct channel *channel)
{
	struct lane *lane = &channel->send;

	if (lane->posted < channel->filled && lane_send(lane, sent_bytes(channel, lane->posted)))
		return true;
	return lane->done < lane->posted && lane_test(lane, sent_bytes(channel, lane->done));
}

static bool receive_pass(struct channel *channel)
{
	struct lane *lane = &channel->receive;

	if (lane->posted < channel->receive_end && lane->posted < channel->consumed + SLOTS &&
	    lane_receive(lane, received_bytes(channel, lane->posted)))
		return true;
	return lane->done < lane->posted && lane_test(lane, received_bytes(channel, lane->done));
}

static bool channel_is_done(const struct channel *channel)
{
	return channel->operation == channel->gpu_end && channel->send.done == channel->send_end;
}

static void all_reduce(void *argument, uint64_t count)
{
	struct ring *ring = argument;
	unsigned int done = 0;
	uint64_t idle = 0;
	bool any;

	for (unsigned int i = 0; i < ring->num_channels; i++) {
		struct channel *channel = &ring->channels[i];
		uint64_t slices = count * channel->loops * SLICES;

		channel->gpu_end += slices * (2 * ring->ranks - 1);
		channel->send_end += slices * (2 * ring->ranks - 2);
		channel->receive_end = channel->send_end;
	}
	while (done < ring->num_channels) {
		any = false;
		done = 0;
		for (unsigned int i = 0; i < ring->num_channels; i++) {
			any |= receive_pass(&ring->channels[i]);
			any |= gpu_pass(&ring->channels[i]);
			any |= send_pass(&ring->channels[i]);
			done += channel_is_done(&ring->channels[i]);
		}
		idle = any ? 0 : idle + 1;
		if (idle)
			bench_idle(idle, YIELD_ALWAYS);
	}
}

/* --- one figure --- */

static void channel_open(struct ring *ring, unsigned int i)
{
	struct channel *channel = &ring->channels[i];
	size_t share = (ring->words + ring->num_channels - 1) / ring->num_channels;

	channel->ring = ring;
	channel->first = i * share;
	channel->words = smaller(share, ring->words - channel->first);
	channel->loops =
		(channel->words + CHUNK_WORDS * ring->ranks - 1) / (CHUNK_WORDS * ring->ranks);
	channel->local = malloc(channel->words * sizeof(uint64_t));
	channel->result = calloc(channel->words, sizeof(uint64_t));
	if (!channel->local || !channel->result)
		fatal("no memory for %zu words", channel->words);
	for (size_t j = 0; j < channel->words; j++)
		channel->local[j] = local_word(ring, channel->first + j);
}

static void channels_open(struct ring *ring)
{
	struct bench *bench = ring->bench;
	struct lane *sends = calloc(ring->num_channels, sizeof(*sends));
	struct lane *receives = calloc(ring->num_channels, sizeof(*receives));
	const int n = bench->ranks;

	ring->channels = calloc(ring->num_channels, sizeof(*ring->channels));
	if (!sends || !receives || !ring->channels)
		fatal("no memory for %u channels", ring->num_channels);
	lanes_open(&bench->maker, &bench->meet, (bench->rank + 1) % n, (bench->rank + n - 1) % n,
		   sends, receives, ring->num_channels, SLOTS, SLICE_BYTES);
	for (unsigned int i = 0; i < ring->num_channels; i++) {
		channel_open(ring, i);
		ring->channels[i].send = sends[i];
		ring->channels[i].receive = receives[i];
	}
	free(sends);
	free(receives);
}

static void channels_close(struct ring *ring)
{
	for (unsigned int i = 0; i < ring->num_channels; i++) {
		struct channel *channel = &ring->channels[i];

		lane_close(&channel->send);
		lane_close(&channel->receive);
		free(channel->local);
		free(channel->result);
	}
	free(ring->channels);
}

/* All words of the last operation. */
static void check_all(const struct ring *ring)
{
	for (unsigned int i = 0; i < ring->num_channels; i++) {
		const struct channel *channel = &ring->channels[i];
		uint64_t done = channel->gpu_end / (2 * ring->ranks - 1) / SLICES / channel->loops;

		for (size_t at = 0; at < channel->words; at++)
			check_word(channel, at, done - 1);
	}
}

static void measure(struct bench *bench, size_t bytes, unsigned int num_channels)
{
	struct ring ring = {.bench = bench,
			    .ranks = (unsigned int)bench->ranks,
			    .rank = (unsigned int)bench->rank,
			    .num_channels = num_channels,
			    .words = bytes / sizeof(uint64_t)};
	double n = bench->ranks, moved;
	struct usage usage;
	uint64_t count;

	if (ring.words < (size_t)num_channels * num_channels)
		fatal("%zu bytes are too few for %u comms", bytes, num_channels);
	channels_open(&ring);
	all_reduce(&ring, 1);
	check_all(&ring);
	count = bench_calibrate(bench, &usage, 4, all_reduce, &ring);
	check_all(&ring);
	/* Each rank sends this much; nccl-tests calls the rate bus bandwidth. */
	moved = 2 * (n - 1) / n * (double)bytes * (double)count;
	if (bench->rank == 0)
		printf("{\"workload\": \"ring\", \"ranks\": %d, \"comms\": %u, \"bytes\": %zu, "
		       "\"operations\": %llu, \"seconds\": %.6f, \"bus_gbit_s\": %.4f, "
		       "\"cpu_s_per_gib\": %.4f}\n",
		       bench->ranks, num_channels, bytes, (unsigned long long)count, usage.wall,
		       moved * 8 / 1e9 / usage.wall,
		       (usage.user + usage.system) / (moved * n / (1 << 30)));
	meet_barrier(&bench->meet);
	channels_close(&ring);
}

void bench_ring(struct bench *bench)
{
	if (bench->ranks < 2)
		fatal("a ring needs two ranks");
	for (unsigned int i = 0; i < bench->num_sizes; i++)
		for (unsigned int j = 0; j < bench->num_comms; j++)
			measure(bench, bench->sizes[i], bench->comms[j]);
}
