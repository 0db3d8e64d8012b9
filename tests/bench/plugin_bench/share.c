/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - several comms on one link, while the receiver of one more reads, and while it stops. */
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "stamp.h"

#define LANES 4
#define STUCK LANES /* the comm whose receiver stops */
#define WINDOW 8

struct share {
	struct bench *bench;
	struct lane lanes[LANES + 1];
	struct lane_stream stream;
};

static void stream(void *argument, uint64_t count)
{
	struct share *share = argument;

	lanes_stream(&share->stream, share->lanes, LANES, count);
}

/* The sender has a full window in flight, and no receive is posted for it. */
static void get_stuck(struct share *share)
{
	struct lane *lane = &share->lanes[STUCK];

	if (!lane->sending)
		return;
	for (unsigned int i = 0; i < WINDOW; i++) {
		stamp_put(lane_slot(lane, lane->posted), share->stream.size, lane->posted,
			  share->stream.step);
		if (!lane_send(lane, share->stream.size))
			return; /* a plugin whose peer is not ready */
	}
}

/* The receiver continues: all messages in flight must arrive, and be right. */
static void get_going(struct share *share)
{
	struct lane *lane = &share->lanes[STUCK];
	uint64_t idle = 0, end = lane->done + WINDOW;

	while (lane->done < end) {
		if (lane_stream_pass(&share->stream, lane, end))
			idle = 0;
		else
			bench_idle(++idle, YIELD_SELDOM);
	}
}

static double resident_mib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages, resident = 0;

	if (!file || fscanf(file, "%lu %lu", &pages, &resident) != 2)
		fatal("cannot read /proc/self/statm");
	fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void measure(struct share *share, size_t size)
{
	struct bench *bench = share->bench;
	struct usage free_run, stuck_run;
	double before, grown, all[MEET_RANKS_MAX], most = 0;
	uint64_t free_count, stuck_count;

	share->stream = (struct lane_stream){size, STAMP_ALL, WINDOW};
	lanes_stream(&share->stream, share->lanes, LANES, WINDOW);
	lanes_stream(&share->stream, &share->lanes[STUCK], 1, WINDOW);
	share->stream.step = STAMP_PAGES;
	free_count = bench_calibrate(bench, &free_run, 16, stream, share);
	before = resident_mib();
	get_stuck(share);
	stuck_count = bench_calibrate(bench, &stuck_run, 16, stream, share);
	grown = resident_mib() - before;
	get_going(share);
	meet_gather(&bench->meet, &grown, sizeof(grown), all);
	for (int i = 0; i < bench->ranks; i++)
		most = all[i] > most ? all[i] : most;
	if (bench->rank == 0)
		printf("{\"workload\": \"share\", \"bytes\": %zu, \"gbit_s\": %.4f, "
		       "\"stuck_gbit_s\": %.4f, \"grown_mib\": %.2f}\n",
		       size, (double)size * LANES * (double)free_count * 8 / 1e9 / free_run.wall,
		       (double)size * LANES * (double)stuck_count * 8 / 1e9 / stuck_run.wall, most);
}

void bench_share(struct bench *bench)
{
	static struct share share; /* large */
	const bool sends = bench->rank == 0;
	size_t largest = 8;

	if (bench->ranks != 2)
		fatal("share is for two ranks");
	share.bench = bench;
	for (unsigned int i = 0; i < bench->num_sizes; i++)
		if (bench->sizes[i] > largest)
			largest = bench->sizes[i];
	lanes_open(&bench->maker, &bench->meet, sends ? 1 : -1, sends ? -1 : 0, share.lanes,
		   share.lanes, LANES + 1, WINDOW, (largest + 4095) / 4096 * 4096);
	for (unsigned int i = 0; i < bench->num_sizes; i++)
		measure(&share, bench->sizes[i]);
	for (unsigned int i = 0; i <= STUCK; i++)
		lane_close(&share.lanes[i]);
}
