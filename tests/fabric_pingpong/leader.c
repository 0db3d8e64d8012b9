/* SPDX-License-Identifier: Apache-2.0 */
/* leader.c - calibrates counts to the time that was asked for, and takes medians. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "leader.h"

#define PING_WARM 10
#define PING_MIN 10
#define PING_MAX 20000
#define STREAM_MAX 2000000
/* Growth of a stream's length from one try to the next: the first ones are cold. */
#define GROWTH_MAX 8.0

int leader_open(struct leader *leader, const struct options *options, uint32_t pair)
{
	memset(leader, 0, sizeof(*leader));
	leader->options = options;
	leader->pair = pair;
	leader->stage = options->check ? LEADER_CHECK : LEADER_PING_WARM;
	leader->stamps_max = options->iters ? options->iters : PING_MAX;
	leader->rates = calloc(options->repeat, sizeof(*leader->rates));
	leader->stamps = calloc(leader->stamps_max, sizeof(*leader->stamps));
	return leader->rates && leader->stamps ? 0 : -ENOMEM;
}

void leader_close(struct leader *leader)
{
	free(leader->rates);
	free(leader->stamps);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Measured phases start when the receives are posted, so that the clock sees data only. */
static struct phase measured_phase(const struct leader *leader, enum phase_kind kind, bool full)
{
	uint64_t size = leader->options->sizes[leader->index];
	struct phase phase = {
		.kind = kind,
		.protocol = phase_protocol_for(size),
		.order = PHASE_EARLY,
		.full = full,
		.window = leader->options->inflight,
		.size = size,
		.count = leader->count,
	};

	phase_fit(&phase, leader->options);
	return phase;
}

bool leader_next(struct leader *leader, struct phase *phase)
{
	const struct options *options = leader->options;

	if (leader->stage == LEADER_CHECK &&
	    leader->index == check_num_phases(options, leader->pair)) {
		leader->stage = LEADER_PING_WARM;
		leader->index = 0;
	}
	if (leader->stage > LEADER_CHECK &&
	    (!options->measure || leader->index == options->num_sizes))
		leader->stage = LEADER_END;
	if (leader->stage == LEADER_END)
		return false;
	if (leader->stage == LEADER_CHECK) {
		*phase = check_phase(options, leader->pair, leader->index);
	} else if (leader->stage <= LEADER_PING) {
		if (leader->stage == LEADER_PING_WARM)
			leader->count = PING_WARM;
		*phase = measured_phase(leader, PHASE_PINGPONG, leader->stage == LEADER_PING_WARM);
	} else {
		if (leader->stage == LEADER_STREAM_WARM)
			leader->count = 2 * options->inflight;
		*phase = measured_phase(leader, PHASE_STREAM, leader->stage == LEADER_STREAM_WARM);
	}
	phase->number = ++leader->number;
	return true;
}

static uint64_t clamp(double value, uint64_t min, uint64_t max)
{
	if (value < (double)min)
		return min;
	return value > (double)max ? max : (uint64_t)value;
}

static void note_ping(struct leader *leader, const struct phase *phase, uint64_t start_ns)
{
	uint64_t last = start_ns, stamp;

	for (uint64_t i = 0; i < phase->count; i++) {
		stamp = leader->stamps[i];
		leader->stamps[i] = stamp - last;
		last = stamp;
	}
	qsort(leader->stamps, phase->count, sizeof(*leader->stamps), compare_times);
	leader->figures[leader->index].half_rtt_us =
		(double)leader->stamps[phase->count / 2] / 2000.0;
}

/* How many messages a stream needs to last as long as it should. */
static uint64_t stream_count(const struct leader *leader, double seconds, uint64_t count)
{
	double wanted = leader->options->seconds / leader->options->repeat;
	double growth = seconds > 0 ? 1.1 * wanted / seconds : GROWTH_MAX;

	if (leader->options->iters)
		return leader->options->iters;
	if (growth > GROWTH_MAX)
		growth = GROWTH_MAX;
	return clamp((double)count * growth, 2 * leader->options->inflight, STREAM_MAX);
}

static void note_stream(struct leader *leader, const struct phase *phase, double seconds)
{
	const struct options *options = leader->options;
	double bytes = (double)phase->size * (double)phase->count * options->channels;
	uint64_t longer = stream_count(leader, seconds, phase->count);

	/* Too short to count, and can be made longer. */
	if (!options->iters && seconds < 0.5 * options->seconds / options->repeat &&
	    longer > phase->count) {
		leader->count = longer;
		return;
	}
	leader->rates[leader->repeats++] = seconds > 0 ? 8.0 * bytes / seconds / 1e9 : 0;
	if (leader->repeats < options->repeat)
		return;
	qsort(leader->rates, leader->repeats, sizeof(*leader->rates), compare_doubles);
	leader->figures[leader->index].gbit_s = leader->rates[leader->repeats / 2];
	leader->num_figures = ++leader->index;
	leader->stage = LEADER_PING_WARM;
}

void leader_note(struct leader *leader, const struct phase *phase, uint64_t start_ns,
		 uint64_t end_ns)
{
	double seconds = (double)(end_ns - start_ns) / 1e9;

	switch (leader->stage) {
	case LEADER_CHECK:
		leader->index++;
		break;
	case LEADER_PING_WARM:
		leader->stage = LEADER_PING;
		leader->count = leader->options->iters;
		if (!leader->count)
			leader->count = clamp(leader->options->seconds / (seconds / PING_WARM),
					      PING_MIN, PING_MAX);
		break;
	case LEADER_PING:
		note_ping(leader, phase, start_ns);
		leader->stage = LEADER_STREAM_WARM;
		break;
	case LEADER_STREAM_WARM:
		leader->stage = LEADER_STREAM;
		leader->repeats = 0;
		leader->count = stream_count(leader, seconds, phase->count);
		break;
	case LEADER_STREAM:
		note_stream(leader, phase, seconds);
		break;
	case LEADER_END:
		break;
	}
}

json_t *leader_json(const struct leader *leader)
{
	json_t *array = json_array();

	for (size_t i = 0; i < leader->num_figures; i++)
		json_array_append_new(array,
				      json_pack("{s:I, s:f, s:f}", "bytes",
						(json_int_t)leader->options->sizes[i],
						"half_rtt_us", leader->figures[i].half_rtt_us,
						"gbit_s", leader->figures[i].gbit_s));
	return array;
}
