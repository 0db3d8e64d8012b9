/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c - how long it takes until many comms are connected, registered, and carry a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "stamp.h"

#define SLOT_BYTES 65536

/* One message through each: a comm that is only half there would not carry it. */
static void use(struct lane *lanes, unsigned int count, bool sends)
{
	uint64_t idle = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (sends)
			stamp_put(lane_slot(&lanes[i], 0), sizeof(uint64_t), i, STAMP_ALL);
		while (!(sends ? lane_send(&lanes[i], sizeof(uint64_t))
			       : lane_receive(&lanes[i], sizeof(uint64_t))))
			bench_idle(++idle, YIELD_SELDOM);
	}
	for (unsigned int i = 0; i < count; i++) {
		for (idle = 0; !lane_test(&lanes[i], sizeof(uint64_t));)
			bench_idle(++idle, YIELD_SELDOM);
		if (!sends &&
		    !stamp_is_right(lane_slot(&lanes[i], 0), sizeof(uint64_t), i, STAMP_ALL))
			fatal("wrong bytes in the message of comm %u", i);
	}
}

static void measure(struct bench *bench, unsigned int count)
{
	const bool sends = bench->rank == 0;
	struct lane *lanes = calloc(count, sizeof(*lanes));
	struct usage connected, used;

	if (!lanes)
		fatal("no memory for %u comms", count);
	usage_begin(bench, &connected);
	used = connected;
	lanes_open(&bench->maker, &bench->meet, sends ? 1 : -1, sends ? -1 : 0, lanes, lanes, count,
		   1, SLOT_BYTES);
	usage_end(bench, &connected);
	use(lanes, count, sends);
	usage_end(bench, &used);
	if (sends)
		printf("{\"workload\": \"setup\", \"comms\": %u, \"load_ms\": %.3f, "
		       "\"connected_ms\": %.3f, \"used_ms\": %.3f, \"cpu_ms\": %.3f}\n",
		       count, bench->load_seconds * 1e3, connected.wall * 1e3, used.wall * 1e3,
		       (connected.user + connected.system) * 1e3);
	for (unsigned int i = 0; i < count; i++)
		lane_close(&lanes[i]);
	free(lanes);
}

void bench_setup(struct bench *bench)
{
	if (bench->ranks != 2)
		fatal("setup is for two ranks");
	for (unsigned int i = 0; i < bench->num_comms; i++)
		measure(bench, bench->comms[i]);
}
