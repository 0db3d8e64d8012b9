/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - measures latency and bandwidth to a peer, by the plugin's own connections. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#include "common/child.h"
#include "common/finding.h"
#include "common/interrupt.h"
#include "peer/checker.h"
#include "peer/dial.h"
#include "peer/end.h"
#include "peer/figures.h"
#include "peer/measure.h"
#include "peer/stream.h"
#include "peer/wire.h"

/* For an answer to RUN: what is in flight then may be on a slow link. */
#define RAN_MS 12000
/* Both ends give up before this, with the reason (end.c). */
#define MEET_MS 25000
/* All of these limits, and a slow machine. */
#define CHILD_MS 120000

/* Round trips; the first ones, which make the connection, are not counted. */
#define PINGS 500
#define PINGS_WARM 20
/*
 * On a busy node each round trip takes a turn of the scheduler: after the time for them this many
 * suffice.
 */
#define PINGS_LEAST 20
/* For each of them. */
#define PING_MS 5000
/* The time for all routes of a connection over relays to join it. */
#define ROUTES_MS 3000

/* ---- what comes of it ---------------------------------------------------------------------- */

double peer_numbers_cpu_share(const struct peer_numbers *numbers)
{
	return fmin(numbers->cpu_here, numbers->cpu_there);
}

const char *peer_measured_words(const struct peer_measured *measured, int error)
{
	return *measured->words ? measured->words : strerror(-error);
}

bool peer_measured_busy_say(const struct peer_measured *measured, int error,
			    struct check_result *result)
{
	if (error != -EBUSY)
		return false;
	check_say(result, CHECK_UNKNOWN, "latency and bandwidth were not measured: %s",
		  peer_measured_words(measured, error));
	check_fix(result, "run this again once the other check has ended");
	return true;
}

/* ---- connecting --------------------------------------------------------------------------- */

/* What fails if something does. */
static void step_set(struct peer_measurement *measurement, const char *step)
{
	snprintf(measurement->measured.step, sizeof(measurement->measured.step), "%s", step);
}

/* What an ERROR of the peer says. Returns @ret. */
static int peer_failed(struct peer_measurement *measurement, int ret, const char *text)
{
	if (*text)
		snprintf(measurement->measured.words, sizeof(measurement->measured.words),
			 "on node %s: %s", measurement->peer->name, text);
	return ret;
}

/* What the plugin's code here has logged. Returns @ret. */
static int end_failed(struct peer_measurement *measurement, int ret)
{
	peer_end_words(measurement->measured.words, sizeof(measurement->measured.words));
	return ret;
}

static int end_open(struct peer_measurement *measurement)
{
	int ret;

	step_set(measurement, "this node does not join the mesh");
	ret = peer_end_open(measurement->nic, measurement->peer->routes.job, measurement->ours,
			    &measurement->end);
	return ret ? end_failed(measurement, ret) : 0;
}

/* The peer listens as well. Returns -EBUSY if it measures with another node all the time. */
static int peer_begin(struct peer_measurement *measurement)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];
	int ret;

	step_set(measurement, "it does not join the mesh");
	memset(&frame, 0, sizeof(frame));
	frame.measure.job = measurement->peer->routes.job;
	frame.measure.over_relays = !measurement->nic;
	ret = peer_ask_to_measure(measurement->checker, measurement->peer, measurement->stream,
				  &frame, MESH_CHECK_MEASURE_BEGIN, MESH_CHECK_MEASURE_READY, text);
	memcpy(measurement->theirs, frame.measure.handle, sizeof(measurement->theirs));
	return ret ? peer_failed(measurement, ret, text) : 0;
}

static int end_poll(void *arg)
{
	int ret = peer_end_poll(arg);

	/* The plugin's own thread connects; only messages are polled for. */
	if (ret == -EAGAIN)
		interrupt_wait(-1, 0, mesh_clock_ms() + 1);
	return ret;
}

static int connections_await(struct peer_measurement *measurement)
{
	uint64_t until_ms = mesh_clock_ms() + MEET_MS;
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];
	int ret;

	step_set(measurement, "no connection to it comes up");
	memset(&frame, 0, sizeof(frame));
	memcpy(frame.measure.handle, measurement->ours, sizeof(frame.measure.handle));
	ret = peer_stream_send(measurement->stream, &frame, MESH_CHECK_MEASURE_MEET,
			       ++measurement->stream->number);
	if (ret)
		return ret;
	ret = peer_stream_await_polling(measurement->stream, MESH_CHECK_MEASURE_MET,
					measurement->stream->number, until_ms, end_poll,
					measurement->end, &frame, text);
	while (!ret && (ret = end_poll(measurement->end)) == -EAGAIN && mesh_clock_ms() < until_ms)
		ret = interrupt_happened() ? -EINTR : 0;
	if (ret && *text)
		return peer_failed(measurement, ret, text);
	return ret ? end_failed(measurement, ret) : 0;
}

/* ---- measuring ---------------------------------------------------------------------------- */

static int back(struct peer_measurement *measurement)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];
	int ret;

	step_set(measurement, "what it sends does not arrive here");
	memset(&frame, 0, sizeof(frame));
	frame.measure.ms = measurement->checker->options->ms;
	ret = peer_stream_send(measurement->stream, &frame, MESH_CHECK_MEASURE_RUN,
			       ++measurement->stream->number);
	if (!ret)
		ret = peer_stream_await_polling(measurement->stream, MESH_CHECK_MEASURE_RAN,
						measurement->stream->number,
						mesh_clock_ms() + frame.measure.ms + RAN_MS,
						end_poll, measurement->end, &frame, text);
	else
		*text = '\0';
	if (ret)
		return peer_failed(measurement, ret, text);
	measurement->measured.numbers.from_gbps = peer_gbps(frame.measure.bytes, frame.measure.ns);
	if (frame.measure.cpu_permille < 1000)
		measurement->measured.numbers.cpu_there = frame.measure.cpu_permille / 1000.0;
	return 0;
}

/* The paths that the connection has. */
static void paths_collect(struct peer_measurement *measurement)
{
	struct peer_measured *measured = &measurement->measured;
	int i;

	measured->num_paths = peer_end_num_paths(measurement->end);
	for (i = 0; i < measured->num_paths && i < MESH_PATHS_MAX; i++) {
		snprintf(measured->paths[i].nic, sizeof(measured->paths[i].nic), "%s",
			 peer_end_nic(measurement->end, i));
		snprintf(measured->paths[i].via, sizeof(measured->paths[i].via), "%s",
			 peer_end_via(measurement->end, i));
	}
}

/* Small messages there and back, one at a time, for @ms; a few however long they take. */
static int pings_take(struct peer_measurement *measurement, uint32_t ms)
{
	uint64_t times[PINGS], started, enough_ms = mesh_clock_ms() + ms;
	uint32_t seq = 0;
	int num = 0, ret;

	while (num < PINGS && (num < PINGS_LEAST || mesh_clock_ms() < enough_ms)) {
		started = mesh_clock_ns();
		ret = peer_end_ping(measurement->end, ++seq, mesh_clock_ms() + PING_MS);
		if (ret)
			return ret;
		if (seq > PINGS_WARM)
			times[num++] = mesh_clock_ns() - started;
	}
	measurement->measured.numbers.half_rtt_us = (double)peer_half_rtt(times, num) / 1000;
	return 0;
}

static int forth(struct peer_measurement *measurement, uint32_t ms)
{
	uint64_t bytes = 0, ns = 0;
	int ret;

	peer_end_run(measurement->end, ms);
	do {
		ret = peer_end_step(measurement->end, &bytes, &ns);
	} while (ret == -EAGAIN && !interrupt_happened());
	if (!ret)
		measurement->measured.numbers.to_gbps = peer_gbps(bytes, ns);
	return ret == -EAGAIN ? -EINTR : ret;
}

/* A connection over relays begins with one route; those that are as good join it soon. */
static int routes_await(struct peer_measurement *measurement)
{
	uint64_t until_ms = mesh_clock_ms() + ROUTES_MS;
	int ret = 0, routes = measurement->nic ? 1 : measurement->peer->routes.num;

	while (!ret && peer_end_num_paths(measurement->end) < routes && mesh_clock_ms() < until_ms)
		ret = interrupt_happened() ? -EINTR : end_poll(measurement->end);
	return ret;
}

static int figures_take(struct peer_measurement *measurement)
{
	uint32_t ms = measurement->checker->options->ms;
	int ret;

	step_set(measurement, "messages do not come back");
	ret = routes_await(measurement);
	paths_collect(measurement);
	if (!ret)
		ret = pings_take(measurement, ms);
	if (!ret) {
		step_set(measurement, "what this node sends does not arrive there");
		ret = forth(measurement, ms);
	}
	if (!ret)
		ret = back(measurement);
	measurement->measured.numbers.cpu_here = peer_end_cpu_share(measurement->end);
	return ret && !*measurement->measured.words ? end_failed(measurement, ret) : ret;
}

/*
 * We leave the mesh last, when the peer has closed its connections as well: then a relay has ended
 * the circuits of both, and misses nothing. After an error it ends by itself.
 */
static void measurement_end(struct peer_measurement *measurement, int error)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];

	memset(&frame, 0, sizeof(frame));
	if (!error) {
		peer_end_hang_up(measurement->end);
		peer_stream_ask(measurement->stream, &frame, MESH_CHECK_MEASURE_END,
				MESH_CHECK_MEASURE_RAN, PEER_ANSWER_MS, text);
	}
	peer_stream_close(measurement->stream);
	peer_end_close(measurement->end);
}

/* In the child: nobody else writes to its standard output. */
static void child_measure(void *arg)
{
	struct peer_measurement *measurement = arg;
	struct peer_measured *measured = &measurement->measured;
	ssize_t written;
	int ret = end_open(measurement);

	if (!ret) {
		peer_end_meet(measurement->end, measurement->theirs);
		ret = connections_await(measurement);
	}
	if (!ret)
		ret = figures_take(measurement);
	measurement_end(measurement, ret);
	measured->error = ret;
	written = write(STDOUT_FILENO, measured, sizeof(*measured)); /* fits into a pipe */
	(void)written; /* an answer that is not whole is none */
}

/* A process joins the mesh once, as one thing: so each measurement has a child of its own. */
static int child_await(struct peer_measurement *measurement)
{
	struct peer_measured *measured = &measurement->measured;
	struct child_result result;
	int ret = child_run(child_measure, measurement, CHILD_MS, &result);

	if (interrupt_happened())
		ret = -EINTR;
	else if (!ret && result.size != sizeof(*measured))
		ret = -ECHILD;
	if (!ret) {
		memcpy(measured, result.output, sizeof(*measured));
		ret = measured->error;
	}
	free(result.output);
	return ret;
}

int peer_measure(struct peer_measurement *measurement)
{
	int ret = peer_begin(measurement);

	if (!ret)
		ret = child_await(measurement);
	peer_stream_close(measurement->stream);
	return ret;
}
